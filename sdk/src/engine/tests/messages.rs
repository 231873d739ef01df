//! What waits for a receive stays within its budget, whatever the sender does.

use super::*;
use crate::engine::message::lane::{BUDGET, EAGER_BUDGET, ENVELOPE};
use crate::engine::message::{OVER, POINT_TO_POINT, Payload, READ};
use gradwire_schema::{FrameHeader, FrameKind};

const LEN: usize = 1000;

fn send(tag: u32, memory: &mut Private) -> Work {
    Work::Send { to: 1, tag, kind: 0, payload: Payload::Lent(memory.span()), synchronous: false }
}

fn receive(tag: u32, memory: &mut Private) -> Work {
    let pattern = Pattern { source: Some(0), tag: Some(tag) };
    Work::Receive { pattern, number: None, kind: 0, span: memory.span() }
}

fn frame(kind: FrameKind, sequence: u64, offset: u64) -> FrameHeader {
    let mut header = FrameHeader::new(kind);
    (header.tag, header.sequence, header.offset) = (2, sequence, offset);
    header
}

impl Town {
    /// What waits at rank 1 for a receive: its cost.
    fn waiting(&self) -> u64 {
        self.engines[1].groups[&GROUP].shelves[&0].waiting()
    }

    /// The kinds of all frames from rank 0 to rank 1 that were not handed over.
    fn kinds(&self) -> Vec<FrameKind> {
        let letters = self.letters.get(&(0, 1)).into_iter().flatten();
        letters.map(|bytes| FrameHeader::read(bytes).unwrap().0.kind).collect()
    }

    /// Rank 1 gets a frame that rank 0 would not send.
    fn forge(&mut self, mut header: FrameHeader, payload: &[u8]) {
        header.payload_len = payload.len() as u64;
        GROUP.address(&mut header);
        let bytes = [&header.encode()[..], payload].concat();
        self.at(1, |engine, port| engine.receive(0, &bytes, port));
    }
}

#[test]
fn a_receiver_that_never_receives_holds_at_most_the_budget() {
    let mut town = Town::new(2);
    let mut memory = Private::copy_of(&[7; LEN]);
    let whole = EAGER_BUDGET / (ENVELOPE + LEN as u64);
    let announced = (BUDGET - whole * (ENVELOPE + LEN as u64)) / ENVELOPE;
    let keys: Vec<Key> =
        (0..whole + announced + 100).map(|_| town.message(0, send(1, &mut memory))).collect();
    let kinds = town.kinds();
    assert_eq!(kinds.len() as u64, whole + announced);
    assert!(kinds[..whole as usize].iter().all(|kind| *kind == FrameKind::Message));
    assert!(kinds[whole as usize..].iter().all(|kind| *kind == FrameKind::RequestToSend));
    town.deliver_among(&[0, 1]);
    assert!(town.waiting() <= BUDGET && town.waiting() + ENVELOPE > BUDGET);
    // Those that were short enough, and early enough, have ended for their sender.
    assert!(matches!(town.result(0, keys[0]), Ok(Outcome::Done)));
    assert!(town.goes_on(0, keys[whole as usize]));

    // As they are received, others leave: short ones with their bytes again.
    let mut target = Private::zeroed(LEN);
    for _ in 0..whole {
        let key = town.message(1, receive(1, &mut target));
        assert!(matches!(town.result(1, key), Ok(Outcome::Received { source: 0, len: LEN, .. })));
    }
    town.deliver_among(&[0, 1]);
    assert!(town.kinds().is_empty() && town.waiting() <= BUDGET);
    assert!(town.engines[0].groups[&GROUP].lanes[&1].departure(LEN, LEN).is_some());
}

#[test]
fn what_leaves_first_is_received_first_however_it_leaves() {
    let mut town = Town::new(2);
    let (mut long, mut short) = (Private::copy_of(&[1; 10_000]), Private::copy_of(&[2; 10]));
    town.message(0, send(1, &mut long));
    town.message(0, send(1, &mut short));
    town.deliver_among(&[0, 1]);
    let mut targets = [Private::zeroed(10_000), Private::zeroed(10_000)];
    let [first, second] = &mut targets;
    let key = town.message(1, receive(1, first));
    assert!(town.goes_on(1, key), "the long one is the first");
    let key = town.message(1, receive(1, second));
    assert!(matches!(town.result(1, key), Ok(Outcome::Received { len: 10, .. })));
}

#[test]
fn a_send_that_is_given_up_is_withdrawn() {
    for received in [false, true] {
        let mut town = Town::new(2);
        let (mut long, mut short) = (Private::copy_of(&[1; 10_000]), Private::copy_of(&[2; 10]));
        let mut target = Private::zeroed(10_000);
        let given_up = town.message(0, send(1, &mut long));
        town.deliver_among(&[0, 1]);
        let earlier = received.then(|| town.message(1, receive(1, &mut target)));
        town.deliver_among(&[0, 1]);
        town.at(0, |engine, port| engine.cancel(given_up, port));
        town.message(0, send(1, &mut short));
        town.deliver_among(&[0, 1]);
        let key = earlier.unwrap_or_else(|| town.message(1, receive(1, &mut target)));
        assert!(matches!(town.result(1, key), Ok(Outcome::Received { len: 10, .. })), "{received}");
        assert_eq!(town.waiting(), 0);
    }
}

/// Long enough to be read in the sender's memory.
const LONG: usize = 300 << 10;

