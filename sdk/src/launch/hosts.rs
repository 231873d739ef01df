//! Ranks on several hosts, each started through a command that leads there.
#![forbid(unsafe_code)]

use crate::bootstrap::Local;
use crate::config::{MeetingAddress, address, setting};
use crate::partition::partition;
use crate::{Rank, Result};
use std::ffi::{OsStr, OsString};

/// Hosts, how to start a program there, and where their ranks meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    names: Vec<String>,
    remote_shell: Vec<String>,
    pub(super) address: MeetingAddress,
}

impl Hosts {
    /// Hosts by any names that the remote shell understands.
    ///
    /// `remote_shell` is a command whose words are separated by spaces; `{host}` becomes the name of the host. The rank's
    /// command is appended word by word, as in `ip netns exec {host}`, or put in the place of `{command}` as one word
    /// quoted for a shell, as in `ssh {host} {command}`. `address` is `HOST:PORT` on the host of the launcher, which
    /// listens there: it must be reachable from all hosts.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`](crate::Error::Setting) when there is no host, no remote shell, or no such address.
    pub fn new(
        names: impl IntoIterator<Item = impl Into<String>>,
        remote_shell: &str,
        meeting: &str,
    ) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err(setting("the hosts", &names.join(","), "names separated by commas"));
        }
        let remote_shell: Vec<String> = remote_shell.split_whitespace().map(str::to_owned).collect();
        if !remote_shell.iter().any(|word| word.contains(HOST)) {
            let allowed = "a command that contains {host}, as `ssh {host} {command}`";
            return Err(setting("the remote shell", &remote_shell.join(" "), allowed));
        }
        match address(meeting) {
            Ok(address @ MeetingAddress::Tcp { .. }) => Ok(Self { names, remote_shell, address }),
            _ => {
                Err(setting("the address where the ranks meet", meeting, "HOST:PORT on the launcher's host"))
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// The place of a rank of `size` on its host: ranks next to each other share hosts, as evenly as it goes.
    pub(super) fn local(&self, rank: Rank, size: usize) -> Local {
        let ranks = partition(size, self.count(), self.host(rank, size));
        Local { rank: rank.saturating_sub(ranks.start), size: ranks.len() }
    }

    fn host(&self, rank: Rank, size: usize) -> usize {
        let runs_on = |host: &usize| partition(size, self.count(), *host).contains(&rank);
        (0..self.count()).find(runs_on).unwrap_or_default()
    }

    /// The words that start a command with these variables on the host of a rank.
    pub(super) fn command(
        &self,
        rank: Rank,
        size: usize,
        variables: impl Iterator<Item = (OsString, OsString)>,
        command: &[OsString],
    ) -> Vec<OsString> {
        let name = &self.names[self.host(rank, size)];
        let assignments = variables.map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        });
        let started: Vec<OsString> =
            [OsString::from("env")].into_iter().chain(assignments).chain(command.iter().cloned()).collect();
        let is_quoted = self.remote_shell.iter().any(|word| word == COMMAND);
        let shell = self.remote_shell.iter().map(|word| match word.as_str() {
            COMMAND => quoted(&started),
            word => OsString::from(word.replace(HOST, name)),
        });
        if is_quoted { shell.collect() } else { shell.chain(started.iter().cloned()).collect() }
    }
}

const HOST: &str = "{host}";
const COMMAND: &str = "{command}";

/// Words as a shell reads them back.
fn quoted(words: &[OsString]) -> OsString {
    let mut line = OsString::new();
    for word in words {
        if !line.is_empty() {
            line.push(" ");
        }
        line.push("'");
        for (index, piece) in pieces(word).into_iter().enumerate() {
            if index > 0 {
                line.push(r"'\''");
            }
            line.push(piece);
        }
        line.push("'");
    }
    line
}

/// What lies between the quotation marks of a word.
fn pieces(word: &OsStr) -> Vec<&OsStr> {
    use std::os::unix::ffi::OsStrExt;
    word.as_bytes().split(|byte| *byte == b'\'').map(OsStr::from_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(count: usize, shell: &str) -> Hosts {
        Hosts::new((0..count).map(|index| format!("h{index}")), shell, "head:4711").unwrap()
    }

    #[test]
    fn ranks_are_spread_evenly_in_order() {
        let hosts = hosts(3, "on {host}");
        for size in 3..20 {
            let places: Vec<(usize, Local)> =
                (0..size).map(|rank| (hosts.host(rank, size), hosts.local(rank, size))).collect();
            for (host, group) in
                [0, 1, 2].map(|host| (host, places.iter().filter(move |place| place.0 == host)))
            {
                let found: Vec<Local> = group.map(|(_, local)| *local).collect();
                assert!(found.len() == size / 3 || found.len() == size.div_ceil(3), "{size} on {host}");
                let expected = (0..found.len()).map(|rank| Local { rank, size: found.len() });
                assert_eq!(found, expected.collect::<Vec<_>>());
            }
            assert!(places.is_sorted_by_key(|(host, _)| *host));
        }
    }

    #[test]
    fn the_command_follows_or_takes_its_place() {
        let variables = || [(OsString::from("A"), OsString::from("x y"))].into_iter();
        let command = [OsString::from("train"), OsString::from("it's")];
        let words = |shell| hosts(2, shell).command(3, 4, variables(), &command);
        assert_eq!(
            words("ip netns exec {host}"),
            ["ip", "netns", "exec", "h1", "env", "A=x y", "train", "it's"]
        );
        assert_eq!(
            words("ssh -q u@{host} {command}"),
            ["ssh", "-q", "u@h1", r"'env' 'A=x y' 'train' 'it'\''s'"]
        );
    }

    #[test]
    fn hosts_that_make_no_sense_are_refused() {
        let none: [&str; 0] = [];
        assert!(Hosts::new(none, "on {host}", "head:1").is_err());
        assert!(Hosts::new(["a", ""], "on {host}", "head:1").is_err());
        assert!(Hosts::new(["a"], "ssh a", "head:1").is_err());
        for address in ["head", "unix:x", ""] {
            assert!(Hosts::new(["a"], "on {host}", address).is_err(), "{address}");
        }
    }
}
