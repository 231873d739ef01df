//! Calls in which the ranks tell each other counts first: both parts go on by themselves.

use super::{ALL, own};
use gradwire::{Average, Buffer, Communicator, Error, Max, Sum};
use gradwire_tests::ranks::{Over, run, values};

/// Elements that a rank has for another: none, few, and more than travels in one message.
fn count(from: usize, to: usize) -> usize {
    [0, 3, 1000, 70_000][(from + 2 * to) % 4] + to
}

fn counts(from: usize, ranks: usize) -> Vec<usize> {
    (0..ranks).map(|to| count(from, to)).collect()
}

/// What an all_to_all gives a rank.
fn exchanged(ranks: usize, to: usize) -> Vec<f32> {
    let of = |from| {
        let counts = counts(from, ranks);
        let start: usize = counts[..to].iter().sum();
        values(from, counts.iter().sum())[start..start + counts[to]].to_vec()
    };
    (0..ranks).flat_map(of).collect()
}

fn received_by(to: usize, ranks: usize) -> Vec<usize> {
    (0..ranks).map(|from| count(from, to)).collect()
}

fn all(ranks: usize, root: usize) -> Vec<f32> {
    (0..ranks).flat_map(|rank| values(rank, count(rank, root))).collect()
}

#[test]
fn owned_forms_do_what_the_blocking_ones_do() {
    for over in ALL {
        for ranks in [1, 2, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks - 1);
                let (sent, received) = (counts(rank, ranks), received_by(rank, ranks));
                let (to_send, to_get): (usize, usize) = (sent.iter().sum(), received.iter().sum());
                let block = count(rank, root);
                let at_root = |len| comm.allocate(if rank == root { len } else { 0 }).unwrap();
                let source = || if rank == root { own(&comm, to_send) } else { Buffer::default() };
                let block_of_root = {
                    let counts = counts(root, ranks);
                    let start: usize = counts[..rank].iter().sum();
                    values(root, counts.iter().sum())[start..start + counts[rank]].to_vec()
                };
                // All under way at once, between calls of one part.
                let first = comm.start_all_reduce(own(&comm, 1000), Sum);
                let gather = comm.start_gather_varying(own(&comm, block), root);
                let gather_into =
                    comm.start_gather_varying_into(own(&comm, block), at_root(all(ranks, root).len()), root);
                let scatter = comm.start_scatter_varying(source(), &sent, root);
                let scatter_into = comm.start_scatter_varying_into(
                    source(),
                    comm.allocate(block_of_root.len()).unwrap(),
                    &sent,
                    root,
                );
                let last = comm.start_all_reduce(own(&comm, 3), Max);
                let exchange = comm.start_all_to_all_varying(own(&comm, to_send), &sent);
                let exchange_into = comm.start_all_to_all_varying_into(
                    own(&comm, to_send),
                    &sent,
                    comm.allocate(to_get).unwrap(),
                    &received,
                );
                let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
                let border = comm.start_neighbour_exchange(
                    vec![(right, own(&comm, count(rank, right)))],
                    vec![(left, comm.allocate(count(left, rank)).unwrap())],
                );
                let sparse = comm.start_sparse_all_reduce(9, &[rank, 8], &[rank as f32, 1.0], Sum);

                let ((), sum) = sparse.wait();
                let sum = sum.unwrap();
                assert_eq!(sum.indices, (0..ranks).chain([8]).collect::<Vec<_>>());
                let rows = (0..ranks).map(|rank| rank as f32).chain([ranks as f32]);
                assert!(sum.values.iter().copied().eq(rows));
                let ((sent_back, received_back), result) = border.wait();
                result.unwrap();
                assert!(sent_back[0].1[..] == values(rank, count(rank, right)));
                assert!(received_back[0].1[..] == values(left, count(left, rank)));
                let ((_, blocks), result) = exchange_into.wait();
                result.unwrap();
                assert!(blocks[..] == exchanged(ranks, rank));
                let (source, blocks) = exchange.wait();
                let blocks = blocks.unwrap();
                assert!(source[..] == values(rank, to_send) && blocks.counts() == received);
                assert!(blocks.values() == exchanged(ranks, rank));
                last.wait().1.unwrap();
                let ((_, block), result) = scatter_into.wait();
                result.unwrap();
                assert!(block[..] == block_of_root);
                assert!(scatter.wait().1.unwrap() == block_of_root);
                let ((_, gathered), result) = gather_into.wait();
                let expected: Vec<usize> = (0..ranks).map(|rank| count(rank, root)).collect();
                assert_eq!(result.unwrap(), expected);
                assert!(rank != root || gathered[..] == all(ranks, root));
                let gathered = gather.wait().1.unwrap();
                assert_eq!(gathered.is_some(), rank == root);
                assert!(gathered.is_none_or(|gathered| gathered.values() == all(ranks, root)));
                first.wait().1.unwrap();
            });
        }
    }
}

