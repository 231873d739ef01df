//! One of our ranks: 0 takes the times, 1 answers.

use crate::ranks;
use crate::table::{Row, Times};
use gradwire::{Communicator, Result};
use std::io;
use std::time::Instant;

/// Messages of a burst.
const BURST: usize = 16;

pub(super) fn run(transport: &str, sizes: &[usize]) -> io::Result<()> {
    ranks::bind()?;
    let comm = gradwire::init().map_err(io::Error::other)?;
    let mut rows = Vec::new();
    for &bytes in sizes {
        measure(&comm, transport, bytes, &mut rows).map_err(io::Error::other)?;
    }
    if comm.rank() == 0 { ranks::report(&rows) } else { Ok(()) }
}

fn measure(comm: &Communicator, transport: &str, bytes: usize, rows: &mut Vec<Row>) -> Result<()> {
    let mut values: Vec<u32> = (0..bytes / 4).map(value).collect();
    let wrong = if comm.rank() == 0 {
        comm.send(&values, 1, 0)?;
        comm.recv_vec::<u64>(1, 0)?.0[0]
    } else {
        values.fill(0);
        comm.recv(&mut values, 0, 0)?;
        let wrong = values.iter().enumerate().filter(|(index, found)| **found != value(*index)).count();
        comm.send(&[wrong as u64], 0, 0)?;
        0
    };
    type Bench = fn(&Communicator, &mut [u32]) -> Result<f64>;
    for (op, once) in [("ping_pong", ping_pong as Bench), ("stream", stream)] {
        let calls = ranks::repetitions(bytes);
        let mut times = Vec::with_capacity(calls);
        comm.barrier()?;
        for call in 0..calls + calls / 4 {
            let time = once(comm, &mut values)?;
            if call >= calls / 4 {
                times.push(time * 1e6);
            }
        }
        rows.push(Row {
            peer: "gradwire".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transport: transport.to_owned(),
            ranks: comm.size(),
            op: op.to_owned(),
            bytes,
            buffers: "private".to_owned(),
            state: "hot".to_owned(),
            times: Times::of(times),
            wrong,
        });
    }
    Ok(())
}

/// There and back; seconds of one way.
fn ping_pong(comm: &Communicator, values: &mut [u32]) -> Result<f64> {
    let start = Instant::now();
    if comm.rank() == 0 {
        comm.send(values, 1, 1)?;
        comm.recv(values, 1, 1)?;
    } else {
        comm.recv(values, 0, 1)?;
        comm.send(values, 0, 1)?;
    }
    Ok(start.elapsed().as_secs_f64() / 2.0)
}

/// Many at once, and one answer; seconds of one of them.
fn stream(comm: &Communicator, values: &mut [u32]) -> Result<f64> {
    let start = Instant::now();
    if comm.rank() == 0 {
        let values = &*values;
        comm.scope(|scope| {
            let sends: Vec<_> = (0..BURST).map(|_| scope.send(values, 1, 2)).collect();
            sends.into_iter().try_for_each(|send| send.wait().1)
        })??;
        comm.recv::<u8>(&mut [], 1, 3)?;
    } else {
        (0..BURST).try_for_each(|_| comm.recv(values, 0, 2).map(drop))?;
        comm.send::<u8>(&[], 0, 3)?;
    }
    Ok(start.elapsed().as_secs_f64() / BURST as f64)
}

fn value(index: usize) -> u32 {
    (index as u32).wrapping_mul(2_654_435_761)
}
