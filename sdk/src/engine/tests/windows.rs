//! Windows: what owners do for honest origins, and to those who are not.

use super::{GROUP, Town};
use crate::buffer::Exposed;
use crate::engine::{Letter, Process, Window};
use crate::{Error, Rank};
use gradwire_schema::{Datatype, FrameHeader, FrameKind, WindowReply, WindowRequest, WindowUpdate};
use std::sync::Arc;

const COUNT: usize = 10;

/// Ranks with a window of ten numbers each, and their memory.
fn town(size: usize) -> (Town, Vec<Arc<Exposed>>) {
    let mut town = Town::new(size);
    let members: Arc<[Process]> = (0..size as Process).collect();
    let memory: Vec<_> =
        (0..size).map(|_| Arc::new(Exposed::private(Datatype::U32, COUNT).unwrap())).collect();
    for (rank, own) in memory.iter().enumerate() {
        let window = Window::new(members.clone(), rank, own.clone());
        town.at(rank, |engine, _| engine.open_window(GROUP, window));
    }
    (town, memory)
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn contents(memory: &Exposed) -> Vec<u32> {
    let mut bytes = vec![0; COUNT * 4];
    memory.load(0, &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

impl Town {
    fn ask(
        &mut self,
        from: Rank,
        to: Rank,
        request: WindowRequest,
        payload: &[u8],
        values: usize,
    ) -> Option<u64> {
        self.at(from, |engine, port| engine.request(GROUP, to, request, payload, values, port))
    }

    fn window<R>(&mut self, rank: Rank, ask: impl FnOnce(&mut Window) -> R) -> R {
        self.at(rank, |engine, _| ask(engine.window(GROUP).unwrap()))
    }

    /// Hands bytes over as if `from` had sent them. Whether `to` has cut it off.
    fn force(&mut self, from: Rank, to: Rank, header: FrameHeader, payload: &[u8]) -> bool {
        let letter = Letter::new(to as Process, header, payload);
        self.at(to, |engine, port| engine.receive(from as Process, &letter.bytes, port));
        self.at(to, |engine, _| engine.has_left(from as Process))
    }
}

/// A request as rank 1 sends its first.
fn frame(request: WindowRequest) -> FrameHeader {
    let mut header = FrameHeader::new(FrameKind::Window);
    GROUP.address(&mut header);
    request.encode(&mut header);
    (header.source, header.sequence) = (1, 1);
    header
}

#[test]
fn requests_are_carried_out_in_order_and_answered() {
    let (mut town, memory) = town(2);
    let put = WindowRequest::Put { offset: 2, notice: Some(7) };
    town.ask(1, 0, put, &numbers(&[5, 6]), 0).unwrap();
    let add = WindowRequest::Accumulate { offset: 3, update: WindowUpdate::Sum };
    town.ask(1, 0, add, &numbers(&[10, 20]), 0).unwrap();
    let swap = WindowRequest::CompareAndSwap { offset: 4 };
    let swapped = town.ask(1, 0, swap, &numbers(&[20, 1]), 4).unwrap();
    let read = town.ask(1, 0, WindowRequest::Get { offset: 2, count: 3 }, &[], 12).unwrap();
    assert!(!town.window(1, |window| window.is_flushed(0)));
    town.deliver_among(&[0, 1]);
    assert!(town.window(1, |window| window.is_flushed(0)));
    assert_eq!(contents(&memory[0]), [0, 0, 5, 16, 1, 0, 0, 0, 0, 0]);
    assert_eq!(memory[0].take(7), 1);
    town.window(1, |window| {
        assert_eq!(window.take_values(0, swapped), Some(numbers(&[20])));
        assert_eq!(window.take_values(0, read), Some(numbers(&[5, 16, 1])));
        assert_eq!(window.take_values(0, read), None);
    });
}

/// An origin that hears nothing does not go on for ever, and goes on when it hears something.
#[test]
fn what_is_on_the_way_is_bounded() {
    let (mut town, _) = town(2);
    let put = WindowRequest::Put { offset: 0, notice: None };
    let mut sent = 0;
    while town.ask(1, 0, put, &[0; 40], 0).is_some() {
        sent += 1;
    }
    assert_eq!(sent, super::super::window::IN_FLIGHT / 104);
    assert_eq!(town.ask(1, 0, WindowRequest::Get { offset: 0, count: 10 }, &[], 40), None);
    town.deliver(1, 0);
    town.deliver(0, 1);
    assert!(town.ask(1, 0, put, &[0; 40], 0).is_some());
    town.deliver_among(&[0, 1]);
    assert!(town.window(1, |window| window.is_flushed(0)));
}

#[test]
fn values_that_nobody_waits_for_any_more_are_not_kept() {
    let (mut town, _) = town(2);
    let get = WindowRequest::Get { offset: 0, count: 1 };
    let number = town.ask(1, 0, get, &[], 4).unwrap();
    town.window(1, |window| window.abandon(0));
    let wanted = town.ask(1, 0, get, &[], 4).unwrap();
    town.deliver_among(&[0, 1]);
    town.window(1, |window| {
        assert_eq!(window.take_values(0, number), None);
        assert!(window.take_values(0, wanted).is_some());
    });
}

#[test]
fn a_grant_that_comes_too_late_is_given_back() {
    let (mut town, _) = town(3);
    let ask =
        |town: &mut Town, rank| town.at(rank, |engine, port| engine.lock(GROUP, 0, true, port)).unwrap();
    let held = ask(&mut town, 0);
    assert!(town.window(0, |window| window.is_granted(0, held)));
    ask(&mut town, 1);
    let second = ask(&mut town, 2);
    town.deliver_among(&[0, 1, 2]);
    town.at(0, |engine, port| engine.unlock(GROUP, 0, port));
    // The grant and the word that nobody waits for it cross.
    town.at(1, |engine, port| engine.unlock(GROUP, 0, port));
    let again = ask(&mut town, 1);
    town.deliver_among(&[0, 1, 2]);
    assert!(!town.window(1, |window| window.is_granted(0, again)));
    assert!(town.window(2, |window| window.is_granted(0, second)));
    town.at(2, |engine, port| engine.unlock(GROUP, 0, port));
    town.deliver_among(&[0, 1, 2]);
    assert!(town.window(1, |window| window.is_granted(0, again)));
}

/// Whoever waits for a lock whose holder died, or asks for it later, is told who that was. A shared lock is free again.
#[test]
fn the_holder_of_a_lock_dies() {
    for exclusive in [true, false] {
        let (mut town, _) = town(3);
        town.at(1, |engine, port| engine.lock(GROUP, 0, exclusive, port)).unwrap();
        town.deliver_among(&[0, 1, 2]);
        let waiting = town.at(2, |engine, port| engine.lock(GROUP, 0, true, port)).unwrap();
        town.deliver_among(&[0, 1, 2]);
        town.hang_up(1, 0);
        town.deliver_among(&[0, 2]);
        let fault = town.at(2, |engine, _| engine.fault(GROUP, 0));
        let granted = town.window(2, |window| window.is_granted(0, waiting));
        assert_eq!(granted, !exclusive);
        match fault {
            Some(error) => assert!(exclusive && matches!(error, Error::PeerLost { rank: 1, .. }), "{error}"),
            None => assert!(!exclusive),
        }
    }
}

#[test]
fn what_was_on_the_way_to_a_dropped_window_is_refused_and_nothing_is_left() {
    let (mut town, memory) = town(3);
    let put = WindowRequest::Put { offset: 0, notice: None };
    town.ask(1, 0, put, &numbers(&[1]), 0).unwrap();
    town.deliver(1, 0);
    town.ask(1, 0, put, &numbers(&[2]), 0).unwrap();
    town.at(0, |engine, port| engine.close_window(GROUP, port));
    town.deliver_among(&[0, 1, 2]);
    assert_eq!(contents(&memory[0])[0], 1);
    town.window(1, |window| {
        assert!(window.is_flushed(0) && window.is_closed(0));
        assert!(window.take_refused(0) && !window.take_refused(0));
    });
    assert!(town.window(2, |window| window.is_closed(0) && !window.take_refused(0)));
    for rank in [1, 2] {
        town.at(rank, |engine, port| engine.close_window(GROUP, port));
    }
    town.deliver_among(&[0, 1, 2]);
    for rank in 0..3 {
        assert!(town.at(rank, |engine, _| engine.window(GROUP).is_none()));
        assert_eq!(town.at(rank, |engine, _| engine.retired_windows()), 0);
    }
    // Whoever reaches for it now has lost its way.
    assert!(town.force(1, 0, frame(put), &numbers(&[9])));
}

/// Each costs its sender the connection, and touches nothing.
#[test]
fn hostile_requests() {
    use WindowRequest as R;
    let far = [COUNT as u64, COUNT as u64 - 1, u64::MAX, 1 << 62];
    let mut hostile: Vec<(FrameHeader, Vec<u8>)> = Vec::new();
    for offset in far {
        hostile.push((frame(R::Put { offset, notice: None }), vec![1; 8]));
        hostile.push((frame(R::Get { offset, count: 2 }), vec![]));
        hostile.push((frame(R::Accumulate { offset, update: WindowUpdate::Sum }), vec![1; 8]));
        hostile.push((frame(R::GetAccumulate { offset, update: WindowUpdate::Sum }), vec![1; 8]));
    }
    hostile.push((frame(R::CompareAndSwap { offset: COUNT as u64 }), vec![0; 8]));
    for len in [0, 3, 4, 7, 12] {
        hostile.push((frame(R::CompareAndSwap { offset: 0 }), vec![0; len]));
    }
    hostile.push((frame(R::Put { offset: 0, notice: None }), vec![1; 7]));
    hostile.push((frame(R::Put { offset: 0, notice: Some(crate::buffer::NOTICES as u32) }), vec![]));
    for count in [4096 / 4, 1 << 30, u32::MAX] {
        hostile.push((frame(R::Get { offset: 0, count }), vec![]));
    }
    for sequence in [0, 2, u64::MAX] {
        let mut header = frame(R::Get { offset: 0, count: 1 });
        header.sequence = sequence;
        hostile.push((header, vec![]));
    }
    let good = frame(R::Put { offset: 0, notice: None });
    for source in [0, 2, 3, u32::MAX] {
        let mut header = good;
        header.source = source;
        hostile.push((header, vec![1; 4]));
    }
    let mut header = good;
    header.tag = 0;
    hostile.push((header, vec![1; 4]));
    let mut header = good;
    header.communicator = 99;
    hostile.push((header, vec![1; 4]));
    let mut reply = frame(R::Unlock);
    reply.kind = FrameKind::WindowReply;
    for (answer, sequence) in [
        (WindowReply::Applied, 1),
        (WindowReply::Values, 0),
        (WindowReply::Values, 1),
        (WindowReply::Granted, 1),
    ] {
        answer.encode(&mut reply);
        reply.sequence = sequence;
        hostile.push((reply, vec![]));
    }
    for (header, payload) in hostile {
        let (mut town, memory) = town(3);
        assert!(town.force(1, 0, header, &payload), "{header:?} and {} bytes", payload.len());
        assert_eq!(contents(&memory[0]), [0; COUNT], "{header:?}");
        // Others go on.
        town.ask(2, 0, R::Put { offset: 0, notice: None }, &numbers(&[3]), 0).unwrap();
        town.deliver_among(&[0, 2]);
        assert_eq!(contents(&memory[0])[0], 3);
    }
    let (mut town, _) = town(2);
    assert!(!town.force(1, 0, frame(R::Lock { exclusive: true }), &[]));
    assert!(town.force(1, 0, frame(R::Lock { exclusive: false }), &[]), "twice the same lock");
}

#[test]
fn memory_that_is_lent_is_out_of_reach() {
    let (mut town, memory) = town(2);
    town.window(0, |window| window.set_lent(true));
    assert!(town.force(1, 0, frame(WindowRequest::Put { offset: 0, notice: None }), &[1; 4]));
    assert_eq!(contents(&memory[0]), [0; COUNT]);
}

/// An owner that answers what was not asked.
#[test]
fn hostile_replies() {
    let answers = [
        (WindowReply::Values, 1, 8),
        (WindowReply::Values, 1, 0),
        (WindowReply::Values, 2, 4),
        (WindowReply::Applied, 1, 0),
        (WindowReply::Applied, 2, 0),
        (WindowReply::Granted, 7, 0),
    ];
    for (answer, sequence, len) in answers {
        let (mut town, _) = town(2);
        town.ask(1, 0, WindowRequest::Get { offset: 0, count: 1 }, &[], 4).unwrap();
        let mut header = frame(WindowRequest::Unlock);
        answer.encode(&mut header);
        (header.kind, header.source, header.sequence) = (FrameKind::WindowReply, 0, sequence);
        assert!(town.force(0, 1, header, &vec![0; len]), "{answer:?} {sequence} {len}");
    }
}

/// Good frames with a few fields changed, thousands of times, always the same: no panic, and no byte outside.
#[test]
fn changed_frames() {
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    for _ in 0..3000 {
        let (mut town, _) = town(2);
        for _ in 0..4 {
            let (offset, update) = (random(12), WindowUpdate::ALL[random(12) as usize]);
            let request = match random(8) {
                0 => WindowRequest::Put { offset, notice: Some(random(1100) as u32) },
                1 => WindowRequest::Get { offset, count: random(12) as u32 },
                2 => WindowRequest::Accumulate { offset, update },
                3 => WindowRequest::GetAccumulate { offset, update },
                4 => WindowRequest::CompareAndSwap { offset },
                5 => WindowRequest::Lock { exclusive: random(2) == 0 },
                6 => {
                    [WindowRequest::Unlock, WindowRequest::Post, WindowRequest::Complete][random(3) as usize]
                }
                _ => WindowRequest::Close,
            };
            let mut header = frame(request);
            header.sequence = 1 + random(3);
            match random(10) {
                0 => header.offset = random(1 << 31) << random(33),
                1 => header.slot = (random(1 << 31) << random(2)) as u32,
                2 => header.tag = random(1 << 18) as u32,
                3 => header.kind = FrameKind::WindowReply,
                _ => {}
            }
            let payload = vec![0x5a; random(60) as usize];
            town.force(1, 0, header, &payload);
        }
    }
}
