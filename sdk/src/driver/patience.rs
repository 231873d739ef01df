//! How a thread waits: it spins while an answer may come within a hand-off, yields while it may come within a time
//! slice, then sleeps.

use std::time::{Duration, Instant};

/// Longer than a message takes between two cores or through loopback.
const SPIN: Duration = Duration::from_micros(30);
/// Yields while an answer may be a few messages and a reduction away: to sleep and be woken costs some 50 µs.
const YIELD: Duration = Duration::from_millis(1);
/// The same where ranks share cores: some turns of the others.
const CROWDED_YIELD: Duration = Duration::from_micros(100);

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Spin,
    Yield,
    Sleep,
}

/// A waiting thread's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    crowded: bool,
    since: Option<Instant>,
}

impl Patience {
    pub(crate) const fn new(crowded: bool) -> Self {
        Self { crowded, since: None }
    }

    /// Something moved.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// Nothing moved.
    pub(crate) fn next(&mut self) -> Next {
        let now = Instant::now();
        let waited = now - *self.since.get_or_insert(now);
        // Where ranks share cores, spinning only keeps away the one that is waited for.
        let (spin, give_way) = if self.crowded { (Duration::ZERO, CROWDED_YIELD) } else { (SPIN, YIELD) };
        if waited < spin {
            Next::Spin
        } else if waited < spin + give_way {
            Next::Yield
        } else {
            Next::Sleep
        }
    }
}
