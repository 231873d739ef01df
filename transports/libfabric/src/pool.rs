//! Memory of the library's own for bytes in transit: those of messages, and those of operations whose other end the
//! provider must not touch.

use crate::frame::Head;
use crate::memory::{Memory, Piece};
use crate::wire::Wire;
use gradwire_transport::RegisterError;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a message on the fabric, its head included.
pub(crate) const BUFFER: usize = 16 << 10;
/// Bytes of a message of the caller's.
pub(crate) const MESSAGE: usize = BUFFER - Head::LEN;
/// Buffers made at a time.
const BATCH: usize = 32;

/// Buffers of one size, by number.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    blocks: Vec<Arc<Memory>>,
    free: Vec<u32>,
}

impl Buffers {
    /// More of them.
    pub(crate) fn grow<W>(&mut self, wire: &Wire<W>) -> Result<(), RegisterError> {
        let first = (self.blocks.len() * BATCH) as u32;
        self.blocks.push(wire.memory(BATCH * BUFFER, None)?);
        self.free.extend((first..first + BATCH as u32).rev());
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len() * BATCH
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub(crate) fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// The first `len` bytes of a buffer.
    pub(crate) fn piece(&self, buffer: u32, len: usize) -> Option<Piece> {
        let index = buffer as usize;
        self.blocks.get(index / BATCH)?.piece(index % BATCH * BUFFER, len.min(BUFFER))
    }
}

/// Memory that stands in for the caller's while an operation is under way, by size: a power of two.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    idle: HashMap<usize, Vec<Arc<Memory>>>,
}

impl StandIns {
    /// Those of this size and less are kept when they are not needed.
    const KEPT: usize = 1 << 20;

    pub(crate) fn take<W>(&mut self, wire: &Wire<W>, len: usize) -> Result<Arc<Memory>, RegisterError> {
        let size = len.max(4096).next_power_of_two();
        match self.idle.get_mut(&size).and_then(Vec::pop) {
            Some(memory) => Ok(memory),
            None => wire.memory(size, None),
        }
    }

    pub(crate) fn give_back(&mut self, memory: Arc<Memory>) {
        if memory.len() <= Self::KEPT {
            self.idle.entry(memory.len()).or_default().push(memory);
        }
    }
}
