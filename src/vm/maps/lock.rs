//! The lock of a map, held for a few instructions at a time.
//!
//! As the kernel's it spins, since waiting is hardly ever worth a system call; but a
//! thread here can lose its processor while it holds one, so those who wait let others
//! run. Leaving it is one store. And all of it is compiled with this crate, so that the
//! thread sanitizer sees who excludes whom.

#![allow(unsafe_code)] // the invariant stands at `Lock`

use std::cell::UnsafeCell;
use std::hint;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How often a lock is looked at before other threads are let run.
const SPINS: u32 = 64;

/// Something that one thread uses at a time. A panic in between leaves it as it is.
///
/// Invariant: `value` is reached through a [`Guard`] only, and there is one at most: who
/// made `is_held` true.
#[derive(Debug, Default)]
pub(super) struct Lock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: by the invariant one thread at a time has a reference to the value, and each
// sees what the one before did: it acquires what that one released.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The right to use what a lock guards.
pub(super) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// It is sent and shared as what it stands for.
    _value: PhantomData<&'a mut T>,
}

impl<T> Lock<T> {
    /// A lock around a value.
    pub(super) const fn new(value: T) -> Self {
        Self {
            is_held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until nobody else uses the value.
    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, T> {
        if !self.take() {
            self.wait();
        }
        Guard {
            lock: self,
            _value: PhantomData,
        }
    }

    #[inline]
    fn take(&self) -> bool {
        let taken =
            self.is_held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut turn = 0u32;
        loop {
            // Reading alone leaves the cache line with who holds the lock.
            if !self.is_held.load(Ordering::Relaxed) && self.take() {
                return;
            }
            turn = turn.saturating_add(1);
            if turn < SPINS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is no other guard; see `Lock`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is no other guard; see `Lock`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.is_held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        let lock = Lock::new((0u64, 0u64));
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..2000 {
                        let mut both = lock.lock();
                        assert_eq!(both.0, both.1);
                        both.0 += 1;
                        both.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), (8000, 8000));
    }

    #[test]
    fn a_panic_leaves_it_usable() {
        let lock = Lock::new(1);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("on purpose");
        }));
        assert!(result.is_err());
        assert_eq!(*lock.lock(), 1);
    }
}
