//! A connection to one peer: a ring each way, and the socket for everything that needs the kernel.

use crate::address::Name;
use crate::bell::Bell;
use crate::frame::Frame;
use crate::remote::Segment;
use crate::ring::{Consumer, Label, Producer, Pushed, Violation};
use crate::segment::Words;
use crate::socket::{Descriptors, Incoming, Socket};
use crate::{MAX_SEGMENTS, MAX_SEND};
use gradwire_transport::{Event, Events, LossReason, Notice, Peer, Posted, Tag};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The kinds of records in the ring.
const MESSAGE: u32 = 1;
const NOTICE: u32 = 2;

/// How many records one `progress` takes from one peer, so that a busy one does not starve the others.
const BATCH: usize = 64;

pub(crate) struct Link {
    socket: Socket,
    name: Name,
    incoming: Consumer<Words>,
    outgoing: Producer<Words>,
    bell: Bell,
    /// Frames that the socket had no room for.
    outbox: VecDeque<(Frame, Option<Arc<OwnedFd>>)>,
    /// The peer's regions.
    segments: BTreeMap<u64, Arc<Segment>>,
    /// The next number that the peer may give to a region: what lies below has been announced.
    next_segment: u64,
    /// The peer said goodbye.
    farewell: bool,
    /// Why the link is dead: reported once everything it brought before has been.
    end: Option<LossReason>,
}

