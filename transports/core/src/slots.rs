//! An arena whose names are never reused: for regions, remote regions and whatever else a backend names.

/// Values under names of index and generation. Indices are reused, pairs never are.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    /// Of the present occupant, or of the next one. One bit wider than a name carries: a slot whose names are
    /// used up rests.
    generation: u64,
    value: Option<T>,
}

impl<T> Slots<T> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// The name of `value` from now on; `None` when there are no names left.
    pub fn insert(&mut self, value: T) -> Option<(u32, u32)> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, value: None });
                index
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        Some((index, u32::try_from(slot.generation).ok()?))
    }

    /// The value of a name; `None` when the name is unknown or removed.
    #[must_use]
    pub fn get(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == u64::from(generation))
    }

    /// As [`get`](Self::get), to change the value.
    pub fn get_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == u64::from(generation))
    }

    /// Takes the value out and retires its name.
    pub fn remove(&mut self, index: u32, generation: u32) -> Option<T> {
        self.get(index, generation)?;
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take();
        slot.generation += 1;
        if u32::try_from(slot.generation).is_ok() {
            self.free.push(index);
        }
        value
    }

    /// Whether the name was given out once and is no longer valid.
    #[must_use]
    pub fn is_past(&self, index: u32, generation: u32) -> bool {
        self.slots.get(index as usize).is_some_and(|slot| u64::from(generation) < slot.generation)
    }

    /// Every value.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// Every value, to change it.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// Removes what `doomed` says.
    pub fn remove_where(&mut self, doomed: impl Fn(&T) -> bool) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.value.as_ref().is_some_and(&doomed) {
                // Both casts are exact: an occupied slot has a name.
                self.remove(index as u32, slot.generation as u32);
            }
        }
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_name_stays_dead_when_its_slot_is_used_again() {
        let mut slots = Slots::new();
        let (index, generation) = slots.insert("first").unwrap();
        assert!(!slots.is_past(index, generation));
        assert_eq!(slots.remove(index, generation), Some("first"));
        let second = slots.insert("second").unwrap();
        assert_eq!(second, (index, generation + 1));
        assert_eq!(slots.get(index, generation), None);
        assert_eq!(slots.get_mut(index, generation), None);
        assert_eq!(slots.remove(index, generation), None);
        assert!(slots.is_past(index, generation));
        assert!(!slots.is_past(index, generation + 2));
        assert!(!slots.is_past(index + 1, 0));
        assert_eq!(slots.get(second.0, second.1), Some(&"second"));
    }

    #[test]
    fn a_slot_with_no_generation_left_rests() {
        let mut slots = Slots::new();
        slots.insert(0).unwrap();
        slots.slots[0].generation = u64::from(u32::MAX);
        assert_eq!(slots.remove(0, u32::MAX), Some(0));
        assert!(slots.is_past(0, u32::MAX));
        assert_eq!(slots.insert(1), Some((1, 0)));
    }

    #[test]
    fn remove_where_takes_only_what_it_is_told() {
        let mut slots = Slots::new();
        let names: Vec<_> = (0..6).map(|value| slots.insert(value).unwrap()).collect();
        slots.remove_where(|value| value % 2 == 0);
        for (value, &(index, generation)) in names.iter().enumerate() {
            assert_eq!(slots.get(index, generation).is_some(), value % 2 == 1);
        }
    }
}
