//! No descriptors left.

use crate::support::{Endpoint, config, door_of, drive, pair, peer};
use gradwire_transport::{ConnectError, Event, Posted, Tag, Transport};
use gradwire_transport_tcp::{BindError, Tcp};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

/// The limit is the whole process's: a process of its own is starved.
#[test]
fn a_job_survives_without_descriptors() {
    let test = std::env::current_exe().expect("this program");
    let status = Command::new(test)
        .args(["--exact", "descriptors::starved", "--include-ignored", "--nocapture"])
        .status()
        .expect("this program runs again");
    assert!(status.success());
}

#[test]
#[ignore = "run by a_job_survives_without_descriptors in a process of its own"]
fn starved() {
    let (mut a, mut b) = pair();
    let mut late = Endpoint::new(config("127.0.0.1"));
    let stranger = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: limit.maximum }).expect("a lower limit");
    let hoard: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();

    assert_eq!(Tcp::new(config("127.0.0.1")).err(), Some(BindError::Descriptors { limit: 64 }));
    let addresses = (a.tcp.address(), late.tcp.address());
    let (caller, called) = if addresses.0.as_bytes() < addresses.1.as_bytes() {
        (&mut a, addresses.1)
    } else {
        (&mut late, addresses.0)
    };
    assert!(matches!(caller.tcp.connect(peer(9), &called), Err(ConnectError::System { code: 24, .. })));

    // Somebody at the door who cannot be let in does not make the job spin, nor stop.
    connect(&stranger, &door_of(&a)).expect("a listener");
    let mut now = Instant::now();
    for _ in 0..200 {
        a.turn(now);
    }
    assert!(a.tcp.deadline().is_some_and(|deadline| deadline <= now + Duration::from_millis(100)));
    assert_eq!(a.turn(now), gradwire_transport::Activity::Idle);
    assert_eq!(a.tcp.send(peer(1), Tag(1), b"still here"), Ok(Posted::Queued));
    drive([&mut a, &mut b], |[_, b]| b.messages().len() == 1);

    // And the door opens again.
    drop(hoard);
    a.tcp.connect(peer(5), &late.tcp.address()).expect("an address");
    late.tcp.connect(peer(0), &a.tcp.address()).expect("an address");
    while !a.saw(&Event::Connected(peer(5))) {
        now += Duration::from_millis(20);
        a.turn(now);
        late.turn(now);
        assert!(now < Instant::now() + Duration::from_secs(60), "{a:#?}");
    }
}