#[test]
fn scoped_forms_do_what_the_blocking_ones_do() {
    for over in ALL {
        for ranks in [1, 2, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks / 2);
                let (sent, received) = (counts(rank, ranks), received_by(rank, ranks));
                let mine = values(rank, sent.iter().sum());
                let block = values(rank, count(rank, root));
                let mut gathered = vec![0.0; if rank == root { all(ranks, root).len() } else { 0 }];
                let mut dealt = vec![0.0; count(root, rank)];
                let mut exchanged_into = vec![0.0; received.iter().sum()];
                let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
                let mut border = vec![0.0; count(left, rank)];
                comm.scope(|scope| {
                    let _ = scope.gather_varying_into(&block, &mut gathered, root);
                    let all_gather = scope.all_gather_varying(&block);
                    let gather = scope.gather_varying(&block, root);
                    let _ = scope.scatter_varying_into(&mine, &mut dealt, &sent, root);
                    let scatter = scope.scatter_varying(&mine, &sent, root);
                    let equal = scope.scatter(&values(rank, 5 * ranks), root);
                    let _ = scope.all_to_all_varying_into(&mine, &sent, &mut exchanged_into, &received);
                    let exchange = scope.all_to_all_varying(&mine, &sent);
                    let to_right = values(rank, count(rank, right));
                    let neighbours =
                        scope.neighbour_exchange(&[(right, &to_right)], vec![(left, &mut border)]);
                    let sparse = scope.sparse_all_reduce(4, &[3], &[rank as f32; 2], Average);

                    let mean = (ranks - 1) as f32 / 2.0;
                    assert_eq!(sparse.wait().1.unwrap().values, [mean; 2]);
                    let (border, result) = neighbours.wait();
                    result.unwrap();
                    assert!(*border[0].1 == values(left, count(left, rank)));
                    assert!(exchange.wait().1.unwrap().values() == exchanged(ranks, rank));
                    assert!(equal.wait().1.unwrap() == values(root, 5 * ranks)[5 * rank..][..5]);
                    let dealt = scatter.wait().1.unwrap();
                    let of_root = counts(root, ranks);
                    let start: usize = of_root[..rank].iter().sum();
                    assert!(dealt == values(root, of_root.iter().sum())[start..][..of_root[rank]]);
                    let at_root = gather.wait().1.unwrap();
                    assert!(at_root.is_none_or(|blocks| blocks.values() == all(ranks, root)));
                    assert!(all_gather.wait().1.unwrap().of(root) == values(root, count(root, root)));
                })
                .unwrap();
                assert!(rank != root || gathered == all(ranks, root));
                let start: usize = counts(root, ranks)[..rank].iter().sum();
                let of_root = values(root, counts(root, ranks).iter().sum());
                assert!(dealt == of_root[start..][..count(root, rank)]);
                assert!(exchanged_into == exchanged(ranks, rank));
            });
        }
    }
}

