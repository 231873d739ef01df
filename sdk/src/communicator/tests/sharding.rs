//! The same contributions, spread over more or fewer ranks, in any order, by any algorithm: the same bits.

use crate::in_process::run_tuned;
use crate::plan::{Collective, algorithms};
use crate::select::Tuning;
use crate::{
    Communicator, Config, Determinism, Float, Reduction, ReproducibleAverage, ReproducibleSum, Sum,
    transports,
};
use std::fmt::Debug;

/// Small with the signatures, and by plans of several segments.
const COUNTS: [usize; 2] = [9, 2003];
const CONTRIBUTIONS: usize = 11;

/// A contribution in which every element is trouble of its own kind.
fn contribution<T: Float>(
    number: usize,
    count: usize,
    from_f64: fn(f64) -> T,
    largest: f64,
    smallest: f64,
) -> Vec<T> {
    let mut random = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count)
        .map(|index| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let fraction = (random >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            let odd = number % 2 == 1;
            from_f64(match index % 9 {
                0 => fraction,
                // Two that cancel, and what is left.
                1 if number < 2 => {
                    if odd {
                        -largest / 4.0
                    } else {
                        largest / 4.0
                    }
                }
                // Magnitudes far apart.
                2 => fraction * 2.0_f64.powi((random % 60) as i32 - 30),
                // Too large on the way, not in the end.
                3 => {
                    if odd {
                        -largest
                    } else {
                        largest
                    }
                }
                4 => fraction * 8.0 * smallest,
                5 if number == 3 => f64::INFINITY,
                6 if number == 5 || number == 8 => {
                    if odd {
                        f64::INFINITY
                    } else {
                        f64::NEG_INFINITY
                    }
                }
                7 if number == 7 => f64::NAN,
                8 => -0.0,
                _ => fraction * 1.0e5,
            })
        })
        .collect()
}

/// Every way to carry out an all_reduce: by each algorithm.
fn tunings() -> impl Iterator<Item = Tuning> {
    let named = |algorithm: &&dyn crate::plan::Algorithm| format!("all_reduce:0-={}", algorithm.name());
    algorithms(Collective::AllReduce).iter().map(move |algorithm| named(algorithm).parse().expect("valid"))
}

/// What all ranks get, and that it is the same on all.
fn on_all<R: PartialEq + Debug + Send>(
    ranks: usize,
    tuning: &Tuning,
    program: impl Fn(&Communicator) -> R + Sync,
) -> R {
    let transport = |_| transports::tcp(&Config::default(), None);
    let mut results = run_tuned(ranks, tuning, transport, |comm| program(&comm)).unwrap();
    let first = results.swap_remove(0);
    assert!(results.iter().all(|other| *other == first), "{ranks} ranks by {tuning}");
    first
}

/// Which rank has which contributions, in which order: as a rank of so many sees it.
fn dealt(rank: usize, ranks: usize, deal: usize) -> Vec<usize> {
    let order = (0..CONTRIBUTIONS).map(|place| (place * [1, 3, 7][deal] + deal) % CONTRIBUTIONS);
    // Blocks, round robin, or nearly all on the last.
    let owner = |place: usize| match deal {
        0 => place * ranks / CONTRIBUTIONS,
        1 => place % ranks,
        _ => ranks - 1 - usize::from(place == 0).min(ranks - 1),
    };
    order.enumerate().filter(|(place, _)| owner(*place) == rank).map(|(_, number)| number).collect()
}

fn the_spread_does_not_show<T: Float + Debug>(from_f64: fn(f64) -> T, largest: f64, smallest: f64)
where
    T::Bits: PartialEq + Debug + Send,
{
    let bits = |values: &[T]| values.iter().map(|value| value.into_raw_bits()).collect::<Vec<_>>();
    for count in COUNTS {
        let all: Vec<Vec<T>> = (0..CONTRIBUTIONS)
            .map(|number| contribution(number, count, from_f64, largest, smallest))
            .collect();
        let reduced = |comm: &Communicator, deal: usize| {
            comm.set_determinism(Determinism::Contributions);
            let own = dealt(comm.rank(), comm.size(), deal);
            let own = || own.iter().map(|number| &all[*number][..]);
            let (mut sum, mut average) = (vec![T::default(); count], vec![T::default(); count]);
            comm.all_reduce_many(own(), &mut sum, ReproducibleSum).unwrap();
            comm.all_reduce_many(own(), &mut average, ReproducibleAverage).unwrap();
            // The plain sum of the same.
            comm.set_determinism(Determinism::Ranks);
            let mut partial = vec![T::Wide::default(); count];
            own().for_each(|contribution| Sum.combine(&mut partial, contribution));
            let mut plain = vec![T::default(); count];
            Reduction::<T>::finish(&Sum, &partial, 1, &mut plain);
            comm.all_reduce(&mut plain, Sum).unwrap();
            ((bits(&sum), bits(&average)), bits(&plain))
        };
        let (expected, mut plain) = on_all(1, &Tuning::default(), |comm| reduced(comm, 0));
        let mut plain_differs = false;
        for ranks in [1, 2, 3, 5] {
            for (number, tuning) in tunings().enumerate() {
                let deal = (number + ranks) % 3;
                let (found, other) = on_all(ranks, &tuning, |comm| reduced(comm, deal));
                assert!(found == expected, "{count} elements on {ranks} ranks by {tuning}");
                plain_differs |= other != plain;
                plain = other;
            }
        }
        assert!(plain_differs, "the data are too easy");
    }
}

#[test]
fn of_f32() {
    the_spread_does_not_show::<f32>(|value| value as f32, f32::MAX.into(), f32::MIN_POSITIVE.into());
}

#[test]
fn of_f64() {
    the_spread_does_not_show::<f64>(|value| value, f64::MAX, f64::MIN_POSITIVE);
}

/// One contribution of each rank, in place: which rank has which does not show.
#[test]
fn which_rank_has_which_does_not_show() {
    for ranks in [2, 3, 5] {
        for count in COUNTS {
            let all: Vec<Vec<f32>> = (0..ranks)
                .map(|number| {
                    contribution(
                        number,
                        count,
                        |value| value as f32,
                        f32::MAX.into(),
                        f32::MIN_POSITIVE.into(),
                    )
                })
                .collect();
            let reduced = |comm: &Communicator, turn: usize| {
                let mut mine = all[(comm.rank() * (ranks - 1) + turn) % ranks].clone();
                let mut plain = mine.clone();
                comm.all_reduce(&mut mine, ReproducibleSum).unwrap();
                comm.all_reduce(&mut plain, Sum).unwrap();
                [mine, plain].map(|values| values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
            };
            let [expected, _] = on_all(ranks, &Tuning::default(), |comm| reduced(comm, 0));
            let mut plains = Vec::new();
            for tuning in tunings() {
                for turn in 0..ranks {
                    let [found, plain] = on_all(ranks, &tuning, |comm| reduced(comm, turn));
                    assert!(found == expected, "{count} elements on {ranks} ranks by {tuning}, turn {turn}");
                    plains.push(plain);
                }
            }
            plains.dedup();
            // Two summands may change places in a plain sum, too.
            assert!(plains.len() > 1 || ranks == 2, "the data are too easy");
        }
    }
}