#[test]
fn what_was_read_counts_once_the_sender_says_that_it_was_there() {
    let mut town = Town::new(2);
    let (mut long, mut target) = (Private::zeroed(LONG), Private::zeroed(LONG));
    let sent = town.message(0, send(1, &mut long));
    let received = town.message(1, receive(1, &mut target));
    assert!(town.deliver(0, 1), "the announcement");
    assert!(town.goes_on(1, received) && town.goes_on(0, sent));
    assert!(town.deliver(1, 0), "that it was read");
    assert!(matches!(town.result(0, sent), Ok(Outcome::Done)));
    assert!(town.goes_on(1, received), "nobody has said that it was the message");
    assert!(town.deliver(0, 1), "the answer");
    assert!(matches!(town.result(1, received), Ok(Outcome::Received { source: 0, len: LONG, .. })));
    let mut bytes = Vec::new();
    target.span().append_to(&mut bytes);
    assert!(bytes.iter().all(|byte| *byte == THERE));
    assert_eq!(town.waiting(), 0);
}

#[test]
fn what_was_read_of_a_message_that_is_given_up_is_no_message() {
    let mut town = Town::new(2);
    let (mut long, mut short) = (Private::zeroed(LONG), Private::copy_of(&[2; 10]));
    let mut target = Private::zeroed(LONG);
    let given_up = town.message(0, send(1, &mut long));
    let received = town.message(1, receive(1, &mut target));
    assert!(town.deliver(0, 1), "the announcement");
    // It has been read by now, but its sender does not know.
    town.at(0, |engine, port| engine.cancel(given_up, port));
    town.deliver_among(&[0, 1]);
    assert!(town.goes_on(1, received));
    town.message(0, send(1, &mut short));
    town.deliver_among(&[0, 1]);
    assert!(matches!(town.result(1, received), Ok(Outcome::Received { len: 10, .. })));
    assert_eq!(town.waiting(), 0);
}

#[test]
fn a_receive_that_has_read_and_is_given_up_frees_its_sender() {
    let mut town = Town::new(2);
    let (mut long, mut target) = (Private::zeroed(LONG), Private::zeroed(LONG));
    let sent = town.message(0, send(1, &mut long));
    let received = town.message(1, receive(1, &mut target));
    assert!(town.deliver(0, 1), "the announcement");
    town.at(1, |engine, port| engine.cancel(received, port));
    town.deliver_among(&[0, 1]);
    assert!(matches!(town.result(0, sent), Ok(Outcome::Done)));
}

#[test]
fn memory_that_cannot_be_read_is_no_loss() {
    let mut town = Town::new(2);
    let mut target = Private::zeroed(LONG);
    let received = town.message(1, receive(2, &mut target));
    town.forge(frame(FrameKind::RequestToSend, POINT_TO_POINT | 1, LONG as u64), &NOWHERE.to_le_bytes());
    // It waits for memory that it can open, and there is none in this town. Nobody is blamed.
    assert!(town.goes_on(1, received));
    town.forge(frame(FrameKind::RequestToSend, POINT_TO_POINT | 1, READ), &[]);
    assert!(town.goes_on(1, received), "what was not read cannot have been the message");
}

#[test]
fn a_receive_that_is_given_up_frees_its_sender() {
    let mut town = Town::new(2);
    let (mut long, mut target) = (Private::copy_of(&[1; 10_000]), Private::zeroed(10_000));
    let sent = town.message(0, send(1, &mut long));
    let received = town.message(1, receive(1, &mut target));
    town.deliver_among(&[0, 1]);
    assert!(town.goes_on(0, sent));
    town.at(1, |engine, port| engine.cancel(received, port));
    town.deliver_among(&[0, 1]);
    assert!(matches!(town.result(0, sent), Ok(Outcome::Done)));
}

/// Whoever breaks the rules is cut off, and the receive that waits for it is told why.
#[test]
fn a_sender_that_breaks_the_rules_is_expelled() {
    let message = frame(FrameKind::Message, 0, 0);
    let announcement = |sequence, offset| frame(FrameKind::RequestToSend, sequence, offset);
    let credit = |sequence, offset| frame(FrameKind::Credit, sequence, offset);
    type Attack = (&'static str, FrameHeader, usize, u64);
    let attacks: [Attack; 6] = [
        ("more bytes than granted", message, 4000, EAGER_BUDGET / 4000 + 1),
        ("more empty messages than granted", message, 0, BUDGET / ENVELOPE + 1),
        ("more announcements than granted", announcement(POINT_TO_POINT | 5, 9), 0, BUDGET / ENVELOPE + 1),
        ("an announcement of nothing", announcement(POINT_TO_POINT | 5, 0), 0, 1),
        ("an announcement without a name", announcement(5, 9), 0, 1),
        ("credit for what was never sent", credit(POINT_TO_POINT, 1), 0, 1),
    ];
    for (what, header, len, times) in attacks {
        let mut town = Town::new(2);
        let mut target = Private::zeroed(10);
        let key = town.message(1, receive(1, &mut target));
        for _ in 0..times {
            town.forge(header, &vec![0; len]);
        }
        let error = town.result(1, key).unwrap_err();
        let Error::PeerLost { rank: 0, reason, .. } = &error else { panic!("{what}: {error}") };
        assert!(reason.contains("broke the protocol"), "{what}: {reason}");
    }
    // What makes no sense but harms nobody: the ends of things that are over.
    let mut town = Town::new(2);
    let mut target = Private::zeroed(10);
    let key = town.message(1, receive(1, &mut target));
    town.forge(announcement(POINT_TO_POINT | 5, OVER), &[]);
    town.forge(credit(POINT_TO_POINT | 77, OVER), &[]);
    assert!(town.goes_on(1, key));
}
