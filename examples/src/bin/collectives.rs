//! Every kind of collective, each on something small, with what must come out.

use gradwire::{Communicator, Rank, Result, Sum};

fn main() -> Result<()> {
    let comm = gradwire::init()?;
    all(&comm)?;
    println!("rank {} of {}: all as it should be", comm.rank(), comm.size());
    Ok(())
}

fn all(comm: &Communicator) -> Result<()> {
    share_out(comm)?;
    transpose(comm)?;
    collect_words(comm)?;
    number_samples(comm)?;
    borders(comm)?;
    embedding(comm)
}

// ANCHOR: share_out
/// Rank 0 has ten numbers for each rank; each squares its own, and rank 0 gets them back.
fn share_out(comm: &Communicator) -> Result<()> {
    let numbers: Vec<u64> = if comm.rank() == 0 { (0..10 * comm.size() as u64).collect() } else { vec![] };
    let mut mine = comm.scatter(&numbers, 0)?;
    mine.iter_mut().for_each(|number| *number *= *number);
    if let Some(squares) = comm.gather(&mine, 0)? {
        assert!(squares.iter().zip(&numbers).all(|(square, number)| *square == number * number));
    }
    Ok(())
}
// ANCHOR_END: share_out

// ANCHOR: transpose
/// Every rank has a row of a matrix, and gets a column.
fn transpose(comm: &Communicator) -> Result<()> {
    let entry = |row: usize, column: usize| (100 * row + column) as f32;
    let row: Vec<f32> = (0..comm.size()).map(|column| entry(comm.rank(), column)).collect();
    let mut column = vec![0.0; comm.size()];
    comm.all_to_all_into(&row, &mut column)?;
    assert!((0..comm.size()).all(|row| column[row] == entry(row, comm.rank())));
    Ok(())
}
// ANCHOR_END: transpose

// ANCHOR: collect_words
/// Ranks have words of different lengths; nobody needs to know how long those of the others are.
fn collect_words(comm: &Communicator) -> Result<()> {
    let word = |rank: Rank| "abcdefgh".repeat(rank).into_bytes();
    let words = comm.all_gather_varying(&word(comm.rank()))?;
    assert_eq!(words.counts()[0], 0);
    assert!((0..comm.size()).all(|rank| words.of(rank) == word(rank)));
    Ok(())
}
// ANCHOR_END: collect_words

// ANCHOR: number_samples
/// Ranks have different numbers of samples, and number them all through: a rank begins after those of the ranks before.
fn number_samples(comm: &Communicator) -> Result<()> {
    let samples = |rank: Rank| 3 + rank as u64 % 2;
    let mut first = [samples(comm.rank())];
    comm.exclusive_scan(&mut first, Sum)?;
    if comm.rank() == 0 {
        first = [0]; // there is no rank before: it was left as it was
    }
    assert_eq!(first[0], (0..comm.rank()).map(samples).sum());
    Ok(())
}
// ANCHOR_END: number_samples

// ANCHOR: borders
/// Each rank has a piece of a rod, and gets the temperatures at the ends of the pieces beside its own.
fn borders(comm: &Communicator) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let piece = |rank: Rank| [rank as f64, rank as f64 + 0.5];
    let [left_end, right_end] = piece(rank);
    let (mut from_left, mut from_right) = ([f64::NAN], [f64::NAN]);
    let mut sent: Vec<(Rank, &[f64])> = vec![];
    let mut received: Vec<(Rank, &mut [f64])> = vec![];
    if rank > 0 {
        sent.push((rank - 1, std::slice::from_ref(&left_end)));
        received.push((rank - 1, &mut from_left));
    }
    if rank + 1 < size {
        sent.push((rank + 1, std::slice::from_ref(&right_end)));
        received.push((rank + 1, &mut from_right));
    }
    comm.neighbour_exchange(&sent, &mut received)?;
    assert!(if rank > 0 { from_left == [piece(rank - 1)[1]] } else { from_left[0].is_nan() });
    assert!(if rank + 1 < size { from_right == [piece(rank + 1)[0]] } else { from_right[0].is_nan() });
    Ok(())
}
// ANCHOR_END: borders

// ANCHOR: embedding
/// The gradient of an embedding: a row of two values for each word that a rank has seen, of a vocabulary of 50,000. All
/// ranks have seen word 7, and each a word of its own.
fn embedding(comm: &Communicator) -> Result<()> {
    let size = comm.size();
    let seen = [1000 + comm.rank(), 7];
    let rows = [1.0_f32, 2.0, 0.5, 0.25];
    let sum = comm.sparse_all_reduce(50_000, &seen, &rows, Sum)?;
    assert_eq!(sum.indices, [7].into_iter().chain(1000..1000 + size).collect::<Vec<_>>());
    assert_eq!(sum.values[..2], [0.5 * size as f32, 0.25 * size as f32]);
    assert!(sum.values[2..].chunks(2).all(|row| row == [1.0, 2.0]));
    Ok(())
}
// ANCHOR_END: embedding

#[cfg(test)]
mod tests {
    #[test]
    fn with_any_number_of_ranks() {
        for ranks in 1..=4 {
            gradwire::run(ranks, |comm| super::all(&comm).unwrap()).unwrap();
        }
    }
}
