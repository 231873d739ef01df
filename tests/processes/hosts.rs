//! Ranks on two hosts, made of namespaces for network, host name and mounts. Skipped where this process may not make them.
//!
//! What stands between hosts is tested where it does less harm: a cable that is pulled, bridges with the same address
//! everywhere, and middleboxes that forget idle connections by the tests of the TCP transport. A firewall's own table of
//! connections needs `iptables` or `nft`, which are not everywhere; there a relay stands for it.

mod names;

use crate::job::RANK;
use names::Names;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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

/// The addresses of each host on the cable.
const V4: [&str; 2] = ["10.9.1.1/24", "10.9.1.2/24"];
const V6: [&str; 2] = ["fd00:9::1/64", "fd00:9::2/64"];

impl Hosts {
    /// Hosts with an IPv4 address each. `None`, and a line that says so, where that is not possible.
    fn new(test: &str) -> Option<Self> {
        Self::with(test, [&[V4[0]], &[V4[1]]])
    }

    fn with(test: &str, addresses: [&[&str]; 2]) -> Option<Self> {
        let name = format!("gw-{}-{test}", std::process::id());
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
            for what in ["link set lo up", "link set gw0 up"] {
                assert!(ip(&format!("-netns {namespace} {what}")), "ip {what}");
            }
            for address in addresses[side] {
                // An IPv6 address is tried for duplicates first, which takes a second.
                let at_once = if address.contains(':') { " nodad" } else { "" };
                let what = format!("-netns {namespace} address add {address} dev gw0{at_once}");
                assert!(ip(&what), "ip {what}");
            }
            hosts.knows(side, &[(&format!("10.9.1.{}", 2 - side), NAMES[1 - side])]);
        }
        Some(hosts)
    }

    /// What a host knows of names, beside its own, which as Debian writes it is a loopback address.
    fn knows(&self, side: usize, names: &[(&str, &str)]) {
        let others = names.iter().map(|(address, name)| format!("{address} {name}\n"));
        let table = format!("127.0.0.1 localhost\n127.0.1.1 {}\n{}", NAMES[side], others.collect::<String>());
        std::fs::write(self.directory.join(NAMES[side]), table).unwrap();
    }

    /// Whom a host asks for other names; otherwise as this machine.
    fn asks(&self, side: usize, resolver: &str) {
        std::fs::write(self.directory.join(format!("{}.resolver", NAMES[side])), resolver).unwrap();
    }

    /// Starts a rank on a host, which trains and says so.
    fn start(&self, side: usize, variables: &[(&str, &str)]) -> Child {
        // The table, the name and the program follow as arguments.
        let inner = r#"hostname "$1" && exec "$2" train"#;
        let asks = r#"if [ -e "$1.resolver" ]; then mount --bind "$1.resolver" /etc/resolv.conf; fi"#;
        let script = format!(
            r#"mount --bind "$1" /etc/hosts && {asks} && exec unshare --uts sh -c '{inner}' sh "$2" "$3""#
        );
        Command::new("ip")
            .args(["netns", "exec", &self.namespaces[side], "sh", "-c", &script, "sh"])
            .arg(self.directory.join(NAMES[side]))
            .args([NAMES[side], RANK])
            .envs([("GRADWIRE_TIMEOUT", "30s"), ("GRADWIRE_LOG", "info")])
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Starts rank 0 on `alpha` and rank 1 on `beta`, to meet at an address.
    fn start_both(&self, meeting: &str, variables: &[(&str, &str)]) -> [Child; 2] {
        [0, 1].map(|side| {
            let rank = side.to_string();
            let place = [("GRADWIRE_SIZE", "2"), ("GRADWIRE_RANK", &*rank), ("GRADWIRE_ADDRESS", meeting)];
            self.start(side, &[&place[..], variables].concat())
        })
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// That both ranks trained, over the cable.
fn assert_trained(ranks: [Child; 2], how: &str) {
    for (rank, child) in ranks.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let (said, complained) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "rank {rank}, {how}: {said}{complained}");
        assert!(said.contains(&format!("rank {rank} of 2 trained")), "{how}: {said}{complained}");
        let paths = if rank == 0 { "self tcp" } else { "tcp self" };
        assert!(complained.contains(paths), "{how}, by another path than {paths}: {complained}");
    }
}

/// That both ranks failed, in time, with these words.
fn assert_failed(ranks: [Child; 2], words: [&str; 2]) {
    for (child, words) in ranks.into_iter().zip(words) {
        let output = child.wait_with_output().unwrap();
        let complained = text(&output.stderr);
        assert!(!output.status.success() && complained.contains(words), "{words:?}: {complained}");
    }
}

/// Case 45: the ranks form over the cable, whether they meet by address or by name.
#[test]
fn a_host_whose_own_name_is_a_loopback_address_is_reached() {
    let Some(hosts) = Hosts::new("loopback") else { return };
    for host in ["10.9.1.1", "alpha"] {
        let meeting = format!("{host}:{PORT}");
        assert_trained(hosts.start_both(&meeting, &[]), &meeting);
    }
}

/// Case 30: who meets whom is not where rank 0 is. The launcher named a port of the host of rank 1, which holds it itself.
#[test]
fn rank_0_need_not_be_on_the_host_where_the_ranks_meet() {
    let Some(hosts) = Hosts::new("elsewhere") else { return };
    for (master, port) in [("10.9.1.2", "4800"), ("beta", "4802")] {
        let ranks = [0, 1].map(|side| {
            let variables = [
                ("RANK", ["0", "1"][side]),
                ("WORLD_SIZE", "2"),
                ("LOCAL_RANK", "0"),
                ("LOCAL_WORLD_SIZE", "1"),
                ("MASTER_ADDR", master),
                ("MASTER_PORT", port),
            ];
            hosts.start(side, &variables)
        });
        assert_trained(ranks, master);
    }
}

