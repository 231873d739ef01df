//! Messages between ranks: exchanged in a ring, of unknown length, without waiting, and with a buffer.

use gradwire::{Communicator, Source, Tag};

/// Values at the border of a neighbour's part.
const BORDER: u32 = 1;
/// A report, as long as it is.
const REPORT: u32 = 2;
/// A large block.
const BLOCK: u32 = 3;

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    let border = exchange_borders(&comm)?;
    println!("rank {} has {border} at its border", comm.rank());
    let lines = collect_reports(&comm)?;
    shift_blocks(&comm)?;
    shift_owned_blocks(&comm)?;
    swap_with_a_buffer(&comm)?;
    if comm.rank() == 0 {
        println!("{lines} lines were reported");
    }
    Ok(())
}

// ANCHOR: exchange
/// Every rank gives its value to the next one, and takes that of the previous one.
fn exchange_borders(comm: &Communicator) -> gradwire::Result<f64> {
    let (next, previous) = neighbours(comm);
    let mut border = [0.0];
    comm.send_receive(&[comm.rank() as f64], next, BORDER, &mut border, previous, BORDER)?;
    Ok(border[0])
}
// ANCHOR_END: exchange

fn neighbours(comm: &Communicator) -> (usize, usize) {
    let (rank, size) = (comm.rank(), comm.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

// ANCHOR: unknown
/// Rank 0 takes the reports as they come. How long each is only its sender knows.
fn collect_reports(comm: &Communicator) -> gradwire::Result<usize> {
    let report = "all is well\n".repeat(comm.rank());
    if comm.rank() > 0 {
        comm.send(report.as_bytes(), 0, REPORT)?;
        return Ok(0);
    }
    let mut lines = 0;
    for _ in 1..comm.size() {
        let (text, received) = comm.recv_vec::<u8>(Source::Any, REPORT)?;
        assert_eq!(text.len(), received.source * "all is well\n".len());
        lines += received.source;
    }
    Ok(lines)
}
// ANCHOR_END: unknown

// ANCHOR: scope
/// Computes while a block leaves for the next rank and another one comes from the previous rank.
fn shift_blocks(comm: &Communicator) -> gradwire::Result<()> {
    let (next, previous) = neighbours(comm);
    let mine = vec![comm.rank() as u64; 100_000];
    let mut theirs = vec![0; 100_000];
    let sum = comm.scope(|scope| {
        let received = scope.recv(&mut theirs, previous, BLOCK);
        let sent = scope.send(&mine, next, BLOCK);
        let sum: u64 = mine.iter().sum();
        sent.wait().1?;
        let (block, result) = received.wait();
        assert_eq!(result?.count, block.len());
        gradwire::Result::Ok(sum + block[0])
    })??;
    assert_eq!(sum, 100_000 * comm.rank() as u64 + previous as u64);
    Ok(())
}
// ANCHOR_END: scope

// ANCHOR: owned
/// The same with memory that moves into the requests, and comes back from them.
fn shift_owned_blocks(comm: &Communicator) -> gradwire::Result<()> {
    let (next, previous) = neighbours(comm);
    let mut mine = comm.allocate::<u64>(100_000)?;
    mine.fill(comm.rank() as u64);
    let received = comm.start_recv(comm.allocate::<u64>(100_000)?, previous, BLOCK);
    let sent = comm.start_send(mine, next, BLOCK);
    let (theirs, result) = received.wait();
    assert_eq!(result?.source, previous);
    assert_eq!(theirs[99_999], previous as u64);
    let (_mine, result) = sent.wait();
    result
}
// ANCHOR_END: owned

// ANCHOR: buffered
/// Whoever sends first does not wait, however long the message is: a copy of it is kept.
fn swap_with_a_buffer(comm: &Communicator) -> gradwire::Result<()> {
    let (next, previous) = neighbours(comm);
    comm.set_send_buffer(1 << 20);
    comm.buffered_send(&vec![comm.rank() as u64; 100_000], next, BLOCK)?;
    let message = comm.matched_probe(previous, Tag::Any)?;
    assert_eq!((message.tag(), message.count::<u64>()?), (BLOCK, 100_000));
    let (values, _) = message.recv_vec::<u64>()?;
    assert_eq!(values[0], previous as u64);
    Ok(())
}
// ANCHOR_END: buffered

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_gets_what_its_neighbour_sent() {
        for ranks in 1..=4 {
            let results = gradwire::run(ranks, |comm| {
                let border = exchange_borders(&comm).unwrap();
                let lines = collect_reports(&comm).unwrap();
                shift_blocks(&comm).unwrap();
                shift_owned_blocks(&comm).unwrap();
                swap_with_a_buffer(&comm).unwrap();
                (border, lines)
            })
            .unwrap();
            assert_eq!(results[0], ((ranks - 1) as f64, ranks * (ranks - 1) / 2));
            assert!(
                results.iter().zip(0..).skip(1).all(|(result, rank)| *result == (f64::from(rank - 1), 0))
            );
        }
    }
}
