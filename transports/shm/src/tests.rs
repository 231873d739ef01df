//! Endpoints in one process, strangers at the socket, and processes that die.

use crate::{Shm, ShmConfig};
use gradwire_transport::{
    Activity, Address, Allocation, ConnectError, Event, EventRef, Events, FailReason, Get, ImportError,
    Linger, LossReason, Memory, Notice, Peer, Posted, Put, Region, RegisterError, RemoteRegion, Tag, Token,
    Transport, TransportError,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

mod death;
mod strangers;

const PEER: Peer = Peer::new(0, 0);
const PATIENCE: Duration = Duration::from_secs(20);

/// One endpoint and everything it ever reported.
struct Endpoint {
    shm: Shm,
    events: Vec<Event>,
    messages: Vec<(Peer, Tag, Vec<u8>)>,
}

impl Endpoint {
    fn new(config: ShmConfig) -> Self {
        Self { shm: Shm::new(config).expect("shared memory"), events: Vec::new(), messages: Vec::new() }
    }

    fn step(&mut self) -> Activity {
        let mut events = Events::new();
        let activity = self.shm.progress(Instant::now(), &mut events).expect("a working transport");
        for event in events.iter() {
            match event {
                EventRef::Received(peer, tag, bytes) => self.messages.push((peer, tag, bytes.to_vec())),
                EventRef::Other(event) => self.events.push(event.clone()),
                _ => panic!("an event of a new kind"),
            }
        }
        activity
    }

    fn has(&self, event: &Event) -> bool {
        self.events.contains(event)
    }

    fn loss(&self) -> Option<&LossReason> {
        self.events.iter().find_map(|event| match event {
            Event::PeerLost(_, reason) => Some(reason),
            _ => None,
        })
    }
}

/// Drives all endpoints until `done`.
fn drive<const N: usize>(
    endpoints: &mut [&mut Endpoint; N],
    mut done: impl FnMut(&mut [&mut Endpoint; N]) -> bool,
) {
    let start = Instant::now();
    while !done(endpoints) {
        assert!(
            start.elapsed() < PATIENCE,
            "{:?}",
            endpoints.iter().map(|end| &end.events).collect::<Vec<_>>()
        );
        for endpoint in endpoints.iter_mut() {
            endpoint.step();
        }
    }
}

fn connect(left: &mut Endpoint, right: &mut Endpoint) {
    let addresses = [left.shm.address(), right.shm.address()];
    left.shm.connect(PEER, &addresses[1]).expect("the same host");
    right.shm.connect(PEER, &addresses[0]).expect("the same host");
    drive(&mut [left, right], |ends| ends.iter().all(|end| end.has(&Event::Connected(PEER))));
}

fn pair() -> (Endpoint, Endpoint) {
    let config = ShmConfig { secret: Some([7; 32]), ..ShmConfig::default() };
    let (mut left, mut right) = (Endpoint::new(config.clone()), Endpoint::new(config));
    connect(&mut left, &mut right);
    (left, right)
}

fn share(owner: &mut Endpoint, user: &mut Endpoint, len: usize) -> (Region, Allocation, RemoteRegion) {
    let (region, allocation) = owner.shm.allocate(len).expect("memory");
    let key = owner.shm.export(region).expect("a region of ours");
    let remote = user.shm.import(PEER, &key).expect("already announced");
    (region, allocation, remote)
}

fn write(address: NonNull<u8>, bytes: &[u8]) {
    // SAFETY: the tests pass addresses of mapped memory of at least that many bytes; nothing refers to it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.as_ptr(), bytes.len()) };
}

fn read(address: NonNull<u8>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: as in `write`.
    unsafe { std::ptr::copy_nonoverlapping(address.as_ptr(), bytes.as_mut_ptr(), len) };
    bytes
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251 + seed) as u8).collect()
}

