//! How peers of [`Libfabric`] come and go.
//!
//! A peer is first met over the control connection, on which both sides prove that they belong to the job and then say how
//! they are found on the fabric. Each writes to the other's board and sends it a message; when both have arrived, and the
//! write is known to have, a side says so over the control connection. Ready and told so, it calls the peer connected: not
//! before, so that nobody stops driving while the other's write needs it.
//!
//! The end is the control connection's as well, since endpoints of this kind have none.

use crate::frame::{Control, Introduction, Kind};
use crate::key::{KeyFields, Secret};
use crate::link::{Link, Place, Stage, Theirs, Tried, Work};
use crate::transport::Libfabric;
use crate::wire::{Call, Target};
use gradwire_transport::{
    Address, Event, EventRef, Events, FailReason, Linger, LossReason, Peer, Posted, Tag, Transport,
};
use std::time::{Duration, Instant};

/// How long what a peer sent before its end may still be on its way, on a path that its end says nothing of. Meanwhile
/// nobody sleeps.
const DRAIN: Duration = Duration::from_millis(100);
/// And how many turns without anything are needed to believe that nothing comes.
const SILENT_TURNS: u32 = 32;

impl Libfabric {
    /// What the control connections have to say.
    pub(crate) fn listen(&mut self, event: &EventRef<'_>, now: Instant, events: &mut Events) {
        match event {
            EventRef::Received(peer, tag, bytes) => {
                let Some(slot) = self.links.slot_of(*peer).or_else(|| self.leaving(*peer)) else { return };
                self.told(slot, *tag, bytes, now, events);
            }
            EventRef::Other(Event::Connected(peer)) => {
                if let Some(slot) = self.links.slot_of(*peer) {
                    self.introduce(slot, now);
                }
            }
            EventRef::Other(Event::PeerLost(peer, reason)) => {
                if let Some(slot) = self.links.slot_of(*peer).or_else(|| self.leaving(*peer)) {
                    self.parted(slot, reason.clone(), now, events);
                }
            }
            _ => {}
        }
    }

    /// The slot of a peer that we are leaving.
    fn leaving(&self, name: Peer) -> Option<u32> {
        self.links.slots().find(|slot| {
            let link = self.links.get(*slot);
            link.is_some_and(|link| link.name == name && matches!(link.stage, Stage::Leaving { .. }))
        })
    }

    /// Says how we are found.
    fn introduce(&mut self, slot: u32, now: Instant) {
        let deadline = now + self.config.control.connect_timeout.min(Duration::from_secs(1 << 20));
        let Some(link) = self.links.get_mut(slot) else { return };
        link.stage = Stage::Greeting { deadline };
        link.unsaid.push_back(Control::Introduction(Box::new(Introduction {
            slot,
            nonce: link.nonce,
            secret: self.secret.0,
            board: self.board_key,
            name: self.name.clone(),
        })));
    }

    /// A peer says something over the control connection.
    fn told(&mut self, slot: u32, tag: Tag, bytes: &[u8], now: Instant, events: &mut Events) {
        let Some(message) = Control::decode(tag, bytes) else {
            return self.offend(slot, "a control message that makes no sense");
        };
        let Some(link) = self.links.get_mut(slot) else { return };
        match message {
            Control::Introduction(introduction) => self.greet(slot, *introduction, now),
            Control::Ready => link.tried.has_heard_ready = true,
            Control::Bye { messages, notices } => {
                let until = now + self.config.control.silence();
                let expected = Some((messages, notices));
                if !matches!(link.stage, Stage::Leaving { .. } | Stage::Over) {
                    link.stage = Stage::Ending { reason: LossReason::Closed, until, expected };
                } else {
                    // Both leave at a time: nobody waits for the other's words.
                    link.unsaid.push_back(Control::Heard);
                }
            }
            Control::Heard => self.part(slot, events),
            Control::Withdraw(key) => {
                link.probed.remove(&key);
                link.remember_withdrawn(key);
                link.withdrawing.push(key);
                self.remotes.withdraw(slot, &key);
            }
            Control::Withdrawn(key) => {
                for quarantined in self.quarantine.iter_mut().filter(|quarantined| quarantined.key == key) {
                    quarantined.waiting.retain(|waiting| *waiting != slot);
                }
                self.quarantine.retain(|quarantined| quarantined.for_good || !quarantined.waiting.is_empty());
            }
        }
    }

