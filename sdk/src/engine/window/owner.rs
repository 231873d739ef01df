//! The owner's side: requests are carried out as they come, in order, or cost their sender the connection.

use super::Window;
use crate::Rank;
use crate::engine::transfer::Breach;
use gradwire_schema::{FrameHeader, FrameKind, WindowReply, WindowRequest};

const OUTSIDE: Breach = Breach("it reached outside of a window's memory");

/// What a rank has asked of this one.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The number of its last request; all before have been carried out.
    applied: u64,
    acknowledged: u64,
    completes: u64,
}

impl Origin {
    /// Whether an acknowledgement is to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.applied > self.acknowledged
    }

    pub(super) fn acknowledge(&mut self) -> Option<FrameHeader> {
        let due = self.is_due();
        self.acknowledged = self.applied;
        due.then(|| reply(WindowReply::Applied, self.applied))
    }

    pub(super) fn hear_complete(&mut self) {
        self.completes = self.completes.saturating_add(1);
    }
}

/// The header of a reply with values.
pub(super) fn values(sequence: u64) -> FrameHeader {
    reply(WindowReply::Values, sequence)
}

pub(super) fn reply(reply: WindowReply, sequence: u64) -> FrameHeader {
    let mut header = FrameHeader::new(FrameKind::WindowReply);
    reply.encode(&mut header);
    header.sequence = sequence;
    header
}

impl Window {
    /// Carries out a numbered request of `rank`; the values that go back, of at most `limit` bytes.
    pub(super) fn carry_out(
        &mut self,
        rank: Rank,
        request: WindowRequest,
        sequence: u64,
        payload: &[u8],
        limit: usize,
    ) -> Result<Option<Vec<u8>>, Breach> {
        let origin = &mut self.origins[rank];
        if sequence != origin.applied + 1 {
            return Err(Breach("a request to a window came out of turn"));
        }
        if self.lent {
            return Err(Breach("it reached for a window's memory while that was not exposed"));
        }
        if self.targets[rank].is_closed() {
            return Err(Breach("it reached for a window that it had dropped"));
        }
        let memory = &self.memory;
        let index = |offset: u64| usize::try_from(offset).map_err(|_| OUTSIDE);
        let mut before = Vec::new();
        let done = match request {
            WindowRequest::Put { offset, notice } => {
                memory.store(index(offset)?, payload).ok_or(OUTSIDE)?;
                notice.map_or(Some(()), |notice| memory.raise(notice as usize))
            }
            WindowRequest::Get { offset, count } => {
                let len = (count as usize).checked_mul(memory.width()).filter(|len| *len <= limit);
                before.resize(len.ok_or(Breach("it asked for more values than a message holds"))?, 0);
                memory.load(index(offset)?, &mut before)
            }
            WindowRequest::Accumulate { offset, update } => {
                memory.update(index(offset)?, update, payload, &mut [])
            }
            WindowRequest::GetAccumulate { offset, update } => {
                before.resize(payload.len(), 0);
                memory.update(index(offset)?, update, payload, &mut before)
            }
            WindowRequest::CompareAndSwap { offset } => {
                before.resize(memory.width(), 0);
                let (comparand, value) = payload.split_at_checked(memory.width()).ok_or(OUTSIDE)?;
                memory.compare_and_swap(index(offset)?, comparand, value, &mut before)
            }
            _ => return Err(Breach("a request to a window that has no number was numbered")),
        };
        done.ok_or(OUTSIDE)?;
        origin.applied = sequence;
        let with_values = !matches!(request, WindowRequest::Put { .. } | WindowRequest::Accumulate { .. });
        if with_values {
            origin.acknowledged = sequence;
        }
        Ok(with_values.then_some(before))
    }

    /// Takes one word from each of `ranks` that it is done with this rank's memory, once all of them have sent it.
    pub(crate) fn take_completes(&mut self, ranks: &[Rank]) -> bool {
        let all = ranks.iter().all(|rank| self.origins[*rank].completes > 0);
        if all {
            ranks.iter().for_each(|rank| self.origins[*rank].completes -= 1);
        }
        all
    }

    /// Those of `ranks` that are not done yet.
    pub(crate) fn incomplete(&self, ranks: &[Rank]) -> Vec<Rank> {
        ranks.iter().copied().filter(|rank| self.origins[*rank].completes == 0).collect()
    }
}
