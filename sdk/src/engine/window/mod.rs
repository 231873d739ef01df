//! Windows: memory of each member that the others read, write and change without its calls.
//!
//! An origin numbers its requests to an owner; they are carried out in that order, the moment they arrive, by whoever drives
//! the owner's engine. Values go back at once; all else is acknowledged once a turn. An origin keeps no more on the
//! way than [`IN_FLIGHT`], so neither side stores more than that for the other. Where origins map the owner's memory,
//! only locks and the words of [`WindowRequest::Post`] and its like come this way.

mod lock;
mod origin;
mod owner;

use super::port::{Port, Process};
use super::transfer::Breach;
use super::{Engine, GroupId, Letter};
use crate::Rank;
use crate::buffer::Exposed;
use gradwire_schema::{FrameHeader, FrameKind, WindowRequest};
use lock::Locks;
use origin::Target;
use owner::Origin;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of requests and expected values that are on the way to and from one owner, headers included.
pub(super) const IN_FLIGHT: usize = 1 << 20;

/// Bytes that may wait for one process: what many windows can ask for at a time, and no honest process comes near.
const MAX_WAITING: usize = 256 << 20;

/// All windows of a process.
#[derive(Debug, Default)]
pub(super) struct Windows {
    open: HashMap<GroupId, Window>,
    /// Dropped here, with the processes that may not have heard of it yet: what they still ask for is in vain.
    retired: HashMap<GroupId, Vec<Process>>,
    /// Origins that wait for an acknowledgement.
    due: Vec<(GroupId, Rank)>,
    /// Something came that a caller may wait for.
    news: bool,
}

/// A window, as the engine knows it.
#[derive(Debug)]
pub(crate) struct Window {
    members: Arc<[Process]>,
    rank: Rank,
    memory: Arc<Exposed>,
    /// This process uses the memory as a slice: nobody else can mean to reach for it.
    lent: bool,
    /// What this rank has asked of each, by rank.
    targets: Vec<Target>,
    /// What each has asked of this rank, by rank.
    origins: Vec<Origin>,
    locks: Locks,
    tickets: u64,
}

impl Window {
    /// The window of these members, of which this rank's part is `memory`.
    pub(crate) fn new(members: Arc<[Process]>, rank: Rank, memory: Arc<Exposed>) -> Self {
        let targets = members.iter().map(|_| Target::default()).collect();
        let origins = members.iter().map(|_| Origin::default()).collect();
        Self { members, rank, memory, lent: false, targets, origins, locks: Locks::default(), tickets: 0 }
    }

    /// Nobody else reaches for the memory until it is no longer lent.
    pub(crate) fn set_lent(&mut self, lent: bool) {
        self.lent = lent;
    }

    fn rank_of(&self, process: Process, header: &FrameHeader) -> Result<Rank, Breach> {
        self.members
            .iter()
            .position(|member| *member == process)
            .filter(|rank| *rank as u32 == header.source && *rank != self.rank)
            .ok_or(Breach("it spoke for a rank that is not its own"))
    }

    /// A frame to a rank.
    fn letter(&self, id: GroupId, to: Rank, mut header: FrameHeader, payload: &[u8]) -> Letter {
        id.address(&mut header);
        header.source = self.rank as u32;
        Letter::new(self.members[to], header, payload)
    }
}

impl Engine {
    /// Makes a window known. Its members are those of the communicator that was made for it.
    pub(crate) fn open_window(&mut self, id: GroupId, window: Window) {
        self.windows.open.insert(id, window);
    }

    /// Forgets a window and tells the others.
    pub(crate) fn close_window(&mut self, id: GroupId, port: &mut dyn Port) {
        self.acknowledge(port);
        let Some(window) = self.windows.open.remove(&id) else { return };
        self.windows
            .retired
            .values_mut()
            .for_each(|left| left.retain(|process| !self.departures.contains(*process)));
        self.windows.retired.retain(|_, left| !left.is_empty());
        let mut left = Vec::new();
        for rank in (0..window.members.len()).filter(|rank| *rank != window.rank) {
            let process = window.members[rank];
            if self.departures.contains(process) {
                continue;
            }
            let mut header = FrameHeader::new(FrameKind::Window);
            WindowRequest::Close.encode(&mut header);
            self.post(window.letter(id, rank, header, &[]), port);
            if !window.targets[rank].is_closed() {
                left.push(process);
            }
        }
        if !left.is_empty() {
            self.windows.retired.insert(id, left);
        }
    }

    /// Whether a process is gone.
    pub(crate) fn has_left(&self, process: Process) -> bool {
        self.departures.contains(process)
    }