#[test]
fn messages_arrive_whole_and_in_order_both_ways() {
    let (mut left, mut right) = pair();
    for round in 0..500_usize {
        let payload = bytes((round * 37) % 16_385, round);
        for endpoint in [&mut left, &mut right] {
            let tag = Tag(round as u32);
            assert_eq!(endpoint.shm.send(PEER, tag, &payload), Ok(Posted::Queued));
        }
        drive(&mut [&mut left, &mut right], |ends| ends.iter().all(|end| end.messages.len() == round + 1));
        for endpoint in [&left, &right] {
            assert_eq!(endpoint.messages[round], (PEER, Tag(round as u32), payload.clone()));
        }
    }
}

#[test]
fn a_full_ring_pushes_back_and_the_sleeper_is_woken_when_there_is_room() {
    let (mut left, mut right) = pair();
    let mut sent = 0;
    while left.shm.send(PEER, Tag(sent), &bytes(1000, sent as usize)) == Ok(Posted::Queued) {
        sent += 1;
    }
    assert!(sent > 100);
    while left.step() == Activity::Busy {}
    assert!(left.shm.prepare_sleep());
    assert!(!readable(&left.shm, Duration::ZERO));
    drive(&mut [&mut right], |ends| ends[0].messages.len() == sent as usize);
    assert!(readable(&left.shm, PATIENCE));
    assert_eq!(left.step(), Activity::Busy);
    assert_eq!(left.shm.send(PEER, Tag(sent), &[]), Ok(Posted::Queued));
    for (index, (_, tag, payload)) in right.messages.iter().enumerate() {
        assert_eq!((tag.0 as usize, payload), (index, &bytes(1000, index)));
    }
}

#[test]
fn sleepers_are_woken_and_nobody_sleeps_over_a_message() {
    let (mut left, mut right) = pair();
    while left.step() == Activity::Busy {}
    assert!(left.shm.prepare_sleep());
    assert!(!readable(&left.shm, Duration::ZERO));
    assert_eq!(right.shm.send(PEER, Tag(1), b"up"), Ok(Posted::Queued));
    assert!(readable(&left.shm, PATIENCE));
    assert_eq!(left.step(), Activity::Busy);
    assert_eq!(left.messages.len(), 1);
    while left.step() == Activity::Busy {}
    assert_eq!(right.shm.send(PEER, Tag(2), b"no bell"), Ok(Posted::Queued));
    assert!(!left.shm.prepare_sleep());
    left.step();
    assert_eq!(left.messages.len(), 2);
}

fn readable(shm: &Shm, patience: Duration) -> bool {
    let fd = shm.readiness().expect("a descriptor");
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)).expect("poll")
        == 1
}

#[test]
fn puts_and_gets_move_the_bytes_asked_for_and_no_others() {
    let (mut left, mut right) = pair();
    let (_region, target, remote) = share(&mut right, &mut left, 10_000);
    let mut private = bytes(5000, 3);
    // SAFETY: `private` outlives the transport's use of it, and is not touched meanwhile.
    let memory = unsafe { Memory::host(NonNull::from(&mut private[..]).cast(), private.len()) };
    let source = left.shm.register(&memory).expect("any memory");
    assert_eq!(left.shm.export(source), None, "no peer can reach private memory");
    let put = Put {
        token: Token(1),
        len: 777,
        source,
        source_offset: 11,
        target: remote,
        target_offset: 4001,
        notice: Some(Notice::new(5, 6)),
    };
    assert_eq!(left.shm.put(&put), Ok(Posted::Queued));
    drive(&mut [&mut left, &mut right], |[left, right]| {
        left.has(&Event::Done(Token(1))) && right.has(&Event::Notified(PEER, Notice::new(5, 6)))
    });
    let mut expected = vec![0; 10_000];
    expected[4001..4778].copy_from_slice(&bytes(5000, 3)[11..788]);
    assert_eq!(read(target.address(), 10_000), expected);

    let (destination, allocation) = left.shm.allocate(100).expect("memory");
    let get = Get {
        token: Token(2),
        len: 90,
        source: remote,
        source_offset: 4001,
        target: destination,
        target_offset: 10,
    };
    assert_eq!(left.shm.get(&get), Ok(Posted::Queued));
    drive(&mut [&mut left], |[left]| left.has(&Event::Done(Token(2))));
    assert_eq!(read(allocation.address(), 100), [&[0; 10], &expected[4001..4091]].concat());

    for (source_offset, target_offset, len) in
        [(0, 10_000, 1), (5000, 0, 1), (usize::MAX, 0, 1), (0, usize::MAX, 2)]
    {
        let wrong = Put { source_offset, target_offset, len, ..put };
        assert!(matches!(left.shm.put(&wrong), Err(TransportError::OutOfRange { .. })), "{wrong:?}");
    }
    left.shm.deregister(source);
    assert!(matches!(left.shm.put(&put), Err(TransportError::OutOfRange { region_len: 0, .. })));
}

