//! One connection, as this side sees it.

use super::address::Place;
use super::envelope::Envelope;
use std::time::Instant;

/// Frames with content that a peer may have been sent beyond those that it has said it took.
pub(super) const WINDOW: u32 = 64;

#[derive(Debug)]
pub(super) struct PeerState {
    pub(super) place: Place,
    /// What we call the connection.
    pub(super) own: u64,
    /// What the peer calls it, once its hello has come.
    pub(super) remote: Option<u64>,
    pub(super) stage: Stage,
    /// Frames with content that were sent, and how many of them the peer has taken.
    sent: u32,
    taken: u32,
    /// Frames with content that came, and how many of them the peer knows of.
    consumed: u32,
    told: u32,
    /// Has been told `Full`, and wants to hear when there is room.
    is_starved: bool,
    /// What MPI said when it would not send to the peer.
    pub(super) refusal: Option<i32>,
    /// By the caller's clock; `None` before the first turn.
    pub(super) heard: Option<Instant>,
    pub(super) spoke: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Until when; known from the first turn on, in which our hello leaves.
    Connecting {
        deadline: Option<Instant>,
    },
    Connected,
    /// Reported as lost.
    Lost,
    /// Ended by us.
    Disconnected,
}

impl PeerState {
    pub(super) fn connecting(place: Place, own: u64, remote: Option<u64>) -> Self {
        Self {
            place,
            own,
            remote,
            stage: Stage::Connecting { deadline: None },
            sent: 0,
            taken: 0,
            consumed: 0,
            told: 0,
            is_starved: false,
            refusal: None,
            heard: None,
            spoke: None,
        }
    }

    /// Whether one more frame with content may be sent; if not, the peer counts as starved.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.stage == Stage::Connected && self.sent.wrapping_sub(self.taken) < WINDOW;
        self.is_starved |= !has_room;
        has_room
    }

    /// A frame with content leaves.
    pub(super) fn count_sent(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// A frame with content has come. `false`: it was not allowed to.
    pub(super) fn count_received(&mut self) -> bool {
        self.consumed = self.consumed.wrapping_add(1);
        self.consumed.wrapping_sub(self.told) <= WINDOW
    }

    /// The peer says how many it has taken. `false`: more than were sent, or fewer than it said before.
    pub(super) fn hear(&mut self, consumed: u32) -> bool {
        let is_possible = consumed.wrapping_sub(self.taken) <= self.sent.wrapping_sub(self.taken);
        if is_possible {
            self.taken = consumed;
        }
        is_possible
    }

    /// Whether the peer is to be told how many were taken, though there is nothing else to say.
    pub(super) fn owes(&self) -> bool {
        self.stage == Stage::Connected && self.consumed.wrapping_sub(self.told) >= WINDOW / 2
    }

    /// What stands on the next frame.
    pub(super) fn envelope(&mut self, tag: i32) -> Envelope {
        self.told = self.consumed;
        Envelope { tag, connection: self.own, to: self.remote.unwrap_or(0), consumed: self.consumed }
    }

    /// Whether somebody was told `Full` and may try again now. Says so once.
    pub(super) fn recovers(&mut self) -> bool {
        let was_starved = std::mem::take(&mut self.is_starved);
        if !was_starved || !self.is_live() {
            return false;
        }
        self.has_room()
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Connecting { .. } | Stage::Connected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_closes_and_opens_again_across_the_wrap() {
        let mut state = PeerState::connecting(Place { rank: 1, tag: 0 }, 1, Some(2));
        assert!(!state.has_room(), "not before it is connected");
        (state.stage, state.sent, state.taken) = (Stage::Connected, u32::MAX - 3, u32::MAX - 3);
        for _ in 0..WINDOW {
            assert!(state.has_room());
            state.count_sent();
        }
        assert!(!state.has_room() && !state.recovers());
        assert!(!state.hear(state.sent.wrapping_add(1)), "more than were sent");
        assert!(state.hear(state.sent.wrapping_sub(WINDOW / 2)));
        assert!(!state.hear(state.taken.wrapping_sub(1)), "fewer than before");
        assert!(state.recovers() && !state.recovers());
    }

    #[test]
    fn a_peer_that_ignores_the_window_is_found_out() {
        let mut state = PeerState::connecting(Place { rank: 1, tag: 0 }, 1, Some(2));
        state.stage = Stage::Connected;
        assert!((0..WINDOW).all(|_| state.count_received()));
        assert!(state.owes());
        assert!(!state.count_received());
        assert_eq!(state.envelope(7).consumed, WINDOW + 1);
        assert!(!state.owes());
    }
}
