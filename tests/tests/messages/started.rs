//! Messages that travel while the program does something else.

use gradwire::{Buffer, Communicator, Equivalence, Error, Rank, Source, Tag, wait_all};
use gradwire_tests::ranks::{Over, run, value, values};
use std::sync::Barrier;

const COUNTS: [usize; 4] = [0, 5, 4000, 200_000];

fn buffer(comm: &Communicator, rank: Rank, count: usize) -> Buffer<f32> {
    let mut buffer = comm.allocate(count).unwrap();
    buffer.copy_from_slice(&values(rank, count));
    buffer
}

/// All start to send before anybody receives, to everybody and to themselves.
pub(crate) fn owned_buffers(over: Over) {
    run(over, 3, |comm| {
        for (tag, count) in (0..).zip(COUNTS) {
            let (rank, size) = (comm.rank(), comm.size());
            let sends: Vec<_> = (0..size)
                .map(|to| match to % 2 {
                    0 => comm.start_send(buffer(&comm, rank, count), to, tag),
                    _ => comm.start_synchronous_send(buffer(&comm, rank, count), to, tag),
                })
                .collect();
            let receives = (0..size)
                .map(|_| comm.start_recv(comm.allocate::<f32>(count + 1).unwrap(), Source::Any, tag));
            let mut from: Vec<Rank> = wait_all(receives)
                .into_iter()
                .map(|(buffer, result)| {
                    let received = result.unwrap();
                    assert_eq!((received.tag, received.count), (tag, count));
                    assert!(buffer[..count] == values(received.source, count));
                    received.source
                })
                .collect();
            from.sort_unstable();
            assert_eq!(from, [0, 1, 2]);
            for (buffer, result) in wait_all(sends) {
                result.unwrap();
                assert!(buffer[..] == values(rank, count));
            }
        }
        let (back, result) = comm.start_send(buffer(&comm, 0, 7), 3, 0).wait();
        assert!(matches!(result.unwrap_err(), Error::Misuse(_)) && back[..] == values(0, 7));
    });
}

/// The receives of a scope are posted in the order of their start, and get their messages in the order they were sent.
pub(crate) fn borrowed_slices(over: Over) {
    run(over, 2, |comm| {
        let other = 1 - comm.rank();
        for count in COUNTS {
            let mine = [values(comm.rank(), count), values(comm.rank() + 7, count)];
            let mut theirs = [vec![0.0_f32; count], vec![0.0_f32; count]];
            let [first, second] = &mut theirs;
            comm.scope(|scope| {
                let receives = [scope.recv(first, other, 1), scope.recv(second, Source::Any, Tag::Any)];
                let sends = [scope.send(&mine[0], other, 1), scope.synchronous_send(&mine[1], other, 1)];
                for request in receives {
                    let (slice, result) = request.wait();
                    assert_eq!(result.unwrap().count, slice.len());
                }
                for request in sends {
                    let (slice, result) = request.wait();
                    result.unwrap();
                    assert_eq!(slice.len(), count);
                }
            })
            .unwrap();
            assert!(theirs == [values(other, count), values(other + 7, count)]);
        }
    });
}

/// A leaked request is waited for by its scope; a dropped one goes on by itself.
pub(crate) fn forgotten_requests(over: Over) {
    run(over, 2, |comm| {
        let other = 1 - comm.rank();
        for count in COUNTS {
            let mine = values(comm.rank(), count);
            let mut theirs = vec![0.0_f32; count];
            comm.scope(|scope| {
                std::mem::forget(scope.recv(&mut theirs, other, 1));
                std::mem::forget(scope.send(&mine, other, 1));
            })
            .unwrap();
            assert!(theirs == values(other, count));
            drop(comm.start_send(buffer(&comm, comm.rank(), count), other, 2));
            drop(comm.start_recv::<f32>(comm.allocate(count).unwrap(), other, 2));
            drop(comm.start_send(buffer(&comm, comm.rank(), count), other, 2));
            assert!(comm.recv_vec::<f32>(other, 2).unwrap().0 == values(other, count));
        }
        // A scope tells of the error of a request that nobody waited for.
        let mut short = [0.0_f32];
        let result = comm.scope(|scope| {
            std::mem::forget(scope.send(&[1.0_f32, 2.0], other, 3));
            std::mem::forget(scope.recv(&mut short, other, 3));
        });
        assert!(matches!(result.unwrap_err(), Error::Misuse(text) if text.contains("make it longer")));
        assert_eq!(short, [0.0]);
    });
}

/// A buffer goes back and forth, and computation goes on: nobody calls anything while the message travels.
pub(crate) fn without_a_caller(over: Over) {
    let sent = Barrier::new(2);
    run(over, 2, |comm| {
        if comm.rank() == 0 {
            let request = comm.start_send(buffer(&comm, 3, 300_000), 1, 1);
            sent.wait();
            request.wait().1.unwrap();
        } else {
            let request = comm.start_recv(comm.allocate::<f32>(300_000).unwrap(), 0, 1);
            sent.wait();
            let (buffer, result) = request.wait();
            assert_eq!(result.unwrap().count, 300_000);
            assert!(buffer[299_999] == value(3, 299_999) && buffer[..] == values(3, 300_000));
        }
    });
}

#[derive(Clone, Copy, PartialEq, Debug, Equivalence)]
struct Spaced(u8, u64);

/// Structs with padding are packed when they are sent, and unpacked when they are waited for.
pub(crate) fn packed_structs(over: Over) {
    run(over, 2, |comm| {
        let other = 1 - comm.rank();
        let of = |rank: Rank, count: usize| -> Vec<Spaced> {
            (0..count).map(|index| Spaced((rank + index) as u8, (rank * 1000 + index) as u64)).collect()
        };
        for count in [1, 30_000] {
            let mine = of(comm.rank(), count);
            let mut theirs = vec![Spaced(0, 0); count + 1];
            comm.scope(|scope| {
                let (received, sent) = (scope.recv(&mut theirs, other, 1), scope.send(&mine, other, 1));
                assert_eq!(received.wait().1.unwrap().count, count);
                sent.wait().1.unwrap();
            })
            .unwrap();
            assert!(theirs[..count] == of(other, count) && theirs[count] == Spaced(0, 0));
        }
    });
}
