//! What the benches of several ranks have in common.

use crate::table::Row;
use gradwire::launch::{Launcher, OnFailure, Output};
use std::io::{self, Write};

/// The most calls to time: for tests, which beside others have no core of their own either.
const CALLS: &str = "GRADWIRE_BENCH_CALLS";

/// Names the file that rank 0 writes its rows to.
const RESULTS: &str = "GRADWIRE_BENCH_RESULTS";

/// Starts this program again as the ranks of a bench, and returns what they have measured.
pub(crate) fn run(
    bench: &str,
    arguments: &[String],
    transport: &str,
    ranks: usize,
    sizes: &[String],
) -> io::Result<Vec<Row>> {
    let results = std::env::temp_dir().join(format!("gradwire-bench-{}-{transport}.csv", std::process::id()));
    let program = std::env::current_exe()?;
    let report = Launcher::new(program)
        .arguments([bench, "--rank-of", transport, "--sizes", &sizes.join(",")])
        .arguments(arguments)
        .ranks(ranks)
        .variable("GRADWIRE_TRANSPORT", transport)
        .variable(RESULTS, &results)
        .on_failure(OnFailure::Stop)
        .output(Output::Inherited)
        .run()
        .map_err(io::Error::other)?;
    if report.exit_code() != 0 {
        return Err(io::Error::other(report.to_string()));
    }
    let text = std::fs::read_to_string(&results)?;
    std::fs::remove_file(&results)?;
    text.lines().map(Row::parse).collect()
}

/// What rank 0 has measured, for [`run`].
pub(crate) fn report(rows: &[Row]) -> io::Result<()> {
    let path = std::env::var_os(RESULTS).ok_or_else(|| io::Error::other(format!("{RESULTS} is not set")))?;
    let mut file = std::fs::File::create(path)?;
    rows.iter().try_for_each(|row| writeln!(file, "{}", row.csv()))
}

/// Binds this rank to a core of its own, as the peers' launchers do with theirs, where there are enough.
pub(crate) fn bind() -> io::Result<()> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let (Some(rank), Some(size)) = (number("GRADWIRE_LOCAL_RANK"), number("GRADWIRE_LOCAL_SIZE")) else {
        return Ok(());
    };
    if std::env::var_os(CALLS).is_some() {
        return Ok(());
    }
    let mine = rustix::thread::sched_getaffinity(None)?;
    let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| mine.is_set(*core));
    if let Some(core) = cores.nth(rank).filter(|_| mine.count() as usize >= size) {
        let mut one = rustix::thread::CpuSet::new();
        one.set(core);
        rustix::thread::sched_setaffinity(None, &one)?;
    }
    Ok(())
}

/// As many calls as move 64 MiB, within reason.
pub(crate) fn repetitions(bytes: usize) -> usize {
    let most = std::env::var(CALLS).ok().and_then(|calls| calls.parse().ok());
    ((64 << 20) / (bytes + 4096)).clamp(12, 3000).min(most.unwrap_or(usize::MAX)).max(1)
}

/// Sizes in bytes, each a multiple of four.
pub(crate) fn parse_sizes(sizes: &[String]) -> io::Result<Vec<usize>> {
    sizes.iter().map(|text| parse_size(text)).collect()
}

/// `8`, `64k`, `4M`.
fn parse_size(text: &str) -> io::Result<usize> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let size: usize =
        digits.parse().map_err(|_| io::Error::other(format!("{text} is no size: write 8, 64k or 4M")))?;
    if size == 0 || !(size * unit).is_multiple_of(size_of::<f32>()) {
        return Err(io::Error::other(format!("{text} is no multiple of 4 bytes above 0")));
    }
    Ok(size * unit)
}