    /// Tries the path to a peer that has said where it is.
    fn greet(&mut self, slot: u32, introduction: Introduction, now: Instant) {
        let Introduction { slot: their_slot, nonce, secret, board: board_key, name } = introduction;
        let secret = Secret(secret);
        let fields = KeyFields::verify(&board_key, &secret);
        let is_plausible = name.len() <= 512 && u16::try_from(their_slot).is_ok();
        let (Some(fields), true) = (fields, is_plausible) else {
            return self.offend(slot, "an introduction that makes no sense");
        };
        let peer = match self.wire.insert(&name) {
            Ok(peer) => peer,
            Err(code) => return self.lose(slot, LossReason::Unreachable { code: code.0 }, now),
        };
        let Some(link) = self.links.get_mut(slot).filter(|link| link.theirs.is_none()) else {
            return self.offend(slot, "a second introduction");
        };
        let board = Target { peer, address: fields.address, key: fields.key };
        link.theirs = Some(Theirs { slot: their_slot, nonce, secret, board });
        let data = Some(crate::frame::completion_data(their_slot, nonce, 0));
        let data = data.filter(|_| self.has_wide_data);
        if let Some(from) = self.board.piece(40, 8) {
            let call = Call::Write { from, to: board, data, is_delivered: data.is_none() };
            self.submit(slot, call, Work::Greet { link: slot });
        }
        self.say(slot, Kind::Hello, 0, &[]);
    }

    /// The control connection has ended.
    fn parted(&mut self, slot: u32, reason: LossReason, now: Instant, events: &mut Events) {
        let Some(link) = self.links.get_mut(slot) else { return };
        match &mut link.stage {
            Stage::Calling | Stage::Greeting { .. } => self.end(slot, reason, events),
            Stage::Open => link.stage = Stage::Ending { reason, until: now + DRAIN, expected: None },
            Stage::Ending { until, .. } => *until = (*until).min(now + DRAIN),
            Stage::Leaving { .. } => self.part(slot, events),
            Stage::Over => {}
        }
    }

    /// Something on the fabric went wrong, and with it the peer.
    pub(crate) fn lose(&mut self, slot: u32, reason: LossReason, now: Instant) {
        let Some(link) = self.links.get_mut(slot) else { return };
        if matches!(link.stage, Stage::Open | Stage::Greeting { .. }) {
            tracing::debug!(peer = ?link.name, %reason, "the path to a peer broke");
            link.stage = Stage::Ending { reason, until: now + DRAIN, expected: None };
            self.control.disconnect(link.name, Linger::Drop);
            self.pace.is_watchful = true;
        }
    }

    /// A peer broke the protocol.
    pub(crate) fn offend(&mut self, slot: u32, offence: &'static str) {
        if let Some(now) = self.pace.last_progress {
            self.lose(slot, LossReason::Protocol(offence), now);
        }
    }

    /// Does what is due for one peer. Whether anything was.
    pub(crate) fn tick(&mut self, slot: u32, now: Instant, events: &mut Events) -> bool {
        if self.links.get(slot).is_none() {
            return false;
        }
        let mut moved = self.tell(slot);
        moved |= self.flush(slot, now, events);
        moved |= self.send_notices(slot);
        self.give_credit(slot);
        self.confirm_withdrawals(slot);
        let Some(link) = self.links.get_mut(slot) else { return moved };
        match &mut link.stage {
            Stage::Calling | Stage::Open => {}
            Stage::Greeting { deadline } => {
                let is_late = now >= *deadline;
                return self.get_acquainted(slot, is_late, events) || moved;
            }
            Stage::Ending { until, expected, .. } => {
                let heard = (link.credit.consumed(), link.notices_heard);
                let has_all = expected.is_some_and(|expected| expected == heard);
                let is_silent = expected.is_some() || self.pace.silent_turns >= SILENT_TURNS;
                if has_all || is_silent && now >= *until {
                    self.bury(slot, has_all, events);
                }
                moved = true;
            }
            Stage::Leaving { deadline, .. } => {
                let deadline = *deadline.get_or_insert(now + self.config.control.silence());
                moved |= self.say_bye(slot);
                if now >= deadline {
                    self.part(slot, events);
                    moved = true;
                }
            }
            Stage::Over => {
                if link.flights == 0 && link.unsaid.is_empty() {
                    self.forget(slot);
                }
            }
        }
        moved
    }

