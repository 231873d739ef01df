//! Messages of bytes between places, as calls on MPI that do not wait.
//!
//! Whatever MPI is given to read or write belongs to this side until MPI says that it is done: nothing of the caller's is
//! ever handed over, so that there is nothing to take back.

use super::address::Place;
use super::gate;
use super::network::Network;
use mpi::ffi;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// Messages being received at a time. MPI holds the others back.
const ARRIVALS: usize = 256;
/// Buffers kept for later.
const SPARE: usize = 64;

/// Of endpoints that are gone, what MPI still has.
static ORPHANS: Mutex<Vec<Flight>> = Mutex::new(Vec::new());

/// Why MPI could not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// It has been finalized.
    Finalized,
    /// What it returned.
    Code(c_int),
}

/// A message that has arrived whole.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The rank that sent it.
    pub(super) source: i32,
    /// What it says; if there is none, it was longer than any message may be, or MPI refused it.
    pub(super) content: Result<Vec<u8>, Trouble>,
}

/// One endpoint's way in and out.
#[derive(Debug)]
pub(super) struct Wire {
    network: Arc<Network>,
    tag: i32,
    sends: Vec<Flight>,
    /// By source, in the order they were sent: each is read in its turn.
    receives: BTreeMap<i32, VecDeque<Flight>>,
    receiving: usize,
    spare: Vec<Vec<u8>>,
    /// The longest message.
    longest: usize,
}

/// What MPI has. The bytes stay where they are, however the buffer is moved.
struct Flight {
    request: ffi::MPI_Request,
    buffer: Vec<u8>,
}

// SAFETY: a request may be completed by any thread: `Network` is made only where MPI allows its calls on all threads.
unsafe impl Send for Flight {}

impl Wire {
    pub(super) fn new(network: Arc<Network>, tag: i32, longest: usize) -> Self {
        let (receives, spare) = (BTreeMap::new(), Vec::new());
        Self { network, tag, sends: Vec::new(), receives, receiving: 0, spare, longest }
    }

    /// An empty buffer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Whether MPI still has something that is to leave.
    pub(super) fn is_sending(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Hands a message to MPI.
    pub(super) fn send(&mut self, to: Place, buffer: Vec<u8>) -> Result<(), Trouble> {
        let _open = gate::pass().ok_or(Trouble::Finalized)?;
        let count = c_int::try_from(buffer.len()).map_err(|_| Trouble::Code(0))?;
        let mut request = MaybeUninit::uninit();
        // SAFETY: the bytes stay where they are until the request has completed: `Flight` keeps them. MPI runs while the gate
        // is held open.
        let code = unsafe {
            ffi::MPI_Isend(
                buffer.as_ptr().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                to.rank,
                to.tag,
                self.network.raw(),
                request.as_mut_ptr(),
            )
        };
        if code != 0 {
            return Err(Trouble::Code(code));
        }
        // SAFETY: the call stored it, as it succeeded.
        let request = unsafe { request.assume_init() };
        self.sends.push(Flight { request, buffer });
        Ok(())
    }

    /// Lets MPI move, and collects what has arrived whole. Whether anything moved.
    pub(super) fn turn(&mut self, arrived: &mut Vec<Arrival>) -> Result<bool, Trouble> {
        let _open = gate::pass().ok_or(Trouble::Finalized)?;
        let mut moved = false;
        let mut index = 0;
        while let Some(flight) = self.sends.get_mut(index) {
            match flight.test() {
                None => index += 1,
                // What goes wrong with a message that has left shows in what its receiver does not say.
                Some(_) => {
                    let buffer = self.sends.swap_remove(index).buffer;
                    self.recycle(buffer);
                    moved = true;
                }
            }
        }
        while self.receiving < ARRIVALS && self.accept(arrived)? {
            moved = true;
        }
        for (source, flights) in &mut self.receives {
            while let Some(outcome) = flights.front_mut().and_then(Flight::test) {
                let Some(Flight { mut buffer, .. }) = flights.pop_front() else { break };
                self.receiving -= 1;
                let content = outcome.map_err(Trouble::Code).map(|count| {
                    buffer.truncate(count);
                    buffer
                });
                arrived.push(Arrival { source: *source, content });
                moved = true;
            }
        }
        Ok(moved)
    }

    /// Begins to receive the next message, when there is one.
    fn accept(&mut self, arrived: &mut Vec<Arrival>) -> Result<bool, Trouble> {
        let Some(found) = Found::on(self.network.raw(), self.tag)? else { return Ok(false) };
        let source = found.source;
        if found.len > self.longest {
            // Not even received: libraries have been seen to end the process over a message that is cut off.
            arrived.push(Arrival { source, content: Err(Trouble::Code(0)) });
            return Ok(true);
        }
        let buffer = self.buffer();
        match found.receive(buffer) {
            Ok(flight) => {
                self.receives.entry(source).or_default().push_back(flight);
                self.receiving += 1;
            }
            Err(trouble) => arrived.push(Arrival { source, content: Err(trouble) }),
        }
        Ok(true)
    }
}

/// A message that has come and that nobody else will receive.
struct Found {
    message: ffi::MPI_Message,
    source: i32,
    len: usize,
}

impl Found {
    /// The next message under a tag. The caller holds the gate open.
    fn on(communicator: ffi::MPI_Comm, tag: c_int) -> Result<Option<Self>, Trouble> {
        let (mut is_there, mut message, mut status) = (0, MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: MPI runs while the gate is held open, and the communicator stays until it ends.
        let code = unsafe {
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                tag,
                communicator,
                &raw mut is_there,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            )
        };
        if code != 0 {
            return Err(Trouble::Code(code));
        }
        if is_there == 0 {
            return Ok(None);
        }
        // SAFETY: the flag says that the message was found, so both were stored.
        let (message, status): (ffi::MPI_Message, ffi::MPI_Status) =
            unsafe { (message.assume_init(), status.assume_init()) };
        Ok(Some(Self { message, source: status.MPI_SOURCE, len: count(&status) }))
    }