    /// A process is gone without a word. Nobody knows what it left half done in memory whose exclusive lock it holds.
    pub(super) fn unlock_all_of(&mut self, process: Process, port: &mut dyn Port) {
        let windows = self.windows.open.iter_mut();
        let held: Vec<(GroupId, bool)> = windows
            .filter_map(|(id, window)| {
                let rank = window.members.iter().position(|member| *member == process)?;
                let exclusive = window.locks.is_exclusive_of(rank);
                window.locks.release(rank);
                Some((*id, exclusive))
            })
            .collect();
        self.windows.news |= !held.is_empty();
        for (id, exclusive) in held {
            if exclusive && let Some(group) = self.groups.get(&id) {
                let from = group.calls.count();
                self.lose(id, process, from, port);
            } else {
                self.grant(id, port);
            }
        }
    }

    /// A window, to ask or change what needs no message.
    pub(crate) fn window(&mut self, id: GroupId) -> Option<&mut Window> {
        self.windows.open.get_mut(&id)
    }

    /// How many dropped windows somebody may still reach for.
    #[cfg(test)]
    pub(super) fn retired_windows(&self) -> usize {
        self.windows.retired.len()
    }

    /// Whether something came, since the last call, that a caller of a window may wait for.
    pub(crate) fn take_window_news(&mut self) -> bool {
        std::mem::take(&mut self.windows.news)
    }

    /// A frame about a window.
    pub(super) fn window_frame(
        &mut self,
        process: Process,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) {
        let result = if header.kind == FrameKind::Window {
            self.requested(process, header, payload, port)
        } else {
            self.replied(process, header, payload)
        };
        self.windows.news = true;
        if let Err(breach) = result {
            self.expel(process, breach, port);
        }
    }

    fn requested(
        &mut self,
        process: Process,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), Breach> {
        let request = WindowRequest::decode(header)
            .map_err(|_| Breach("it asked for what this version cannot do with a window"))?;
        let id = GroupId::of(header);
        let Some(window) = self.windows.open.get_mut(&id) else {
            return self.windows.knock(id, process, request);
        };
        let rank = window.rank_of(process, header)?;
        let limit = port.message_limit(process).saturating_sub(FrameHeader::LEN);
        match request {
            WindowRequest::Post => window.targets[rank].hear_post(),
            WindowRequest::Complete => window.origins[rank].hear_complete(),
            WindowRequest::Lock { exclusive } => window.locks.ask(rank, header.sequence, exclusive)?,
            WindowRequest::Unlock => window.locks.release(rank),
            WindowRequest::Close => {
                window.targets[rank].close();
                window.locks.release(rank);
            }
            _ => {
                let was_due = window.origins[rank].is_due();
                if let Some(values) = window.carry_out(rank, request, header.sequence, payload, limit)? {
                    let letter = window.letter(id, rank, owner::values(header.sequence), &values);
                    let waiting = self.outbox.iter().filter(|letter| letter.to == process);
                    if waiting.map(|letter| letter.bytes.len()).sum::<usize>() > MAX_WAITING {
                        return Err(Breach("it asked for more values than it takes"));
                    }
                    self.post(letter, port);
                } else if !was_due {
                    self.windows.due.push((id, rank));
                }
                return Ok(());
            }
        }
        self.grant(id, port);
        Ok(())
    }

    fn replied(&mut self, process: Process, header: &FrameHeader, payload: &[u8]) -> Result<(), Breach> {
        // Without the window: it was dropped here, and the answer is of no interest.
        let Some(window) = self.windows.open.get_mut(&GroupId::of(header)) else { return Ok(()) };
        let rank = window.rank_of(process, header)?;
        window.targets[rank].hear(header, payload)
    }

    /// Tells origins how far their requests have been carried out.
    pub(super) fn acknowledge(&mut self, port: &mut dyn Port) {
        for (id, rank) in std::mem::take(&mut self.windows.due) {
            let Some(window) = self.windows.open.get_mut(&id) else { continue };
            if let Some(header) = window.origins[rank].acknowledge() {
                let letter = window.letter(id, rank, header, &[]);
                self.post(letter, port);
            }
        }
    }
}

impl Windows {
    /// Somebody asks for a window that is not here.
    fn knock(&mut self, id: GroupId, process: Process, request: WindowRequest) -> Result<(), Breach> {
        let left = self.retired.get_mut(&id);
        if request == WindowRequest::Close {
            if let Some(left) = left {
                left.retain(|other| *other != process);
                if left.is_empty() {
                    self.retired.remove(&id);
                }
            }
            return Ok(());
        }
        match left {
            Some(left) if left.contains(&process) => Ok(()),
            _ => Err(Breach("it reached for a window that does not exist")),
        }
    }
}
