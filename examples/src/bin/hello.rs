//! Two ranks that add up what they have: see "Two ranks in five minutes" in the book.

use gradwire::{Communicator, Sum};

// ANCHOR: main
fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    let sums = add_up(&comm)?;
    println!("rank {} of {} has {sums:?}", comm.rank(), comm.size());
    Ok(())
}

/// Every rank brings its number and a one; all get the sums.
fn add_up(comm: &Communicator) -> gradwire::Result<[f32; 2]> {
    let mut values = [comm.rank() as f32, 1.0];
    comm.all_reduce(&mut values, Sum)?;
    Ok(values)
}
// ANCHOR_END: main

// ANCHOR: test
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ranks_are_counted() {
        let sums = gradwire::run(4, |comm| add_up(&comm).unwrap()).unwrap();
        assert_eq!(sums, [[6.0, 4.0]; 4]);
    }
}
// ANCHOR_END: test
