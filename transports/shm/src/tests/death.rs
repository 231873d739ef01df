//! Processes that die: this test's binary starts itself again as the peer.

use super::{Endpoint, PATIENCE, PEER, bytes, drive, read, share, write};
use crate::ShmConfig;
use gradwire_transport::{Address, Event, LossReason, Posted, RegionKey, Tag, Transport, TransportError};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const SECRET: [u8; 32] = [9; 32];

fn config() -> ShmConfig {
    ShmConfig { secret: Some(SECRET), ..ShmConfig::default() }
}

/// Started by the tests below as another process; does nothing when it is run as a test.
#[test]
fn peer_process() {
    let Ok(address) = std::env::var("GRADWIRE_SHM_TEST_PEER") else { return };
    let address: Vec<u8> = address.split(',').map(|byte| byte.parse().expect("a byte")).collect();
    let mut endpoint = Endpoint::new(config());
    println!("address {:?}", endpoint.shm.address().as_bytes());
    std::io::stdout().flush().expect("a reader");
    endpoint.shm.connect(PEER, &Address::from_bytes(&address).expect("short")).expect("the same host");
    drive(&mut [&mut endpoint], |[end]| end.has(&Event::Connected(PEER)));
    let (region, allocation) = endpoint.shm.allocate(5000).expect("memory");
    write(allocation.address(), &bytes(5000, 42));
    let key = endpoint.shm.export(region).expect("ours");
    assert_eq!(endpoint.shm.send(PEER, Tag(1), key.as_bytes()), Ok(Posted::Queued));
    // Echoes until the parent ends it, or lets go.
    while endpoint.loss().is_none() {
        endpoint.step();
        for (_, tag, payload) in std::mem::take(&mut endpoint.messages) {
            assert_eq!(endpoint.shm.send(PEER, tag, &payload), Ok(Posted::Queued));
        }
    }
}

/// Kills the child however the test ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(endpoint: &mut Endpoint) -> Guard {
    let address: Vec<String> = endpoint.shm.address().as_bytes().iter().map(u8::to_string).collect();
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "tests::death::peer_process", "--nocapture"])
        .env("GRADWIRE_SHM_TEST_PEER", address.join(","))
        .stdout(Stdio::piped())
        .spawn()
        .map(Guard)
        .expect("another process");
    let output = BufReader::new(child.0.stdout.take().expect("piped"));
    let line = output
        .lines()
        .map(|line| line.expect("text"))
        .find_map(|line| line.split_once("address [").map(|(_, list)| list.to_owned()))
        .expect("the peer's address");
    let address: Vec<u8> =
        line.trim_end_matches(']').split(", ").map(|byte| byte.parse().expect("a byte")).collect();
    endpoint.shm.connect(PEER, &Address::from_bytes(&address).expect("short")).expect("the same host");
    drive(&mut [endpoint], |[end]| end.has(&Event::Connected(PEER)) && end.messages.len() == 1);
    child
}

#[test]
fn another_process_is_reached_and_its_sudden_death_is_seen() {
    let mut endpoint = Endpoint::new(config());
    let mut child = start(&mut endpoint);
    let key: [u8; RegionKey::LEN] = endpoint.messages[0].2.as_slice().try_into().expect("a key");
    let remote = endpoint.shm.import(PEER, &RegionKey::from_bytes(key)).expect("announced before");
    let direct = endpoint.shm.direct(remote).expect("mapped");
    assert_eq!(read(direct.address, 5000), bytes(5000, 42));
    for round in 1..200 {
        let payload = bytes(round * 50, round);
        assert_eq!(endpoint.shm.send(PEER, Tag(round as u32), &payload), Ok(Posted::Queued));
        drive(&mut [&mut endpoint], |[end]| end.messages.len() == round + 1);
        assert_eq!(endpoint.messages[round].2, payload);
    }
    child.0.kill().expect("our child");
    drive(&mut [&mut endpoint], |[end]| end.loss().is_some());
    assert!(matches!(endpoint.loss(), Some(LossReason::Broken { .. })), "{:?}", endpoint.loss());
    assert_eq!(read(direct.address, 5000), bytes(5000, 42), "what the dead wrote stays readable");
    assert_eq!(endpoint.shm.send(PEER, Tag(0), &[]), Err(TransportError::PeerLost));
    for _ in 0..100 {
        endpoint.step();
    }
    let losses = endpoint.events.iter().filter(|event| matches!(event, Event::PeerLost(..))).count();
    assert_eq!(losses, 1);
}

#[test]
fn a_sleeper_is_woken_by_the_death_of_its_peer() {
    let mut endpoint = Endpoint::new(config());
    let mut child = start(&mut endpoint);
    while !endpoint.shm.prepare_sleep() {
        endpoint.step();
    }
    child.0.kill().expect("our child");
    assert!(super::readable(&endpoint.shm, PATIENCE));
    drive(&mut [&mut endpoint], |[end]| end.loss().is_some());
}

#[test]
fn connections_and_regions_leave_no_descriptor_behind() {
    let count = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let before = count();
    for _ in 0..20 {
        let mut endpoint = Endpoint::new(config());
        let mut other = Endpoint::new(config());
        super::connect(&mut endpoint, &mut other);
        let _shared = share(&mut endpoint, &mut other, 10_000);
    }
    let start = Instant::now();
    // Other tests of this process open and close descriptors, too.
    while count() > before + 40 {
        assert!(start.elapsed() < PATIENCE);
    }
}
