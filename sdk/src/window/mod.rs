//! Windows: memory of each rank that the other ranks read, write and change by themselves.
//!
//! The owner of the memory need not call anything meanwhile: where ranks share memory an origin reaches it directly, elsewhere
//! the owner's driver carries out what origins ask for.

mod access;
mod epoch;
mod lock;
mod notice;
mod operation;
mod wait;

pub use lock::{Lock, LockGuard};
pub(crate) use notice::Raised;
pub use operation::{Keep, Replace, WindowOperation};

use crate::buffer::{Exposed, is_child};
use crate::communicator::Communicator;
use crate::direct::{Part, View};
use crate::{Element, Error, Rank, Result, engine};
use gradwire_schema::{CallSignature, Datatype};
use gradwire_transport::RegionKey;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Memory of every rank that all ranks reach: made by [`Communicator::create_window`].
///
/// Each rank has a *part*, of a length of its own choice. Parts are read and written by rank and *offset*, in elements.
///
/// # What is complete when
///
/// [`put`](Self::put) and [`accumulate`](Self::accumulate) return as soon as their source may be used again. They have been carried out
/// once [`flush`](Self::flush), [`fence`](Self::fence) or [`LockGuard::unlock`] returns, which is also where their errors show. What one rank
/// asks of another is carried out in that order. Accesses that return values have been carried out when they return.
/// No epoch need be opened for an access: fences, locks and the rest are there to order the accesses of different ranks.
///
/// # What is atomic
///
/// Every element by itself, whatever reaches it: no access, [`load`](Self::load) and [`store`](Self::store) included, sees or leaves half of one.
/// Accumulates (`accumulate`, `get_accumulate`, `fetch_and_op`, `compare_and_swap`) read and write an element in one step, so that none
/// of them is lost, from whichever rank and by whichever path it comes. That is so because there is one agent for each
/// window: the processors of its owner's host. Where ranks share memory an origin's own processor changes the element by an
/// atomic instruction; for all others the owner's driver does it, by the same instruction. (A network card, whose atomics
/// processors do not see, changes no element.) Nothing orders accesses to different elements but what is said above.
///
/// # Errors
///
/// A range outside of a rank's part is [`Misuse`](Error::Misuse) at the origin, and nothing is sent; so is an access to a rank that has dropped
/// its window. A flush or a lock that comes to its deadline ends with [`TimedOut`](Error::TimedOut), and may be tried again. After
/// any other error the window only repeats it, as a communicator does.
///
/// Dropping a window is a matter of one rank: it waits for nobody. Its accesses that were not flushed may or may not have been carried out.
pub struct Window<T: Element> {
    /// Its own, of the same ranks.
    communicator: Communicator,
    part: Part,
    /// By rank.
    ranks: Vec<Remote>,
    epochs: RefCell<epoch::Epochs>,
    element: PhantomData<T>,
}

/// The part of a rank as this one reaches it.
#[derive(Debug)]
struct Remote {
    count: usize,
    /// Mapped here; `None` where it is reached by messages, and for our own.
    view: Option<View>,
}

/// What each rank tells the others about its part.
#[derive(Clone, Copy)]
struct Notice {
    /// There is memory for it.
    made: bool,
    count: usize,
    key: Option<RegionKey>,
}

impl Communicator {
    /// A window on `count` zeros of this rank; the others may have more or less. All ranks call it.
    ///
    /// # Errors
    ///
    /// [`System`](Error::System) on all ranks when a rank has not enough memory, and those of every collective.
    pub fn create_window<T: Element>(&self, count: usize) -> Result<Window<T>> {
        Window::new(self.duplicate_for_window(T::DATATYPE)?, count)
    }
}

impl<T: Element> Window<T> {
    fn new(communicator: Communicator, count: usize) -> Result<Self> {
        let call = CallSignature::new(gradwire_schema::Collective::CreateWindow);
        let part = Part::new(&communicator, T::DATATYPE, count);
        let key = part.as_ref().ok().and_then(Part::key);
        let all = communicator.tell_all(call, &Notice { made: part.is_ok(), count, key }.encode())?;
        let part = part?;
        let notices: Vec<Notice> = all.as_chunks().0.iter().map(Notice::decode).collect();
        if let Some(rank) = notices.iter().position(|notice| !notice.made) {
            return Err(Error::System(
                format!("rank {rank} has no memory for its part of the window").into(),
            ));
        }
        let members = communicator.members().into();
        let state = engine::Window::new(members, communicator.rank(), part.memory.clone());
        communicator.job().shared().lock().engine.open_window(communicator.id(), state);
        let mut window = Self {
            communicator,
            part,
            ranks: Vec::with_capacity(notices.len()),
            epochs: RefCell::default(),
            element: PhantomData,
        };
        for (rank, notice) in notices.into_iter().enumerate() {
            let view = match notice.key.filter(|_| rank != window.rank()) {
                Some(key) => View::new(&window.communicator, rank, &key, T::DATATYPE, notice.count)?,
                None => None,
            };
            window.ranks.push(Remote { count: notice.count, view });
        }
        // Nobody reaches for a window that is not known to all.
        window.communicator.tell_all(call, &[])?;
        Ok(window)
    }

