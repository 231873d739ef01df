//! A place where the ranks of a job meet: one server, one connection from each rank, rounds of all-gather.
//!
//! The server is a small thread of the launcher, or of rank 0 where no launcher hosts it. Where rank 0 is not on the host that has the
//! address, another rank that is stands in. The server first seats all ranks (`lobby`), then passes their contributions around (`rounds`). On a Unix socket the operating system
//! says who is at the other end: only processes of the same user get in, and they are handed a fresh secret.
//! Over TCP a rank proves that it knows the job's secret, where there is one; the secret itself never travels.
//!
//! Strangers cost one of a few short-lived slots. Two processes that claim one rank, or ranks that disagree on
//! the size, end the start of all ranks with the same error.
//!
//! Not done yet: what is exchanged over TCP is neither encrypted nor authenticated message by message, so
//! somebody who can change packets on the way can change it; several servers for very large jobs.

mod channel;
mod client;
mod endpoint;
mod frame;
mod host;
mod lobby;
mod rounds;
mod seats;
#[cfg(test)]
mod tests;

pub(crate) use client::{Client, Request};
pub(super) use endpoint::{is_here, own_view, reach};
pub(crate) use host::{Host, Rules};

use super::{Bootstrap, Local};
use crate::{JobSecret, Rank, Result};
use std::time::Instant;

/// The incarnation of a job: random, agreed by all ranks.
pub(crate) type Epoch = [u8; 16];

/// A rank at the rendezvous, and the rendezvous itself where this rank hosts it.
#[derive(Debug)]
pub(super) struct Rendezvous {
    // Dropped in this order: the host waits a moment for the others, so our own connection goes first.
    client: Client,
    _host: Option<Host>,
    local: Option<Local>,
}

impl Rendezvous {
    pub(super) fn new(client: Client, host: Option<Host>, local: Option<Local>) -> Self {
        Self { client, _host: host, local }
    }
}

impl Bootstrap for Rendezvous {
    fn rank(&self) -> Rank {
        self.client.rank()
    }

    fn size(&self) -> usize {
        self.client.size()
    }

    fn local(&self) -> Option<Local> {
        self.local
    }

    fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        self.client.all_gather(bytes, deadline)
    }
}

/// The secret of one incarnation, from the one that all incarnations share.
pub(super) fn incarnation(key: &JobSecret, epoch: &Epoch) -> JobSecret {
    key.derive("incarnation", epoch)
}
