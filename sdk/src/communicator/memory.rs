//! Whose memory a blocking call works on.
//!
//! Executors work on one vector of bytes that every rank has in the same shape. A call that begins and ends in the
//! caller's values works on them where they lie; one with a source and a destination works in the destination
//! if that is the whole vector, else in a vector of its own.

use super::Communicator;
use super::call::{Collective, misuse};
use crate::{Error, Result};
use gradwire_schema::Equivalence;
use std::borrow::Cow;

impl Communicator {
    /// Carries out a collective on values that are the whole working vector, at the beginning and at the end.
    pub(crate) fn call<T: Equivalence>(&self, collective: &Collective, values: &mut [T]) -> Result<()> {
        if collective.results_in_all(self.rank) {
            return with_bytes(values, |bytes| self.collect(collective, bytes));
        }
        // Partial results pass through the rest of the vector: the values there stay as they are.
        let mut working = pack(values);
        self.collect(collective, &mut working)?;
        let part = collective.shape.result(self.rank);
        unpack(&working[collective.result(self.rank)], &mut values[part])
    }

    /// Carries out a collective that begins with a rank's part in `source` and ends with its part in `destination`.
    pub(crate) fn call_into<T: Equivalence>(
        &self,
        collective: &Collective,
        source: &[T],
        destination: &mut [T],
    ) -> Result<()> {
        let shape = &collective.shape;
        check_length("source", shape.input(self.rank).len(), source.len())?;
        check_length("destination", shape.result(self.rank).len(), destination.len())?;
        let own = packed(source);
        let counted = self.count(collective.signature);
        let apart =
            bytes_mut(destination).and_then(|bytes| self.collect_apart(collective, &counted, &own, bytes));
        if let Some(result) = apart {
            return result;
        }
        let input = collective.input(self.rank);
        if collective.results_in_all(self.rank) && input.len() < shape.bytes() {
            return with_bytes(destination, |bytes| {
                // Only the own part is written before all ranks have agreed, and put back if they do not.
                let before = bytes[input.clone()].to_vec();
                bytes[input.clone()].copy_from_slice(&own);
                let result = self.collect_counted(collective, &counted, bytes);
                if let Err(Error::Mismatch { .. }) = result {
                    bytes[input].copy_from_slice(&before);
                }
                result
            });
        }
        let mut working = self.working(collective, &own)?;
        self.collect_counted(collective, &counted, &mut working)?;
        unpack(&working[collective.result(self.rank)], destination)
    }

    /// As [`call_into`](Self::call_into), with the result in memory made for it; nothing where there is none.
    pub(super) fn call_owned<T: Equivalence>(&self, collective: &Collective, source: &[T]) -> Result<Vec<T>> {
        check_length("source", collective.shape.input(self.rank).len(), source.len())?;
        let working = self.call_packed(collective, &packed(source))?;
        unpack_all(&working[collective.result(self.rank)])
    }

    /// The working vector of a collective that begins with a rank's part in `own`.
    pub(super) fn call_packed(&self, collective: &Collective, own: &[u8]) -> Result<Vec<u8>> {
        let mut working = self.working(collective, own)?;
        self.collect(collective, &mut working)?;
        Ok(working)
    }

    fn working(&self, collective: &Collective, own: &[u8]) -> Result<Vec<u8>> {
        let mut working = zeroed(collective.len(self.rank))?;
        working[collective.input(self.rank)].copy_from_slice(own);
        Ok(working)
    }
}

/// Memory of a length that other ranks have a say in.
fn zeroed(len: usize) -> Result<Vec<u8>> {
    // What can be reserved can be had zeroed, without touching all of it.
    match Vec::<u8>::new().try_reserve_exact(len) {
        Ok(()) => Ok(vec![0; len]),
        Err(error) => Err(Error::System(format!("there is no memory for {len} bytes: {error}").into())),
    }
}

pub(super) fn check_length(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(misuse(format!(
        "the {what} has {found} elements: make it {expected} long, as the other buffer demands"
    )))
}

/// The memory of values, where that is their packed form.
fn bytes_mut<T: Equivalence>(values: &mut [T]) -> Option<&mut [u8]> {
    let len = values.len() * T::PACKED_SIZE;
    T::as_bytes_mut(values).filter(|bytes| bytes.len() == len)
}

/// Lends the packed form of values to `work`: their own memory where that is it, else a copy.
fn with_bytes<T: Equivalence, R>(values: &mut [T], work: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    let len = values.len() * T::PACKED_SIZE;
    if let Some(bytes) = T::as_bytes_mut(values) {
        return if bytes.len() == len { work(bytes) } else { Err(wrong_bytes::<T>()) };
    }
    let mut packed = pack(values);
    let result = work(&mut packed)?;
    unpack(&packed, values)?;
    Ok(result)
}

/// The packed form of values: a copy.
pub(super) fn pack<T: Equivalence>(values: &[T]) -> Vec<u8> {
    packed(values).into_owned()
}

/// The packed form of values: their own memory where that is it.
pub(super) fn packed<T: Equivalence>(values: &[T]) -> Cow<'_, [u8]> {
    let len = values.len() * T::PACKED_SIZE;
    if let Some(bytes) = T::as_bytes(values).filter(|bytes| bytes.len() == len) {
        return Cow::Borrowed(bytes);
    }
    let mut packed = vec![0; len];
    values
        .iter()
        .zip(packed.chunks_exact_mut(T::PACKED_SIZE.max(1)))
        .for_each(|(value, bytes)| value.pack(bytes));
    Cow::Owned(packed)
}

/// Values from their packed form, all or none.
pub(super) fn unpack<T: Equivalence>(packed: &[u8], values: &mut [T]) -> Result<()> {
    if let Some(bytes) = T::as_bytes_mut(values) {
        if bytes.len() != packed.len() {
            return Err(wrong_bytes::<T>());
        }
        bytes.copy_from_slice(packed);
        return Ok(());
    }
    let all = unpack_all(packed)?;
    values.iter_mut().zip(all).for_each(|(to, from): (_, T)| *to = from);
    Ok(())
}

/// All values of a packed form.
pub(super) fn unpack_all<T: Equivalence>(packed: &[u8]) -> Result<Vec<T>> {
    let mut each = packed
        .chunks_exact(T::PACKED_SIZE.max(1))
        .enumerate()
        .map(|(index, bytes)| T::unpack(bytes).map_err(|invalid| Error::InvalidValue { index, invalid }));
    let Some(first) = each.next() else { return Ok(Vec::new()) };
    let mut all = vec![first?; 1 + each.len()];
    if let Some(bytes) = T::as_bytes_mut(&mut all).filter(|bytes| bytes.len() == packed.len()) {
        bytes.copy_from_slice(packed);
        return Ok(all);
    }
    for (value, unpacked) in all[1..].iter_mut().zip(each) {
        *value = unpacked?;
    }
    Ok(all)
}

fn wrong_bytes<T>() -> Error {
    misuse(format!(
        "the `Equivalence` of `{}` offers bytes of another length than it packs",
        std::any::type_name::<T>()
    ))
}
