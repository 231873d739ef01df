//! What transports report, sorted to the operations it belongs to.

use super::group::GroupId;
use super::message::POINT_TO_POINT;
use super::operation::Answer;
use super::port::{Port, Process};
use super::transfer::Breach;
use super::{Engine, Key, Letter};
use gradwire_schema::{FrameHeader, FrameKind};
use gradwire_transport::{Notice, Token};

/// Frames of one process that are kept for communicators and calls that do not exist here yet. A member of the job can
/// be ahead by some calls; one that is ahead by more than this has lost its way.
const MAX_EARLY: usize = 4096;

impl Engine {
    /// A message from a process.
    pub(crate) fn receive(&mut self, process: Process, bytes: &[u8], port: &mut dyn Port) {
        let frame = FrameHeader::read(bytes).and_then(|(header, rest)| Ok((header, header.payload(rest)?)));
        let Ok((header, payload)) = frame else {
            return self.expel(process, Breach("it sent a malformed frame"), port);
        };
        match header.kind {
            FrameKind::Goodbye => self.departed(process),
            FrameKind::Abort => self.aborted(process, &header, payload, port),
            FrameKind::Window | FrameKind::WindowReply => self.window_frame(process, &header, payload, port),
            _ => self.dispatch(process, &header, payload, port),
        }
    }

    /// A put of a process has arrived.
    pub(crate) fn notified(&mut self, process: Process, notice: Notice, port: &mut dyn Port) {
        if let Some(owner) = self.slots.owner(notice.slot())
            && let Some(operation) = self.operations.get_mut(&owner.operation)
        {
            operation.notified(owner, process, notice.segment());
            self.advance(owner.operation, port);
        }
    }

    /// A put of ours has left.
    pub(crate) fn put_done(&mut self, token: Token, port: &mut dyn Port) {
        let key = Key((token.0 >> 32) as u32);
        if let Some(operation) = self.operations.get_mut(&key) {
            operation.put_done(token.0 as u32, port);
            self.advance(key, port);
        }
    }

    /// A frame of a communicator.
    pub(super) fn dispatch(
        &mut self,
        process: Process,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) {
        let id = GroupId::of(header);
        let Some(group) = self.groups.get_mut(&id) else {
            if self.dropped.contains(id) {
                return;
            }
            if self.strangers.iter().filter(|(sender, ..)| *sender == process).count() >= MAX_EARLY {
                return self.expel(
                    process,
                    Breach("it sent too much to communicators that do not exist"),
                    port,
                );
            }
            return self.strangers.push((process, *header, payload.to_vec()));
        };
        let Some(rank) = group.rank_of(process).filter(|rank| *rank as u32 == header.source) else {
            return self.expel(process, Breach("it spoke for a rank that is not its own"), port);
        };
        let result = match header.kind {
            FrameKind::Agree | FrameKind::Mismatch => self.agree(id, process, rank, header, payload, port),
            FrameKind::Eager | FrameKind::Ready => self.data(id, rank, header, payload, port),
            FrameKind::Credit if header.sequence & POINT_TO_POINT == 0 => {
                self.data(id, rank, header, payload, port)
            }
            FrameKind::Credit | FrameKind::ReadyToReceive => {
                self.answered(id, process, rank, header, payload, port)
            }
            FrameKind::Message | FrameKind::RequestToSend => {
                self.message(id, process, rank, header, payload, port)
            }
            FrameKind::Probe => {
                self.answer(id, process, header, port);
                Ok(())
            }
            FrameKind::ProbeReply => {
                self.located(id, rank, header, port);
                Ok(())
            }
            _ => Err(Breach("it sent a frame that makes no sense here")),
        };
        if let Err(breach) = result {
            self.expel(process, breach, port);
            // What it has spoiled cannot go on, even if it needed nothing more.
            let from = self.groups.get(&id).map_or(0, |group| {
                if group.active.contains_key(&header.sequence) {
                    header.sequence
                } else {
                    group.calls.count()
                }
            });
            self.lose(id, process, from, port);
        }
    }

    fn agree(
        &mut self,
        id: GroupId,
        process: Process,
        rank: usize,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), Breach> {
        let Some(group) = self.groups.get_mut(&id) else { return Ok(()) };
        let Some(&key) = group.active.get(&header.sequence) else {
            if header.sequence < group.begun {
                // The call has failed here; the cause is on its way to the peer.
                return Ok(());
            }
            let kept: usize = group.early.values().map(Vec::len).sum();
            if kept >= MAX_EARLY * group.members.len() {
                return Err(Breach("it is too many calls ahead"));
            }
            group.early.entry(header.sequence).or_default().push((process, *header, payload.to_vec()));
            return Ok(());
        };
        if let Some(agreement) = self.operations.get_mut(&key).and_then(super::Operation::agreement) {
            agreement.hear(rank, header, payload)?;
        }
        self.advance(key, port);
        Ok(())
    }

    fn data(
        &mut self,
        id: GroupId,
        rank: usize,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), Breach> {
        let active = self.groups.get(&id).and_then(|group| group.active.get(&header.sequence)).copied();
        // Without the operation: it has failed here, and the cause is on its way to the peer.
        let Some(key) = active else { return Ok(()) };
        if let Some(operation) = self.operations.get_mut(&key) {
            operation.data(rank, header, payload)?;
        }
        self.advance(key, port);
        Ok(())
    }

    fn answer(&mut self, id: GroupId, process: Process, header: &FrameHeader, port: &mut dyn Port) {
        let Some(group) = self.groups.get(&id) else { return };
        let mut reply = *header;
        reply.kind = FrameKind::ProbeReply;
        (reply.source, reply.offset) = (group.rank as u32, group.calls.count());
        // Whoever waits in a call itself is not the one that is waited for.
        reply.tag = u32::from(!group.active.is_empty());
        self.post(Letter::new(process, reply, &[]), port);
    }

    fn located(&mut self, id: GroupId, rank: usize, header: &FrameHeader, port: &mut dyn Port) {
        // The mark of the question.
        if let Some(sequence) = header.sequence.checked_sub(1) {
            return self.vouched(id, sequence, header.offset, port);
        }
        let asked = self.operations.values_mut().filter(|operation| operation.begin.group == id);
        for operation in asked {
            if let Some(answer) = operation.answers.get_mut(rank) {
                *answer = Some(Answer { calls: header.offset, waits: header.tag == 1 });
            }
        }
    }
}
