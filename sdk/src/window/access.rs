//! Reading, writing and changing the parts of other ranks.

use super::operation::update_of;
use super::wait::{Needs, Waiting};
use super::{Window, WindowOperation, bug, dropped};
use crate::driver::Core;
use crate::engine::Port;
use crate::{Element, Error, Integer, Rank, Result};
use gradwire_schema::{FrameHeader, WindowRequest, WindowUpdate};
use std::collections::VecDeque;
use std::ops::Range;
use zerocopy::IntoBytes;

/// Bytes of values in one message, at most.
const PIECE: usize = 64 << 10;

impl<T: Element> Window<T> {
    /// Writes `values` into the part of `rank`, from `offset` on. Returns once `values` may be changed.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the range is outside, or the rank has dropped its window; those of [`flush`](Self::flush) when it has to wait
    /// until earlier accesses are carried out.
    pub fn put(&self, rank: Rank, offset: usize, values: &[T]) -> Result<()> {
        self.check_range(rank, offset, values.len())?;
        self.write(rank, offset, values, None)
    }

    /// Reads elements of the part of `rank`, from `offset` on.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put), and [`TimedOut`](Error::TimedOut). After other errors than `Misuse` `values` is unspecified.
    pub fn get(&self, rank: Rank, offset: usize, values: &mut [T]) -> Result<()> {
        self.check_range(rank, offset, values.len())?;
        self.check_open(rank)?;
        let destination = values.as_mut_bytes();
        match self.view(rank) {
            Some(memory) => memory.load(offset, destination).ok_or_else(bug),
            None => self.exchange("get", rank, offset, &[], destination, |offset, range| {
                WindowRequest::Get { offset, count: (range.len() / size_of::<T>()) as u32 }
            }),
        }
    }

