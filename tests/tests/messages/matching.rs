//! Which receive gets which message.

use gradwire::{Source, Tag};
use gradwire_tests::ranks::{Over, run};
use std::sync::Barrier;

/// Lengths that travel in different ways, in any order.
fn length(index: usize) -> usize {
    [0, 8, 3000, 1, 20_000, 5, 9000][index * 5 % 7]
}

/// The receiver comes when everything has been sent.
pub(crate) fn the_order_is_kept(over: Over) {
    const MESSAGES: usize = 300;
    let sent = Barrier::new(3);
    run(over, 3, |comm| {
        if comm.rank() > 0 {
            for index in 0..MESSAGES {
                let message = vec![(index % 251) as u8; length(index)];
                comm.buffered_send(&message, 0, (index % 3) as u32).unwrap();
            }
            sent.wait();
            return comm.barrier().unwrap();
        }
        sent.wait();
        // All of the first sender in the order they were sent, then those of the second tag by tag.
        for index in 0..MESSAGES {
            let (message, received) = comm.recv_vec::<u8>(1, Tag::Any).unwrap();
            assert_eq!((received.tag as usize, received.count), (index % 3, length(index)));
            assert!(message.iter().all(|value| usize::from(*value) == index % 251));
        }
        for tag in [1, 0, 2] {
            for index in (tag..MESSAGES).step_by(3) {
                let mut message = vec![0_u8; length(index)];
                let received = comm.recv(&mut message, Source::Any, tag as u32).unwrap();
                assert_eq!((received.source, received.count), (2, length(index)));
                assert!(message.iter().all(|value| usize::from(*value) == index % 251));
            }
        }
        comm.barrier().unwrap();
    });
}

/// Messages that leave at once and messages that need an operation, received by calls of both kinds: none overtakes another.
pub(crate) fn short_and_long_ones_in_turn(over: Over) {
    const ROUNDS: usize = 40;
    // Short, too long to leave unasked, empty, and short again.
    const LENGTHS: [usize; 4] = [3, 80_000, 0, 5];
    let message = |index: usize| vec![index as u32; LENGTHS[index % 4]];
    run(over, 2, |comm| {
        for round in 0..ROUNDS {
            let first = 4 * round;
            if comm.rank() == 0 {
                // The second and the third are under way while the fourth leaves.
                comm.send(&message(first), 1, 7).unwrap();
                let [second, third] = [message(first + 1), message(first + 2)];
                comm.scope(|scope| {
                    let requests = [scope.send(&second, 1, 7), scope.synchronous_send(&third, 1, 7)];
                    comm.send(&message(first + 3), 1, 7).unwrap();
                    requests.into_iter().for_each(|request| request.wait().1.unwrap());
                })
                .unwrap();
                continue;
            }
            let [mut early, mut late] = [vec![u32::MAX; 80_000], vec![u32::MAX; 80_000]];
            comm.scope(|scope| {
                // Receives that were started are served before a call that waits.
                let started = (round % 2 == 0).then(|| scope.recv(&mut early[..], 0, 7));
                let next = first + usize::from(started.is_some());
                let received = comm.recv(&mut late, 0, Tag::Any).unwrap();
                assert_eq!(
                    (received.count, &late[..received.count]),
                    (LENGTHS[next % 4], &message(next)[..])
                );
                if let Some(request) = started {
                    let (values, received) = request.wait();
                    assert_eq!(values[..received.unwrap().count], message(first)[..]);
                }
            })
            .unwrap();
            for index in first + 1 + usize::from(round % 2 == 0)..first + 4 {
                let received = comm.recv(&mut late, Source::Any, 7).unwrap();
                assert_eq!(
                    (received.count, &late[..received.count]),
                    (LENGTHS[index % 4], &message(index)[..])
                );
            }
        }
    });
}

/// More than a receiver keeps the bytes of: what is wanted last comes first.
pub(crate) fn many_more_than_fit(over: Over) {
    const MESSAGES: usize = 3000;
    run(over, 2, |comm| {
        if comm.rank() == 0 {
            for index in 0..MESSAGES {
                comm.buffered_send(&[index as u64; 25], 1, 1).unwrap();
            }
            comm.buffered_send(&[7_u64], 1, 2).unwrap();
        } else {
            let mut last = [0_u64];
            comm.recv(&mut last, 0, 2).unwrap();
            assert_eq!(last, [7]);
            for index in 0..MESSAGES {
                let mut message = [0_u64; 25];
                comm.recv(&mut message, 0, 1).unwrap();
                assert_eq!(message, [index as u64; 25]);
            }
        }
        comm.barrier().unwrap();
    });
}

/// Case 10: two threads of each rank, each with a communicator of its own, never get each other's messages.
pub(crate) fn a_thread_for_each_communicator(over: Over) {
    run(over, 2, |comm| {
        let other = comm.duplicate().unwrap();
        let (rank, peer) = (comm.rank(), 1 - comm.rank());
        let exchange = move |comm: gradwire::Communicator, salt: u64| {
            for index in 0..300_u64 {
                let mut theirs = [0];
                let mine = [index * 10 + salt + 1000 * rank as u64];
                comm.send_receive(&mine, peer, 0, &mut theirs, Source::Any, Tag::Any).unwrap();
                assert_eq!(theirs, [index * 10 + salt + 1000 * peer as u64]);
            }
        };
        let thread = std::thread::spawn(move || exchange(other, 1));
        exchange(comm, 2);
        thread.join().unwrap();
    });
}
