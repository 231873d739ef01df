//! What a backend tells the suite.

use gradwire_transport::{RegionKey, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// One job's worth of a transport.
pub trait Backend: Sized {
    /// How tests are reported.
    const NAME: &'static str;
    /// Whether its time is that of the system, so that threads can drive endpoints each on its own.
    const IS_REAL_TIME: bool = true;

    /// What this machine lacks for it; then each test says so and is skipped.
    fn missing() -> Option<String> {
        None
    }

    /// Why what is sent does not leave before the other endpoint takes it, if so; then what tells that it has left is skipped.
    fn keeps_output() -> Option<String> {
        None
    }

    /// A new job with nobody in it.
    fn start() -> Self;

    /// One more endpoint of the job.
    fn endpoint(&mut self) -> Box<dyn Transport>;

    /// An endpoint that does not know the job's secret; `None` where there is none to know.
    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        None
    }

    /// Ends an endpoint as the death of its process would.
    fn kill(&mut self, endpoint: Box<dyn Transport>) {
        drop(endpoint);
    }

    /// What time to tell the endpoints.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// All endpoints are idle: waits for something to happen, at most for `limit`.
    fn rest(&mut self, endpoints: &mut [&mut dyn Transport], limit: Duration) -> Rest {
        rest_on_readiness(endpoints, limit)
    }

    /// The key as a liar would hand it on, for a region of `len` bytes. `None` where the length in a key is
    /// not what the target goes by, or where the target does not check.
    fn stretch(key: &RegionKey, len: u64) -> Option<RegionKey> {
        let _ = (key, len);
        None
    }
}

/// How a rest ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// There is, or may be, something to do.
    Woken,
    /// Nothing has happened, and all endpoints said that they would have shown it.
    Undisturbed,
    /// Nothing has happened, and nothing ever will by itself.
    Over,
    /// Some endpoint has nothing to sleep on: nobody knows whether something has happened.
    Blind,
}

/// How long drivers sleep that nobody can wake.
const BLIND: Duration = Duration::from_micros(200);

/// Sleeps as the driver of a transport does: announces it, then waits for any descriptor or deadline.
pub fn rest_on_readiness(endpoints: &mut [&mut dyn Transport], limit: Duration) -> Rest {
    let ready = endpoints.iter_mut().all(|endpoint| endpoint.prepare_sleep());
    let deadline = endpoints.iter().filter_map(|endpoint| endpoint.deadline()).min();
    let until_deadline = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let timeout = until_deadline.map_or(limit, |until| until.min(limit));
    if !ready || timeout.is_zero() {
        return Rest::Woken;
    }
    let descriptors: Option<Vec<_>> = endpoints.iter().map(|endpoint| endpoint.readiness()).collect();
    let Some(descriptors) = descriptors else {
        std::thread::sleep(BLIND.min(timeout));
        return Rest::Blind;
    };
    let mut polled: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let woken = poll(&mut polled, Timespec::try_from(timeout).ok().as_ref()).expect("poll");
    if woken > 0 || timeout < limit { Rest::Woken } else { Rest::Undisturbed }
}
