//! Calls that return before they are done.

use super::everywhere;
use gradwire::{Max, Min, PerRank, ScopedRequest, Source, Sum, Tag, wait_all, wait_any, wait_some};

#[test]
fn work_goes_on_while_values_travel() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let mut sums = vec![rank as u64; 5000];
        let mut largest = [rank as i32];
        let mut all = vec![0_u32; size];
        let own = [rank as u32];
        let computed = comm
            .scope(|scope| {
                let first = scope.all_reduce(&mut sums, Sum);
                let second = scope.all_reduce(&mut largest, Max);
                let third = scope.all_gather_into(&own, &mut all);
                let computed: u64 = (0..1000).sum();
                for result in [first.wait().1, second.wait().1, third.wait().1, scope.barrier().wait().1] {
                    result.unwrap();
                }
                computed
            })
            .unwrap();
        assert_eq!(computed, 499_500);
        assert_eq!(sums, vec![(0..size as u64).sum(); 5000]);
        assert_eq!(largest, [size as i32 - 1]);
        assert_eq!(all, (0..size as u32).collect::<Vec<_>>());
    });
}

#[test]
fn many_requests_are_waited_for_at_once() {
    everywhere(|comm| {
        let requests: Vec<_> = (0..4)
            .map(|index| {
                let mut buffer = comm.allocate::<f32>(1000).unwrap();
                buffer.fill((comm.rank() + index) as f32);
                comm.start_all_reduce(buffer, Sum)
            })
            .collect();
        for (index, (buffer, result)) in wait_all(requests).into_iter().enumerate() {
            result.unwrap();
            let expected = (0..comm.size()).map(|rank| rank + index).sum::<usize>() as f32;
            assert!(buffer.iter().all(|value| *value == expected));
        }
    });
}

#[test]
fn one_after_the_other_is_waited_for_as_it_ends() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        if rank > 0 {
            let mut value = [0.0_f32];
            comm.recv(&mut value, Source::Any, Tag::Any).unwrap();
            assert_eq!(value, [rank as f32 + 0.5]);
            return;
        }
        let mut requests: Vec<_> = (1..size)
            .map(|to| {
                let mut buffer = comm.allocate::<f32>(1).unwrap();
                buffer[0] = to as f32 + 0.5;
                comm.start_synchronous_send(buffer, to, 3)
            })
            .collect();
        let mut ended = Vec::new();
        while let Some((_, buffer, result)) = wait_any(&mut requests) {
            result.unwrap();
            ended.push(buffer[0] as usize);
        }
        ended.sort_unstable();
        assert_eq!(ended, (1..size).collect::<Vec<_>>());
    });
}

#[test]
fn many_messages_and_barriers_are_under_way() {
    const COUNT: usize = 64;
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let number = |rank: usize, index: usize| [rank as i32, index as i32, (rank * index) as i32];
        let sent: Vec<_> = (0..COUNT).map(|index| number(rank, index)).collect();
        let mut received = [[0; 3]; COUNT];
        comm.scope(|scope| {
            let sends: Vec<_> = sent.iter().map(|values| scope.send(values, next, 0)).collect();
            let receives: Vec<_> =
                received.iter_mut().map(|values| scope.recv(values, previous, 0)).collect();
            while !(sends.iter().all(ScopedRequest::test) && receives.iter().all(ScopedRequest::test)) {
                std::thread::yield_now();
            }
            sends.into_iter().for_each(|send| send.wait().1.unwrap());
            receives.into_iter().for_each(|receive| assert_eq!(receive.wait().1.unwrap().source, previous));
        })
        .unwrap();
        assert!(received.iter().enumerate().all(|(index, values)| *values == number(previous, index)));

        let mut barriers: Vec<_> = (0..COUNT).map(|_| comm.start_barrier()).collect();
        let mut ended = 0;
        while !barriers.is_empty() {
            let some = wait_some(&mut barriers);
            ended += some.len();
            assert!(some.into_iter().all(|(_, (), result)| result.is_ok()));
            assert_eq!(barriers.len(), COUNT - ended);
        }
        assert_eq!(ended, COUNT);
    });
}

#[test]
fn a_message_to_oneself_is_probed_without_waiting() {
    everywhere(|comm| {
        let own = comm.rank();
        assert!(comm.test_probe::<f32>(Source::Any, Tag::Any).unwrap().is_none());
        assert!(comm.test_matched_probe(Source::Any, Tag::Any).unwrap().is_none());
        let value = [own as f32 + 0.25];
        comm.scope(|scope| {
            let send = scope.synchronous_send(&value, own, 8);
            let message = loop {
                if let Some(message) = comm.test_matched_probe(Source::Any, Tag::Any).unwrap() {
                    break message;
                }
            };
            assert!(!send.test(), "nobody has received it");
            let mut received = [0.0_f32];
            assert_eq!(message.recv(&mut received).unwrap().tag, 8);
            assert_eq!(received, value);
            send.wait().1.unwrap();
        })
        .unwrap();
    });
}

#[test]
fn every_block_may_travel_while_work_goes_on() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let root = size - 1;
        let all: Vec<u32> = (0..size as u32).map(|index| index * index + 3).collect();
        let dealt: &[u32] = if rank == root { &all } else { &[] };
        let mut shown = if rank == 0 { [5_i64, -6] } else { [0; 2] };
        let (mut part, mut scanned, mut exchanged) = ([0_u32], [rank as u64], vec![0; size]);
        let mut collected = vec![0; if rank == root { size } else { 0 }];
        let mut least = [rank as i64 - 2];
        let (own, to_all): ([u32; 1], Vec<u16>) =
            ([10 * rank as u32], (0..size).map(|to| (100 * rank + to) as u16).collect());
        comm.scope(|scope| {
            let ended = [
                scope.broadcast(&mut shown, 0).wait().1,
                scope.scatter_into(dealt, &mut part, root).wait().1,
                scope.gather_into(&own, &mut collected, root).wait().1,
                scope.all_to_all_into(&to_all, &mut exchanged).wait().1,
                scope.scan(&mut scanned, Sum).wait().1,
                scope.reduce(&mut least, root, Min).wait().1,
            ];
            ended.into_iter().for_each(|result| result.unwrap());
        })
        .unwrap();
        assert_eq!((shown, part), ([5, -6], [all[rank]]));
        assert!(rank != root || collected.iter().enumerate().all(|(rank, value)| *value == 10 * rank as u32));
        assert!(exchanged.iter().enumerate().all(|(from, value)| *value == (100 * from + rank) as u16));
        assert_eq!(scanned, [(rank * (rank + 1) / 2) as u64]);
        assert!(rank != root || least == [-2]);
    });
}

#[test]
fn blocks_of_any_lengths_may_travel_while_work_goes_on() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let own = |rank: usize| vec![7 * rank as i32; rank];
        let counts: Vec<usize> = (0..size).collect();
        let everything: Vec<i32> = (0..size).flat_map(own).collect();
        let dealt: &[i32] = if rank == 0 { &everything } else { &[] };
        let mut part = vec![0; rank];
        let mine = own(rank);
        comm.scope(|scope| {
            let gathered = scope.all_gather_varying(&mine);
            let at_root = scope.gather_varying(&mine, 0);
            let scattered = scope.scatter_varying_into(dealt, &mut part, &counts, 0);
            scattered.wait().1.unwrap();
            assert_eq!(gathered.wait().1.unwrap().values(), everything);
            let at_root = at_root.wait().1.unwrap();
            assert_eq!(at_root.map(PerRank::into_values), (rank == 0).then(|| everything.clone()));
        })
        .unwrap();
        assert_eq!(part, own(rank));
    });
}