    /// Begins to receive it. The caller holds the gate open.
    fn receive(mut self, mut buffer: Vec<u8>) -> Result<Flight, Trouble> {
        let count = c_int::try_from(self.len).map_err(|_| Trouble::Code(0))?;
        buffer.resize(self.len, 0);
        let mut request = MaybeUninit::uninit();
        // SAFETY: the buffer has room for the message and stays until the request has completed, as `Flight` keeps it; the
        // message is received once, as `self` is consumed.
        let code = unsafe {
            ffi::MPI_Imrecv(
                buffer.as_mut_ptr().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut self.message,
                request.as_mut_ptr(),
            )
        };
        if code != 0 {
            // As in `test`.
            std::mem::forget(buffer);
            return Err(Trouble::Code(code));
        }
        // SAFETY: the call stored it, as it succeeded.
        Ok(Flight { request: unsafe { request.assume_init() }, buffer })
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("len", &self.buffer.len()).finish_non_exhaustive()
    }
}

impl Flight {
    /// How it ended: with so many bytes, or with an error. `None`: not yet. The caller holds the gate open.
    fn test(&mut self) -> Option<Result<usize, c_int>> {
        let (mut is_over, mut status) = (0, MaybeUninit::uninit());
        // SAFETY: the request is one that MPI made and that has not completed: whoever is told that it has drops the flight.
        let code = unsafe { ffi::MPI_Test(&raw mut self.request, &raw mut is_over, status.as_mut_ptr()) };
        if code != 0 {
            // After an error it is not defined what MPI still does: better lost than shared.
            std::mem::forget(std::mem::take(&mut self.buffer));
            return Some(Err(code));
        }
        // SAFETY: the flag says that the operation is over, so the status was stored.
        (is_over != 0).then(|| Ok(count(unsafe { status.assume_init_ref() })))
    }
}

/// Throws away what has come to nobody, since libraries complain of that when they end. The caller holds the gate.
pub(super) fn sweep(communicator: ffi::MPI_Comm) {
    let mut flights = Vec::new();
    while let Ok(Some(found)) = Found::on(communicator, any_tag()) {
        if found.len > 1 << 20 || flights.len() > 1 << 12 {
            break;
        }
        flights.extend(found.receive(Vec::new()));
        flights.retain_mut(|flight: &mut Flight| flight.test().is_none());
    }
    // Of what comes too late for that nothing more will be heard.
    std::mem::forget(flights);
}

fn any_tag() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_ANY_TAG }
}

/// How many bytes a message has.
fn count(status: &ffi::MPI_Status) -> usize {
    let mut count = 0;
    // SAFETY: the status is one that MPI stored.
    let code = unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &raw mut count) };
    if code == 0 { usize::try_from(count).unwrap_or(0) } else { 0 }
}

/// What MPI still has is kept until it is done with it.
impl Drop for Wire {
    fn drop(&mut self) {
        let receives = std::mem::take(&mut self.receives).into_values().flatten();
        let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.extend(self.sends.drain(..).chain(receives));
        match gate::pass() {
            Some(_open) => orphans.retain_mut(|flight| flight.test().is_none()),
            // Nobody will ever know.
            None => std::mem::forget(std::mem::take(&mut *orphans)),
        }
    }
}
