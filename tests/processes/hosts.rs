//! Ranks on two hosts, made of namespaces for network, host name and mounts. Skipped where this process may not make them.
//!
//! What stands between hosts is tested where it does less harm: a cable that is pulled, bridges with the same address
//! everywhere, families of addresses and middleboxes that forget idle connections by the tests of the TCP transport. A
//! firewall's own table of connections needs `iptables` or `nft`, which are not everywhere; there a relay stands for it.

use crate::job::RANK;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const PORT: u16 = 4711;

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Two hosts with a cable between them, whose names are `alpha` and `beta`. Gone when this is dropped.
struct Hosts {
    namespaces: [String; 2],
    directory: PathBuf,
}

const NAMES: [&str; 2] = ["alpha", "beta"];

impl Hosts {
    /// `None`, and a line that says so, where that is not possible.
    fn new(test: &str) -> Option<Self> {
        let name = format!("gw-{}", std::process::id());
        let namespaces = NAMES.map(|host| format!("{name}-{host}"));
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let hosts = Self { namespaces, directory };
        let [a, b] = &hosts.namespaces;
        let made = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("link add gw0 netns {a} type veth peer name gw0 netns {b}"));
        if !made {
            let why = "needs `ip netns` and the right to use it";
            let _ = writeln!(std::io::stderr(), "skipped hosts::{test}: {why}");
            return None;
        }
        for (side, namespace) in hosts.namespaces.iter().enumerate() {
            let address = format!("address add 10.9.1.{}/24 dev gw0", side + 1);
            for what in ["link set lo up", "link set gw0 up", &address] {
                assert!(ip(&format!("-netns {namespace} {what}")), "ip {what}");
            }
            // As Debian writes it: a host's own name is a loopback address.
            let other = format!("10.9.1.{} {}", 2 - side, NAMES[1 - side]);
            let table = format!("127.0.0.1 localhost\n127.0.1.1 {}\n{other}\n", NAMES[side]);
            std::fs::write(hosts.table(side), table).unwrap();
        }
        Some(hosts)
    }

    /// What a host knows of names.
    fn table(&self, side: usize) -> PathBuf {
        self.directory.join(NAMES[side])
    }

    /// Starts the rank of a host, which trains and says so.
    fn start(&self, side: usize, meeting: &str) -> Child {
        // The table, the name and the program follow as arguments.
        let inner = r#"hostname "$1" && exec "$2" train"#;
        let script =
            format!(r#"mount --bind "$1" /etc/hosts && exec unshare --uts sh -c '{inner}' sh "$2" "$3""#);
        Command::new("ip")
            .args(["netns", "exec", &self.namespaces[side], "sh", "-c", &script, "sh"])
            .arg(self.table(side))
            .args([NAMES[side], RANK])
            .envs([("GRADWIRE_SIZE", "2"), ("GRADWIRE_RANK", &side.to_string()), ("GRADWIRE_TIMEOUT", "30s")])
            .envs([("GRADWIRE_ADDRESS", meeting), ("GRADWIRE_LOG", "info")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            ip(&format!("netns delete {namespace}"));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Case 45: the ranks form over the cable, whether they meet by address or by name.
#[test]
fn a_host_whose_own_name_is_a_loopback_address_is_reached() {
    let Some(hosts) = Hosts::new("loopback") else { return };
    for host in ["10.9.1.1", "alpha"] {
        let meeting = format!("{host}:{PORT}");
        let ranks = [0, 1].map(|side| hosts.start(side, &meeting));
        let outputs: Vec<Output> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
        for (rank, output) in outputs.iter().enumerate() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (said, complained) = (text(&output.stdout), text(&output.stderr));
            assert!(output.status.success(), "rank {rank}, met at {meeting}: {said}{complained}");
            assert!(said.contains(&format!("rank {rank} of 2 trained")), "{said}{complained}");
            let paths = if rank == 0 { "self tcp" } else { "tcp self" };
            assert!(complained.contains(paths), "by another path than {paths}: {complained}");
        }
    }
}
