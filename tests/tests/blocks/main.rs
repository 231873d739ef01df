//! Collectives that move blocks, and prefix reductions, over every transport.

mod equal;
mod neighbours;
mod scans;
mod sparse;
mod varying;

use gradwire::{Communicator, Equivalence, Error};

/// A value that is packed field by field, and of which not all bytes are values.
#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Tagged {
    tag: bool,
    number: u64,
}

fn tagged(rank: usize, index: usize) -> Tagged {
    Tagged { tag: (rank + index).is_multiple_of(3), number: (rank << 32 | index) as u64 }
}

/// The text of a misuse.
fn misuse<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Misuse(text)) => text.to_string(),
        other => panic!("{other:?} is no misuse"),
    }
}

/// All ranks have the same text.
fn assert_same(comm: &Communicator, text: &str) {
    let all = comm.all_gather_varying(text.as_bytes()).unwrap();
    assert!((0..comm.size()).all(|rank| all.of(rank) == text.as_bytes()), "{text}");
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn equal_blocks() { super::equal::all_calls($over); }
            #[test]
            fn varying_blocks() { super::varying::all_calls($over); }
            #[test]
            fn what_does_not_fit_is_the_same_error_everywhere() { super::varying::unfit($over); }
            #[test]
            fn other_calls_leave_all_untouched() { super::equal::mismatches($over); }
            #[test]
            fn scans() { super::scans::all_calls($over); }
            #[test]
            fn neighbours() { super::neighbours::all_calls($over); }
            #[test]
            fn sparse_sums() { super::sparse::all_calls($over); }
        }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    tcp: Tcp,
}
