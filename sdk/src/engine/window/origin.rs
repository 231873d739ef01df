//! The origin's side: what is on the way to an owner, and what came back.

use super::{IN_FLIGHT, Window};
use crate::Rank;
use crate::engine::port::Port;
use crate::engine::transfer::Breach;
use crate::engine::{Engine, GroupId};
use gradwire_schema::{FrameHeader, FrameKind, WindowReply, WindowRequest};
use std::collections::{HashMap, VecDeque};

const OUT_OF_TURN: Breach = Breach("it answered a request to its window out of turn");

/// What this rank has asked of another.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// The number of the last request, and of the last that is known to have been carried out.
    posted: u64,
    applied: u64,
    /// Requests on the way, by number, and what each counts for.
    in_flight: VecDeque<(u64, usize)>,
    bytes: usize,
    /// Values that are to come.
    expected: VecDeque<Expected>,
    /// Values that came, by the number of their request.
    values: HashMap<u64, Vec<u8>>,
    /// The number of the last lock request, and of the last that was granted.
    asked: u64,
    granted: u64,
    posts: u64,
    /// The rank has dropped its window; what was on the way then was in vain.
    closed: bool,
    refused: bool,
}

#[derive(Debug)]
struct Expected {
    number: u64,
    len: usize,
    /// Somebody waits for them.
    wanted: bool,
}

impl Target {
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.refused = self.posted > self.applied;
        self.applied = self.posted;
        self.in_flight.clear();
        self.expected.clear();
        self.bytes = 0;
    }

    pub(super) fn hear_post(&mut self) {
        self.posts = self.posts.saturating_add(1);
    }

    /// The owner's answer.
    pub(super) fn hear(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), Breach> {
        if self.closed {
            return Err(Breach("it answered for a window that it had dropped"));
        }
        let number = header.sequence;
        match WindowReply::decode(header) {
            Ok(WindowReply::Applied) => {
                if self.expected.front().is_some_and(|expected| expected.number <= number) {
                    return Err(OUT_OF_TURN);
                }
                self.advance(number)
            }
            Ok(WindowReply::Values) => {
                let expected = self.expected.pop_front().ok_or(OUT_OF_TURN)?;
                if (expected.number, expected.len) != (number, payload.len()) {
                    return Err(OUT_OF_TURN);
                }
                if expected.wanted {
                    self.values.insert(number, payload.to_vec());
                }
                self.advance(number)
            }
            Ok(WindowReply::Granted) if number <= self.asked => {
                // A grant that comes after we have given up is taken back by the word we sent then.
                self.granted = number;
                Ok(())
            }
            _ => Err(Breach("its answer about a window makes no sense")),
        }
    }

    /// All requests up to this one have been carried out.
    fn advance(&mut self, number: u64) -> Result<(), Breach> {
        if number > self.posted || number < self.applied {
            return Err(OUT_OF_TURN);
        }
        self.applied = number;
        while let Some((_, cost)) = self.in_flight.pop_front_if(|(other, _)| *other <= number) {
            self.bytes -= cost;
        }
        Ok(())
    }
}

impl Engine {
    /// Sends a numbered request for which `values` bytes are to come back; its number. `None`: too much is on the way, again
    /// when answers came.
    pub(crate) fn request(
        &mut self,
        id: GroupId,
        rank: Rank,
        request: WindowRequest,
        payload: &[u8],
        values: usize,
        port: &mut dyn Port,
    ) -> Option<u64> {
        let window = self.windows.open.get_mut(&id)?;
        let target = window.targets.get_mut(rank)?;
        let cost = FrameHeader::LEN + payload.len() + values;
        if target.bytes > 0 && target.bytes + cost > IN_FLIGHT {
            return None;
        }
        target.posted += 1;
        let number = target.posted;
        target.bytes += cost;
        target.in_flight.push_back((number, cost));
        if values > 0 {
            target.expected.push_back(Expected { number, len: values, wanted: true });
        }
        let mut header = FrameHeader::new(FrameKind::Window);
        request.encode(&mut header);
        header.sequence = number;
        let letter = window.letter(id, rank, header, payload);
        self.post(letter, port);
        Some(number)
    }

