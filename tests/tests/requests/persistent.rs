//! Every call that can be set up once.

use super::{ALL, gathered, own};
use gradwire::{Buffer, Error, Sum};
use gradwire_tests::ranks::{run, sums, values};

#[test]
fn every_call_can_be_set_up_once() {
    for over in ALL {
        for ranks in [1, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks - 1);
                for count in [0, 3, 20_000] {
                    let total = ranks * count;
                    let counts: Vec<usize> = (0..ranks).map(|rank| (rank + 1) * count % 997).collect();
                    let (mine, before): (usize, usize) = (counts[rank], counts[..rank].iter().sum());
                    let sum = counts.iter().sum();
                    let room = |count| comm.allocate::<f32>(count).unwrap();
                    let at_root = |count| if rank == root { count } else { 0 };
                    let source = if rank == root { own(&comm, total) } else { Buffer::default() };

                    let mut barrier = comm.barrier_init();
                    let mut reduce = comm.reduce_init(own(&comm, count), root, Sum).unwrap();
                    let mut scan = comm.scan_init(own(&comm, count), Sum).unwrap();
                    let mut exclusive = comm.exclusive_scan_init(own(&comm, count), Sum).unwrap();
                    let mut gather = comm.gather_init(own(&comm, count), room(at_root(total)), root).unwrap();
                    let mut scatter = comm.scatter_init(source, room(count), root).unwrap();
                    let mut all_gather =
                        comm.all_gather_varying_init(own(&comm, mine), room(sum), &counts).unwrap();
                    let mut reduce_scatter =
                        comm.reduce_scatter_init(own(&comm, total), room(count), Sum).unwrap();
                    let mut parts =
                        comm.reduce_scatter_varying_init(own(&comm, sum), room(mine), &counts, Sum).unwrap();
                    let mut exchange = comm.all_to_all_init(own(&comm, total), room(total)).unwrap();
                    for iteration in 0..3 {
                        for step in [&mut reduce, &mut scan, &mut exclusive] {
                            step.memory_mut().unwrap().copy_from_slice(&values(rank, count));
                        }
                        if (iteration + rank) % 2 == 0 {
                            barrier.run().unwrap();
                            reduce.run().unwrap();
                            scan.run().unwrap();
                            exclusive.run().unwrap();
                            gather.run().unwrap();
                            scatter.run().unwrap();
                            all_gather.run().unwrap();
                            reduce_scatter.run().unwrap();
                            parts.run().unwrap();
                            exchange.run().unwrap();
                        } else {
                            barrier.start().unwrap();
                            reduce.start().unwrap();
                            scan.start().unwrap();
                            exclusive.start().unwrap();
                            gather.start().unwrap();
                            scatter.start().unwrap();
                            all_gather.start().unwrap();
                            reduce_scatter.start().unwrap();
                            parts.start().unwrap();
                            exchange.start().unwrap();
                            exchange.wait().unwrap();
                            parts.wait().unwrap();
                            reduce_scatter.wait().unwrap();
                            all_gather.wait().unwrap();
                            scatter.wait().unwrap();
                            gather.wait().unwrap();
                            exclusive.wait().unwrap();
                            scan.wait().unwrap();
                            reduce.wait().unwrap();
                            barrier.wait().unwrap();
                        }
                        let expected = if rank == root { sums(ranks, count) } else { values(rank, count) };
                        assert!(reduce.memory().unwrap()[..] == expected);
                        assert!(scan.memory().unwrap()[..] == sums(rank + 1, count));
                        let expected = if rank == 0 { values(0, count) } else { sums(rank, count) };
                        assert!(exclusive.memory().unwrap()[..] == expected);
                        assert!(rank != root || gather.memory().unwrap().1[..] == gathered(ranks, count));
                        let block =
                            |values: Vec<f32>, start: usize, len: usize| values[start..start + len].to_vec();
                        let expected = block(values(root, total), rank * count, count);
                        assert!(scatter.memory().unwrap().1[..] == expected);
                        let expected =
                            counts.iter().enumerate().flat_map(|(rank, count)| values(rank, *count));
                        assert!(all_gather.memory().unwrap().1.iter().copied().eq(expected));
                        let expected = block(sums(ranks, total), rank * count, count);
                        assert!(reduce_scatter.memory().unwrap().1[..] == expected);
                        assert!(parts.memory().unwrap().1[..] == block(sums(ranks, sum), before, mine));
                        let expected =
                            (0..ranks).flat_map(|from| block(values(from, total), rank * count, count));
                        assert!(exchange.memory().unwrap().1.iter().copied().eq(expected));
                    }
                }
                assert!(matches!(
                    comm.gather_init(own(&comm, 1), own(&comm, 1), ranks),
                    Err(Error::Misuse(_))
                ));
                assert!(matches!(
                    comm.all_gather_varying_init(own(&comm, 1), own(&comm, 1), &[]),
                    Err(Error::Misuse(_))
                ));
            });
        }
    }
}

/// Ranks call different things: the destination is as it was, and so is the next call.
#[test]
fn a_mismatch_leaves_the_memory_as_it_was() {
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            let mut step = comm.all_gather_init(own(&comm, 1000), own(&comm, 3000)).unwrap();
            for _ in 0..2 {
                let error = if rank == 1 {
                    comm.barrier().unwrap_err()
                } else {
                    step.start().unwrap();
                    step.wait().unwrap_err()
                };
                assert!(matches!(error, Error::Mismatch { .. }), "{error}");
                assert!(step.memory().unwrap().1[..] == values(rank, 3000));
            }
            step.start().unwrap();
            step.wait().unwrap();
            assert!(step.memory().unwrap().1[..] == gathered(3, 1000));
        });
    }
}
