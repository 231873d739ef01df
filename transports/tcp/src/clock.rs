//! Times are passed in; this adds to them.

use std::time::{Duration, Instant};

/// Long enough for a duration that is meant to be endless.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// `now + duration`, or some far time where the sum cannot be told.
pub(crate) fn after(now: Instant, duration: Duration) -> Instant {
    now + duration.min(ENDLESS)
}

/// `duration`, longer or shorter by up to a half, so that processes started together do not act together.
pub(crate) fn jittered(duration: Duration) -> Duration {
    let part = getrandom::u32().unwrap_or(u32::MAX / 2);
    duration.mul_f64(0.5 + f64::from(part) / f64::from(u32::MAX))
}
