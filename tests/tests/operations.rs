//! Operations of users, on every collective that reduces and over every transport: in rank order where they are not
//! commutative, one after the other where they are not associative.

use gradwire::{
    Average, Communicator, Equivalence, Error, Laws, Operation, OperationId, Properties, Rank, Reduction,
    Sum, WideSum, reduce_local,
};
use gradwire_tests::ranks::{Over, run, value};

/// Small ones travel with the signatures, long ones by a plan, in several segments.
const COUNTS: [usize; 4] = [0, 1, 33, 8_000];
const RANKS: [usize; 4] = [1, 2, 3, 5];

/// A matrix of two rows over the integers modulo 2^32: its product is associative and not commutative.
#[derive(Equivalence, Clone, Copy, PartialEq, Default, Debug)]
struct Matrix([[u32; 2]; 2]);

impl Matrix {
    fn of(rank: Rank, index: usize) -> Self {
        let (rank, index) = (rank as u32, index as u32);
        Self([[rank + 2, index], [1, rank * index + 3]])
    }

    fn times(self, right: Self) -> Self {
        let (Self(a), Self(b)) = (self, right);
        let entry = |row: usize, column: usize| {
            a[row][0].wrapping_mul(b[0][column]).wrapping_add(a[row][1].wrapping_mul(b[1][column]))
        };
        Self([[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]])
    }
}

fn matrices(rank: Rank, count: usize) -> Vec<Matrix> {
    (0..count).map(|index| Matrix::of(rank, index)).collect()
}

/// As a closure.
fn product() -> impl Reduction<Matrix> {
    Operation::new(
        "matrix product",
        Laws::none().associative(),
        |products: &mut [Matrix], factors: &[Matrix]| {
            for (product, factor) in products.iter_mut().zip(factors) {
                *product = product.times(*factor);
            }
        },
    )
}

/// Text of at most eight characters, of which the last ones are kept: `then` glues two together.
#[derive(Equivalence, Clone, Copy, PartialEq, Default, Debug)]
struct Text {
    letters: [char; 8],
    len: u8,
}

impl Text {
    fn of(rank: Rank, index: usize) -> Self {
        let mut text = Self::default();
        text.letters[0] = char::from(b'a' + (rank + 3 * index) as u8 % 26);
        text.len = 1;
        text
    }

    fn then(mut self, next: Self) -> Self {
        for letter in &next.letters[..usize::from(next.len).min(8)] {
            if self.len == 8 {
                self.letters.rotate_left(1);
                self.len = 7;
            }
            self.letters[usize::from(self.len)] = *letter;
            self.len += 1;
        }
        self
    }
}

/// As a type of its own, with an accumulator that is no element: how many texts it is of, and the text.
#[derive(Clone, Copy, Debug)]
struct Glue;

impl Reduction<Text> for Glue {
    type Accumulator = (u64, Text);

    fn properties(&self) -> Properties {
        Properties { id: OperationId::of_name("glue"), name: "glue", commutative: false, associative: true }
    }

    fn lift(&self, source: &[Text], accumulators: &mut [(u64, Text)]) {
        accumulators.iter_mut().zip(source).for_each(|(accumulator, text)| *accumulator = (1, *text));
    }

    fn combine(&self, accumulators: &mut [(u64, Text)], source: &[Text]) {
        for ((texts, glued), next) in accumulators.iter_mut().zip(source) {
            (*texts, *glued) = (*texts + 1, glued.then(*next));
        }
    }

    fn merge(&self, accumulators: &mut [(u64, Text)], other: &[(u64, Text)]) {
        for ((texts, glued), (more, next)) in accumulators.iter_mut().zip(other) {
            (*texts, *glued) = (*texts + more, glued.then(*next));
        }
    }

    /// The text, and as its last letter how many it is of.
    fn finish(&self, accumulators: &[(u64, Text)], contributions: u64, destination: &mut [Text]) {
        for ((texts, glued), destination) in accumulators.iter().zip(destination) {
            assert_eq!(*texts, contributions);
            *destination = *glued;
            destination.letters[7] = char::from_digit(*texts as u32, 36).unwrap();
        }
    }
}

/// Neither commutative nor associative: half of what there is, and what comes.
fn halving() -> impl Reduction<f32> {
    Operation::new("halving", Laws::none(), |totals: &mut [f32], next: &[f32]| {
        totals.iter_mut().zip(next).for_each(|(total, next)| *total = *total / 2.0 + next);
    })
}

/// What one process makes of the contributions of ranks, the lowest first.
fn in_rank_order<T: Equivalence, R: Reduction<T>>(
    reduction: &R,
    ranks: usize,
    count: usize,
    contribution: fn(Rank, usize) -> T,
) -> Vec<T> {
    let of = |rank: Rank| -> Vec<T> { (0..count).map(|index| contribution(rank, index)).collect() };
    let mut accumulators = vec![R::Accumulator::default(); count];
    reduction.lift(&of(0), &mut accumulators);
    (1..ranks).for_each(|rank| reduction.combine(&mut accumulators, &of(rank)));
    let mut result = of(0);
    reduction.finish(&accumulators, ranks as u64, &mut result);
    result
}