    /// The number of this rank, as in the communicator that the window was made of.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.communicator.rank()
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// How many elements the part of `rank` has; `None` for ranks that do not exist.
    #[must_use]
    pub fn count(&self, rank: Rank) -> Option<usize> {
        self.ranks.get(rank).map(|remote| remote.count)
    }

    /// How long a call may wait before it ends with [`Error::TimedOut`]: at first as long as one of the communicator. `None`: for
    /// ever.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.communicator.timeout()
    }

    /// Changes the deadline of the calls to come.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.communicator.set_timeout(timeout);
    }

    /// Copies elements of this rank's own part.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the range is outside.
    pub fn load(&self, offset: usize, values: &mut [T]) -> Result<()> {
        self.check_range(self.rank(), offset, values.len())?;
        self.own().load(offset, values.as_mut_bytes()).ok_or_else(bug)
    }

    /// Overwrites elements of this rank's own part.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the range is outside.
    pub fn store(&self, offset: usize, values: &[T]) -> Result<()> {
        self.check_range(self.rank(), offset, values.len())?;
        self.own().store(offset, values.as_bytes()).ok_or_else(bug)
    }

    /// Lends each rank's part to its `program` as a slice. All ranks call it, and no part is exposed meanwhile: it begins and ends
    /// with a [`fence`](Self::fence), and the window is borrowed.
    ///
    /// # Errors
    ///
    /// Those of `fence`. When the first one fails, `program` is not run.
    pub fn with_local<R>(&mut self, program: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        self.fence_as(epoch::LOCAL)?;
        let result = self.part.lend(self.communicator.id(), program);
        self.fence_as(epoch::LOCAL)?;
        Ok(result)
    }

    fn own(&self) -> &Exposed {
        &self.part.memory
    }

    /// The part of a rank, if this process has it in its memory.
    fn view(&self, rank: Rank) -> Option<&Exposed> {
        if rank == self.rank() {
            Some(self.own())
        } else {
            self.ranks[rank].view.as_ref().map(|view| &view.memory)
        }
    }

    fn check_rank(&self, rank: Rank) -> Result<()> {
        if is_child() {
            self.check_presence(&mut self.communicator.job().shared().lock(), &[])?;
        }
        let size = self.size();
        if rank < size {
            Ok(())
        } else {
            Err(misuse(format!("there is no rank {rank}: ranks are below {size}")))
        }
    }

    /// Whether a range lies in the part of a rank.
    fn check_range(&self, rank: Rank, offset: usize, len: usize) -> Result<()> {
        self.check_rank(rank)?;
        let count = self.ranks[rank].count;
        if offset.checked_add(len).is_some_and(|end| end <= count) {
            return Ok(());
        }
        Err(misuse(format!(
            "{len} elements from {offset} on are outside of the window's part on rank {rank}, which has {count}"
        )))
    }

    /// Whether a rank can still be reached.
    fn check_open(&self, rank: Rank) -> Result<()> {
        if self.communicator.has_ended(self.communicator.calls()) {
            self.check_presence(&mut self.communicator.job().shared().lock(), &[])?;
        }
        if self.is_dropped(rank) { Err(dropped(rank)) } else { Ok(()) }
    }

    /// Whether a rank whose part is mapped here has dropped it.
    fn is_dropped(&self, rank: Rank) -> bool {
        self.view(rank).is_some_and(Exposed::is_closed)
    }
}

impl<T: Element> Drop for Window<T> {
    fn drop(&mut self) {
        if is_child() {
            std::mem::forget(std::mem::take(&mut self.ranks));
            return;
        }
        self.own().close();
        let job = self.communicator.job().clone();
        let mut core = job.shared().lock();
        let crate::driver::Core { engine, wires, .. } = &mut *core;
        engine.close_window(self.communicator.id(), wires);
        job.shared().stir(core);
        self.ranks.drain(..).filter_map(|remote| remote.view).for_each(|view| view.release(&job));
    }
}

impl<T: Element> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("part", &self.part.memory)
            .finish_non_exhaustive()
    }
}

impl Notice {
    const LEN: usize = 16 + RegionKey::LEN;

    fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = u8::from(self.made) | u8::from(self.key.is_some()) << 1;
        bytes[8..16].copy_from_slice(&(self.count as u64).to_le_bytes());
        if let Some(key) = self.key {
            bytes[16..].copy_from_slice(key.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; Self::LEN]) -> Self {
        let [flags, _, _, _, _, _, _, _, count @ ..] = bytes.first_chunk::<16>().copied().unwrap_or_default();
        let key = bytes.last_chunk().filter(|_| flags & 2 != 0);
        Self {
            made: flags & 1 != 0,
            count: usize::try_from(u64::from_le_bytes(count)).unwrap_or(usize::MAX),
            key: key.map(|key| RegionKey::from_bytes(*key)),
        }
    }
}

/// What messages call the window.
fn name_of(datatype: Datatype) -> String {
    format!("window of {}", datatype.name())
}

fn misuse(text: String) -> Error {
    Error::Misuse(text.into())
}

fn dropped(rank: Rank) -> Error {
    misuse(format!("rank {rank} has dropped its part of the window"))
}

fn bug() -> Error {
    Error::Bug("a window contradicts itself".into())
}
