//! The exchange: every collective begins with one, and a barrier is one.

use super::board::{Counter, Payload};
use super::condition::{Condition, Of};
use super::{Environment, Failure, Group, Patience, Waited};
use gradwire_schema::CallSignature;

/// Looks at a condition before turning to the environment: at first as fast as the caches answer, then at the pace
/// that processors recommend. A few microseconds in all.
const FAST_LOOKS: u32 = 256;
const SLOW_LOOKS: u32 = 64;
/// Where ranks share cores: how often the others get a turn before the environment does, which has more to look at.
const YIELDS: u32 = 32;

impl Group {
    /// Returns once all ranks are done with each other's memory in a call that has begun.
    pub(super) fn end_call<E: Environment>(
        &mut self,
        call: &CallSignature,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.meet_again(call, environment)?;
        self.choices.end();
        Ok(())
    }

    /// Returns once all ranks have come to this point of a call.
    pub(super) fn meet_again<E: Environment>(
        &mut self,
        call: &CallSignature,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.meet(call, &Payload::default(), false, environment)
    }

    /// Begins a call: publishes a line and waits for those of all others. Their payloads can be read until the next
    /// exchange.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    #[inline]
    pub(super) fn exchange<E: Environment>(
        &mut self,
        call: &CallSignature,
        payload: &Payload,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.meet(call, payload, true, environment)
    }

    #[inline]
    fn meet<E: Environment>(
        &mut self,
        call: &CallSignature,
        payload: &Payload,
        begins: bool,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let sequence = self.exchanges + 1;
        let hash = self.announce(call, sequence);
        self.boards.own().publish_line(sequence, hash, payload);
        let condition =
            Condition { boards: &self.boards, counter: Counter::Line, value: sequence, of: Of::All, begins };
        if self.wait_for(&condition, environment)? == Waited::Elsewhere {
            // Nobody may take the line for that of the next call, nor what was staged for it.
            self.boards.own().retract_line(sequence);
            self.boards.own().raise(Counter::Staged, self.rounds);
            return Err(Failure::Elsewhere);
        }
        self.exchanges = sequence;
        self.wake_parked(environment);
        if self.boards.others().any(|(_, board)| board.hash(sequence) != hash) {
            return Err(self.mismatch());
        }
        // Whoever has come here has ended all calls before.
        self.consumed = self.consumed.max(self.rounds);
        Ok(())
    }

    /// Makes the detail of a line that of `call`, and returns its hash. Loops call the same again and again: then it stands
    /// there.
    #[inline]
    fn announce(&mut self, call: &CallSignature, sequence: u64) -> u64 {
        let announced = &mut self.announced[(sequence % 2) as usize];
        match announced {
            Some((last, hash)) if last == call => *hash,
            _ => {
                let hash = call.hash();
                *announced = Some((*call, hash));
                self.boards.own().set_detail(sequence, &call.encode());
                hash
            }
        }
    }

    /// All ranks see the same lines, so all come here. Some may have staged a round that others know nothing of: it is
    /// counted by everybody and used by nobody.
    #[cold]
    fn mismatch<E>(&mut self) -> Failure<E> {
        self.consumed = self.consumed.max(self.rounds);
        self.rounds += 1;
        self.boards.own().raise(Counter::Staged, self.rounds);
        self.boards.own().raise(Counter::Consumed, self.rounds);
        let sequence = self.exchanges;
        let boards = self.boards.all().iter();
        Failure::Mismatch(boards.map(|board| CallSignature::decode(&board.detail(sequence)).ok()).collect())
    }

    /// Waits for counters of other ranks.
    #[inline]
    pub(super) fn wait<E: Environment>(
        &self,
        counter: Counter,
        value: u64,
        of: Of,
        environment: &mut E,
    ) -> Result<(), E::Error> {
        let condition = Condition { boards: &self.boards, counter, value, of, begins: false };
        self.wait_for(&condition, environment).map(drop)
    }

    #[inline]
    fn wait_for<E: Environment>(
        &self,
        condition: &Condition<'_>,
        environment: &mut E,
    ) -> Result<Waited, E::Error> {
        if condition.is_ready() {
            return Ok(Waited::Ready);
        }
        match self.patience {
            Patience::Spin => {
                for look in 0..FAST_LOOKS + SLOW_LOOKS {
                    if look >= FAST_LOOKS {
                        std::hint::spin_loop();
                    }
                    if condition.is_ready() {
                        return Ok(Waited::Ready);
                    }
                }
            }
            Patience::Yield => {
                // Those we wait for may sleep until they see what we have published.
                self.wake_parked(environment);
                for _ in 0..YIELDS {
                    std::thread::yield_now();
                    if condition.is_ready() {
                        return Ok(Waited::Ready);
                    }
                }
            }
        }
        self.wait_long(condition, environment)
    }

    #[cold]
    fn wait_long<E: Environment>(
        &self,
        condition: &Condition<'_>,
        environment: &mut E,
    ) -> Result<Waited, E::Error> {
        // Those we wait for may sleep until they see what we have published.
        self.wake_parked(environment);
        environment.wait(condition)
    }

    /// Rings for everyone who sleeps. Must follow whatever we publish, before we wait long or leave.
    #[inline]
    pub(super) fn wake_parked<E: Environment>(&self, environment: &mut E) {
        self.boards.parked().for_each(|rank| environment.wake(rank));
    }
}
