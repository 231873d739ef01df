//! The sending half against the receiving half, cut at every place, and the receiving half against damaged bytes.

use crate::incoming::{Incoming, Surroundings};
use crate::outgoing::{Outbound, Outgoing};
use crate::socket::{Moved, Stream};
use crate::transport::LIMITS;
use gradwire_transport::frame::Frame;
use gradwire_transport::region::Regions;
use gradwire_transport::{
    Event, EventRef, Events, LossReason, Notice, Peer, Posted, Region, RegionKey, Tag, Token,
};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const PEER: Peer = Peer::new(0, 0);
/// Bytes of each source.
const SOURCE: usize = 9_000;
/// Bytes between the targets of two puts; none is longer than a source.
const STRIDE: usize = 10_000;
const PUTS: usize = 40;
const UNTOUCHED: u8 = 0xee;

fn region(regions: &mut Regions, len: usize, byte: impl Fn(usize) -> u8) -> Region {
    let (region, _) = regions.allocate(len).expect("memory");
    let bytes: Vec<u8> = (0..len).map(byte).collect();
    regions.bytes_mut(region, 0, len).expect("the whole region").copy_from_slice(&bytes);
    region
}

struct Receiver {
    stream: Stream,
    incoming: Incoming,
    regions: Regions,
    events: Events,
}

impl Receiver {
    fn new(stream: Stream) -> Self {
        Self { stream, incoming: Incoming::new(&LIMITS), regions: Regions::new(), events: Events::new() }
    }

    fn read(&mut self, budget: usize) -> Result<usize, LossReason> {
        let mut around = Surroundings {
            peer: PEER,
            limits: &LIMITS,
            regions: &mut self.regions,
            events: &mut self.events,
        };
        self.incoming.read(&self.stream, budget, &mut around)
    }

