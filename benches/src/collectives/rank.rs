//! One of our ranks.

use crate::ranks;
use crate::table::{Row, Times};
use gradwire::{Communicator, Max, Result, Sum};
use std::io;
use std::time::Instant;

/// A collective on a vector, in place where it can be; some have their result apart.
struct Bench {
    name: &'static str,
    call: fn(&Communicator, &mut [f32], &mut [f32]) -> Result<()>,
    /// What an element of the vector is to be after it: of all ranks, the element's index, and this rank; `None` where the
    /// result lies apart or there is none.
    expected: fn(&Communicator, usize, usize) -> Option<f32>,
}

const BENCHES: [Bench; 5] = [
    Bench {
        name: "all_reduce",
        call: |comm, vector, _| comm.all_reduce(vector, Sum),
        expected: |comm, index, _| Some(sum(comm, index)),
    },
    Bench {
        name: "broadcast",
        call: |comm, vector, _| comm.broadcast(vector, 0),
        expected: |_, index, _| Some(value(0, index)),
    },
    Bench {
        name: "all_gather",
        call: |comm, vector, _| {
            let len = vector.len() / comm.size() * comm.size();
            comm.all_gather_in_place(&mut vector[..len])
        },
        expected: |comm, index, count| {
            let part = count / comm.size();
            (index < part * comm.size()).then(|| value(index / part, index))
        },
    },
    Bench {
        name: "reduce_scatter",
        call: |comm, vector, result| {
            let part = vector.len() / comm.size();
            comm.reduce_scatter_into(&vector[..part * comm.size()], &mut result[..part], Sum)
        },
        expected: |_, _, _| None,
    },
    Bench { name: "barrier", call: |comm, _, _| comm.barrier(), expected: |_, _, _| None },
];

pub(super) fn run(transport: &str, operations: &[String], sizes: &[usize]) -> io::Result<()> {
    ranks::bind()?;
    let comm = gradwire::init().map_err(io::Error::other)?;
    let mut rows: Vec<Row> = Vec::new();
    for name in operations {
        let bench = BENCHES.iter().find(|bench| bench.name == name);
        let bench =
            bench.ok_or_else(|| io::Error::other(format!("{name} is no collective of this bench")))?;
        for &bytes in if name == "barrier" { &sizes[..sizes.len().min(1)] } else { sizes } {
            let count = bytes / size_of::<f32>();
            let [mut vector, mut result] = [(); 2].map(|()| vec![0.0; count]);
            measure(&comm, bench, [transport, "private"], &mut vector, &mut result, &mut rows)
                .map_err(io::Error::other)?;
            drop([vector, result]);
            if name != "barrier" {
                let allocate = || comm.allocate::<f32>(count).map_err(io::Error::other);
                let (mut vector, mut result) = (allocate()?, allocate()?);
                measure(&comm, bench, [transport, "allocated"], &mut vector, &mut result, &mut rows)
                    .map_err(io::Error::other)?;
            }
        }
    }
    if comm.rank() == 0 { ranks::report(&rows) } else { Ok(()) }
}

fn measure(
    comm: &Communicator,
    bench: &Bench,
    [transport, buffers]: [&str; 2],
    values: &mut [f32],
    result: &mut [f32],
    rows: &mut Vec<Row>,
) -> Result<()> {
    for state in if bench.name == "barrier" { &["hot"][..] } else { &["hot", "dirty"] } {
        let wrong = count_wrong(comm, bench, values, result)?;
        values.fill(0.0);
        let calls = ranks::repetitions(size_of_val(values));
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls + calls / 4 {
            if *state == "dirty" {
                values.fill(0.0);
            }
            comm.barrier()?;
            let start = Instant::now();
            (bench.call)(comm, values, result)?;
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
            op: bench.name.to_owned(),
            bytes: size_of_val(values),
            buffers: buffers.to_owned(),
            state: (*state).to_owned(),
            times: Times::of(times),
            wrong,
        });
    }
    Ok(())
}

/// Elements that are wrong, over all ranks. The sums are small integers: exact.
fn count_wrong(comm: &Communicator, bench: &Bench, values: &mut [f32], result: &mut [f32]) -> Result<u64> {
    values.iter_mut().enumerate().for_each(|(index, to)| *to = value(comm.rank(), index));
    (bench.call)(comm, values, result)?;
    let count = values.len();
    let in_place = values.iter().enumerate().filter(|(index, value)| {
        (bench.expected)(comm, *index, count).is_some_and(|expected| **value != expected)
    });
    let mut wrong = in_place.count();
    if bench.name == "reduce_scatter" {
        let part = count / comm.size();
        let own = comm.rank() * part..(comm.rank() + 1) * part;
        wrong += own.zip(result.iter()).filter(|(index, value)| **value != sum(comm, *index)).count();
    }
    let mut wrong = [wrong as u64];
    comm.all_reduce(&mut wrong, Sum)?;
    Ok(wrong[0])
}

fn value(rank: usize, index: usize) -> f32 {
    ((rank + 1) * (index % 13)) as f32
}

fn sum(comm: &Communicator, index: usize) -> f32 {
    (0..comm.size()).map(|rank| value(rank, index)).sum()
}
