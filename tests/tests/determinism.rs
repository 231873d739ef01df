//! What each level of determinism promises, over every transport.

use gradwire::{BitwiseXor, Located};
use gradwire::{
    Communicator, Determinism, Error, Gradient, Laws, Max, MinLoc, Operation, Rank, ReproducibleSum, Sum,
    bf16,
};
use gradwire_tests::ranks::{Over, Random, run};
use gradwire_transport_sim::{Config, Network};

/// Values of magnitudes so different that nearly every order of addition has another sum.
fn rough(rank: Rank, count: usize) -> Vec<f32> {
    let mut random = Random::new(rank as u64 + 99);
    let mut value = || (random.below(2_000_000) as f32 - 1.0e6) * 2.0_f32.powi(random.below(60) as i32 - 30);
    (0..count).map(|_| value()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The sum in rank order, from the left.
fn in_rank_order(ranks: usize, count: usize) -> Vec<f32> {
    let all: Vec<Vec<f32>> = (0..ranks).map(|rank| rough(rank, count)).collect();
    let sum = |index: usize| all[1..].iter().fold(all[0][index], |sum, values| sum + values[index]);
    (0..count).map(sum).collect()
}

/// A vector cut into parts: one that is reduced in place, and two that share a bucket.
#[derive(Gradient, Clone, Default)]
struct Parts {
    long: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Parts {
    fn of(values: &[f32]) -> Self {
        let (long, rest) = values.split_at(values.len() * 9 / 10);
        let (first, second) = rest.split_at(rest.len() / 3);
        Self { long: long.to_vec(), first: first.to_vec(), second: second.to_vec() }
    }

    fn all(&self) -> Vec<f32> {
        [&self.long[..], &self.first, &self.second].concat()
    }
}

fn algorithms(over: Over) {
    let mut differs = false;
    for (ranks, count) in [(2, 3000), (3, 5), (3, 3000), (5, 3000), (4, 300_000)] {
        let expected = bits(&in_rank_order(ranks, count));
        let in_blocks = bits(&in_rank_order(ranks, count / ranks * ranks));
        let results = run(over, ranks, |comm| {
            let rank = comm.rank();
            let mut free = rough(rank, count);
            comm.all_reduce(&mut free, Sum).unwrap();
            comm.set_determinism(Determinism::Algorithms);
            let mut whole = rough(rank, count);
            comm.all_reduce(&mut whole, Sum).unwrap();
            assert!(bits(&whole) == expected, "{over:?}, {ranks} ranks, {count} elements");
            // Cut elsewhere, and in buckets.
            let mut parts = Parts::of(&rough(rank, count));
            comm.all_reduce_gradient(&mut parts).unwrap();
            assert!(bits(&parts.all()) == expected, "{over:?}, {ranks} ranks, {count} elements in parts");
            let mut rooted = rough(rank, count);
            comm.reduce(&mut rooted, ranks - 1, Sum).unwrap();
            assert!(rank != ranks - 1 || bits(&rooted) == expected);
            let mut block = vec![0.0; count / ranks];
            comm.reduce_scatter_into(&rough(rank, count / ranks * ranks), &mut block, Sum).unwrap();
            assert!(bits(&block) == in_blocks[rank * block.len()..(rank + 1) * block.len()]);
            bits(&free)
        });
        differs |= results[0] != expected;
    }
    // Where memory is shared all contributions meet in one fold anyway.
    assert_eq!(differs, over != Over::Shm, "the data are too easy");
}

/// Messages and puts overtake each other in another way every time.
#[test]
fn two_runs_have_the_same_bits() {
    let results: Vec<_> = (0..4)
        .map(|seed| {
            let network = Network::new(seed, Config::hostile());
            gradwire::run_over(
                4,
                |_| Ok(Box::new(network.endpoint())),
                |comm| {
                    comm.set_determinism(Determinism::Runs);
                    [7, 5000, 100_000].map(|count| {
                        let mut mine = rough(comm.rank(), count);
                        comm.all_reduce(&mut mine, Sum).unwrap();
                        bits(&mine)
                    })
                },
            )
            .unwrap()
        })
        .collect();
    assert!(results.iter().flatten().all(|other| *other == results[0][0]));
}

fn contributions(over: Over) {
    for ranks in [2, 3, 5] {
        for count in [5, 3000, 20_000] {
            let of = |turn: usize| {
                run(over, ranks, |comm| {
                    comm.set_determinism(Determinism::Contributions);
                    let mut mine = rough((comm.rank() * (ranks - 1) + turn) % ranks, count);
                    let mut halves = Halves { sum: mine.clone(), average: mine.clone(), plain: 1 };
                    comm.all_reduce(&mut mine, ReproducibleSum).unwrap();
                    comm.all_reduce_gradient(&mut halves).unwrap();
                    assert!(bits(&halves.sum) == bits(&mine));
                    assert_eq!(halves.plain, ranks as u64);
                    (bits(&mine), bits(&halves.average))
                })
            };
            let expected = of(0);
            assert!((1..ranks).all(|turn| of(turn) == expected), "{over:?}, {ranks} ranks, {count} elements");
            assert!(expected.iter().all(|other| *other == expected[0]));
        }
    }
}

#[derive(Gradient, Clone)]
struct Halves {
    #[gradient(reduce = ReproducibleSum)]
    sum: Vec<f32>,
    #[gradient(reduce = ReproducibleAverage)]
    average: Vec<f32>,
    plain: u64,
}

fn what_cannot_keep_the_promise_is_refused(over: Over) {
    run(over, 3, |comm| {
        comm.set_determinism(Determinism::Contributions);
        let said = |result: gradwire::Result<()>| match result.unwrap_err() {
            Error::Misuse(text) => text.to_string(),
            other => panic!("{other}"),
        };
        let mut mine = rough(comm.rank(), 10);
        let before = mine.clone();
        let text = said(comm.all_reduce(&mut mine, Sum));
        assert!(
            text.starts_with("the results of sum depend on") && text.contains("`ReproducibleSum`"),
            "{text}"
        );
        said(comm.reduce(&mut mine, 0, Sum));
        said(comm.sparse_all_reduce(10, &[1], &mine[..1], Sum).map(drop));
        said(comm.all_reduce(&mut [bf16::ONE], Sum));
        let first = Operation::new("first", Laws::none(), |_: &mut [f32], _: &[f32]| {});
        said(comm.all_reduce(&mut mine, first));
        let text = said(comm.all_reduce_gradient(&mut Parts::of(&mine)));
        assert!(text.contains("sum, by which field `long` is reduced, depend"), "{text}");
        assert_eq!(mine, before);
        // The others are not: nothing was sent before.
        exact(&comm);
        let mut parts = Parts::of(&mine);
        comm.broadcast_gradient(&mut parts, 1).unwrap();
        assert_eq!(parts.all(), Parts::of(&rough(1, 10)).all());
    });
}

fn exact(comm: &Communicator) {
    let rank = comm.rank();
    let mut sum = [rank as u32, u32::MAX];
    comm.all_reduce(&mut sum, Sum).unwrap();
    assert_eq!(sum, [3, u32::MAX - 2]);
    let mut bits = [1_u8 << rank];
    comm.all_reduce(&mut bits, BitwiseXor).unwrap();
    assert_eq!(bits, [7]);
    let mut largest = [rank as f32];
    comm.all_reduce(&mut largest, Max).unwrap();
    assert_eq!(largest, [2.0]);
    let mut least = [Located::new(1.5_f32, rank as u32)];
    comm.all_reduce(&mut least, MinLoc).unwrap();
    assert_eq!(least[0].index(), 0);
    let union = Operation::new("union", Laws::none().exact(), |all: &mut [u16], other: &[u16]| {
        all.iter_mut().zip(other).for_each(|(all, other)| *all |= other);
    });
    let mut own = [1_u16 << rank];
    comm.all_reduce(&mut own, union).unwrap();
    assert_eq!(own, [7]);
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn algorithms() { super::algorithms($over); }
            #[test]
            fn contributions() { super::contributions($over); }
            #[test]
            fn what_cannot_keep_the_promise_is_refused() { super::what_cannot_keep_the_promise_is_refused($over); }
        }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    tcp: Tcp,
}