    /// A region of `len` bytes that all are `UNTOUCHED`, and its key.
    fn export(&mut self, len: usize) -> (Region, RegionKey) {
        let target = region(&mut self.regions, len, |_| UNTOUCHED);
        let mut nonce = 0x1234_5678;
        let key = self.regions.export(target, || {
            nonce += 1;
            nonce
        });
        (target, key.expect("a region"))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Message(usize),
    Put { source: usize, len: usize, notice: bool },
    Revoke(usize),
    Write(usize),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![0..2000_usize, Just(512), Just(513), 8000..SOURCE];
    let budget = prop_oneof![1..200_usize, 1..20_000_usize];
    prop_oneof![
        2 => len.clone().prop_map(Step::Message),
        4 => (0..4_usize, len, any::<bool>())
            .prop_map(|(source, len, notice)| Step::Put { source, len, notice }),
        1 => (0..4_usize).prop_map(Step::Revoke),
        4 => budget.clone().prop_map(Step::Write),
        4 => budget.prop_map(Step::Read),
    ]
}

proptest! {
    /// However the stream is cut and whatever is revoked: messages arrive whole and in order, each operation ends
    /// once, what is notified is there, and nothing else is written.
    #[test]
    fn what_is_sent_is_received(steps in prop::collection::vec(step(), 1..120)) {
        let (near, far) = Stream::pair();
        let mut receiver = Receiver::new(far);
        let (target, key) = receiver.export(PUTS * STRIDE);
        let mut regions = Regions::new();
        let value = |source: usize, index: usize| ((index * 7 + source * 61) % 223) as u8;
        let sources: Vec<_> =
            (0..4).map(|source| region(&mut regions, SOURCE, |index| value(source, index))).collect();
        let mut outgoing = Outgoing::default();
        let (mut messages, mut puts) = (VecDeque::new(), Vec::new());
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let finish = [Step::Write(usize::MAX), Step::Read(usize::MAX)].into_iter().cycle().take(60);
        for step in steps.into_iter().chain(finish) {
            match step {
                Step::Message(len) => {
                    let bytes: Vec<u8> = (0..len).map(|index| (index + messages.len()) as u8).collect();
                    prop_assert_eq!(outgoing.message(Tag(len as u32), &bytes), Posted::Queued);
                    messages.push_back((Tag(len as u32), bytes));
                }
                Step::Put { source, len, notice } if puts.len() < PUTS => {
                    let Ok(()) = regions.check(sources[source], 0, len) else { continue };
                    let put = Outbound {
                        token: Token(puts.len() as u64),
                        source: sources[source],
                        source_offset: 0,
                        len,
                        key,
                        target_offset: (puts.len() * STRIDE) as u64,
                        notice: notice.then_some(Notice(puts.len() as u32)),
                    };
                    prop_assert_eq!(outgoing.put(&put, &regions), Posted::Queued);
                    puts.push((source, len, notice));
                }
                Step::Put { .. } => {}
                Step::Revoke(source) => {
                    outgoing.revoke(sources[source], &mut failed);
                    regions.remove(sources[source]);
                }
                Step::Write(budget) => {
                    outgoing.write(&near, &regions, budget, &mut done).expect("an open socket");
                }
                Step::Read(budget) => {
                    receiver.read(budget).expect("well-formed frames");
                }
            }
        }
        prop_assert!(outgoing.is_empty() && outgoing.is_at_boundary());

        let mut notified = BTreeSet::new();
        for event in receiver.events.iter() {
            match event {
                EventRef::Received(PEER, tag, bytes) => {
                    prop_assert_eq!(messages.pop_front(), Some((tag, bytes.to_vec())));
                }
                EventRef::Other(Event::Notified(PEER, notice)) => {
                    prop_assert!(notified.insert(notice.0 as usize));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(messages.is_empty());
        let ended: BTreeSet<_> = done.iter().chain(&failed).map(|token| token.0 as usize).collect();
        prop_assert_eq!(done.len() + failed.len(), puts.len());
        prop_assert_eq!(ended, (0..puts.len()).collect::<BTreeSet<_>>());
        for (index, (source, len, notice)) in puts.into_iter().enumerate() {
            let is_done = done.contains(&Token(index as u64));
            prop_assert_eq!(notified.contains(&index), notice && is_done);
            let landed = receiver.regions.bytes(target, index * STRIDE, STRIDE).expect("in range");
            if is_done {
                prop_assert!(landed[..len].iter().enumerate().all(|(at, byte)| *byte == value(source, at)));
            } else {
                let mut bytes = landed[..len].iter().enumerate();
                let filled = |(at, byte): (usize, &u8)| *byte == value(source, at) || *byte == 0;
                prop_assert!(landed[..len] == vec![UNTOUCHED; len] || bytes.all(filled));
            }
            prop_assert!(landed[len..].iter().all(|byte| *byte == UNTOUCHED));
        }
    }

    /// Whatever the bytes: no panic, no allocation by what they say, and nothing written beyond the region.
    #[test]
    fn any_bytes_are_survived(
        good in 0_usize..4,
        damage in prop::collection::vec((0_usize..200, any::<u8>()), 0..6),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (near, far) = Stream::pair();
        let mut receiver = Receiver::new(far);
        let (target, key) = receiver.export(100);
        let put = Frame::Put { notice: Some(Notice(1)), key, offset: 10, len: 50 };
        let mut bytes = Vec::new();
        for _ in 0..good {
            bytes.extend([&put.encode()[..], &[0x11; 50]].concat());
        }
        bytes.extend(rest);
        for (at, byte) in damage {
            if let Some(place) = bytes.get_mut(at) {
                *place ^= byte;
            }
        }
        for piece in bytes.chunks(97) {
            prop_assert_eq!(near.write(piece), Ok(Moved::Bytes(piece.len())));
            if receiver.read(usize::MAX).is_err() {
                break;
            }
        }
        prop_assert!(receiver.events.len() <= 6);
        let region = receiver.regions.bytes(target, 0, 100).expect("the whole region");
        prop_assert!(region.len() == 100);
    }
}

#[test]
fn a_put_may_be_revoked_after_any_byte() {
    const LEN: usize = 600;
    for cut in 0..=2 * Frame::HEADER_LEN + LEN {
        let (near, far) = Stream::pair();
        let mut receiver = Receiver::new(far);
        let (_, key) = receiver.export(LEN);
        let mut regions = Regions::new();
        let source = region(&mut regions, LEN, |_| 7);
        let mut outgoing = Outgoing::default();
        let notice = Some(Notice(5));
        let put =
            Outbound { token: Token(1), source, source_offset: 0, len: LEN, key, target_offset: 0, notice };
        assert_eq!(outgoing.put(&put, &regions), Posted::Queued);
        assert_eq!(outgoing.message(Tag(1), b"after"), Posted::Queued);
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let mut write = |outgoing: &mut Outgoing, regions: &Regions, budget| {
            outgoing.write(&near, regions, budget, &mut done).expect("an open socket");
        };
        if cut > 0 {
            write(&mut outgoing, &regions, cut);
        }
        outgoing.revoke(source, &mut failed);
        regions.remove(source);
        write(&mut outgoing, &regions, usize::MAX);
        receiver.read(usize::MAX).expect("well-formed frames");
        let complete = cut >= Frame::HEADER_LEN + LEN;
        assert_eq!((done.len(), failed.len()), if complete { (1, 0) } else { (0, 1) }, "cut at {cut}");
        let events: Vec<_> = receiver.events.iter().collect();
        let notified = Event::Notified(PEER, Notice(5));
        let after = EventRef::Received(PEER, Tag(1), b"after");
        let expected = if complete { vec![EventRef::Other(&notified), after] } else { vec![after] };
        assert_eq!(events, expected, "cut at {cut}");
    }
}

/// Reads one frame of `bytes` and says how that went.
fn verdict(bytes: &[u8]) -> Result<usize, LossReason> {
    let (near, far) = Stream::pair();
    let mut receiver = Receiver::new(far);
    assert_eq!(near.write(bytes), Ok(Moved::Bytes(bytes.len())));
    let verdict = receiver.read(usize::MAX);
    assert!(receiver.events.is_empty(), "{:?}", receiver.events);
    verdict
}

#[test]
fn lengths_that_cannot_be_are_refused_before_anything_is_reserved() {
    let (near, far) = Stream::pair();
    let mut owner = Receiver::new(far);
    let (_, key) = owner.export(100);
    drop(near);
    let lengths = [LIMITS.put as u64 + 1, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX];
    let frames = [
        Frame::Message { tag: Tag(1), len: 0 }.encode(),
        Frame::Put { notice: None, key, offset: 0, len: 0 }.encode(),
        Frame::Heartbeat.encode(),
        Frame::Bye.encode(),
    ];
    for mut frame in frames {
        for len in lengths {
            frame[16..24].copy_from_slice(&len.to_le_bytes());
            assert!(matches!(verdict(&frame), Err(LossReason::Protocol(_))), "{len} in {frame:?}");
        }
    }
    let longest = Frame::Message { tag: Tag(1), len: LIMITS.send }.encode();
    assert_eq!(verdict(&longest), Ok(64), "a header and then silence is waited for");
}

#[test]
fn frames_out_of_place_are_refused() {
    let handshake = Frame::Handshake { step: 1, len: 0 }.encode();
    assert!(matches!(verdict(&handshake), Err(LossReason::Protocol(_))));
    assert_eq!(verdict(&Frame::Bye.encode()), Err(LossReason::Closed));
    assert_eq!(verdict(&Frame::Heartbeat.encode()), Ok(64));
    assert!(matches!(
        verdict(b"gradwire, but no frame at all, and 64 bytes of it must be there. ok?"),
        Err(LossReason::Protocol(_))
    ));
}
