//! Log lines on standard error, for programs that do not set up `tracing` themselves.
#![forbid(unsafe_code)]

use tracing::level_filters::LevelFilter;

/// Writes what is at least as important as `level` to standard error, unless the program has its own
/// subscriber.
pub(crate) fn install(level: LevelFilter) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .finish();
    // An error means that the program has set one up: that one stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
