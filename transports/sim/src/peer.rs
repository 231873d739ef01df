//! One connection, as this side sees it.

use crate::address::NodeIndex;
use crate::parcel::{ConnectionId, Credit};
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct PeerState {
    pub(crate) node: NodeIndex,
    /// What we call the connection.
    pub(crate) own: ConnectionId,
    /// What the peer calls it, once its hello has come.
    pub(crate) remote: Option<ConnectionId>,
    pub(crate) stage: Stage,
    /// Cloned into each operation under way.
    credit: Credit,
    /// Has been told `Full`, and wants to hear when there is room.
    pub(crate) starved: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Connecting {
        /// Our hello has left.
        greeted: bool,
        /// When to give up; known from the first `progress` on.
        deadline: Option<Instant>,
    },
    Connected,
    /// Reported as lost.
    Lost,
    /// Ended by us.
    Disconnected,
}

impl PeerState {
    pub(crate) fn connecting(node: NodeIndex, own: ConnectionId, remote: Option<ConnectionId>) -> Self {
        let stage = Stage::Connecting { greeted: false, deadline: None };
        Self { node, own, remote, stage, credit: Credit::default(), starved: false }
    }

    /// Room for one more operation; `None` when `limit` are under way, and then the peer counts as starved.
    pub(crate) fn take_credit(&mut self, limit: usize) -> Option<Credit> {
        let room = self.stage == Stage::Connected && self.has_room(limit);
        self.starved |= !room;
        room.then(|| Arc::clone(&self.credit))
    }

    /// Whether somebody was told `Full` and may try again now. Says so once.
    pub(crate) fn recovers(&mut self, limit: usize) -> bool {
        let recovers = self.starved && self.stage == Stage::Connected && self.has_room(limit);
        self.starved &= !recovers;
        recovers
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Connecting { .. } | Stage::Connected)
    }

    fn has_room(&self, limit: usize) -> bool {
        // One is our own.
        Arc::strong_count(&self.credit) <= limit
    }
}
