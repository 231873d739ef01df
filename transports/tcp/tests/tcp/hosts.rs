//! Two hosts, made of network namespaces. Skipped where this process may not make them.

use crate::support::{Endpoint, config, peer};
use gradwire_transport::{Activity, Address, Event, LossReason, Posted, Tag, Transport};
use gradwire_transport_tcp::TcpConfig;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Two namespaces, `a` and `b`, joined by a cable. Gone when this is dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// `None`, and a line that says so, where that is not possible.
    fn new(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|side| format!("gw-{}-{test}-{side}", std::process::id()));
        let hosts = Self { names };
        let [a, b] = &hosts.names;
        let made = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("link add gw0 netns {a} type veth peer name gw0 netns {b}"));
        if !made {
            let _ = writeln!(
                std::io::stderr(),
                "skipped hosts::{test}: needs `ip netns` and the right to use it"
            );
            return None;
        }
        for side in 0..2 {
            hosts.on(side, "link set lo up");
        }
        Some(hosts)
    }

    fn on(&self, side: usize, arguments: &str) {
        assert!(ip(&format!("-netns {} {arguments}", self.names[side])), "ip {arguments}");
    }

    fn plug_in(&self) {
        (0..2).for_each(|side| self.on(side, "link set gw0 up"));
        let start = Instant::now();
        while !(0..2).all(|side| self.has_carrier(side)) {
            assert!(start.elapsed() < Duration::from_secs(10), "the cable has no carrier");
        }
    }

    fn has_carrier(&self, side: usize) -> bool {
        let show =
            Command::new("ip").args(["-netns", &self.names[side], "-brief", "link", "show", "gw0"]).output();
        show.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" UP "))
    }

    /// Runs one side on a thread that lives on that host.
    fn run<T: Send>(&self, script: impl Fn(Host<'_>) -> T + Sync) -> [T; 2] {
        let (to_a, from_b) = channel();
        let (to_b, from_a) = channel();
        std::thread::scope(|scope| {
            let start = |side: usize, to, from| {
                let script = &script;
                scope.spawn(move || {
                    let namespace =
                        File::open(format!("/run/netns/{}", self.names[side])).expect("a namespace");
                    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                        .expect("the right to enter");
                    script(Host { side, to, from, hosts: self })
                })
            };
            let (a, b) = (start(0, to_b, from_b), start(1, to_a, from_a));
            [a.join().expect("side a"), b.join().expect("side b")]
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns delete {name}"));
        }
    }
}

struct Host<'a> {
    side: usize,
    to: Sender<Address>,
    from: Receiver<Address>,
    hosts: &'a Hosts,
}

impl Host<'_> {
    /// An endpoint here, introduced to the one there.
    fn endpoint(&self, config: TcpConfig) -> Endpoint {
        let mut end = Endpoint::new(config);
        let there = self.swap(end.tcp.address());
        end.tcp.connect(peer(0), &there).expect("an address");
        end
    }

    /// Gives the other side an address and waits for its.
    fn swap(&self, address: Address) -> Address {
        self.to.send(address).expect("the other side");
        self.from.recv().expect("the other side")
    }

    /// Drives the endpoint until the other side has come as far.
    fn meet(&self, end: &mut Endpoint) {
        self.to.send(end.tcp.address()).expect("the other side");
        run_until(end, |_| match self.from.try_recv() {
            Ok(_) => true,
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => panic!("the other side has given up"),
        });
    }
}

fn run_until(end: &mut Endpoint, done: impl Fn(&Endpoint) -> bool) {
    let start = Instant::now();
    while !done(end) {
        if end.turn(Instant::now()) == Activity::Idle {
            std::thread::yield_now();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{end:#?}");
    }
}

fn lost(end: &Endpoint) -> Vec<LossReason> {
    end.pick(|event| if let Event::PeerLost(_, reason) = event { Some(reason.clone()) } else { None })
}

fn everywhere() -> TcpConfig {
    let mut config = config("lo");
    config.interface = None;
    config
}

/// Both sides connect and hear from each other.
fn talk(host: &Host<'_>) -> Endpoint {
    let mut end = host.endpoint(everywhere());
    run_until(&mut end, |end| end.saw(&Event::Connected(peer(0))));
    assert_eq!(end.tcp.send(peer(0), Tag(host.side as u32), b"hello"), Ok(Posted::Queued));
    run_until(&mut end, |end| !end.messages().is_empty());
    assert_eq!(end.messages(), [(1 - host.side as u32, b"hello".to_vec())]);
    host.meet(&mut end);
    end
}

#[test]
fn bridges_with_the_same_address_everywhere_do_not_matter() {
    let Some(hosts) = Hosts::new("bridges") else { return };
    for side in 0..2 {
        hosts.on(side, "link add br0 type bridge");
        hosts.on(side, "address add 172.17.0.1/16 dev br0");
        hosts.on(side, "link set br0 up");
        hosts.on(side, "link add br1 type bridge");
        hosts.on(side, "address add 172.18.0.1/16 dev br1");
        hosts.on(side, "link set br1 up");
        hosts.on(side, &format!("address add 10.9.0.{}/24 dev gw0", side + 1));
    }
    hosts.plug_in();
    hosts.run(|host| drop(talk(&host)));
}

#[test]
fn a_common_family_is_found() {
    let Some(hosts) = Hosts::new("families") else { return };
    hosts.on(0, "address add 10.9.0.1/24 dev gw0");
    hosts.on(0, "-6 address add fd09::1/64 dev gw0 nodad");
    hosts.on(1, "-6 address add fd09::2/64 dev gw0 nodad");
    hosts.plug_in();
    hosts.run(|host| drop(talk(&host)));
}

#[test]
fn no_common_family_is_told_at_once() {
    let Some(hosts) = Hosts::new("strangers") else { return };
    hosts.on(0, "address add 10.9.0.1/24 dev gw0");
    hosts.on(1, "-6 address add fd09::2/64 dev gw0 nodad");
    hosts.plug_in();
    hosts.run(|host| {
        let mut config = config("gw0");
        config.ports = Some(29_500..=29_540);
        let mut end = Endpoint::new(config);
        let there = host.swap(end.tcp.address());
        let verdict = end.tcp.connect(peer(0), &there);
        assert!(matches!(verdict, Err(gradwire_transport::ConnectError::Unreachable { .. })), "{verdict:?}");
    });
}

#[test]
fn a_pulled_cable_is_noticed_in_time() {
    for busy in [false, true] {
        let Some(hosts) = Hosts::new(if busy { "busy" } else { "idle" }) else { return };
        for side in 0..2 {
            hosts.on(side, &format!("address add 10.9.0.{}/24 dev gw0", side + 1));
        }
        hosts.plug_in();
        hosts.run(|host| {
            let mut config = everywhere();
            config.heartbeat = Duration::from_millis(200);
            config.missed_heartbeats = 10;
            let mut end = host.endpoint(config);
            run_until(&mut end, |end| end.saw(&Event::Connected(peer(0))));
            host.meet(&mut end);
            if host.side == 0 {
                host.hosts.on(0, "link set gw0 down");
            }
            host.meet(&mut end);
            let cut = Instant::now();
            if busy {
                while end.tcp.send(peer(0), Tag(1), &[1; 60_000]) == Ok(Posted::Queued) {}
            }
            run_until(&mut end, |end| !lost(end).is_empty());
            let took = cut.elapsed();
            assert!(took < Duration::from_secs(15), "after {took:?}");
            assert!(
                matches!(lost(&end)[..], [LossReason::Silent(_) | LossReason::Broken { .. }]),
                "{:?}",
                lost(&end)
            );
        });
    }
}
