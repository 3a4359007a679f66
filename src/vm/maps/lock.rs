//! The lock of a map, held for a few instructions at a time.
//!
//! It spins like the kernel's, since waiting is hardly ever worth a system call. But a thread
//! can be preempted while it holds the lock, so waiters yield to other threads. Unlocking is one
//! store. All of it is compiled with this crate, so that the thread sanitizer understands it.

#![allow(unsafe_code)] // the invariant stands at `Lock`

use std::cell::UnsafeCell;
use std::hint;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How often to spin before yielding to other threads.
const SPINS: u32 = 64;

/// A value that one thread uses at a time. A panic in between leaves the value as it is.
///
/// Invariant: `value` is only accessed through a [`Guard`], and there is at most one: that of
/// the thread that set `is_held`.
#[derive(Debug, Default)]
pub(super) struct Lock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: by the invariant, one thread at a time has a reference to the value. It sees the
// changes of the previous one: it acquires what that one released.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value of a lock.
pub(super) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Makes the guard `Send` and `Sync` under the same conditions as `&mut T`.
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

    /// Waits until no other thread uses the value.
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
            // Reading does not take the cache line from the lock's holder.
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
