//! The lock on the core. Tasks are woken once it is free: a task that is woken may run, or be dropped, on the spot.

use super::Core;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Tasks to be woken.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    any: AtomicBool,
    list: Mutex<Vec<Waker>>,
}

impl Alarms {
    /// Wakes the task once the core is free.
    pub(super) fn set(&self, waker: Waker) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        self.any.store(true, Ordering::Release);
    }

    fn ring(&self) {
        if self.any.swap(false, Ordering::Acquire) {
            let wakers = std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner));
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// The right to turn the crank.
#[derive(Debug)]
pub(crate) struct Crank<'a> {
    guard: MutexGuard<'a, Core>,
    /// Dropped after the guard: fields are dropped in the order of declaration.
    bell: Bell<'a>,
}

#[derive(Debug)]
struct Bell<'a>(&'a Alarms);

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl<'a> Crank<'a> {
    /// Waits for the lock. A thread that panicked while turning left nothing half done that matters more than its panic.
    pub(super) fn take(core: &'a Mutex<Core>, alarms: &'a Alarms) -> Self {
        Self { guard: core.lock().unwrap_or_else(PoisonError::into_inner), bell: Bell(alarms) }
    }

    /// Gives the lock away until the condition variable is notified, or the time is up.
    pub(super) fn wait(self, handed: &Condvar, timeout: Duration) -> Self {
        let Self { guard, bell } = self;
        let (guard, _) = handed.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
        Self { guard, bell }
    }
}

impl Deref for Crank<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.guard
    }
}

impl DerefMut for Crank<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.guard
    }
}
