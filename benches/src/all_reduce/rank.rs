//! One of our ranks.

use crate::ranks;
use crate::table::{Row, Times};
use gradwire::{Communicator, Max, Sum};
use std::io;
use std::time::Instant;

pub(super) fn run(transport: &str, sizes: &[usize]) -> io::Result<()> {
    let comm = gradwire::init().map_err(io::Error::other)?;
    let mut rows: Vec<Row> = Vec::new();
    for &bytes in sizes {
        let count = bytes / size_of::<f32>();
        let mut private = vec![0.0; count];
        measure(&comm, transport, "private", &mut private, &mut rows).map_err(io::Error::other)?;
        drop(private);
        let mut allocated = comm.allocate::<f32>(count).map_err(io::Error::other)?;
        measure(&comm, transport, "allocated", &mut allocated, &mut rows).map_err(io::Error::other)?;
    }
    if comm.rank() == 0 { ranks::report(&rows) } else { Ok(()) }
}

fn measure(
    comm: &Communicator,
    transport: &str,
    buffers: &str,
    values: &mut [f32],
    rows: &mut Vec<Row>,
) -> gradwire::Result<()> {
    for dirty in [false, true] {
        let wrong = count_wrong(comm, values)?;
        values.fill(0.0);
        let calls = repetitions(size_of_val(values));
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls + calls / 4 {
            if dirty {
                values.fill(0.0);
            }
            comm.barrier()?;
            let start = Instant::now();
            comm.all_reduce(values, Sum)?;
            if call >= calls / 4 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        comm.all_reduce(&mut times, Max)?;
        rows.push(Row {
            peer: "gradwire".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transport: transport.to_owned(),
            ranks: comm.size(),
            op: "sum".to_owned(),
            bytes: size_of_val(values),
            buffers: buffers.to_owned(),
            state: if dirty { "dirty" } else { "hot" }.to_owned(),
            times: Times::of(times),
            wrong,
        });
    }
    Ok(())
}

/// Elements that are wrong, over all ranks. The sums are small integers: exact.
fn count_wrong(comm: &Communicator, values: &mut [f32]) -> gradwire::Result<u64> {
    let value = |rank: usize, index: usize| ((rank + 1) * (index % 13)) as f32;
    values.iter_mut().enumerate().for_each(|(index, to)| *to = value(comm.rank(), index));
    comm.all_reduce(values, Sum)?;
    let expected = |index| (0..comm.size()).map(|rank| value(rank, index)).sum::<f32>();
    let mut wrong =
        [values.iter().enumerate().filter(|(index, value)| **value != expected(*index)).count() as u64];
    comm.all_reduce(&mut wrong, Sum)?;
    Ok(wrong[0])
}

/// As many calls as move 64 MiB, within reason.
fn repetitions(bytes: usize) -> usize {
    ((64 << 20) / (bytes + 4096)).clamp(12, 3000)
}
