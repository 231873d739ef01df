//! Slots: the names under which transfers raise notices here.

use super::Key;
use std::collections::VecDeque;

const INDEX_BITS: u32 = 10;
const SLOTS: usize = 1 << INDEX_BITS;

/// Which transfer a notice belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The operation.
    pub(crate) operation: Key,
    /// Its step.
    pub(crate) step: u32,
    /// The sender's place among the senders of the step.
    pub(crate) source: u32,
}

/// A table of slots. A slot's number carries its generation, so that a stale notice finds nobody.
#[derive(Debug)]
pub(crate) struct Slots {
    owners: Vec<(u16, Option<Owner>)>,
    /// Longest free first: a number comes back as late as possible.
    free: VecDeque<u16>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self { owners: vec![(0, None); SLOTS], free: (0..SLOTS as u16).collect() }
    }

    /// A number for a transfer; `None` while all are in use.
    pub(crate) fn take(&mut self, owner: Owner) -> Option<u16> {
        let index = self.free.pop_front()?;
        let (generation, slot) = self.owners.get_mut(usize::from(index))?;
        *slot = Some(owner);
        Some(index | *generation << INDEX_BITS)
    }

    pub(crate) fn give_back(&mut self, number: u16) {
        let index = number & (SLOTS as u16 - 1);
        if let Some((generation, slot)) = self.owners.get_mut(usize::from(index))
            && *generation == number >> INDEX_BITS
            && slot.take().is_some()
        {
            *generation = (*generation + 1) & (u16::MAX >> INDEX_BITS);
            self.free.push_back(index);
        }
    }

    /// Whose the notice is; `None` when it is stale.
    pub(crate) fn owner(&self, number: u16) -> Option<Owner> {
        let (generation, slot) = self.owners.get(usize::from(number & (SLOTS as u16 - 1)))?;
        (*generation == number >> INDEX_BITS).then_some(*slot)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_number_finds_nobody() {
        let mut slots = Slots::new();
        let owner = |step| Owner { operation: Key(7), step, source: 0 };
        let first = slots.take(owner(1)).unwrap();
        assert_eq!(slots.owner(first), Some(owner(1)));
        slots.give_back(first);
        slots.give_back(first);
        assert_eq!(slots.owner(first), None);
        let all: Vec<u16> = (0..SLOTS as u32).map(|step| slots.take(owner(step)).unwrap()).collect();
        assert!(!all.contains(&first), "the number came back with its old generation");
        assert_eq!(slots.take(owner(0)), None);
    }
}
