//! How [`Libfabric`] moves: hear what the control connections say, read the queue, post what waits, look at each peer.

use crate::frame::{Head, Kind, split_completion_data};
use crate::key::KeyFields;
use crate::link::{Landing, Stage, Work, is_whole};
use crate::pool::BUFFER;
use crate::transport::Libfabric;
use crate::wire::{Call, Completion, Target};
use gradwire_transport::{
    Activity, Event, Events, FailReason, LossReason, Notice, Posted, RegionKey, Tag, Transport,
    TransportError,
};
use std::sync::Arc;
use std::time::Instant;
use zerocopy::{FromBytes, IntoBytes};

/// After so many turns, and each time again, the control connections are looked at.
const GLANCE: u32 = 16;
/// Batches of completions in one turn.
const ROUNDS: usize = 8;
/// Buffers waiting for messages, at most: more peers share them, and the provider holds the rest back.
const INBOX: usize = 1024;

impl Libfabric {
    pub(crate) fn advance(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        let told = events.len();
        if !self.reports.is_empty() {
            events.extend(self.reports.drain(..));
        }
        let mut moved = self.hear(now, events)?;
        self.post_buffers()?;
        for _ in 0..ROUNDS {
            let mut completions = std::mem::take(&mut self.completions);
            let read = self.wire.poll(&mut completions);
            let read = read.map_err(|code| TransportError::System { context: "fi_cq_read", code: code.0 })?;
            for completion in completions.drain(..) {
                self.complete(completion, now, events);
            }
            self.completions = completions;
            self.pace.silent_turns = if read { 0 } else { self.pace.silent_turns.saturating_add(1) };
            moved |= read;
            if !read {
                break;
            }
        }
        self.post_buffers()?;
        for slot in self.links.slots() {
            moved |= self.tick(slot, now, events);
        }
        self.pace.last_progress = Some(now);
        Ok(if moved || events.len() > told { Activity::Busy } else { Activity::Idle })
    }

    /// Looks at the control connections, when it is time to.
    fn hear(&mut self, now: Instant, events: &mut Events) -> Result<bool, TransportError> {
        self.pace.unseen += 1;
        if self.pace.unseen < GLANCE && !self.pace.is_watchful && !self.control.has_output() {
            return Ok(false);
        }
        self.pace.unseen = 0;
        self.pace.is_watchful = self.links.iter().any(|link| !link.is_open());
        let mut heard = std::mem::take(&mut self.heard);
        heard.clear();
        let activity = self.control.progress(now, &mut heard)?;
        for event in heard.iter() {
            self.listen(&event, now, events);
        }
        self.heard = heard;
        Ok(activity == Activity::Busy)
    }

    /// Gives the provider the buffers for messages that it does not have.
    fn post_buffers(&mut self) -> Result<(), TransportError> {
        while let Some(buffer) = self.unposted.pop() {
            let Some(piece) = self.inbox.piece(buffer, BUFFER) else { continue };
            match self.wire.post(0, Call::Receive(piece), Work::Receive(buffer)) {
                Ok(()) => {}
                Err((_, _, code)) if code.is_again() => {
                    self.unposted.push(buffer);
                    break;
                }
                Err((_, _, code)) => return Err(TransportError::System { context: "fi_recv", code: code.0 }),
            }
        }
        Ok(())
    }

    /// More buffers, for one more peer.
    pub(crate) fn grow_inbox(&mut self) {
        let first = self.inbox.len();
        if first < INBOX && self.inbox.grow(&self.wire).is_ok() {
            self.unposted.extend(first as u32..self.inbox.len() as u32);
        }
    }

    fn complete(&mut self, completion: Completion<Work>, now: Instant, events: &mut Events) {
        match completion {
            Completion::Arrived(data) => self.notified(data, events),
            Completion::Done(Work::Receive(buffer), len) => {
                self.receive(buffer, len, events);
                self.unposted.push(buffer);
            }
            // A message that was too long, or a path that broke off: whoever sent it will hear of it.
            Completion::Failed(Work::Receive(buffer), _) => self.unposted.push(buffer),
            Completion::Done(work, _) => {
                self.landed(work.link());
                self.done(work, events);
            }
            Completion::Failed(work, code) => {
                let slot = work.link();
                self.landed(slot);
                self.fail(work, FailReason::System { code: code.0 }, events);
                if let Some(slot) = slot {
                    self.lose(slot, LossReason::Broken { code: code.0 }, now);
                }
            }
        }
    }

    fn landed(&mut self, slot: Option<u32>) {
        if let Some(link) = slot.and_then(|slot| self.links.get_mut(slot)) {
            link.flights -= 1;
        }
    }

