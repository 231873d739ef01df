//! Messages that leave, or are awaited, without an operation (see `engine/message/brief.rs`).

use super::{Core, Next, Patience, Shared};
use crate::Rank;
use crate::buffer::Span;
use crate::engine::{Expectation, GroupId, Head, Pattern};
use gradwire_transport::Activity;
use std::time::Instant;

/// Turns between two looks at the clock.
const TURNS: u32 = 8;
/// Looks at the clock after which a receive becomes an operation, even if something moves all the time.
const LOOKS: u32 = 10_000;

impl Shared {
    /// Sends a message if it can leave at once. `false`: nothing has happened.
    pub(crate) fn send_briefly(&self, id: GroupId, message: (Rank, u32, u64), bytes: &[u8]) -> bool {
        let mut core = self.lock();
        if core.is_broken() {
            return false;
        }
        let Core { engine, wires, .. } = &mut *core;
        if !engine.send_briefly(id, message, bytes, wires) {
            return false;
        }
        if core.has_output() {
            core.hand_over();
            self.rearm(&mut core);
        }
        true
    }

    /// Receives a message that is here or comes soon. `None`: it needs an operation, which may wait for as long as it takes.
    /// Once this has returned, or unwound, nobody uses the span.
    pub(crate) fn receive_briefly(
        &self,
        id: GroupId,
        pattern: Pattern,
        kind: u64,
        span: Span,
    ) -> Option<Head> {
        // Dropped after the lock, which both take.
        let (mut expecting, mut caller) = (None, None);
        let mut core = self.lock();
        let Core { engine, wires, .. } = &mut *core;
        match engine.expect(id, pattern, kind, span, wires) {
            Expectation::Received(head) => return Some(head),
            Expectation::Refused => return None,
            Expectation::Pending => {}
        }
        expecting.get_or_insert(Expecting { shared: self, id });
        caller.get_or_insert(self.enter());
        let mut patience = Patience::new(self.is_crowded());
        let turns = if self.is_crowded() { 1 } else { TURNS };
        'looks: for _ in 0..LOOKS {
            let now = Instant::now();
            for _ in 0..turns {
                if core.turn(now) == Activity::Busy {
                    if core.engine.has_something_for(id, pattern) {
                        break 'looks;
                    }
                    self.hand_on(&mut core);
                }
                std::hint::spin_loop();
            }
            match patience.next() {
                Next::Spin => {}
                Next::Yield => {
                    drop(core);
                    std::thread::yield_now();
                    core = self.lock();
                    // Somebody else may have turned the crank.
                    if core.engine.has_something_for(id, pattern) {
                        break;
                    }
                }
                Next::Sleep => break,
            }
        }
        std::mem::forget(expecting);
        let received = core.engine.stop_expecting(id);
        core.hand_over();
        self.hand_on(&mut core);
        drop(core);
        drop(caller);
        received
    }
}

/// A receive whose span the engine knows.
struct Expecting<'a> {
    shared: &'a Shared,
    id: GroupId,
}

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        self.shared.lock().engine.stop_expecting(self.id);
    }
}