#[test]
fn a_deregistered_region_keeps_address_and_contents_and_no_peer_writes_it_any_more() {
    let (mut left, mut right) = pair();
    for len in [1, 4096, 10_001] {
        let (region, allocation, remote) = share(&mut right, &mut left, len);
        let direct = left.shm.direct(remote).expect("mapped");
        assert_eq!(direct.len, len);
        write(direct.address, &bytes(len, 1));
        assert_eq!(read(allocation.address(), len), bytes(len, 1));
        right.shm.deregister(region);
        write(direct.address, &bytes(len, 2));
        assert_eq!(read(allocation.address(), len), bytes(len, 1));
        write(allocation.address(), &bytes(len, 3));
        assert_eq!(read(direct.address, len), bytes(len, 2));
        assert_eq!(right.shm.export(region), None);
        let (source, _memory) = left.shm.allocate(1).expect("memory");
        let put = Put {
            token: Token(9),
            len: 1,
            source,
            source_offset: 0,
            target: remote,
            target_offset: 0,
            notice: None,
        };
        drive(&mut [&mut left], |[left]| left.shm.import(PEER, &key_of(&right, len)).is_err());
        assert_eq!(left.shm.put(&put), Ok(Posted::Queued));
        drive(&mut [&mut left], |[left]| left.has(&Event::Failed(Token(9), FailReason::Revoked)));
        left.events.clear();
        left.shm.release(remote);
        assert!(left.shm.direct(remote).is_none());
    }
    let (region, allocation, remote) = share(&mut right, &mut left, 5000);
    let direct = left.shm.direct(remote).expect("mapped");
    write(direct.address, &bytes(5000, 4));
    let _ = region;
    drop(right);
    write(direct.address, &bytes(5000, 5));
    assert_eq!(read(allocation.address(), 5000), bytes(5000, 4), "the end of the transport revokes, too");
}

#[test]
fn keys_are_found_whenever_the_region_was_made_and_refused_when_it_is_gone() {
    let config = ShmConfig::default();
    let (mut left, mut right) = (Endpoint::new(config.clone()), Endpoint::new(config));
    let (early, _early_memory) = right.shm.allocate(100).expect("memory");
    let early_key = right.shm.export(early).expect("a region of ours");
    assert_eq!(left.shm.import(PEER, &early_key), Err(ImportError::NotConnected));
    connect(&mut left, &mut right);
    assert!(left.shm.import(PEER, &early_key).is_ok());
    let (late, _late_memory) = right.shm.allocate(0).expect("memory");
    let late_key = right.shm.export(late).expect("a region of ours");
    let remote = left.shm.import(PEER, &late_key).expect("nothing to wait for");
    assert_eq!(left.shm.direct(remote).expect("mapped").len, 0);
    right.shm.deregister(early);
    assert!(left.shm.import(PEER, &early_key).is_ok(), "not heard of yet");
    drive(&mut [&mut left], |[left]| left.shm.import(PEER, &early_key) == Err(ImportError::BadKey));
    assert!(
        matches!(right.shm.import(PEER, &late_key), Err(ImportError::BadKey)),
        "a key of another process"
    );
    assert!(matches!(right.shm.allocate(usize::MAX), Err(RegisterError::Limit { .. })));
    assert!(matches!(right.shm.allocate(1 << 60), Err(RegisterError::System { .. })));
}

