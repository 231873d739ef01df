//! Operations that the provider has: each with the context by which its completion is recognised, the memory it uses, and
//! what the transport wants to know when it ends.

use std::ffi::c_void;

/// Contexts of one chunk. Chunks are never moved: the provider keeps addresses.
const CHUNK: usize = 256;
/// `struct fi_context2`, which some providers write to while an operation is under way.
const CONTEXT: usize = 64;

/// The operations under way.
#[derive(Debug)]
pub(crate) struct Flights<F> {
    chunks: Vec<Contexts>,
    flights: Vec<Option<F>>,
    free: Vec<u32>,
    limit: usize,
}

/// Memory of the provider's: this side only knows its address.
#[derive(Debug)]
struct Contexts(Box<[std::cell::UnsafeCell<[u64; CONTEXT / 8]>; CHUNK]>);

// SAFETY: nothing here reads or writes the cells; the provider does, on whichever thread calls it.
unsafe impl Sync for Contexts {}

impl<F> Flights<F> {
    /// At most `limit` at a time.
    pub(crate) fn new(limit: usize) -> Self {
        Self { chunks: Vec::new(), flights: Vec::new(), free: Vec::new(), limit }
    }

    /// A place for an operation and the context to post it with; `None`: too many are under way.
    pub(crate) fn reserve(&mut self) -> Option<(u32, *mut c_void)> {
        if self.free.is_empty() {
            if self.flights.len() + CHUNK > self.limit {
                return None;
            }
            let first = self.flights.len() as u32;
            self.chunks.push(Contexts(Box::new(std::array::from_fn(|_| [0; CONTEXT / 8].into()))));
            self.flights.extend((0..CHUNK).map(|_| None));
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        let index = self.free.pop()?;
        let chunk = &self.chunks[index as usize / CHUNK].0;
        Some((index, chunk[index as usize % CHUNK].get().cast()))
    }

    /// The operation in a place that was reserved, or nothing: then the place is free again.
    pub(crate) fn settle(&mut self, index: u32, flight: Option<F>) {
        if flight.is_none() {
            self.free.push(index);
        }
        self.flights[index as usize] = flight;
    }

    /// The operation of a context has ended.
    pub(crate) fn end(&mut self, context: *mut c_void) -> Option<F> {
        let address = context.addr();
        let index = self.chunks.iter().enumerate().find_map(|(number, chunk)| {
            let offset = address.checked_sub(chunk.0.as_ptr().addr())?;
            let place = offset / CONTEXT;
            (place < CHUNK && offset % CONTEXT == 0).then_some(number * CHUNK + place)
        })?;
        let flight = self.flights[index].take()?;
        self.free.push(index as u32);
        Some(flight)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.flights.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_lead_back_to_their_operations() {
        let mut flights = Flights::new(2 * CHUNK);
        let places: Vec<_> = (0..2 * CHUNK).map(|_| flights.reserve().expect("room")).collect();
        assert!(flights.reserve().is_none());
        for (number, (index, _)) in places.iter().enumerate() {
            flights.settle(*index, Some(number));
        }
        for (number, (_, context)) in places.iter().enumerate().rev() {
            assert_eq!(flights.end(*context), Some(number));
            assert_eq!(flights.end(*context), None);
        }
        assert_eq!(flights.end(std::ptr::null_mut()), None);
        assert_eq!(flights.end(places[0].1.wrapping_byte_add(8)), None);
        assert!(flights.reserve().is_some());
    }
}