/// Case 31: names that only one host knows, or that mean something else there.
#[test]
fn names_that_not_all_hosts_know() {
    let Some(hosts) = Hosts::new("names") else { return };
    // The host that is meant need not know what others call it.
    hosts.knows(1, &[("10.9.1.1", "meeting.example"), ("10.9.1.1", "alpha.example")]);
    for name in ["meeting.example", "alpha.example"] {
        assert_trained(hosts.start_both(&format!("{name}:{PORT}"), &[]), name);
    }
    // One that the others do not know is named by them; the host says who is missing.
    hosts.knows(0, &[("10.9.1.1", "secret.example")]);
    let ranks = hosts.start_both(&format!("secret.example:{PORT}"), &[("GRADWIRE_START_TIMEOUT", "2s")]);
    assert_failed(ranks, ["rank 1 of 2 did not come in time", "the name secret.example cannot be resolved"]);
}

/// Case 32: the name is not there when the ranks start, and comes later.
#[test]
fn a_name_that_is_not_known_yet() {
    let Some(hosts) = Hosts::new("later") else { return };
    hosts.knows(1, &[]);
    let ranks = hosts.start_both(&format!("alpha.later:{PORT}"), &[("GRADWIRE_LOG", "debug")]);
    let mut ranks = ranks.map(Some);
    let mut second = ranks[1].take().unwrap();
    let mut heard = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("the name alpha.later cannot be resolved") {
        line.clear();
        assert!(heard.read_line(&mut line).unwrap() > 0, "rank 1 has ended before it looked the name up");
    }
    hosts.knows(1, &[("10.9.1.1", "alpha.later")]);
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    let output = second.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("rank 1 of 2 trained"), "{rest}");
    assert!(ranks[0].take().unwrap().wait().unwrap().success());
}

/// Case 32: each answer takes longer than the host where the ranks meet looks the name up before it listens all the same.
#[test]
fn names_that_are_looked_up_slowly() {
    let Some(hosts) = Hosts::new("slowly") else { return };
    let slowly = |_| {
        std::thread::sleep(Duration::from_millis(700));
        Some(Ipv4Addr::new(10, 9, 1, 1))
    };
    let names = [0, 1].map(|side| Names::serve(&hosts, side, slowly));
    assert_trained(hosts.start_both(&format!("alpha.slow:{PORT}"), &[]), "by slow servers of names");
    for (side, names) in names.into_iter().enumerate() {
        assert!(names.end() > 0, "{} was not asked", NAMES[side]);
    }
}

/// Case 32: the error says that it was the name that did not come.
#[test]
fn a_name_that_nobody_tells() {
    let Some(hosts) = Hosts::new("silence") else { return };
    hosts.knows(0, &[("10.9.1.1", "alpha.silent")]);
    let names = Names::serve(&hosts, 1, |_| None);
    let ranks = hosts.start_both(&format!("alpha.silent:{PORT}"), &[("GRADWIRE_START_TIMEOUT", "2s")]);
    let still = "the name alpha.silent is still being resolved";
    assert_failed(ranks, ["rank 1 of 2 did not come in time", still]);
    assert!(names.end() > 0);
}

/// Case 32: the first answer is of yesterday, when the name was another host's.
#[test]
fn a_name_that_first_leads_nowhere() {
    let Some(hosts) = Hosts::new("stale") else { return };
    hosts.knows(0, &[("10.9.1.1", "alpha.stale")]);
    assert!(ip(&format!("-netns {} route add unreachable 10.9.1.9", hosts.namespaces[1])));
    let names =
        Names::serve(&hosts, 1, |count| Some(Ipv4Addr::new(10, 9, 1, if count == 0 { 9 } else { 1 })));
    assert_trained(hosts.start_both(&format!("alpha.stale:{PORT}"), &[]), "by a name that was another's");
    assert!(names.end() > 1, "the name was looked up once");
}

/// Case 46: whatever families of addresses the hosts have, they find one in common, or say that there is none.
#[test]
fn families_of_addresses() {
    let (both, v4, v6) = ([V4, V6], [V4, V4], [V6, V6]);
    let sides = |families: [[[&'static str; 2]; 2]; 2]| {
        [0, 1].map(|side| families[side].map(|family| family[side]).to_vec())
    };
    for (name, families, meeting) in [
        ("both", [both, both], "[fd00:9::1]"),
        ("both4", [both, both], "10.9.1.1"),
        ("4both", [v4, both], "10.9.1.1"),
        ("6both", [v6, both], "[fd00:9::1]"),
    ] {
        let mut addresses = sides(families);
        addresses.iter_mut().for_each(Vec::dedup);
        let Some(hosts) = Hosts::with(name, [&addresses[0], &addresses[1]]) else { return };
        assert_trained(hosts.start_both(&format!("{meeting}:{PORT}"), &[]), name);
    }
    let Some(hosts) = Hosts::with("46", [&[V4[0]], &[V6[1]]]) else { return };
    let ranks = hosts.start_both(&format!("10.9.1.1:{PORT}"), &[("GRADWIRE_START_TIMEOUT", "2s")]);
    assert_failed(ranks, ["rank 1 of 2 did not come in time", "10.9.1.1:4711: Network is unreachable"]);
}