#[test]
fn regions_by_the_hundred_reach_a_peer_that_does_not_read_its_socket() {
    let (mut left, mut right) = pair();
    let regions: Vec<_> = (1..=400).map(|len| right.shm.allocate(len).expect("memory")).collect();
    let keys: Vec<_> = regions.iter().map(|(region, _)| right.shm.export(*region).expect("ours")).collect();
    drive(&mut [&mut left, &mut right], |[left, _]| left.shm.import(PEER, &keys[399]).is_ok());
    assert!(keys.iter().all(|key| left.shm.import(PEER, key).is_ok()));
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let (mut left, right) = pair();
    let address = left.shm.address();
    assert_eq!(left.shm.connect(Peer::new(1, 0), &address), Err(ConnectError::SelfConnect));
    assert_eq!(left.shm.connect(PEER, &right.shm.address()), Err(ConnectError::PeerReused));
    let bad = Address::from_bytes(b"tcp").expect("short");
    assert!(matches!(left.shm.connect(Peer::new(1, 0), &bad), Err(ConnectError::BadAddress(_))));
    assert_eq!(left.shm.send(Peer::new(9, 9), Tag(0), &[]), Err(TransportError::NotConnected));
    assert!(matches!(left.shm.send(PEER, Tag(0), &[0; 16_385]), Err(TransportError::TooLong { .. })));
    assert!(Shm::new(ShmConfig { ring: 100_000, ..ShmConfig::default() }).is_err());
}

#[test]
fn a_process_that_does_not_listen_is_unreachable_whoever_would_dial() {
    for _ in 0..8 {
        let mut endpoint = Endpoint::new(ShmConfig::default());
        let gone = Endpoint::new(ShmConfig::default()).shm.address();
        assert!(matches!(endpoint.shm.connect(PEER, &gone), Err(ConnectError::Unreachable { .. })));
    }
}

#[test]
fn a_peer_that_leaves_in_good_order_is_reported_after_what_it_sent() {
    let (mut left, mut right) = pair();
    assert_eq!(right.shm.send(PEER, Tag(4), b"last words"), Ok(Posted::Queued));
    right.shm.disconnect(PEER, Linger::Flush);
    drive(&mut [&mut left], |[left]| left.loss().is_some());
    assert_eq!(left.messages, [(PEER, Tag(4), b"last words".to_vec())]);
    assert_eq!(left.loss(), Some(&LossReason::Closed));
    assert_eq!(left.shm.send(PEER, Tag(4), &[]), Err(TransportError::PeerLost));
    for _ in 0..100 {
        right.step();
    }
    assert_eq!(right.loss(), None, "we disconnected ourselves");
    assert_eq!(right.shm.send(PEER, Tag(4), &[]), Err(TransportError::NotConnected));
    // A new name for the same process is a new connection.
    let addresses = [left.shm.address(), right.shm.address()];
    left.shm.connect(Peer::new(0, 1), &addresses[1]).expect("still there");
    right.shm.connect(Peer::new(0, 1), &addresses[0]).expect("still there");
    drive(&mut [&mut left, &mut right], |ends| {
        ends.iter().all(|end| end.has(&Event::Connected(Peer::new(0, 1))))
    });
}

fn key_of(owner: &Endpoint, len: usize) -> gradwire_transport::RegionKey {
    let name = crate::address::Name::from_address(&owner.shm.address()).expect("ours");
    // The regions of that test are the first, the second and the third.
    let id = [1, 4096, 10_001].iter().position(|&other| other == len).expect("one of them") as u64;
    crate::remote::Key { id, len: len as u64 }.encode(name)
}
