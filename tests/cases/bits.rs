//! Results are equal on all ranks, bit for bit: every datatype, operation, number of ranks and path.

use gradwire::{
    Average, BitwiseAnd, BitwiseOr, BitwiseXor, Communicator, Element, F8E4m3, F8E5m2, Float, Integer,
    LogicalAnd, LogicalOr, LogicalXor, Max, Min, PreMultipliedSum, Product, Reduction, Sum, WideAverage,
    WideSum, bf16, f16,
};
use gradwire_tests::ranks::{Over, any_bits, hash, run};

over! {
    Sim, Shm:
    all_ranks_get_the_same_bits,
}

/// None, with the signatures, and by a plan.
const COUNTS: [usize; 3] = [0, 3, 2100];
const RANKS: [usize; 6] = [1, 2, 3, 4, 5, 7];

/// Case 103, and 95 for no elements.
fn all_ranks_get_the_same_bits(over: Over) {
    for ranks in RANKS {
        let hashes = run(over, ranks, |comm| {
            let mut hashes = Vec::new();
            let all = &mut hashes;
            floats::<f64>(&comm, all);
            floats::<f32>(&comm, all);
            floats::<f16>(&comm, all);
            floats::<bf16>(&comm, all);
            floats::<F8E4m3>(&comm, all);
            floats::<F8E5m2>(&comm, all);
            integers::<i64>(&comm, all);
            integers::<i32>(&comm, all);
            integers::<i16>(&comm, all);
            integers::<i8>(&comm, all);
            integers::<u64>(&comm, all);
            integers::<u32>(&comm, all);
            integers::<u16>(&comm, all);
            integers::<u8>(&comm, all);
            hashes
        });
        for (rank, other) in hashes.iter().enumerate() {
            for (own, (what, hash)) in hashes[0].iter().zip(other) {
                assert_eq!(
                    (&own.0, own.1),
                    (what, *hash),
                    "{over:?}: rank {rank} of {ranks} differs from rank 0"
                );
            }
        }
    }
}

type Hashes = Vec<(String, u64)>;

fn floats<T: Float>(comm: &Communicator, hashes: &mut Hashes) {
    // Sums depend on the order: only their equality is asked for here.
    reduced::<T, _>(comm, Sum, false, hashes);
    reduced::<T, _>(comm, Average, false, hashes);
    reduced::<T, _>(comm, Product, false, hashes);
    reduced::<T, _>(comm, PreMultipliedSum { factor: 0.25 }, false, hashes);
    // Those in f64 do not, but for f64 itself.
    reduced::<T, _>(comm, WideSum, size_of::<T>() < 8, hashes);
    reduced::<T, _>(comm, WideAverage, size_of::<T>() < 8, hashes);
    reduced::<T, _>(comm, Min, true, hashes);
    reduced::<T, _>(comm, Max, true, hashes);
}

fn integers<T: Integer + gradwire::Arithmetic>(comm: &Communicator, hashes: &mut Hashes) {
    reduced::<T, _>(comm, Sum, true, hashes);
    reduced::<T, _>(comm, Product, true, hashes);
    reduced::<T, _>(comm, Min, true, hashes);
    reduced::<T, _>(comm, Max, true, hashes);
    reduced::<T, _>(comm, BitwiseAnd, true, hashes);
    reduced::<T, _>(comm, BitwiseOr, true, hashes);
    reduced::<T, _>(comm, BitwiseXor, true, hashes);
    reduced::<T, _>(comm, LogicalAnd, true, hashes);
    reduced::<T, _>(comm, LogicalOr, true, hashes);
    reduced::<T, _>(comm, LogicalXor, true, hashes);
}

fn reduced<T: Element, R: Reduction<T>>(comm: &Communicator, reduction: R, exact: bool, hashes: &mut Hashes) {
    for count in COUNTS {
        let what = format!("{reduction:?} of {count} {}", T::DATATYPE.name());
        let mut mine = any_bits::<T>(comm.rank() as u64 + 1, count);
        comm.all_reduce(&mut mine, reduction.clone()).unwrap();
        let hash = hash(&mine);
        if exact {
            assert_eq!(hash, one_after_the_other::<T, R>(comm.size(), count, &reduction), "{what}");
        }
        hashes.push((what, hash));
    }
}

/// The hash of what one process makes of all contributions.
fn one_after_the_other<T: Element, R: Reduction<T>>(ranks: usize, count: usize, reduction: &R) -> u64 {
    let mut accumulators: Vec<R::Accumulator> = (0..count).map(|_| R::Accumulator::default()).collect();
    reduction.lift(&any_bits::<T>(1, count), &mut accumulators);
    for rank in 1..ranks {
        reduction.combine(&mut accumulators, &any_bits::<T>(rank as u64 + 1, count));
    }
    let mut result = vec![T::default(); count];
    reduction.finish(&accumulators, ranks as u64, &mut result);
    hash(&result)
}
