//! Sends and receives, one after the other.

use gradwire::{Equivalence, Error, Source, Tag};
use gradwire_tests::ranks::{Over, run, values};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Empty, short, as long as may be sent unasked, and longer.
const COUNTS: [usize; 8] = [0, 1, 1000, 4080, 4081, 16_368, 16_369, 300_000];

pub(crate) fn of_any_length(over: Over) {
    run(over, 3, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        for (tag, count) in (0..).zip(COUNTS) {
            if rank > 0 {
                comm.send(&values(rank, count), 0, tag).unwrap();
                comm.send(&values(rank, count), 0, 100 + tag).unwrap();
                continue;
            }
            let mut buffer = vec![0.0_f32; count + 3];
            let mut senders = Vec::new();
            for _ in 1..size {
                buffer.fill(-1.0);
                let received = comm.recv(&mut buffer, Source::Any, tag).unwrap();
                assert_eq!((received.tag, received.count), (tag, count));
                assert!(buffer[..count] == values(received.source, count));
                assert_eq!(buffer[count..], [-1.0; 3]);
                senders.push(received.source);
            }
            senders.sort_unstable();
            assert_eq!(senders, [1, 2]);
            for from in 1..size {
                let (all, received) = comm.recv_vec::<f32>(from, Tag::Any).unwrap();
                assert_eq!((received.source, received.tag, received.count), (from, 100 + tag, count));
                assert!(all == values(from, count));
            }
        }
    });
}

/// Longer than anybody keeps: only who receives meanwhile gets on.
pub(crate) fn both_send_first(over: Over) {
    run(over, 2, |comm| {
        let (rank, other) = (comm.rank(), 1 - comm.rank());
        for count in [1, 2_000_000] {
            let mut theirs = vec![0.0_f32; count];
            let received = comm.send_receive(&values(rank, count), other, 3, &mut theirs, other, 3).unwrap();
            assert_eq!((received.source, received.count), (other, count));
            assert!(theirs == values(other, count));
        }
    });
}

/// Different peers, types, lengths and tags.
pub(crate) fn around_a_ring(over: Over) {
    run(over, 4, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let count = |rank: usize| 40_000 * rank + 1;
        if rank % 2 == 0 {
            let mine: Vec<u16> = (0..count(rank)).map(|index| (index + rank) as u16).collect();
            let mut theirs = vec![0.0_f32; count(previous) + 9];
            let received = comm.send_receive(&mine, next, 7, &mut theirs, Source::Any, Tag::Any).unwrap();
            assert_eq!((received.source, received.tag, received.count), (previous, 8, count(previous)));
            assert!(theirs[..count(previous)] == values(previous, count(previous)));
        } else {
            let mine = values(rank, count(rank));
            let mut theirs = vec![0_u16; count(previous)];
            comm.send_receive(&mine, next, 8, &mut theirs, previous, 7).unwrap();
            assert!(theirs.iter().zip(previous..).all(|(value, expected)| *value == expected as u16));
        }
    });
}

pub(crate) fn replaced_values(over: Over) {
    run(over, 3, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        for count in [5, 100_000] {
            let mut mine = values(rank, count);
            let received = comm.send_receive_replace(&mut mine, next, 1, previous, 1).unwrap();
            assert_eq!(received.count, count);
            assert!(mine == values(previous, count));
        }
    });
}

/// It has ended only once the receive has begun. A plain send of so few bytes ends before.
pub(crate) fn a_synchronous_send_waits(over: Over) {
    for count in [0, 2, 100_000] {
        let (begun, plain) = (AtomicBool::new(false), Barrier::new(2));
        run(over, 2, |comm| {
            if comm.rank() == 0 {
                comm.send(&[1_u8], 1, 1).unwrap();
                plain.wait();
                comm.synchronous_send(&values(0, count), 1, 2).unwrap();
                assert!(begun.load(Ordering::SeqCst));
            } else {
                plain.wait();
                comm.recv(&mut [0_u8], 0, 1).unwrap();
                // The message is here, and its sender still waits.
                assert_eq!(comm.probe::<f32>(0, 2).unwrap().count, count);
                begun.store(true, Ordering::SeqCst);
                let mut buffer = vec![0.0_f32; count];
                comm.recv(&mut buffer, 0, 2).unwrap();
                assert!(buffer == values(0, count));
            }
        });
    }
}