    /// Tells a rank that it may, or need no longer, wait for this one.
    pub(crate) fn signal(&mut self, id: GroupId, rank: Rank, request: WindowRequest, port: &mut dyn Port) {
        let Some(window) = self.windows.open.get_mut(&id) else { return };
        if rank == window.rank {
            match request {
                WindowRequest::Post => window.targets[rank].hear_post(),
                WindowRequest::Complete => window.origins[rank].hear_complete(),
                _ => {}
            }
            return;
        }
        let mut header = FrameHeader::new(FrameKind::Window);
        request.encode(&mut header);
        let letter = window.letter(id, rank, header, &[]);
        self.post(letter, port);
    }

    /// Asks for a lock on a rank's part. The number by which to ask whether it is granted.
    pub(crate) fn lock(
        &mut self,
        id: GroupId,
        rank: Rank,
        exclusive: bool,
        port: &mut dyn Port,
    ) -> Option<u64> {
        let window = self.windows.open.get_mut(&id)?;
        window.tickets += 1;
        let ticket = window.tickets;
        window.targets[rank].asked = ticket;
        if rank == window.rank {
            window.locks.ask(rank, ticket, exclusive).ok()?;
            self.grant(id, port);
        } else {
            let mut header = FrameHeader::new(FrameKind::Window);
            WindowRequest::Lock { exclusive }.encode(&mut header);
            header.sequence = ticket;
            let letter = window.letter(id, rank, header, &[]);
            self.post(letter, port);
        }
        Some(ticket)
    }

    /// Gives a lock back, or gives up waiting for it.
    pub(crate) fn unlock(&mut self, id: GroupId, rank: Rank, port: &mut dyn Port) {
        let Some(window) = self.windows.open.get_mut(&id) else { return };
        if rank == window.rank {
            window.locks.release(rank);
            self.grant(id, port);
        } else {
            self.signal(id, rank, WindowRequest::Unlock, port);
        }
    }

    /// Gives free locks to those who wait.
    pub(super) fn grant(&mut self, id: GroupId, port: &mut dyn Port) {
        let Some(window) = self.windows.open.get_mut(&id) else { return };
        let mut letters = Vec::new();
        while let Some((rank, ticket)) = window.locks.grant() {
            if rank == window.rank {
                window.targets[rank].granted = ticket;
                self.windows.news = true;
            } else {
                letters.push(window.letter(id, rank, super::owner::reply(WindowReply::Granted, ticket), &[]));
            }
        }
        letters.into_iter().for_each(|letter| self.post(letter, port));
    }
}

impl Window {
    /// Whether all that was asked of a rank has been carried out, or never will be.
    pub(crate) fn is_flushed(&self, rank: Rank) -> bool {
        self.targets[rank].applied == self.targets[rank].posted
    }

    /// Whether a rank has dropped the window.
    pub(crate) fn is_closed(&self, rank: Rank) -> bool {
        self.targets[rank].closed
    }

    /// Whether it did so before it had carried out all requests, since the last call.
    pub(crate) fn take_refused(&mut self, rank: Rank) -> bool {
        std::mem::take(&mut self.targets[rank].refused)
    }

    /// The values that a request has brought.
    pub(crate) fn take_values(&mut self, rank: Rank, number: u64) -> Option<Vec<u8>> {
        self.targets[rank].values.remove(&number)
    }

    /// Nobody waits any more for values of this rank.
    pub(crate) fn abandon(&mut self, rank: Rank) {
        let target = &mut self.targets[rank];
        target.values.clear();
        target.expected.iter_mut().for_each(|expected| expected.wanted = false);
    }

    pub(crate) fn is_granted(&self, rank: Rank, ticket: u64) -> bool {
        self.targets[rank].granted == ticket
    }

    /// Takes one word from each of `ranks` that its memory is open, once all of them have sent it.
    pub(crate) fn take_posts(&mut self, ranks: &[Rank]) -> bool {
        let all = ranks.iter().all(|rank| self.targets[*rank].posts > 0);
        if all {
            ranks.iter().for_each(|rank| self.targets[*rank].posts -= 1);
        }
        all
    }

    /// Those of `ranks` that have not opened their memory yet.
    pub(crate) fn unposted(&self, ranks: &[Rank]) -> Vec<Rank> {
        ranks.iter().copied().filter(|rank| self.targets[*rank].posts == 0).collect()
    }
}
