//! Operations of one's own: `gradwire run -n 3 -- target/release/operations`.

use gradwire::{
    Communicator, Equivalence, Laws, Operation, OperationId, Properties, Reduction, Result, Sum, WideSum,
    reduce_local,
};

// ANCHOR: closure
/// The value of largest magnitude, with its sign; of equal magnitudes the larger value.
fn largest_magnitude() -> impl Reduction<f32> {
    let laws = Laws::none().commutative().associative();
    Operation::new("largest magnitude", laws, |largest: &mut [f32], values: &[f32]| {
        for (largest, value) in largest.iter_mut().zip(values) {
            if (value.abs(), *value) > (largest.abs(), *largest) {
                *largest = *value;
            }
        }
    })
}
// ANCHOR_END: closure

// ANCHOR: composition
/// The map of `x` to `factor * x + offset`.
#[derive(Equivalence, Clone, Copy, PartialEq, Default, Debug)]
struct Affine {
    factor: i64,
    offset: i64,
}

/// One map after the other, the lowest rank's first: not commutative.
fn composition() -> impl Reduction<Affine> {
    Operation::new(
        "affine composition",
        Laws::none().associative(),
        |maps: &mut [Affine], next: &[Affine]| {
            for (map, next) in maps.iter_mut().zip(next) {
                map.factor *= next.factor;
                map.offset = next.factor * map.offset + next.offset;
            }
        },
    )
}
// ANCHOR_END: composition

// ANCHOR: own_type
/// The sum of the contributions, none of which counts for more than `limit` in either direction.
#[derive(Clone, Copy, Debug)]
struct ClippedSum {
    limit: f32,
}

impl Reduction<f32> for ClippedSum {
    /// What contributions are summed in.
    type Accumulator = f64;

    fn properties(&self) -> Properties {
        // Ranks with different limits call different operations.
        let id = OperationId(OperationId::of_name("clipped sum").0 ^ u64::from(self.limit.to_bits()));
        Properties { id, name: "clipped sum", commutative: true, associative: true }
    }

    fn lift(&self, source: &[f32], sums: &mut [f64]) {
        sums.fill(0.0);
        self.combine(sums, source);
    }

    fn combine(&self, sums: &mut [f64], source: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(source) {
            *sum += f64::from(value.clamp(-self.limit, self.limit));
        }
    }

    fn merge(&self, sums: &mut [f64], others: &[f64]) {
        sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
    }

    fn finish(&self, sums: &[f64], _contributions: u64, destination: &mut [f32]) {
        destination.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum as f32);
    }
}
// ANCHOR_END: own_type

fn main() -> Result<()> {
    let comm = gradwire::init()?;
    every_operation(&comm)?;
    println!("rank {} of {}: every operation gave what it should", comm.rank(), comm.size());
    Ok(())
}

fn every_operation(comm: &Communicator) -> Result<()> {
    let (rank, ranks) = (comm.rank(), comm.size());
    // ANCHOR: use_closure
    let sign = if rank % 2 == 0 { -1.0 } else { 1.0 };
    let mut values = [sign * rank as f32, 0.5];
    comm.all_reduce(&mut values, largest_magnitude())?;
    // ANCHOR_END: use_closure
    let last = ranks - 1;
    assert_eq!(values, [if last.is_multiple_of(2) { -(last as f32) } else { last as f32 }, 0.5]);

    // ANCHOR: use_composition
    let mut map = [Affine { factor: 2, offset: rank as i64 }];
    comm.all_reduce(&mut map, composition())?;
    // ANCHOR_END: use_composition
    let of_zero = (0..ranks as i64).fold(0, |x, rank| 2 * x + rank);
    assert_eq!(map, [Affine { factor: 1 << ranks, offset: of_zero }]);

    // ANCHOR: use_own_type
    let mut values = [rank as f32, 0.25];
    comm.all_reduce(&mut values, ClippedSum { limit: 1.0 })?;
    // ANCHOR_END: use_own_type
    assert_eq!(values, [last as f32, 0.25 * ranks as f32]);

    // ANCHOR: wide
    // Rank 0 has a large number, the last rank takes it away again, the others have small ones.
    let mut mine = [if rank == 0 {
        1e8_f32
    } else if rank == last {
        -1e8
    } else {
        1.0
    }];
    let mut wide = mine;
    comm.all_reduce(&mut wide, WideSum)?;
    comm.all_reduce(&mut mine, Sum)?;
    // ANCHOR_END: wide
    if ranks > 2 {
        assert_eq!((wide, mine), ([(ranks - 2) as f32], [0.0]));
    }

    // ANCHOR: local
    // A rank with several contributions combines them first.
    let (first, mut second) = ([1.0_f32, -7.0], [3.0_f32, 5.0]);
    reduce_local(&first, &mut second, largest_magnitude())?;
    assert_eq!(second, [3.0, -7.0]);
    comm.all_reduce(&mut second, largest_magnitude())?;
    // ANCHOR_END: local
    assert_eq!(second, [3.0, -7.0]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ranks_gets_the_same() {
        for ranks in [1, 2, 3, 5] {
            gradwire::run(ranks, |comm| every_operation(&comm).unwrap()).unwrap();
        }
    }
}
