//! Rows, as CSV and as a table.

use std::io;

/// Microseconds of a call, the slowest rank's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    median: f64,
    min: f64,
    p99: f64,
}

impl Times {
    /// Of at least one call.
    pub(crate) fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        let at = |index: usize| all.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(all.len() / 2), min: at(0), p99: at(all.len().saturating_sub(1 + all.len() / 100)) }
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) peer: String,
    pub(crate) version: String,
    pub(crate) transport: String,
    pub(crate) ranks: usize,
    pub(crate) op: String,
    pub(crate) bytes: usize,
    pub(crate) buffers: String,
    pub(crate) state: String,
    pub(crate) times: Times,
    pub(crate) wrong: u64,
}

const COLUMNS: &str = "peer,version,transport,ranks,op,bytes,buffers,state,median_us,min_us,p99_us,wrong";

impl Row {
    pub(crate) fn csv(&self) -> String {
        let Self { peer, version, transport, ranks, op, bytes, buffers, state, times, wrong } = self;
        let Times { median, min, p99 } = times;
        format!(
            "{peer},{version},{transport},{ranks},{op},{bytes},{buffers},{state},{median:.3},{min:.3},{p99:.3},{wrong}"
        )
    }

    pub(crate) fn parse(line: &str) -> io::Result<Self> {
        let bad = || io::Error::other(format!("not a row of the bench: {line}"));
        let fields: Vec<&str> = line.split(',').collect();
        let &[peer, version, transport, ranks, op, bytes, buffers, state, median, min, p99, wrong] =
            &fields[..]
        else {
            return Err(bad());
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| bad());
        Ok(Self {
            peer: peer.to_owned(),
            version: version.to_owned(),
            transport: transport.to_owned(),
            ranks: ranks.parse().map_err(|_| bad())?,
            op: op.to_owned(),
            bytes: bytes.parse().map_err(|_| bad())?,
            buffers: buffers.to_owned(),
            state: state.to_owned(),
            times: Times { median: number(median)?, min: number(min)?, p99: number(p99)? },
            wrong: wrong.parse().map_err(|_| bad())?,
        })
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.peer, &self.transport, &self.op, self.bytes, &self.buffers, &self.state)
            == (&other.peer, &other.transport, &other.op, other.bytes, &other.buffers, &other.state)
    }
}

/// Of the series of a row, the one with the lowest median.
pub(crate) fn keep_best(rows: &mut Vec<Row>, row: Row) {
    match rows.iter_mut().find(|other| other.is_like(&row)) {
        Some(other) if other.times.median <= row.times.median => other.wrong = other.wrong.max(row.wrong),
        Some(other) => *other = Row { wrong: other.wrong.max(row.wrong), ..row },
        None => rows.push(row),
    }
}

pub(crate) fn print(rows: &[Row], csv: bool) {
    if csv {
        println!("{COLUMNS}");
        return rows.iter().for_each(|row| println!("{}", row.csv()));
    }
    println!(
        "{:9} {:5} {:14} {:>10} {:9} {:5} {:>11} {:>11} {:>11} {:>8} {:>8} {:>7} {:>6}",
        "peer",
        "over",
        "op",
        "bytes",
        "buffers",
        "state",
        "median µs",
        "min µs",
        "p99 µs",
        "algbw",
        "busbw",
        "to best",
        "wrong"
    );
    for row in rows {
        // As nccl-tests count: bytes by time, and by what each rank must send at least.
        let algorithm = row.bytes as f64 / row.times.median / 1e3;
        let others = (row.ranks as f64 - 1.0) / row.ranks as f64;
        let bus = algorithm
            * match &*row.op {
                "all_reduce" => 2.0 * others,
                "all_gather" | "reduce_scatter" => others,
                _ => 1.0,
            };
        let best = rows.iter().filter(|other| {
            other.peer != "gradwire"
                && (&other.transport, &other.op, other.bytes, &other.state)
                    == (&row.transport, &row.op, row.bytes, &row.state)
        });
        let best = best.min_by(|a, b| a.times.median.total_cmp(&b.times.median));
        let ratio = best
            .filter(|_| row.peer == "gradwire")
            .map_or(String::new(), |best| format!("{:.2}", row.times.median / best.times.median));
        println!(
            "{:9} {:5} {:14} {:>10} {:9} {:5} {:>11.2} {:>11.2} {:>11.2} {:>8.3} {:>8.3} {:>7} {:>6}",
            row.peer,
            row.transport,
            row.op,
            row.bytes,
            row.buffers,
            row.state,
            row.times.median,
            row.times.min,
            row.times.p99,
            algorithm,
            bus,
            ratio,
            row.wrong
        );
    }
}
