//! Structs and enums as values of collectives: `gradwire run -n 3 -- target/release/datatypes`.

use gradwire::{Communicator, Equivalence, Error, InvalidValue, Result};

// ANCHOR: types
#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum State {
    Idle,
    Busy,
    Failed = 255,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Report<const GPUS: usize> {
    state: State,
    healthy: bool,
    step: u64,
    /// Used and free bytes.
    memory: [(u64, u64); GPUS],
    grade: char,
}
// ANCHOR_END: types

fn main() -> Result<()> {
    let comm = gradwire::init()?;
    every_rank_knows_all(&comm)?;
    what_is_no_value_is_refused(&comm)?;
    println!("rank {} knows the state of all {}", comm.rank(), comm.size());
    Ok(())
}

fn report(rank: usize) -> Report<2> {
    Report {
        state: [State::Idle, State::Busy, State::Failed][rank % 3],
        healthy: rank % 3 < 2,
        step: 100 + rank as u64,
        memory: [(rank as u64, 64), (0, 64 - rank as u64)],
        grade: if rank == 0 { 'ä' } else { 'b' },
    }
}

fn every_rank_knows_all(comm: &Communicator) -> Result<()> {
    // ANCHOR: all_gather
    let mut reports = vec![report(0); comm.size()];
    comm.all_gather_into(&[report(comm.rank())], &mut reports)?;
    // ANCHOR_END: all_gather
    assert_eq!(reports, (0..comm.size()).map(report).collect::<Vec<_>>());
    Ok(())
}

// ANCHOR: forged
/// Says that it is a [`State`], and is any byte: what a faulty program might send.
#[derive(Clone, Copy)]
struct Forged(u8);

impl Equivalence for Forged {
    const PACKED_SIZE: usize = State::PACKED_SIZE;
    const FINGERPRINT: u64 = State::FINGERPRINT;

    fn pack(&self, bytes: &mut [u8]) {
        self.0.pack(bytes);
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        u8::unpack(bytes).map(Self)
    }
}
// ANCHOR_END: forged

fn what_is_no_value_is_refused(comm: &Communicator) -> Result<()> {
    // ANCHOR: refused
    if comm.rank() == 0 {
        return comm.broadcast(&mut [Forged(7)], 0);
    }
    let mut states = [State::Busy];
    let Err(Error::InvalidValue { index, invalid }) = comm.broadcast(&mut states, 0) else {
        panic!("there is no state 7");
    };
    assert_eq!((index, invalid.type_name), (0, "State"));
    assert_eq!(states, [State::Busy]);
    // ANCHOR_END: refused
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ranks_knows_all() {
        for ranks in [1, 2, 5] {
            gradwire::run(ranks, |comm| {
                every_rank_knows_all(&comm).unwrap();
                what_is_no_value_is_refused(&comm).unwrap();
            })
            .unwrap();
        }
    }
}