    fn done(&mut self, work: Work, events: &mut Events) {
        match work {
            Work::Receive(_) => {}
            Work::Send { buffer, .. } => self.outbox.give_back(buffer),
            Work::Put { link, token, stand_in, notice, .. } => {
                self.stand_ins_back(stand_in);
                let Some(slot) = self.links.get_mut(link) else { return };
                if let Some(token) = token {
                    slot.operations -= 1;
                    slot.notices.extend(notice);
                    events.push(Event::Done(token));
                }
            }
            Work::Get { link, token, landing, .. } => {
                let landed = landing.is_none_or(|landing| self.land(landing, token.is_some()));
                let (Some(slot), Some(token)) = (self.links.get_mut(link), token) else { return };
                slot.operations -= 1;
                events.push(match landed {
                    true => Event::Done(token),
                    false => Event::Failed(token, FailReason::Revoked),
                });
            }
            Work::Greet { link } => {
                if let Some(link) = self.links.get_mut(link) {
                    link.tried.has_written = true;
                }
            }
            Work::Probe { link, key } => {
                if let Some(link) = self.links.get_mut(link) {
                    link.probed.insert(key, true);
                }
            }
        }
    }

    /// Copies what was fetched to where it belongs. `false`: that is gone.
    fn land(&mut self, landing: Landing, is_wanted: bool) -> bool {
        let Landing { stand_in, from, region, offset, len } = landing;
        let landed = is_wanted
            && stand_in
                .piece(from, len)
                .is_some_and(|piece| self.regions.copy_in(region, offset, len, &piece).is_ok());
        self.stand_ins_back(Some(stand_in));
        landed
    }

    fn stand_ins_back(&mut self, memory: Option<Arc<crate::memory::Memory>>) {
        if let Some(memory) = memory {
            self.stand_ins.give_back(memory);
        }
    }

    /// Ends an operation that did not come about.
    pub(crate) fn fail(&mut self, mut work: Work, reason: FailReason, events: &mut Events) {
        if let (Some(token), Some(link)) =
            (work.take_token(), work.link().and_then(|slot| self.links.get_mut(slot)))
        {
            link.operations -= 1;
            events.push(Event::Failed(token, reason));
        }
        match work {
            Work::Send { buffer, .. } => self.outbox.give_back(buffer),
            Work::Put { stand_in, .. } => self.stand_ins_back(stand_in),
            Work::Get { landing, .. } => self.stand_ins_back(landing.map(|landing| landing.stand_in)),
            Work::Receive(_) | Work::Greet { .. } | Work::Probe { .. } => {}
        }
    }

    /// A message has come.
    fn receive(&mut self, buffer: u32, len: usize, events: &mut Events) {
        let len = len.min(BUFFER);
        let Some(piece) = self.inbox.piece(buffer, len) else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        piece.read(&mut scratch[..len]);
        if let Ok((head, payload)) = Head::read_from_prefix(&scratch[..len]) {
            self.understand(&head, payload, events);
        }
        self.scratch = scratch;
    }

    fn understand(&mut self, head: &Head, payload: &[u8], events: &mut Events) {
        let slot = head.slot.get();
        let Some(link) = self.links.get_mut(slot).filter(|link| link.nonce == head.nonce.get()) else {
            tracing::debug!(slot, "a message of nobody who was let in");
            return;
        };
        let Some(kind) = Kind::of(head).filter(|kind| is_whole(*kind, payload.len())) else {
            return self.offend(slot, "a message that makes no sense");
        };
        link.credit.allow(head.consumed.get());
        if kind == Kind::Hello {
            link.tried.has_heard_message = true;
            return;
        }
        if !kind.uses_credit() {
            return;
        }
        if !link.credit.consume(head.sequence.get()) {
            return self.offend(slot, "a message out of order");
        }
        if !self.may_speak(slot, events) {
            return;
        }
        let Some(link) = self.links.get_mut(slot) else { return };
        match kind {
            Kind::Notice => events.push(Event::Notified(link.name, Notice(head.label.get()))),
            _ => events.push_received(link.name, Tag(head.label.get()), payload),
        }
    }

    /// A write of a peer has come, with this number.
    fn notified(&mut self, data: u64, events: &mut Events) {
        let (slot, proof, notice) = split_completion_data(data);
        let Some(link) = self.links.get_mut(slot).filter(|link| link.nonce & 0xffff == proof) else { return };
        if !link.tried.has_heard_write {
            link.tried.has_heard_write = true;
            return;
        }
        link.notices_heard += 1;
        if self.may_speak(slot, events)
            && let Some(link) = self.links.get(slot)
        {
            events.push(Event::Notified(link.name, Notice(notice)));
        }
    }

    /// Sends a message, or keeps it until the provider takes it.
    pub(crate) fn send_message(&mut self, slot: u32, tag: Tag, bytes: &[u8]) -> Posted {
        let has_credit = self.links.get(slot).is_some_and(|link| !link.credit.is_used_up());
        match has_credit && self.say(slot, Kind::Message, tag.0, bytes) {
            true => Posted::Queued,
            false => Posted::Full,
        }
    }