    /// Says what the control connection takes.
    fn tell(&mut self, slot: u32) -> bool {
        let Some(link) = self.links.get_mut(slot) else { return false };
        let mut moved = false;
        while let Some(message) = link.unsaid.front() {
            let (tag, bytes) = message.encode();
            match self.control.send(link.name, tag, &bytes) {
                Ok(Posted::Full) => break,
                // The end of the connection is told by an event.
                Ok(Posted::Queued) | Err(_) => drop(link.unsaid.pop_front()),
            }
            moved = true;
        }
        self.pace.is_watchful |= moved;
        moved
    }

    /// Sends the notices of puts that have been delivered.
    fn send_notices(&mut self, slot: u32) -> bool {
        let mut moved = false;
        while let Some(link) = self.links.get_mut(slot).filter(|link| !link.credit.is_used_up())
            && let Some(notice) = link.notices.pop_front()
        {
            if !self.say(slot, Kind::Notice, notice.0, &[]) {
                if let Some(link) = self.links.get_mut(slot) {
                    link.notices.push_front(notice);
                }
                break;
            }
            moved = true;
        }
        moved
    }

    fn give_credit(&mut self, slot: u32) {
        let owes = |link: &&Link| {
            link.credit.owes()
                && matches!(
                    link.stage,
                    Stage::Open | Stage::Leaving { .. } | Stage::Ending { expected: Some(_), .. }
                )
        };
        if self.links.get(slot).as_ref().is_some_and(owes) {
            self.say(slot, Kind::Credit, 0, &[]);
        }
    }