    /// Combines elements of the part of `rank`, from `offset` on, with `values`. Returns once `values` may be changed.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn accumulate<O: WindowOperation<T>>(
        &self,
        rank: Rank,
        offset: usize,
        values: &[T],
        _operation: O,
    ) -> Result<()> {
        self.check_range(rank, offset, values.len())?;
        self.check_open(rank)?;
        let (update, operand) = (update_of::<T, O>(), values.as_bytes());
        match self.view(rank) {
            Some(memory) => memory.update(offset, update, operand, &mut []).ok_or_else(bug),
            None => self.send("accumulate", rank, offset, operand, |offset, _| WindowRequest::Accumulate {
                offset,
                update,
            }),
        }
    }

    /// As [`accumulate`](Self::accumulate); what each element was just before goes to `before`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when `before` is not as long as `values`, and those of [`get`](Self::get).
    pub fn get_accumulate<O: WindowOperation<T>>(
        &self,
        rank: Rank,
        offset: usize,
        values: &[T],
        before: &mut [T],
        _operation: O,
    ) -> Result<()> {
        self.check_range(rank, offset, values.len())?;
        if values.len() != before.len() {
            return Err(super::misuse(format!(
                "`before` has {} elements, but must be as long as the values: {}",
                before.len(),
                values.len()
            )));
        }
        self.check_open(rank)?;
        self.fetch(
            "get_accumulate",
            rank,
            offset,
            values.as_bytes(),
            before.as_mut_bytes(),
            update_of::<T, O>(),
        )
    }

    /// Combines one element with `value`, and returns what it was just before.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get).
    pub fn fetch_and_op<O: WindowOperation<T>>(
        &self,
        rank: Rank,
        offset: usize,
        value: T,
        _operation: O,
    ) -> Result<T> {
        self.check_range(rank, offset, 1)?;
        self.check_open(rank)?;
        let mut before = [value];
        self.fetch(
            "fetch_and_op",
            rank,
            offset,
            value.as_bytes(),
            before.as_mut_bytes(),
            update_of::<T, O>(),
        )?;
        Ok(before[0])
    }

    /// Writes `value` to one element if that is `comparand`; returns what it was just before: `comparand` if and only if `value` was
    /// written.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Self::get).
    pub fn compare_and_swap(&self, rank: Rank, offset: usize, comparand: T, value: T) -> Result<T>
    where
        T: Integer,
    {
        self.check_range(rank, offset, 1)?;
        self.check_open(rank)?;
        let mut before = [value];
        let destination = before.as_mut_bytes();
        match self.view(rank) {
            Some(memory) => memory
                .compare_and_swap(offset, comparand.as_bytes(), value.as_bytes(), destination)
                .ok_or_else(bug)?,
            None => {
                let call = "compare_and_swap";
                let request = WindowRequest::CompareAndSwap { offset: offset as u64 };
                let number =
                    self.request(call, rank, request, [comparand, value].as_bytes(), size_of::<T>())?;
                let values = self.take(call, rank, number)?;
                destination.copy_from_slice(&values);
            }
        }
        Ok(before[0])
    }

    /// Returns once all that this rank has asked of `rank` has been carried out, and is visible to whoever reaches for it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the rank dropped its window before, [`TimedOut`](Error::TimedOut), [`PeerLost`](Error::PeerLost),
    /// [`Aborted`](Error::Aborted).
    pub fn flush(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        self.flush_ranks(&[rank])
    }

    /// As [`flush`](Self::flush), for all ranks.
    ///
    /// # Errors
    ///
    /// Those of `flush`.
    pub fn flush_all(&self) -> Result<()> {
        let all: Vec<Rank> = (0..self.size()).collect();
        self.flush_ranks(&all)
    }

    /// Returns once the sources of all accesses to `rank` may be used again. They may be when the accesses return, so there is
    /// nothing to wait for.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the rank does not exist or has dropped its window; why the window has ended, if it has.
    pub fn flush_local(&self, rank: Rank) -> Result<()> {
        self.check_rank(rank)?;
        self.check_open(rank)
    }

    pub(super) fn flush_ranks(&self, ranks: &[Rank]) -> Result<()> {
        // What we stored into mapped memory is visible before whatever we do next.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        let (mapped, ranks): (Vec<Rank>, Vec<Rank>) = ranks
            .iter()
            .copied()
            .filter(|rank| *rank != self.rank())
            .partition(|rank| self.view(*rank).is_some());
        // Of those nobody would tell us that they are gone.
        let open: Vec<Rank> = mapped.into_iter().filter(|rank| !self.is_dropped(*rank)).collect();
        self.check_presence(&mut self.communicator.job().shared().lock(), &open)?;
        if ranks.is_empty() {
            return Ok(());
        }
        let id = self.communicator.id();
        let needs = |window: &crate::engine::Window| {
            ranks.iter().copied().filter(|rank| !window.is_flushed(*rank)).collect()
        };
        self.wait_until(&Waiting { call: "flush", needs: Needs::All(&needs) }, |core| {
            let window = core.engine.window(id)?;
            let refused = ranks.iter().find(|rank| window.take_refused(**rank));
            if let Some(rank) = refused {
                return Some(Err(dropped(*rank)));
            }
            ranks.iter().all(|rank| window.is_flushed(*rank)).then_some(Ok(()))
        })
    }

    /// A put, with or without a notice.
    pub(super) fn write(&self, rank: Rank, offset: usize, values: &[T], notice: Option<usize>) -> Result<()> {
        self.check_open(rank)?;
        let source = values.as_bytes();
        let Some(memory) = self.view(rank) else {
            // With the last piece: all before it have been carried out by then.
            return self.send("put", rank, offset, source, |offset, is_last| WindowRequest::Put {
                offset,
                notice: notice.filter(|_| is_last).map(|notice| notice as u32),
            });
        };
        memory.store(offset, source).ok_or_else(bug)?;
        if let Some(notice) = notice {
            memory.raise(notice).ok_or_else(bug)?;
            if memory.is_parked() && rank != self.rank() {
                self.communicator.job().shared().ring(self.communicator.members()[rank]);
            }
        }
        Ok(())
    }

    fn fetch(
        &self,
        call: &'static str,
        rank: Rank,
        offset: usize,
        operand: &[u8],
        before: &mut [u8],
        update: WindowUpdate,
    ) -> Result<()> {
        match self.view(rank) {
            Some(memory) => memory.update(offset, update, operand, before).ok_or_else(bug),
            None => self.exchange(call, rank, offset, operand, before, |offset, _| {
                WindowRequest::GetAccumulate { offset, update }
            }),
        }
    }

    /// Sends bytes in pieces, each with its own request: made of its first element and whether it is the last.
    fn send(
        &self,
        call: &'static str,
        rank: Rank,
        offset: usize,
        source: &[u8],
        request: impl Fn(u64, bool) -> WindowRequest,
    ) -> Result<()> {
        let pieces = self.pieces(rank, source.len())?;
        let last = pieces.len() - 1;
        for (index, range) in pieces.into_iter().enumerate() {
            let first = (offset + range.start / size_of::<T>()) as u64;
            self.request(call, rank, request(first, index == last), &source[range], 0)?;
        }
        Ok(())
    }

    /// Asks for bytes in pieces, several of them at a time, each with its part of the operand where there is one.
    fn exchange(
        &self,
        call: &'static str,
        rank: Rank,
        offset: usize,
        operand: &[u8],
        destination: &mut [u8],
        request: impl Fn(u64, &Range<usize>) -> WindowRequest,
    ) -> Result<()> {
        if destination.is_empty() {
            return Ok(());
        }
        let mut pieces: VecDeque<Range<usize>> = self.pieces(rank, destination.len())?.into();
        let mut asked: VecDeque<(u64, Range<usize>)> = VecDeque::new();
        while let Some(range) = pieces.pop_front() {
            let first = (offset + range.start / size_of::<T>()) as u64;
            let (request, with) = (request(first, &range), operand.get(range.clone()).unwrap_or_default());
            let number = match self.try_request(rank, request, with, range.len()) {
                Some(number) => number,
                // Those that came make room.
                None => match asked.pop_front() {
                    Some((number, earlier)) => {
                        destination[earlier].copy_from_slice(&self.take(call, rank, number)?);
                        pieces.push_front(range);
                        continue;
                    }
                    None => self.request(call, rank, request, with, range.len())?,
                },
            };
            asked.push_back((number, range));
        }
        for (number, range) in asked {
            destination[range].copy_from_slice(&self.take(call, rank, number)?);
        }
        Ok(())
    }

    /// How bytes are cut to fit into messages to a rank; nothing at all is one piece.
    fn pieces(&self, rank: Rank, len: usize) -> Result<Vec<Range<usize>>> {
        let process = self.communicator.members()[rank];
        let limit = self.communicator.job().shared().lock().wires.message_limit(process);
        let room = limit.saturating_sub(FrameHeader::LEN).min(PIECE) / size_of::<T>() * size_of::<T>();
        if room == 0 {
            // The way there is gone, and so is the rank.
            self.check_open(rank)?;
            return Err(Error::Bug("messages without room for an element".into()));
        }
        let pieces = (0..len.max(1)).step_by(room).map(|start| start..(start + room).min(len));
        Ok(pieces.collect())
    }

    /// Sends a request as soon as there is room for it; its number.
    fn request(
        &self,
        call: &'static str,
        rank: Rank,
        request: WindowRequest,
        payload: &[u8],
        values: usize,
    ) -> Result<u64> {
        if let Some(number) = self.try_request(rank, request, payload, values) {
            return Ok(number);
        }
        let id = self.communicator.id();
        self.wait_until(&Waiting { call, needs: Needs::All(&|_| vec![rank]) }, |core| {
            let Core { engine, wires, .. } = core;
            if engine.window(id)?.is_closed(rank) {
                return Some(Err(dropped(rank)));
            }
            engine.request(id, rank, request, payload, values, wires).map(Ok)
        })
    }

    fn try_request(&self, rank: Rank, request: WindowRequest, payload: &[u8], values: usize) -> Option<u64> {
        let id = self.communicator.id();
        let shared = self.communicator.job().shared();
        let mut core = shared.lock();
        let Core { engine, wires, .. } = &mut *core;
        if engine.window(id)?.is_closed(rank) {
            return None;
        }
        let number = engine.request(id, rank, request, payload, values, wires)?;
        shared.stir(core);
        Some(number)
    }

    /// The values that a request brings.
    fn take(&self, call: &'static str, rank: Rank, number: u64) -> Result<Vec<u8>> {
        let id = self.communicator.id();
        let result = self.wait_until(&Waiting { call, needs: Needs::All(&|_| vec![rank]) }, |core| {
            let window = core.engine.window(id)?;
            match window.take_values(rank, number) {
                Some(values) => Some(Ok(values)),
                None => window.is_closed(rank).then(|| Err(dropped(rank))),
            }
        });
        if result.is_err()
            && let Some(window) = self.communicator.job().shared().lock().engine.window(id)
        {
            window.abandon(rank);
        }
        result
    }
}
