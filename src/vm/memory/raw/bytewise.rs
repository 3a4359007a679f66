//! Accesses as single bytes, for hosts without instructions of their own here, for Miri and for
//! the thread sanitizer (`--cfg bytewise`). A number that is loaded while it is stored may tear.
//! The invariant is at the module above.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::own::pointer;
use crate::isa::{Size, Width};

/// Held while a number is stored or updated: no store gets lost between an update's two halves.
struct Exclusive;

static IS_HELD: AtomicBool = AtomicBool::new(false);

impl Exclusive {
    fn new() -> Self {
        while IS_HELD.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        Self
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        IS_HELD.store(false, Ordering::Release);
    }
}

/// Loads a number.
///
/// # Safety
/// As of the function of this name in the module above.
pub(super) unsafe fn load(host: u64, size: Size) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { get(host, size, Ordering::Relaxed) }
}

/// Loads four double words.
///
/// # Safety
/// As of [`load`], for each of them.
pub(super) unsafe fn load_four(host: u64) -> [u64; 4] {
    // SAFETY: guaranteed by the caller.
    [0, 8, 16, 24].map(|at| unsafe { load(host + at, Size::Dw) })
}

/// Stores the low bytes of a number.
///
/// # Safety
/// As of the function of this name in the module above.
pub(super) unsafe fn store(host: u64, size: Size, value: u64) {
    let _exclusive = Exclusive::new();
    // SAFETY: guaranteed by the caller.
    unsafe { put(host, size, value, Ordering::Relaxed) }
}

/// Stores the low bytes of `new` if the number is `old` (zero-extended); returns the number.
///
/// # Safety
/// As of [`load`].
pub(super) unsafe fn compare_exchange(host: u64, width: Width, old: u64, new: u64) -> u64 {
    let _exclusive = Exclusive::new();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let there = get(host, width.size(), Ordering::SeqCst);
        if there == old {
            put(host, width.size(), new, Ordering::SeqCst);
        }
        there
    }
}

/// Adds to a number and returns the old one.
///
/// # Safety
/// As of [`load`].
pub(super) unsafe fn add(host: u64, width: Width, value: u64) -> u64 {
    let _exclusive = Exclusive::new();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let old = get(host, width.size(), Ordering::SeqCst);
        let new = old.wrapping_add(value);
        put(host, width.size(), new, Ordering::SeqCst);
        old
    }
}

/// Loads the bytes of a number.
///
/// # Safety
/// As of [`load`].
unsafe fn get(host: u64, size: Size, order: Ordering) -> u64 {
    (0..u64::from(size.bytes())).rev().fold(0, |number, at| {
        // SAFETY: guaranteed by the caller.
        let byte = unsafe { AtomicU8::from_ptr(pointer(host + at)) };
        number << 8 | u64::from(byte.load(order))
    })
}

/// Stores the low bytes of a number.
///
/// # Safety
/// As of [`load`].
unsafe fn put(host: u64, size: Size, value: u64, order: Ordering) {
    for (at, byte) in (0..u64::from(size.bytes())).zip(value.to_le_bytes()) {
        // SAFETY: guaranteed by the caller.
        unsafe { AtomicU8::from_ptr(pointer(host + at)) }.store(byte, order);
    }
}
