//! Copies out of a verified message, within bounds.

use super::ControlError;
use flatbuffers::{Follow, Vector};

/// What may still be copied. It begins with the message's own length: a message whose fields all point to the same
/// bytes would otherwise grow without bound when read.
pub(super) struct Reader {
    left: usize,
}

/// The length in front of a text or list.
const LENGTH: usize = 4;
/// The smallest table in a list: its offset in the list, and its own offset to its vtable.
const ENTRY: usize = 8;

impl Reader {
    pub(super) fn new(message: &[u8]) -> Self {
        Self { left: message.len() }
    }

    pub(super) fn text(
        &mut self,
        field: &'static str,
        text: &str,
        max: usize,
    ) -> Result<String, ControlError> {
        self.take(field, text.len(), 1, max)?;
        Ok(text.to_owned())
    }

    pub(super) fn bytes(
        &mut self,
        field: &'static str,
        bytes: Vector<'_, u8>,
        max: usize,
    ) -> Result<Vec<u8>, ControlError> {
        self.take(field, bytes.len(), 1, max)?;
        Ok(bytes.bytes().to_vec())
    }

    pub(super) fn numbers<'a, T>(
        &mut self,
        field: &'static str,
        numbers: Vector<'a, T>,
        max: usize,
    ) -> Result<Vec<T>, ControlError>
    where
        T: Follow<'a, Inner = T> + 'a,
    {
        self.take(field, numbers.len(), size_of::<T>(), max)?;
        Ok(numbers.iter().collect())
    }

    /// A list of tables, each read by `read`.
    pub(super) fn entries<'a, T, U>(
        &mut self,
        field: &'static str,
        entries: Vector<'a, T>,
        max: usize,
        mut read: impl FnMut(&mut Self, T::Inner) -> Result<U, ControlError>,
    ) -> Result<Vec<U>, ControlError>
    where
        T: Follow<'a> + 'a,
    {
        self.take(field, entries.len(), ENTRY, max)?;
        let mut list = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            list.push(read(self, entry)?);
        }
        Ok(list)
    }

    fn take(
        &mut self,
        field: &'static str,
        count: usize,
        size: usize,
        max: usize,
    ) -> Result<(), ControlError> {
        if count > max {
            return Err(ControlError::TooMany { field, count, max });
        }
        let bytes = LENGTH + count * size;
        self.left = self.left.checked_sub(bytes).ok_or(ControlError::Shared { field })?;
        Ok(())
    }
}