    /// Lets go of keys that the peer has taken back and that nothing under way uses.
    fn confirm_withdrawals(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot).filter(|link| !link.withdrawing.is_empty()) else { return };
        let mut in_use: Vec<_> = link.backlog.iter().filter_map(|(_, work)| work.key().copied()).collect();
        let under_way = self.wire.works_mut().filter(|work| work.link() == Some(slot));
        in_use.extend(under_way.filter_map(|work| work.key().copied()));
        let (kept, free) = link.withdrawing.iter().partition::<Vec<_>, _>(|key| in_use.contains(key));
        link.withdrawing = kept;
        link.unsaid.extend(free.into_iter().map(Control::Withdrawn));
    }

    /// Whether the path has been found to work, or not to.
    fn get_acquainted(&mut self, slot: u32, is_late: bool, events: &mut Events) -> bool {
        let needs_write = self.has_wide_data;
        let Some(link) = self.links.get_mut(slot) else { return false };
        let Tried { has_written, has_heard_write, has_heard_message, .. } = link.tried;
        let works = has_written && (has_heard_write || !needs_write) && has_heard_message;
        if works && !link.tried.has_said_ready {
            link.tried.has_said_ready = true;
            link.tried.has_heard_write = true;
            link.unsaid.push_back(Control::Ready);
            return true;
        }
        // The caller may stop driving once it is connected to everybody: the peer must not be waiting for our word then.
        let has_left = link.unsaid.is_empty() && !self.control.has_output();
        if link.tried.has_said_ready && link.tried.has_heard_ready && has_left {
            link.stage = Stage::Open;
            events.push(Event::Connected(link.name));
            return true;
        }
        if is_late {
            self.end(slot, LossReason::Unreachable { code: 110 }, events);
        }
        is_late
    }

    /// The caller leaves a peer.
    pub(crate) fn leave(&mut self, peer: Peer, linger: Linger) {
        let Some(slot) = self.links.slot_of(peer) else { return };
        self.retire(peer, Place::Left);
        self.remotes.release_link(slot);
        self.pace.is_watchful = true;
        let Some(link) = self.links.get_mut(slot) else { return };
        if linger == Linger::Flush && link.is_open() {
            link.stage = Stage::Leaving { deadline: None, has_said_bye: false };
            return;
        }
        self.fail_unasked(slot);
        self.close(slot, Linger::Drop);
    }

    /// Ends all operations of a peer outside of `progress`.
    fn fail_unasked(&mut self, slot: u32) {
        let mut failed = Events::new();
        self.fail_all(slot, &mut failed);
        self.reports.extend(failed.iter().filter_map(|event| match event {
            EventRef::Other(event) => Some(event.clone()),
            _ => None,
        }));
    }

    /// Of a peer that we leave: once everything has left us, tells how much it was.
    fn say_bye(&mut self, slot: u32) -> bool {
        let Some(link) = self.links.get_mut(slot) else { return false };
        let is_empty = link.backlog.is_empty() && link.flights == 0 && link.notices.is_empty();
        let (messages, notices) = (link.credit.sent(), link.notices_sent);
        let Stage::Leaving { has_said_bye, .. } = &mut link.stage else { return false };
        if *has_said_bye || !is_empty {
            return false;
        }
        *has_said_bye = true;
        link.unsaid.push_back(Control::Bye { messages, notices });
        self.tell(slot)
    }

    /// Of an endpoint that is connected to anew: what we were leaving it is over.
    pub(crate) fn part_from(&mut self, address: &Address) {
        let is_it = |link: &Link| link.address == *address && matches!(link.stage, Stage::Leaving { .. });
        let old = self.links.slots().find(|slot| self.links.get(*slot).is_some_and(is_it));
        if let Some(slot) = old {
            self.fail_unasked(slot);
            self.close(slot, Linger::Flush);
        }
    }

    /// Ends a peer that we leave, and that has heard everything or is gone.
    fn part(&mut self, slot: u32, events: &mut Events) {
        if self.links.get(slot).is_some_and(|link| matches!(link.stage, Stage::Leaving { .. })) {
            self.fail_all(slot, events);
            self.close(slot, Linger::Flush);
        }
    }

    /// Ends a peer that has gone.
    fn bury(&mut self, slot: u32, has_all: bool, events: &mut Events) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let Stage::Ending { reason, .. } = &link.stage else { return };
        let reason = reason.clone();
        if has_all {
            link.unsaid.push_back(Control::Heard);
            self.tell(slot);
        }
        self.end(slot, reason, events);
    }

    /// Ends a peer that was lost.
    fn end(&mut self, slot: u32, reason: LossReason, events: &mut Events) {
        self.fail_all(slot, events);
        let Some(link) = self.links.get(slot) else { return };
        let name = link.name;
        tracing::debug!(peer = ?name, %reason, "peer lost");
        events.push(Event::PeerLost(name, reason));
        self.retire(name, Place::Lost);
        self.remotes.release_link(slot);
        self.close(slot, Linger::Flush);
    }

    /// Ends all operations of a peer. What the provider has of them is kept until it is done with it.
    fn fail_all(&mut self, slot: u32, events: &mut Events) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let backlog = std::mem::take(&mut link.backlog);
        for (_, work) in backlog {
            self.fail(work, FailReason::PeerLost, events);
        }
        let works = self.wire.works_mut().filter(|work| work.link() == Some(slot));
        let failed: Vec<_> = works.filter_map(Work::take_token).collect();
        if let Some(link) = self.links.get_mut(slot) {
            link.operations -= failed.len();
        }
        events.extend(failed.into_iter().map(|token| Event::Failed(token, FailReason::PeerLost)));
    }

    /// Closes the control connection, and waits for the provider.
    fn close(&mut self, slot: u32, linger: Linger) {
        let Some(link) = self.links.get_mut(slot) else { return };
        self.control.disconnect(link.name, linger);
        link.stage = Stage::Over;
        link.notices.clear();
        link.unsaid.clear();
        for quarantined in &mut self.quarantine {
            let before = quarantined.waiting.len();
            quarantined.waiting.retain(|waiting| *waiting != slot);
            quarantined.for_good |= quarantined.waiting.len() < before;
        }
    }

    /// Frees the slot of a peer of which nothing is left.
    fn forget(&mut self, slot: u32) {
        let Some(theirs) = self.links.remove(slot).and_then(|link| link.theirs) else { return };
        let peer = theirs.board.peer;
        // A new connection to the same endpoint has the same address.
        let is_shared = |link: &Link| link.theirs.as_ref().is_some_and(|theirs| theirs.board.peer == peer);
        if !self.links.iter().any(is_shared) {
            self.wire.remove(peer);
        }
    }
}
