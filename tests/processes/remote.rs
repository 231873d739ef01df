//! Network namespaces that stand for hosts: sockets of one are out of reach of the others, but for the wire.

use crate::job::RANK;
use gradwire::launch::{Ending, Hosts, Launcher, OnFailure};
use std::process::{Command, Stdio};

const SHELL: &str = "ip netns exec {host}";
/// The launcher's end of the wires, of a network that is there for tests only (RFC 2544).
const NETWORK: &str = "198.18.77";

/// Two namespaces and a bridge that joins them with the launcher. Removed with this.
struct Namespaces {
    names: [String; 2],
    bridge: String,
}

impl Namespaces {
    /// Nothing where they cannot be made: only root can, and not in every container.
    fn new() -> Option<Self> {
        let number = std::process::id() % 100_000;
        let made =
            Self { names: ["a", "b"].map(|name| format!("gw{number}{name}")), bridge: format!("gw{number}") };
        let bridge = &made.bridge;
        let mut lines = vec![
            format!("link add {bridge} type bridge"),
            format!("address add {NETWORK}.1/24 dev {bridge}"),
            format!("link set {bridge} up"),
        ];
        for (name, host) in made.names.iter().zip(2..) {
            lines.extend([
                format!("netns add {name}"),
                format!("link add {name} type veth peer name eth0 netns {name}"),
                format!("link set {name} master {bridge} up"),
                format!("-n {name} address add {NETWORK}.{host}/24 dev eth0"),
                format!("-n {name} link set eth0 up"),
                format!("-n {name} link set lo up"),
            ]);
        }
        if lines.iter().all(|line| ip(line)) {
            return Some(made);
        }
        println!("skipped: network namespaces cannot be made here");
        None
    }

    fn hosts(&self, port: u16) -> Hosts {
        Hosts::new(self.names.clone(), SHELL, &format!("{NETWORK}.1:{port}")).unwrap()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns delete {name}"));
        }
        ip(&format!("link delete {}", self.bridge));
    }
}

fn ip(line: &str) -> bool {
    let status =
        Command::new("ip").args(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn ranks_on_two_hosts() {
    let Some(namespaces) = Namespaces::new() else { return };
    // Each tells where it runs and which of its host it is: 3 ranks, so two on the first host.
    let [a, b] = &namespaces.names;
    let script = format!(
        r#"case "$(ip netns identify $$) $GRADWIRE_LOCAL_RANK of $GRADWIRE_LOCAL_SIZE" in
            "{a} 0 of 2") exit 10;; "{a} 1 of 2") exit 11;; "{b} 0 of 1") exit 12;; esac"#
    );
    let told = Launcher::new("sh").arguments(["-c", &script]).ranks(3).hosts(namespaces.hosts(47_110));
    let report = told.on_failure(OnFailure::Continue).run().unwrap();
    assert_eq!(report.endings, [10, 11, 12].map(Ending::Code));

    // Both kinds of path: shared memory within a host, TCP between them.
    let trained = Launcher::new(RANK).argument("train").ranks(4).hosts(namespaces.hosts(47_111));
    assert!(trained.run().unwrap().is_success());
    // Without TCP there is no way from one to the other.
    let shm = Launcher::new(RANK).argument("train").ranks(2).hosts(namespaces.hosts(47_112));
    let report = shm.variable("GRADWIRE_TRANSPORT", "shm").run().unwrap();
    assert!(!report.is_success(), "{report}");
}