/// Every collective that reduces.
fn reduces<T, R>(comm: &Communicator, reduction: R, contribution: fn(Rank, usize) -> T)
where
    T: Equivalence + Default + PartialEq + std::fmt::Debug,
    R: Reduction<T>,
{
    let (rank, ranks) = (comm.rank(), comm.size());
    for count in COUNTS {
        let source: Vec<T> = (0..count).map(|index| contribution(rank, index)).collect();
        let expected = in_rank_order(&reduction, ranks, count, contribution);
        let mut mine = source.clone();
        comm.all_reduce(&mut mine, reduction.clone()).unwrap();
        assert!(mine == expected, "all_reduce of {count} on rank {rank} of {ranks}");
        let mut mine = vec![T::default(); count];
        comm.all_reduce_into(&source, &mut mine, reduction.clone()).unwrap();
        assert!(mine == expected, "all_reduce_into of {count} on rank {rank} of {ranks}");
        for root in 0..ranks {
            let mut mine = source.clone();
            comm.reduce(&mut mine, root, reduction.clone()).unwrap();
            let expected = if rank == root { &expected } else { &source };
            assert!(mine == *expected, "reduce of {count} to {root} on rank {rank} of {ranks}");
        }
        let mut mine = vec![T::default(); if rank == 0 { count } else { 0 }];
        comm.reduce_into(&source, &mut mine, 0, reduction.clone()).unwrap();
        assert!(rank > 0 || mine == expected, "reduce_into of {count} of {ranks}");
        let mut mine = source.clone();
        comm.scope(|scope| scope.all_reduce(&mut mine, reduction.clone()).wait().1).unwrap().unwrap();
        assert!(mine == expected, "scoped all_reduce of {count} on rank {rank} of {ranks}");
        scans(comm, &reduction, &source, contribution);
        let source: Vec<T> = (0..count * ranks).map(|index| contribution(rank, index)).collect();
        let expected = in_rank_order(&reduction, ranks, count * ranks, contribution);
        let mut mine = vec![T::default(); count];
        comm.reduce_scatter_into(&source, &mut mine, reduction.clone()).unwrap();
        let part = rank * count..(rank + 1) * count;
        assert!(mine == expected[part.clone()], "reduce_scatter of {count} on rank {rank} of {ranks}");
        let mut mine = vec![T::default(); count];
        comm.reduce_scatter_varying_into(&source, &mut mine, &vec![count; ranks], reduction.clone()).unwrap();
        assert!(mine == expected[part], "reduce_scatter_varying of {count} on rank {rank} of {ranks}");
    }
}

/// Of the ranks up to this one, and before it.
fn scans<T, R>(comm: &Communicator, reduction: &R, source: &[T], contribution: fn(Rank, usize) -> T)
where
    T: Equivalence + PartialEq,
    R: Reduction<T>,
{
    let (rank, count) = (comm.rank(), source.len());
    let mut mine = source.to_vec();
    comm.scan(&mut mine, reduction.clone()).unwrap();
    assert!(
        mine == in_rank_order(reduction, rank + 1, count, contribution),
        "scan of {count} on rank {rank}"
    );
    let mut mine = source.to_vec();
    comm.exclusive_scan(&mut mine, reduction.clone()).unwrap();
    // Nothing is before rank 0.
    let expected = in_rank_order(reduction, rank.max(1), count, contribution);
    assert!(rank == 0 || mine == expected, "exclusive_scan of {count} on rank {rank}");
    assert!(rank > 0 || mine == source, "exclusive_scan of {count} on rank 0");
}

fn closures(over: Over) {
    for ranks in RANKS {
        run(over, ranks, |comm| {
            reduces(&comm, product(), Matrix::of);
            reduces(&comm, halving(), value);
        });
    }
}

fn types(over: Over) {
    for ranks in RANKS {
        run(over, ranks, |comm| reduces(&comm, Glue, Text::of));
    }
}

/// The name is the identity between ranks.
fn names(over: Over) {
    run(over, 3, |comm| {
        let named = |name| {
            Operation::new(name, Laws::none().associative(), |all: &mut [Matrix], more: &[Matrix]| {
                all.copy_from_slice(more);
            })
        };
        let mut mine = matrices(comm.rank(), 5);
        let error =
            comm.all_reduce(&mut mine, named(if comm.rank() == 2 { "last" } else { "later" })).unwrap_err();
        let Error::Mismatch { calls, .. } = &error else { panic!("{error}") };
        assert_eq!(calls.iter().map(|(_, ranks)| &ranks[..]).collect::<Vec<_>>(), [&[0, 1][..], &[2]]);
        assert_eq!(mine, matrices(comm.rank(), 5));
        comm.all_reduce(&mut mine, named("later")).unwrap();
        assert_eq!(mine, matrices(2, 5));
    });
}

/// The same bits by every algorithm and wherever an element lies.
fn wide_sums(over: Over) {
    let contribution = |rank: Rank, index: usize| value(rank, index) * 1.000_1_f32.powi(index as i32 % 7);
    for ranks in RANKS {
        run(over, ranks, |comm| reduces(&comm, WideSum, contribution));
    }
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn closures() { super::closures($over); }
            #[test]
            fn types() { super::types($over); }
            #[test]
            fn names() { super::names($over); }
            #[test]
            fn wide_sums() { super::wide_sums($over); }
        }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    tcp: Tcp,
}

#[test]
fn local_reductions_are_those_of_two_ranks() {
    for count in [0, 1, 511, 512, 513, 2000] {
        let mut products = matrices(1, count);
        reduce_local(&matrices(0, count), &mut products, product()).unwrap();
        assert_eq!(products, in_rank_order(&product(), 2, count, Matrix::of));
        let of = |rank: Rank| -> Vec<f32> { (0..count).map(|index| value(rank, index)).collect() };
        let mut averages = of(1);
        reduce_local(&of(0), &mut averages, Average).unwrap();
        assert_eq!(averages, in_rank_order(&Average, 2, count, value));
    }
    let mut short = [1.0_f32; 2];
    let error = reduce_local(&[1.0; 3], &mut short, Sum).unwrap_err();
    assert_eq!(error.to_string(), "the destination has 2 elements: make it 3 long, as the source is");
    assert_eq!(short, [1.0; 2]);
}