    /// Sends a message of any kind. `false`: there is no buffer for it.
    pub(crate) fn say(&mut self, slot: u32, kind: Kind, label: u32, bytes: &[u8]) -> bool {
        let inject = self.wire.domain().traits().inject_size;
        let Some(link) = self.links.get_mut(slot) else { return true };
        let Some(theirs) = &link.theirs else { return true };
        let is_short = Head::LEN + bytes.len() <= inject.min(256) && link.backlog.is_empty();
        let buffer = self.outbox.take();
        let Some(buffer) = buffer else { return false };
        let head = Head {
            nonce: theirs.nonce.into(),
            slot: theirs.slot.into(),
            kind: (kind as u32).into(),
            sequence: if kind.uses_credit() { link.credit.spend() } else { 0 }.into(),
            consumed: link.credit.tell().into(),
            label: label.into(),
            zero: 0.into(),
        };
        let peer = theirs.board.peer;
        if is_short {
            let mut whole = [0; 256];
            let (first, rest) = whole.split_at_mut(Head::LEN);
            first.copy_from_slice(head.as_bytes());
            rest[..bytes.len()].copy_from_slice(bytes);
            if self.wire.inject(peer, &whole[..Head::LEN + bytes.len()]).is_ok() {
                self.outbox.give_back(buffer);
                return true;
            }
        }
        let len = Head::LEN + bytes.len();
        let (Some(whole), Some(first)) =
            (self.outbox.piece(buffer, len), self.outbox.piece(buffer, Head::LEN))
        else {
            return false;
        };
        first.write(head.as_bytes());
        whole.write_at(Head::LEN, bytes);
        self.submit(slot, Call::Send(whole), Work::Send { link: slot, buffer });
        true
    }

    /// The number that makes a write to this peer a notice.
    pub(crate) fn data_for(&mut self, slot: u32, notice: u32) -> u64 {
        let Some(link) = self.links.get_mut(slot) else { return 0 };
        let Some(theirs) = &link.theirs else { return 0 };
        link.notices_sent += 1;
        crate::frame::completion_data(theirs.slot, theirs.nonce, notice)
    }

    pub(crate) fn peer_address(&self, slot: u32) -> u64 {
        let theirs = self.links.get(slot).and_then(|link| link.theirs.as_ref());
        theirs.map_or(u64::MAX, |theirs| theirs.board.peer)
    }

    /// Tries a key by reading a byte.
    pub(crate) fn probe(&mut self, slot: u32, key: RegionKey, fields: KeyFields) {
        let from = Target { peer: self.peer_address(slot), address: fields.address, key: fields.key };
        let Some(into) = self.board.piece(32, 1) else { return };
        if let Some(link) = self.links.get_mut(slot) {
            link.probed.insert(key, false);
        }
        self.submit(slot, Call::Read { into, from }, Work::Probe { link: slot, key });
    }

    /// Hands an operation to the provider, behind those that wait.
    pub(crate) fn submit(&mut self, slot: u32, call: Call, work: Work) {
        let peer = self.peer_address(slot);
        let Some(link) = self.links.get_mut(slot) else { return };
        if !link.backlog.is_empty() {
            link.backlog.push_back((call, work));
            return;
        }
        match self.wire.post(peer, call, work) {
            Ok(()) => link.flights += 1,
            // What is not taken for any other reason is found out when it is tried again, in `progress`.
            Err((call, work, _)) => link.backlog.push_back((call, work)),
        }
    }

    /// Tries again what the provider would not take. Whether it took any.
    pub(crate) fn flush(&mut self, slot: u32, now: Instant, events: &mut Events) -> bool {
        let peer = self.peer_address(slot);
        let mut moved = false;
        while let Some(link) = self.links.get_mut(slot)
            && let Some((call, work)) = link.backlog.pop_front()
        {
            match self.wire.post(peer, call, work) {
                Ok(()) => {
                    link.flights += 1;
                    moved = true;
                }
                Err((call, work, code)) if code.is_again() => {
                    link.backlog.push_front((call, work));
                    break;
                }
                Err((_, work, code)) => {
                    self.fail(work, FailReason::System { code: code.0 }, events);
                    self.lose(slot, LossReason::Broken { code: code.0 }, now);
                    return true;
                }
            }
        }
        moved
    }

    /// Whether what a peer says is for the caller. The first thing it says beyond its greeting shows that it is ready.
    fn may_speak(&mut self, slot: u32, events: &mut Events) -> bool {
        let Some(link) = self.links.get_mut(slot) else { return false };
        match &link.stage {
            Stage::Open | Stage::Ending { .. } => true,
            Stage::Greeting { .. } if link.tried.has_said_ready => {
                link.stage = Stage::Open;
                events.push(Event::Connected(link.name));
                true
            }
            Stage::Calling | Stage::Greeting { .. } | Stage::Leaving { .. } | Stage::Over => false,
        }
    }
}
