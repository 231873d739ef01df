//! Which way long private memory takes: through slots of the boards, or copied by the system.
//!
//! Slots are faster between ranks whose cores share a second-level cache, the system where lines have a longer way; of
//! that nothing tells reliably, least of all to a guest. So both are tried with the calls themselves: a few times at first,
//! then now and again. Every rank chooses for itself: where one of them stages, all do. Results have the same bits either way.

use gradwire_schema::Collective;
use std::time::{Duration, Instant};

/// Calls in which the ways take turns.
const TRIALS: u64 = 6;
/// One call in so many takes the way that was slower.
const AGAIN: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Attached,
    Staged,
}

/// What calls are alike: the collective, and how many bits the number of bytes has.
pub(super) type Kind = (Collective, u32);

#[derive(Debug, Default)]
pub(super) struct Choices {
    records: Vec<Record>,
    /// The record of a call that is about to begin.
    chosen: Option<usize>,
    /// The record of a call under way, its way, and when it began.
    begun: Option<(usize, Way, Instant)>,
}

#[derive(Debug)]
struct Record {
    kind: Kind,
    calls: u64,
    /// What a call takes, by way.
    times: [Option<Duration>; 2],
}

impl Choices {
    /// The way for the next call; `None`: one that can only be staged. All ranks ask for the same calls, so trials meet.
    pub(super) fn choose(&mut self, kind: Option<Kind>) -> Way {
        self.chosen = None;
        let Some(kind) = kind else { return Way::Staged };
        let found = self.records.iter().position(|record| record.kind == kind);
        let chosen = found.unwrap_or_else(|| {
            self.records.push(Record { kind, calls: 0, times: [None; 2] });
            self.records.len() - 1
        });
        self.chosen = Some(chosen);
        self.records[chosen].choose()
    }

    /// All ranks have come to a call, which takes this way; `None`: neither.
    pub(super) fn begin(&mut self, way: Option<Way>) {
        let chosen = self.chosen.take();
        self.begun = chosen.zip(way).map(|(record, way)| (record, way, Instant::now()));
    }

    /// A call has ended.
    pub(super) fn end(&mut self) {
        if let Some((record, way, begun)) = self.begun.take() {
            self.records[record].learn(way, begun.elapsed());
        }
    }
}

impl Record {
    fn choose(&mut self) -> Way {
        let call = self.calls;
        self.calls += 1;
        if call < TRIALS {
            return if call.is_multiple_of(2) { Way::Attached } else { Way::Staged };
        }
        let [attached, staged] = self.times;
        let attaches = match (attached, staged) {
            (Some(attached), Some(staged)) => attached < staged,
            (attached, _) => attached.is_some(),
        };
        if attaches != call.is_multiple_of(AGAIN) { Way::Attached } else { Way::Staged }
    }

    /// A call that was interrupted counts for little: it says what a call may take, not what it does.
    fn learn(&mut self, way: Way, time: Duration) {
        let known = &mut self.times[way as usize];
        *known = Some(known.map_or(time, |known| time.min(known + known / 4)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(record: &mut Record, calls: u64, attached: u64, staged: u64) -> u64 {
        let mut attaches = 0;
        for _ in 0..calls {
            let way = record.choose();
            attaches += u64::from(way == Way::Attached);
            let micros = if way == Way::Attached { attached } else { staged };
            record.learn(way, Duration::from_micros(micros));
        }
        attaches
    }

    fn record() -> Record {
        Record { kind: (Collective::AllReduce, 20), calls: 0, times: [None; 2] }
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_tried_again() {
        for (attached, staged) in [(100, 200), (200, 100)] {
            let mut record = record();
            assert_eq!(run(&mut record, TRIALS, attached, staged), TRIALS / 2);
            let calls = 10 * AGAIN;
            let attaches = run(&mut record, calls, attached, staged);
            let expected = if attached < staged { calls - 10 } else { 10 };
            assert_eq!(attaches, expected, "{attached} and {staged}");
            // The machine changes its mind, and so does the record.
            run(&mut record, 2 * AGAIN, staged, attached);
            let expected = if attached < staged { 1 } else { AGAIN - 1 };
            assert_eq!(run(&mut record, AGAIN, staged, attached), expected, "{staged} and {attached}");
        }
    }

    #[test]
    fn an_interruption_changes_little() {
        let mut record = record();
        run(&mut record, TRIALS, 100, 200);
        record.learn(Way::Attached, Duration::from_secs(1));
        assert_eq!(record.times[0], Some(Duration::from_micros(125)));
    }

    #[test]
    fn a_way_that_never_was_taken_is_not_chosen() {
        let mut record = record();
        // Another rank always stages.
        (0..TRIALS).for_each(|_| {
            record.choose();
            record.learn(Way::Staged, Duration::from_micros(100));
        });
        assert_eq!(record.choose(), Way::Staged);
    }
}
