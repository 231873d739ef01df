//! Clocks of the system, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The clock that all processes of a host share.
#[must_use]
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// The time that all threads of this process have had a processor.
#[must_use]
pub fn processor_time() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
