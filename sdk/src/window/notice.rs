//! Notices: an origin raises them behind what it wrote, the owner waits for them.

use super::wait::{Needs, Waiting};
use super::{Window, dropped, misuse};
use crate::buffer::NOTICES;
use crate::{Element, Error, Rank, Result};
use std::ops::Range;

impl<T: Element> Window<T> {
    /// How many notices there are at each rank: they are numbered from 0.
    pub const NOTICES: usize = NOTICES;

    /// As [`put`](Self::put), and raises `notice` at `rank` once the values, and all that this rank has written there before, are
    /// there. `values` may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such notice, and those of `put`.
    pub fn put_notify(&self, rank: Rank, offset: usize, values: &[T], notice: usize) -> Result<()> {
        self.check_range(rank, offset, values.len())?;
        check_notices(&(notice..notice + 1))?;
        self.write(rank, offset, values, Some(notice))
    }

    /// Takes a notice if it has been raised at this rank: how often since it was last taken.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such notice; why the window has ended, if it has and the notice was not raised.
    pub fn test_notice(&self, notice: usize) -> Result<Option<u64>> {
        check_notices(&(notice..notice + 1))?;
        match self.own().take(notice) {
            0 => {
                // So that a loop that does nothing but this comes to an end where there are no other threads.
                self.communicator.job().shared().ask(|_, _| ());
                self.check_open(self.rank())?;
                Ok(Some(self.own().take(notice)).filter(|count| *count > 0))
            }
            count => Ok(Some(count)),
        }
    }

    /// Waits until a notice has been raised at this rank, and takes it: how often since it was last taken.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such notice; [`TimedOut`](crate::Error::TimedOut), [`PeerLost`](crate::Error::PeerLost),
    /// [`Aborted`](crate::Error::Aborted).
    pub fn wait_notice(&self, notice: usize) -> Result<u64> {
        check_notices(&(notice..notice + 1))?;
        self.wait_any_notice(notice..notice + 1).map(|(_, count)| count)
    }

    /// Waits until one of some notices has been raised at this rank, and takes it: which, and how often since it was last taken.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there are no such notices, and those of [`wait_notice`](Self::wait_notice).
    pub fn wait_any_notice(&self, notices: Range<usize>) -> Result<(usize, u64)> {
        check_notices(&notices)?;
        let own = self.own();
        let raised = || {
            let mut counts = notices.clone().map(|notice| (notice, own.take(notice)));
            counts.find(|(_, count)| *count > 0)
        };
        if let Some(taken) = raised() {
            return Ok(taken);
        }
        let rank = self.rank();
        let others = |window: &crate::engine::Window| {
            (0..self.size()).filter(|other| *other != rank && !window.is_closed(*other)).collect()
        };
        self.wait_until(&Waiting { call: "wait_notice", needs: Needs::Any(&others) }, |_| raised().map(Ok))
    }

    /// Waits until one of some notices has been raised, each by a rank of its own, and takes it; or until one of those ranks has gone
    /// without raising any of its notices.
    pub(crate) fn wait_notice_of(&self, awaited: &[(usize, Rank)]) -> Result<Raised> {
        let own = self.own();
        let raised = || {
            let mut counts = awaited.iter().map(|(notice, _)| (*notice, own.take(*notice)));
            let raised = counts.find(|(_, count)| *count > 0);
            raised.map(|(notice, count)| Raised::Notice { notice, count })
        };
        let ranks = |_: &crate::engine::Window| awaited.iter().map(|(_, rank)| *rank).collect();
        self.wait_until(&Waiting { call: "wait_notice", needs: Needs::Any(&ranks) }, |core| {
            // Who has gone is looked for first: what it raised before is there by then.
            let is_gone = |rank: &Rank| {
                core.engine.has_left(self.communicator.members()[*rank])
                    || self.is_dropped(*rank)
                    || core.engine.window(self.communicator.id()).is_none_or(|window| window.is_closed(*rank))
            };
            let gone = awaited.iter().map(|(_, rank)| *rank).find(is_gone).map(Raised::Gone);
            raised().or(gone).map(Ok)
        })
    }

    /// What to say where nothing goes on without `rank`, which has gone. Ends the window if the rank has left the job.
    pub(crate) fn lost(&self, rank: Rank) -> Error {
        let presence = self.check_presence(&mut self.communicator.job().shared().lock(), &[rank]);
        presence.err().unwrap_or_else(|| dropped(rank))
    }
}

/// What ends the wait for ranks that may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Raised {
    /// How often it was raised.
    Notice {
        notice: usize,
        count: u64,
    },
    Gone(Rank),
}

fn check_notices(notices: &Range<usize>) -> Result<()> {
    if notices.start < notices.end && notices.end <= NOTICES {
        return Ok(());
    }
    Err(misuse(format!("notices {notices:?}: give one or more below {NOTICES}")))
}
