//! The receiver's end of a message.

use super::super::port::{Port, Process};
use super::super::slot::{Owner, Slots};
use super::super::transfer::Incoming;
use super::super::{Letter, Outcome};
use super::{Head, Key, OVER, Pattern, READ, READABLE};
use crate::Error;
use crate::buffer::Span;
use gradwire_schema::{FrameHeader, FrameKind};

/// A receive under way.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) pattern: Pattern,
    /// The message that it takes, if it is still there.
    pub(super) number: Option<u64>,
    span: Span,
    kind: u64,
    pub(crate) matched: Option<Matched>,
}

#[derive(Debug)]
pub(crate) struct Matched {
    pub(crate) head: Head,
    transfer: Transfer,
}

#[derive(Debug)]
enum Transfer {
    /// The message is here, or not wanted; its sender has not heard of that yet, if it wants to.
    Unacknowledged,
    /// The sender has it.
    Announced(Incoming),
    /// It was read in the sender's memory, and the sender has still to say that it was there until then.
    Unconfirmed,
    Over,
}

impl Receiving {
    pub(crate) fn new(pattern: Pattern, number: Option<u64>, kind: u64, span: Span) -> Self {
        Self { pattern, number, span, kind, matched: None }
    }

    /// Takes a message: its bytes if they are here.
    pub(super) fn take(&mut self, head: Head, body: Option<&[u8]>) {
        let fits = self.fits(&head);
        let transfer = match body {
            Some(bytes) if fits => {
                self.span.write(bytes);
                Transfer::Unacknowledged
            }
            None if fits => Transfer::Announced(Incoming::new(head.process, head.len, 1)),
            _ => Transfer::Unacknowledged,
        };
        self.matched = Some(Matched { head, transfer });
    }

    /// Opens memory for an announced message, takes its segments, and tells its sender what it awaits.
    pub(crate) fn advance(
        &mut self,
        key: Key,
        mut header: FrameHeader,
        port: &mut dyn Port,
        slots: &mut Slots,
        outbox: &mut Vec<Letter>,
    ) {
        let Some(Matched { head, transfer }) = &mut self.matched else { return };
        header.sequence = head.sequence;
        if let Transfer::Unacknowledged = transfer {
            if head.sequence != 0 {
                outbox.push(credit(head, header, OVER));
            }
            *transfer = Transfer::Over;
        }
        if let Transfer::Announced(incoming) = transfer
            && !incoming.is_open()
            && let Some(address) = head.offer.take()
            && READABLE.contains(&head.len)
            && let Some(target) = self.span.part(0..head.len)
            && port.read(head.process, address, target)
        {
            outbox.push(credit(head, header, READ));
            *transfer = Transfer::Unconfirmed;
        }
        let Transfer::Announced(incoming) = transfer else { return };
        let target = self.span.part(0..head.len);
        if !incoming.is_open()
            && let Some(slot) = slots.take(Owner { operation: key, step: 0, source: 0 })
        {
            match incoming.open(slot, target, port) {
                Some(opening) => {
                    header.kind = FrameKind::ReadyToReceive;
                    header.slot = u32::from(slot);
                    outbox.push(Letter::new(head.process, header, &opening.encode()));
                }
                None => slots.give_back(slot),
            }
        }
        while let Some(segment) = incoming.next() {
            if let (Some(bytes), Some(part)) =
                (segment.bytes, target.and_then(|span| span.part(segment.range)))
            {
                part.copy_from(bytes);
            }
            if let Some(total) = incoming.consume() {
                outbox.push(credit(head, header, total));
            }
        }
        if incoming.is_over() {
            incoming.close(port).into_iter().for_each(|slot| slots.give_back(slot));
            *transfer = Transfer::Over;
        }
    }

    pub(crate) fn notified(&mut self, peer: Process, segment: u16) {
        if let Some(Matched { transfer: Transfer::Announced(incoming), .. }) = &mut self.matched
            && incoming.peer == peer
        {
            incoming.notified(segment);
        }
    }

    /// The sender has given up a message: whether it is this one. Then another one may come.
    pub(super) fn withdraw(
        &mut self,
        process: Process,
        sequence: u64,
        port: &mut dyn Port,
        slots: &mut Slots,
    ) -> bool {
        let Some(Matched { head, transfer }) = &mut self.matched else { return false };
        if (head.process, head.sequence) != (process, sequence) {
            return false;
        }
        match transfer {
            Transfer::Announced(incoming) => {
                incoming.close(port).into_iter().for_each(|slot| slots.give_back(slot));
            }
            Transfer::Unconfirmed => {}
            Transfer::Unacknowledged | Transfer::Over => return false,
        }
        self.matched = None;
        true
    }

    /// The sender says that what was read was the message: whether it is this one.
    pub(super) fn confirm(&mut self, process: Process, sequence: u64) -> bool {
        let Some(Matched { head, transfer: transfer @ Transfer::Unconfirmed }) = &mut self.matched else {
            return false;
        };
        let is_it = (head.process, head.sequence) == (process, sequence);
        if is_it {
            *transfer = Transfer::Over;
        }
        is_it
    }

    /// Whether it has something to do that could not be done yet.
    pub(crate) fn is_held_up(&self) -> bool {
        let transfer = self.matched.as_ref().map(|matched| &matched.transfer);
        matches!(transfer, Some(Transfer::Announced(incoming)) if !incoming.is_open())
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Result<Outcome, Error>> {
        let Some(Matched { head, transfer: Transfer::Over }) = &self.matched else { return None };
        let Head { source, tag, len, .. } = *head;
        if self.fits(head) {
            return Some(Ok(Outcome::Received { source, tag, len }));
        }
        let wanted = self.span.len();
        let reason = if head.kind == self.kind {
            format!(
                "the message of rank {source} with tag {tag} has {len} bytes, the buffer {wanted}: make it longer"
            )
        } else {
            format!(
                "the message of rank {source} with tag {tag} has elements of another type: receive into a buffer of the sender's type"
            )
        };
        Some(Err(Error::Misuse(reason.into())))
    }

    /// Ends it, wherever it stands. What to tell the sender, when it waits in vain.
    pub(crate) fn close(
        &mut self,
        header: FrameHeader,
        port: &mut dyn Port,
        slots: &mut Slots,
    ) -> Option<Letter> {
        let Some(Matched { head, transfer }) = &mut self.matched else { return None };
        match transfer {
            Transfer::Announced(incoming) => {
                incoming.close(port).into_iter().for_each(|slot| slots.give_back(slot));
                Some(credit(head, header, OVER))
            }
            // The sender has been told that it is read.
            Transfer::Unconfirmed | Transfer::Unacknowledged | Transfer::Over => None,
        }
    }

    /// Whether a message fits, in type and length. One that does not is lost, and never sent if it only announced itself.
    fn fits(&self, head: &Head) -> bool {
        head.kind == self.kind && head.len <= self.span.len()
    }
}

/// Tells a sender how much of its message it may send by now, or that nothing more of it is wanted.
fn credit(head: &Head, mut header: FrameHeader, offset: u64) -> Letter {
    (header.kind, header.slot) = (FrameKind::Credit, 0);
    (header.sequence, header.offset) = (head.sequence, offset);
    Letter::new(head.process, header, &[])
}