impl Link {
    pub(crate) fn new(
        socket: Socket,
        name: Name,
        incoming: Consumer<Words>,
        outgoing: Producer<Words>,
        bell: Bell,
    ) -> Self {
        Self {
            socket,
            name,
            incoming,
            outgoing,
            bell,
            outbox: VecDeque::new(),
            segments: BTreeMap::new(),
            next_segment: 0,
            farewell: false,
            end: None,
        }
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    pub(crate) fn end(&self) -> Option<&LossReason> {
        self.end.as_ref()
    }

    /// Sends a message through the ring.
    pub(crate) fn send(&mut self, tag: Tag, bytes: &[u8]) -> Posted {
        self.push(Label { kind: MESSAGE, argument: tag.0 }, bytes)
    }

    /// Raises a notice at the peer, behind everything written into its memory before.
    pub(crate) fn notify(&mut self, notice: Notice) -> Posted {
        self.push(Label { kind: NOTICE, argument: notice.0 }, &[])
    }

    /// Whether a notice would be taken now.
    pub(crate) fn takes_notice(&mut self) -> bool {
        let fits = self.outgoing.fits(0);
        self.judge(fits).unwrap_or(false)
    }

    fn push(&mut self, label: Label, payload: &[u8]) -> Posted {
        let pushed = self.outgoing.push(label, payload);
        match self.judge(pushed) {
            Some(Pushed::Yes { wake }) => {
                if wake {
                    self.bell.ring();
                }
                Posted::Queued
            }
            Some(Pushed::Full) | None => Posted::Full,
        }
    }

    fn judge<T>(&mut self, result: Result<T, Violation>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Violation(what)) => {
                self.finish(LossReason::Protocol(what));
                None
            }
        }
    }

    fn finish(&mut self, reason: LossReason) {
        self.end.get_or_insert(reason);
    }

    /// Takes what the ring holds. Whether there was anything, or room to send has come back.
    pub(crate) fn drain_ring(
        &mut self,
        peer: Peer,
        scratch: &mut [u8; MAX_SEND],
        events: &mut Events,
    ) -> bool {
        // What a peer wrote before it died is complete, and no more can come: then nothing is left for later.
        let budget = if self.end.is_some() { usize::MAX } else { BATCH };
        let mut taken = 0;
        while taken < budget && !matches!(self.end, Some(LossReason::Protocol(_))) {
            let popped = self.incoming.pop(scratch);
            let Some(Some((label, len))) = self.judge(popped) else { break };
            match label.kind {
                MESSAGE => events.push_received(peer, Tag(label.argument), &scratch[..len]),
                NOTICE if len == 0 => events.push(Event::Notified(peer, Notice(label.argument))),
                _ => self.finish(LossReason::Protocol("a record of an unknown kind")),
            }
            taken += 1;
        }
        if self.incoming.release() && self.outgoing.rouses_consumer() {
            self.bell.ring();
        }
        let room = self.outgoing.has_room_again();
        self.judge(room).unwrap_or(false) || taken > 0
    }

    /// Announces sleep; `false` when there is something to do.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        let quiet = self.incoming.fall_asleep();
        quiet && self.end.is_none() && !self.outgoing.is_waiting_in_vain()
    }

    /// Takes `fall_asleep` back. Whether the peer rang meanwhile.
    pub(crate) fn wake_up(&mut self) -> bool {
        self.incoming.wake_up()
    }

    /// Reads the socket until it is empty, or has ended.
    pub(crate) fn drain_socket(&mut self) {
        let mut code = 0;
        while self.end.is_none() {
            match self.socket.receive() {
                Incoming::Frame(Frame::Region { id, len }, descriptors) => self.learn(id, len, descriptors),
                Incoming::Frame(Frame::Revoked { id }, _) => {
                    self.segments.remove(&id);
                }
                Incoming::Frame(Frame::Goodbye, _) => self.farewell = true,
                Incoming::Frame(..) | Incoming::Malformed => {
                    self.finish(LossReason::Protocol("a malformed frame"));
                }
                Incoming::Nothing => return,
                Incoming::Ended(0) if self.farewell => self.finish(LossReason::Closed),
                Incoming::Ended(0) => self.finish(LossReason::Broken { code }),
                // The kernel reports a reset before what the peer had said; that is still there to read.
                Incoming::Ended(errno) if code == 0 => code = errno,
                Incoming::Ended(_) => self.finish(LossReason::Broken { code }),
            }
        }
    }

    fn learn(&mut self, id: u64, len: u64, descriptors: Descriptors) {
        if id < self.next_segment || self.segments.len() >= MAX_SEGMENTS {
            return self.finish(LossReason::Protocol("a region announced twice, or too many of them"));
        }
        let [Some(descriptor), None] = descriptors else {
            return self.finish(LossReason::Protocol("a region without its segment"));
        };
        match Segment::accept(&descriptor, len) {
            Ok(segment) => {
                self.segments.insert(id, Arc::new(segment));
                self.next_segment = id.saturating_add(1);
            }
            Err(what) => self.finish(LossReason::Protocol(what)),
        }
    }

    /// The peer's region; `Err(true)` when it may still come.
    pub(crate) fn segment(&mut self, id: u64) -> Result<Arc<Segment>, bool> {
        if id >= self.next_segment {
            self.drain_socket();
        }
        self.segments.get(&id).cloned().ok_or(id >= self.next_segment)
    }

    /// Tells the peer, now or when the socket has room.
    pub(crate) fn tell(&mut self, frame: Frame, descriptor: Option<Arc<OwnedFd>>) {
        if let Frame::Revoked { id } = frame {
            let before = self.outbox.len();
            self.outbox
                .retain(|(queued, _)| !matches!(queued, Frame::Region { id: queued, .. } if *queued == id));
            if self.outbox.len() != before {
                return;
            }
        }
        self.outbox.push_back((frame, descriptor));
        self.flush();
    }

    /// Sends what waits in the outbox. Whether nothing is left there.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some((frame, descriptor)) = self.outbox.front() {
            let sent = match descriptor {
                Some(descriptor) => self.socket.send(frame, &[descriptor.as_fd()]),
                None => self.socket.send(frame, &[]),
            };
            match sent {
                Ok(()) => {
                    self.outbox.pop_front();
                }
                // Room will come: in the socket, in memory, or in the number of descriptors under way.
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS) => {
                    return false;
                }
                // The reading side says why, after what the peer had said before.
                Err(_) => self.outbox.clear(),
            }
        }
        true
    }

    pub(crate) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Closes in good order.
    pub(crate) fn close(mut self) {
        // What lies unread in our socket when it closes would reach the peer as a reset.
        self.drain_socket();
        self.tell(Frame::Goodbye, None);
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