pub(crate) fn to_oneself(over: Over) {
    run(over, 2, |comm| {
        let rank = comm.rank();
        for count in [0, 3, 500_000] {
            let mine = values(rank, count);
            let mut buffer = vec![0.0_f32; count];
            comm.send(&mine, rank, 1).unwrap();
            comm.buffered_send(&mine, rank, 2).unwrap();
            assert_eq!(comm.probe::<f32>(rank, 2).unwrap().count, count);
            assert!(comm.recv_vec::<f32>(Source::Any, 2).unwrap().0 == mine);
            comm.recv(&mut buffer, rank, Tag::Any).unwrap();
            assert!(buffer == mine);
            buffer.fill(0.0);
            comm.send_receive(&mine, rank, 3, &mut buffer, rank, 3).unwrap();
            assert!(buffer == mine);
            comm.send_receive_replace(&mut buffer, rank, 4, Source::Any, 4).unwrap();
            assert!(buffer == mine);
        }
        // Nobody can receive it.
        comm.set_timeout(Some(Duration::from_millis(100)));
        let error = comm.synchronous_send(&[1_u8], rank, 5).unwrap_err();
        let Error::TimedOut { call, waiting_for, .. } = &error else { panic!("{error}") };
        assert_eq!((&*call.name, &**waiting_for), ("synchronous_send", &[rank][..]));
    });
}

/// Too long, or of another type: lost, and the sender goes on. The next message is as good as ever.
pub(crate) fn what_does_not_fit(over: Over) {
    run(over, 2, |comm| {
        assert!(matches!(comm.send(&[1_u8], 2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.synchronous_send(&[1_u8], 2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.buffered_send(&[1_u8], 9, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.recv(&mut [1_u8], 2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.recv_vec::<u8>(2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.probe::<u8>(2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.test_probe::<u8>(2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.matched_probe(2, 0).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.send_receive(&[1_u8], 2, 0, &mut [1_u8], 0, 0).unwrap_err(), Error::Misuse(_)));
        for count in [2, 100_000] {
            if comm.rank() == 1 {
                comm.send(&values(1, count), 0, 8).unwrap();
                comm.send(&values(1, count), 0, 8).unwrap();
                comm.synchronous_send(&values(1, count), 0, 8).unwrap();
                comm.synchronous_send(&values(1, count), 0, 8).unwrap();
                continue;
            }
            let mut short = vec![7.0_f32; count - 1];
            let mut other = vec![7_u32; count];
            for _ in 0..2 {
                let error = comm.recv(&mut short, 1, 8).unwrap_err();
                assert!(matches!(&error, Error::Misuse(text) if text.contains("make it longer")), "{error}");
                assert!(short.iter().all(|value| *value == 7.0));
                if count > 2 {
                    // One that is asked about is not lost.
                    let error = comm.recv_vec::<u32>(1, 8).unwrap_err();
                    assert!(
                        matches!(&error, Error::Misuse(text) if text.contains("another type")),
                        "{error}"
                    );
                }
                let error = comm.recv(&mut other, 1, 8).unwrap_err();
                assert!(matches!(&error, Error::Misuse(text) if text.contains("another type")), "{error}");
                assert!(other.iter().all(|value| *value == 7));
            }
        }
    });
}

/// It is withdrawn when its sender gives up: the receive gets the next one.
pub(crate) fn what_nobody_receives(over: Over) {
    let given_up = Barrier::new(2);
    run(over, 2, |comm| {
        let (first, second) = (values(0, 100_000), values(1, 90_000));
        if comm.rank() == 0 {
            comm.set_timeout(Some(Duration::from_millis(150)));
            let error = comm.send(&first, 1, 4).unwrap_err();
            let Error::TimedOut { call, waiting_for, .. } = &error else { panic!("{error}") };
            assert_eq!((&*call.name, &*call.arguments, &**waiting_for), ("send", "tag 4", &[1][..]));
            comm.set_timeout(Some(Duration::from_secs(60)));
            given_up.wait();
            comm.send(&second, 1, 4).unwrap();
        } else {
            assert_eq!(comm.probe::<f32>(0, 4).unwrap().count, 100_000);
            given_up.wait();
            let (all, received) = comm.recv_vec::<f32>(0, 4).unwrap();
            assert_eq!(received.count, 90_000);
            assert!(all == second);
        }
        comm.barrier().unwrap();
    });
}

#[derive(Clone, Copy, PartialEq, Debug, Equivalence)]
struct Particle {
    charge: i8,
    place: [f64; 3],
    index: u16,
}

/// Their memory is not what travels.
pub(crate) fn structs_with_padding(over: Over) {
    let particle = |rank: usize, index: usize| Particle {
        charge: (rank * 3 + index) as i8,
        place: [index as f64, rank as f64, -0.5],
        index: index as u16,
    };
    run(over, 2, |comm| {
        let (rank, other) = (comm.rank(), 1 - comm.rank());
        for count in [1, 20_000] {
            let of = |rank| (0..count).map(|index| particle(rank, index)).collect::<Vec<_>>();
            let mut theirs = vec![particle(9, 9); count + 1];
            let received = comm.send_receive(&of(rank), other, 0, &mut theirs, other, 0).unwrap();
            assert_eq!(received.count, count);
            assert!(theirs[..count] == of(other) && theirs[count] == particle(9, 9));
            comm.buffered_send(&of(rank), other, 1).unwrap();
            assert!(comm.recv_vec::<Particle>(other, 1).unwrap().0 == of(other));
        }
    });
}
