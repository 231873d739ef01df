//! Whether training went as it should: the same weights on all ranks, those of one process, and good ones.

use super::training::Times;
use super::{Network, Trained};
use gradwire::{Communicator, Equivalence, Rank};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How far a weight may be from the one that training in one process leads to.
///
/// The sums over a batch are rounded in another order when it is divided. What becomes of that in eight epochs is about
/// fifty times smaller than this, for 2 to 7 ranks.
pub const TOLERANCE: f32 = 1e-5;

/// The part of the test images that must be read right.
pub const ACCURACY: f64 = 0.95;

// ANCHOR: account
/// What a rank tells the others at the end.
#[derive(Equivalence, Clone, Copy, Debug)]
pub struct Account {
    /// The SHA-256 of all weights.
    pub weights: [u8; 32],
    /// The largest difference of a weight to training in one process.
    pub difference: f32,
    /// Seconds of a step, the median of all steps, as for the next two.
    pub computation: f64,
    /// Waiting for the slowest rank.
    pub waiting: f64,
    /// Reducing the gradients.
    pub communication: f64,
}

/// Collects the accounts of all ranks, in the order of ranks. `reference` is what training in one process led to; that of rank 0 is taken.
///
/// # Errors
///
/// Those of the communicator.
pub fn accounts(
    comm: &Communicator,
    own: &Trained,
    mut reference: Network,
) -> gradwire::Result<Vec<Account>> {
    comm.broadcast_gradient(&mut reference, 0)?;
    let account = Account::new(own, &reference);
    let mut all = vec![account; comm.size()];
    comm.all_gather_into(&[account], &mut all)?;
    Ok(all)
}
// ANCHOR_END: account

/// What is wrong at the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Verdict {
    /// Ranks have other weights than the others.
    #[error("the weights of {} differ from those of the other ranks", ranks(.0))]
    Unequal(Vec<Rank>),
    /// All ranks have the same weights, but not those of one process.
    #[error(
        "the weights differ by {0:.1e} from those that one process arrives at; {TOLERANCE:.0e} is allowed"
    )]
    Different(f32),
    /// Too many digits are read wrong.
    #[error("{:.1} % of the test images are read right; at least {:.0} % should be", 100.0 * .0, 100.0 * ACCURACY)]
    Inaccurate(f64),
}

/// Compares what the ranks tell.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn compare(accounts: &[Account]) -> Result<(), Verdict> {
    // Where ranks disagree, the one nearest to training in one process is right.
    let nearest = accounts.iter().min_by(|a, b| a.difference.total_cmp(&b.difference));
    let Some(right) = nearest else { return Ok(()) };
    let wrong = (0..).zip(accounts).filter(|(_, account)| account.weights != right.weights);
    let wrong: Vec<Rank> = wrong.map(|(rank, _)| rank).collect();
    if !wrong.is_empty() {
        return Err(Verdict::Unequal(wrong));
    }
    if right.difference > TOLERANCE { Err(Verdict::Different(right.difference)) } else { Ok(()) }
}

impl Account {
    fn new(trained: &Trained, reference: &Network) -> Self {
        let median = |part: fn(&Times) -> Duration| {
            let mut parts: Vec<Duration> = trained.times.iter().map(part).collect();
            parts.sort_unstable();
            parts.get(parts.len() / 2).map_or(0.0, Duration::as_secs_f64)
        };
        Self {
            weights: hash(&trained.network),
            difference: difference(&trained.network, reference),
            computation: median(|times| times.computation),
            waiting: median(|times| times.waiting),
            communication: median(|times| times.communication),
        }
    }
}

fn hash(network: &Network) -> [u8; 32] {
    let mut hash = Sha256::new();
    for tensor in network.tensors() {
        tensor.iter().for_each(|value| hash.update(value.to_le_bytes()));
    }
    hash.finalize().into()
}

/// The largest difference of a weight; infinite where one is not a number.
fn difference(a: &Network, b: &Network) -> f32 {
    let pairs = a.tensors().into_iter().flatten().zip(b.tensors().into_iter().flatten());
    let differences = pairs.map(|(a, b)| (a - b).abs());
    differences.map(|it| if it.is_nan() { f32::INFINITY } else { it }).fold(0.0, f32::max)
}

fn ranks(ranks: &[Rank]) -> String {
    let numbers: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(weights: u8, difference: f32) -> Account {
        Account { weights: [weights; 32], difference, computation: 0.0, waiting: 0.0, communication: 0.0 }
    }

    fn verdict(accounts: &[Account]) -> String {
        compare(accounts).map_or_else(|verdict| verdict.to_string(), |()| "good".to_owned())
    }

    #[test]
    fn the_rank_that_differs_is_named() {
        assert_eq!(verdict(&[account(7, 1e-6); 4]), "good");
        let wrong = [account(7, 1e-6), account(8, 1e-2), account(7, 1e-6), account(9, f32::INFINITY)];
        assert_eq!(verdict(&wrong), "the weights of ranks 1, 3 differ from those of the other ranks");
        assert!(verdict(&wrong[..2]).starts_with("the weights of rank 1 differ"));
        assert!(verdict(&[wrong[1], wrong[0]]).starts_with("the weights of rank 0 differ"));
    }

    #[test]
    fn equal_weights_can_be_wrong_together() {
        let expected = "the weights differ by 1.0e-2 from those that one process arrives at; 1e-5 is allowed";
        assert_eq!(verdict(&[account(8, 1e-2); 2]), expected);
    }

    #[test]
    fn one_weight_decides() {
        let (mut a, b) = (Network::random(1), Network::random(1));
        assert_eq!((hash(&a), difference(&a, &b)), (hash(&b), 0.0));
        a.tensors_mut()[5][9] += 0.5;
        assert_ne!(hash(&a), hash(&b));
        assert_eq!(difference(&a, &b), 0.5);
        a.tensors_mut()[0][3] = f32::NAN;
        assert_eq!(difference(&a, &b), f32::INFINITY);
    }
}