/// Whether a rank waits is its own business, in calls of two parts, too: also where those who wait would meet in shared
/// memory, and where a call of one part follows at once.
#[test]
fn those_who_wait_meet_those_who_do_not() {
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            let (sent, mine) = (counts(rank, 3), values(rank, counts(rank, 3).iter().sum()));
            for round in 0..12 {
                let mut after = [rank as f32];
                let blocks = if round % 4 == rank || round % 5 == 4 {
                    comm.all_to_all_varying(&mine, &sent).unwrap().into_values()
                } else {
                    let request = comm.start_all_to_all_varying(own(&comm, mine.len()), &sent);
                    let request_after = comm.start_all_reduce(own(&comm, 2000), Sum);
                    let blocks = request.wait().1.unwrap().into_values();
                    request_after.wait().1.unwrap();
                    blocks
                };
                if round % 4 == rank || round % 5 == 4 {
                    comm.all_reduce(&mut values(rank, 2000), Sum).unwrap();
                }
                comm.all_reduce(&mut after, Sum).unwrap();
                assert!(blocks == exchanged(3, rank) && after == [3.0], "round {round} over {over:?}");
            }
        });
    }
}

/// Counts that do not fit are found by all ranks after the first part. It was one call: the next one meets.
#[test]
fn counts_that_do_not_fit_are_told_to_all() {
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            for round in 0..6 {
                let wrong: Vec<usize> =
                    counts(rank, 3).iter().map(|count| count + usize::from(rank == 1)).collect();
                let mine = own(&comm, counts(rank, 3).iter().sum());
                let error = if round % 3 == rank {
                    comm.all_to_all_varying(&mine, &wrong).unwrap_err()
                } else {
                    let request = comm.start_all_to_all_varying(mine, &wrong);
                    let after = comm.start_barrier();
                    let error = request.wait().1.unwrap_err();
                    after.wait().1.unwrap();
                    error
                };
                assert!(matches!(&error, Error::Misuse(text) if text.contains("rank 1")), "{error}");
                if round % 3 == rank {
                    comm.barrier().unwrap();
                }
                // And where the calls differ, nobody goes on to a second part.
                let error = if round % 3 == rank {
                    comm.all_reduce(&mut [1.0_f32], Sum).unwrap_err()
                } else {
                    comm.start_gather_varying(own(&comm, 5 + rank), 0).wait().1.unwrap_err()
                };
                assert!(matches!(error, Error::Mismatch { .. }), "{error}");
                comm.barrier().unwrap();
            }
        });
    }
}

/// Dropped or leaked: the memory of the second part outlasts it.
#[test]
fn a_request_that_is_given_up_completes_its_second_part_for_the_others() {
    for over in ALL {
        run(over, 3, |comm: Communicator| {
            let rank = comm.rank();
            let (sent, total) = (counts(rank, 3), counts(rank, 3).iter().sum());
            for round in 0..3 {
                let request = comm.start_all_to_all_varying(own(&comm, total), &sent);
                match (rank + round) % 3 {
                    0 => drop(request),
                    1 => std::mem::forget(request),
                    _ => assert!(request.wait().1.unwrap().values() == exchanged(3, rank)),
                }
            }
            comm.barrier().unwrap();
        });
    }
}

/// Counts of so many ranks are more than travels with a signature: the first part has a plan of its own.
#[test]
fn the_counts_of_many_ranks_are_told_by_a_plan() {
    for over in [Over::Sim, Over::HostileSim] {
        run(over, 40, |comm| {
            let rank = comm.rank();
            let sent: Vec<usize> = (0..40).map(|to| (rank * to) % 5).collect();
            let mine = own(&comm, sent.iter().sum());
            let blocks = comm.start_all_to_all_varying(mine, &sent).wait().1.unwrap();
            for from in 0..40 {
                let start: usize = (0..rank).map(|to| (from * to) % 5).sum();
                let total: usize = (0..40).map(|to| (from * to) % 5).sum();
                assert!(*blocks.of(from) == values(from, total)[start..][..(from * rank) % 5]);
            }
        });
    }
}
