//! The simulated network: on its best behaviour, on its worst, and in real time.

use gradwire_tests::conformance::{Backend, Rest};
use gradwire_transport::{RegionKey, Transport};
use gradwire_transport_sim::{Config, Network};
use std::time::{Duration, Instant};

/// With its own clock, which jumps to whatever happens next.
struct Sim<const HOSTILE: bool> {
    network: Network,
    now: Instant,
}

impl<const HOSTILE: bool> Backend for Sim<HOSTILE> {
    const NAME: &'static str = if HOSTILE { "hostile sim" } else { "sim" };
    const IS_REAL_TIME: bool = false;

    fn start() -> Self {
        let config = if HOSTILE { Config::hostile() } else { Config::default() };
        Self { network: Network::new(42, config), now: Instant::now() }
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Box::new(self.network.endpoint())
    }

    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        Some(Box::new(self.network.stranger()))
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn rest(&mut self, _: &mut [&mut dyn Transport], _: Duration) -> Rest {
        match self.network.next_event(self.now) {
            Some(next) => {
                self.now = next;
                Rest::Woken
            }
            None => Rest::Over,
        }
    }

    fn stretch(key: &RegionKey, len: u64) -> Option<RegionKey> {
        Some(crate::stretch(key, len))
    }
}

/// Without a clock of its own, for threads that sleep.
struct RealTime(Network);

impl Backend for RealTime {
    const NAME: &'static str = "sim in real time";

    fn start() -> Self {
        Self(Network::new(43, Config::default()))
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Box::new(self.0.endpoint())
    }

    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        Some(Box::new(self.0.stranger()))
    }

    fn stretch(key: &RegionKey, len: u64) -> Option<RegionKey> {
        Some(crate::stretch(key, len))
    }
}

mod well_behaved {
    gradwire_tests::conformance_suite!(super::Sim<false>);
}

mod hostile {
    gradwire_tests::conformance_suite!(super::Sim<true>);
}

mod real_time {
    gradwire_tests::conformance_suite!(super::RealTime);
}
