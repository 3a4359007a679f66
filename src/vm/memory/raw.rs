//! Accesses to bytes by host addresses: the only ones to bytes that threads share.
//!
//! Programs race: two CPUs may access the same bytes of a map's value at once, with numbers of
//! different sizes that overlap in part. Rust's memory model leaves little room for that:
//!
//! - A data race is undefined, and so are racing atomic accesses that overlap without being to
//!   exactly the same bytes ([`std::sync::atomic`], "Memory model for atomic accesses").
//! - Volatile accesses race like any others, "regardless of whether they are acting on Rust
//!   memory or not" ([`std::ptr`], "Safety"). So mapping the bytes outside of Rust's memory would
//!   not help.
//! - Atomic accesses to single bytes never overlap in part.
//!
//! The invariant follows: **each access to a number is, in Rust's memory model, one relaxed
//! atomic access to each of its bytes, in any order.** An [update] accesses each byte
//! twice, first loading, then storing, sequentially consistent. Barriers
//! ([`fence`](std::sync::atomic::fence)) order these accesses as they do all relaxed ones.
//!
//! - The module `bytewise` does what the invariant says, for any host, slowly. A lock makes
//!   updates exclusive.
//! - On x86-64 and arm64 a load or a store is one instruction of inline assembly, and an update
//!   is an atomic instruction or a loop of exclusive accesses. The compiler treats assembly as a
//!   black box, which may access the same memory as a foreign function (the Rust Reference,
//!   "Rules for inline assembly", `asm.rules.black-box` and `asm.rules.mem-same-as-ffi`). Whatever
//!   the instruction does, single bytes could do, too: it accesses them all at once if the number
//!   is aligned, otherwise in parts. So the compiler's assumptions hold. That numbers do not tear
//!   and that no update is lost is the processor's promise, as in the kernel.
//! - Machine code (`jit`) consists of the same instructions, and is called as a foreign function.
//!
//! Programs see what the processor does. No Rust code may depend on more than the single bytes
//! for its memory safety.
//!
//! Some bytes belong to one CPU, and so to one thread at a time: frames, contexts, packets. The
//! functions with `own` in their names access these as ordinary memory.

#![allow(unsafe_code)] // each function documents its invariant

use std::mem::MaybeUninit;
use std::ptr;

use crate::isa::{AtomicOp, Size, Width, low32};

/// Defines `load` and `store` of an architecture: for each size the two instructions; and
/// `load_four`.
#[allow(unused_macros, reason = "not for `bytewise`")]
macro_rules! define_loads_and_stores {
    ($($size:ident $load:literal $store:literal)*; four $($four:literal)*) => {
        /// Loads a number.
        ///
        /// # Safety
        /// As of the function of this name in the module above.
        #[inline(always)]
        pub(super) unsafe fn load(host: u64, size: Size) -> u64 {
            let value: u64;
            // SAFETY: guaranteed by the caller; all 64 bits of the register are written.
            unsafe {
                match size {
                    $(Size::$size => asm!(
                        $load,
                        host = in(reg) host,
                        value = lateout(reg) value,
                        options(nostack, preserves_flags, readonly),
                    ),)*
                }
            }
            value
        }

        /// Loads four double words.
        ///
        /// # Safety
        /// As of [`load`], for each of them.
        #[inline(always)]
        pub(super) unsafe fn load_four(host: u64) -> [u64; 4] {
            let (a, b, c, d): (u64, u64, u64, u64);
            // SAFETY: guaranteed by the caller.
            unsafe {
                asm!(
                    $($four,)*
                    host = in(reg) host,
                    a = out(reg) a,
                    b = out(reg) b,
                    c = out(reg) c,
                    d = out(reg) d,
                    options(nostack, preserves_flags, readonly),
                );
            }
            [a, b, c, d]
        }

        /// Stores the low bytes of a number.
        ///
        /// # Safety
        /// As of the function of this name in the module above.
        #[inline(always)]
        pub(super) unsafe fn store(host: u64, size: Size, value: u64) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                match size {
                    $(Size::$size => asm!(
                        $store,
                        host = in(reg) host,
                        value = in(reg) value,
                        options(nostack, preserves_flags),
                    ),)*
                }
            }
        }
    };
}

#[cfg(all(target_arch = "aarch64", not(bytewise)))]
mod aarch64;
#[cfg(any(
    test,
    bytewise,
    not(any(target_arch = "aarch64", target_arch = "x86_64"))
))]
mod bytewise;
mod own;
#[cfg(all(target_arch = "x86_64", not(bytewise)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(bytewise)))]
use aarch64 as numbers;
#[cfg(any(bytewise, not(any(target_arch = "aarch64", target_arch = "x86_64"))))]
use bytewise as numbers;
#[cfg(all(target_arch = "x86_64", not(bytewise)))]
use x86_64 as numbers;

pub(crate) use own::{clear_own, load_own, store_own};

/// Loads a number: in one piece if aligned.
///
/// # Safety
/// A live [`SharedBytes`](super::SharedBytes) has `size` bytes at `host`.
#[inline(always)]
pub(crate) unsafe fn load(host: u64, size: Size) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { numbers::load(host, size) }
}

/// Stores the low bytes of a number: in one piece if aligned.
///
/// # Safety
/// As of [`load`].
#[inline(always)]
pub(crate) unsafe fn store(host: u64, size: Size, value: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe { numbers::store(host, size, value) }
}

/// Replaces an aligned number `n` by the low bytes of `f(n)` and returns `n`; `None` if it is
/// unaligned. Atomic and sequentially consistent, as BPF atomics are (RFC 9669, section 5.3).
///
/// # Safety
/// As of [`load`].
#[inline]
pub(crate) unsafe fn update(host: u64, width: Width, f: impl Fn(u64) -> u64) -> Option<u64> {
    let size = width.size();
    if !is_aligned(host, size) {
        return None;
    }
    // SAFETY: guaranteed by the caller; the number is aligned.
    unsafe {
        let mut old = numbers::load(host, size);
        loop {
            let there = numbers::compare_exchange(host, width, old, f(old));
            if there == old {
                return Some(old);
            }
            old = there;
        }
    }
}

/// [Updates](update) a number with an atomic operation.
///
/// # Safety
/// As of [`load`].
#[inline]
pub(crate) unsafe fn operate(
    host: u64,
    op: AtomicOp,
    width: Width,
    src: u64,
    expected: u64,
) -> Option<u64> {
    // SAFETY: guaranteed by the caller; the number is aligned.
    unsafe {
        match op {
            AtomicOp::Add | AtomicOp::FetchAdd => {
                is_aligned(host, width.size()).then(|| numbers::add(host, width, src))
            }
            _ => update(host, width, |old| op.eval(width, old, src, expected)),
        }
    }
}

const fn is_aligned(host: u64, size: Size) -> bool {
    host.is_multiple_of(size.bytes() as u64)
}

/// Copies bytes out: aligned words in one piece each.
///
/// # Safety
/// A live [`SharedBytes`](super::SharedBytes) has as many bytes as `into` at `host`.
#[inline]
pub(crate) unsafe fn read(host: u64, into: &mut [u8]) {
    // SAFETY: `u8` and `MaybeUninit<u8>` have the same layout, and `fill` initialises bytes.
    let into = unsafe { &mut *(ptr::from_mut(into) as *mut [MaybeUninit<u8>]) };
    // SAFETY: guaranteed by the caller.
    unsafe { fill(host, into) }
}

/// Like [`read`], and initialises all of `into`.
///
/// # Safety
/// As of [`read`].
#[inline]
pub(super) unsafe fn fill(host: u64, into: &mut [MaybeUninit<u8>]) {
    let (mut at, mut rest) = (host, into);
    // SAFETY: guaranteed by the caller; `at` advances by the bytes read.
    unsafe {
        if is_aligned(host, Size::Dw) {
            // The compiler does not unroll loops of assembly.
            let (fours, tail) = rest.as_chunks_mut::<32>();
            for four in fours {
                let (words, _) = four.as_chunks_mut::<8>();
                for (word, number) in words.iter_mut().zip(numbers::load_four(at)) {
                    *word = number.to_le_bytes().map(MaybeUninit::new);
                }
                at += 32;
            }
            let (words, tail) = tail.as_chunks_mut::<8>();
            for word in words {
                *word = load(at, Size::Dw).to_le_bytes().map(MaybeUninit::new);
                at += 8;
            }
            rest = tail;
        }
        if is_aligned(host, Size::W) {
            let (halves, tail) = rest.as_chunks_mut::<4>();
            for half in halves {
                let number = low32(load(at, Size::W));
                *half = number.to_le_bytes().map(MaybeUninit::new);
                at += 4;
            }
            rest = tail;
        }
        for byte in rest {
            let [number, ..] = load(at, Size::B).to_le_bytes();
            byte.write(number);
            at += 1;
        }
    }
}

/// Copies bytes in: aligned words in one piece each.
///
/// # Safety
/// A live [`SharedBytes`](super::SharedBytes) has as many bytes as `from` at `host`.
#[inline]
pub(super) unsafe fn write(host: u64, from: &[u8]) {
    let (mut at, mut rest) = (host, from);
    // SAFETY: guaranteed by the caller; `at` advances by the bytes written.
    unsafe {
        if is_aligned(host, Size::Dw) {
            let (fours, tail) = rest.as_chunks::<32>();
            for four in fours {
                for word in four.as_chunks::<8>().0 {
                    store(at, Size::Dw, u64::from_le_bytes(*word));
                    at += 8;
                }
            }
            let (words, tail) = tail.as_chunks::<8>();
            for word in words {
                store(at, Size::Dw, u64::from_le_bytes(*word));
                at += 8;
            }
            rest = tail;
        }
        if is_aligned(host, Size::W) {
            let (halves, tail) = rest.as_chunks::<4>();
            for half in halves {
                store(at, Size::W, u32::from_le_bytes(*half).into());
                at += 4;
            }
            rest = tail;
        }
        for byte in rest {
            store(at, Size::B, (*byte).into());
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SharedBytes;
    use super::*;

    const NUMBER: u64 = 0x8877_6655_4433_2211;

    #[test]
    fn every_size_at_every_place() {
        let bytes = SharedBytes::zeroed(16);
        for &size in Size::ALL {
            for at in 0..8 {
                let host = bytes.host_address() + at;
                let place = usize::try_from(at).unwrap();
                let len = usize::from(size.bytes());
                let there = || bytes.copy(place, len).unwrap();
                bytes.clear();
                // SAFETY: at most 8 bytes from one of the first 8 of 16; nothing else uses
                // them.
                unsafe {
                    store(host, size, NUMBER);
                    assert_eq!(there(), NUMBER.to_le_bytes()[..len]);
                    assert_eq!(load(host, size), NUMBER & size.max());
                    assert_eq!(bytewise::load(host, size), NUMBER & size.max());
                    store_own(host, size, !NUMBER);
                    assert_eq!(there(), (!NUMBER).to_le_bytes()[..len]);
                    assert_eq!(load_own(host, size), !NUMBER & size.max());
                    bytewise::store(host, size, NUMBER);
                    assert_eq!(there(), NUMBER.to_le_bytes()[..len]);
                    clear_own(host, len as u64);
                }
                assert_eq!(bytes.to_vec(), [0; 16], "{size:?} at {at}");
            }
        }
    }

    #[test]
    fn copies_are_the_bytes() {
        let numbers: Vec<u8> = (1..=96).collect();
        for (at, len) in [(0, 15), (1, 8), (4, 4), (4, 13), (3, 0), (8, 23), (16, 79)] {
            let bytes = SharedBytes::zeroed(96);
            let host = bytes.host_address() + at as u64;
            let mut copy = vec![0; len];
            // SAFETY: the range lies in 96 bytes that nothing else uses.
            unsafe {
                write(host, &numbers[..len]);
                read(host, &mut copy);
            }
            assert_eq!(copy, numbers[..len]);
            let mut all = vec![0; 96];
            all[at..at + len].copy_from_slice(&numbers[..len]);
            assert_eq!(bytes.to_vec(), all);
            // SAFETY: 32 bytes of 96 that nothing else uses.
            let fours = unsafe { [numbers::load_four(host), bytewise::load_four(host)] };
            assert_eq!(fours[0], fours[1]);
        }
    }

    #[test]
    fn operations_compute_what_they_define() {
        const OLD: u64 = 0xffff_ffff_0000_0005;
        let bytes = SharedBytes::zeroed(8);
        for &op in AtomicOp::ALL {
            for width in [Width::W32, Width::W64] {
                for expected in [OLD, 5, 7] {
                    for src in [3, u64::MAX] {
                        bytes.store(0, 8, OLD);
                        // SAFETY: there are 8 bytes.
                        let old =
                            unsafe { operate(bytes.host_address(), op, width, src, expected) };
                        let mask = width.size().max();
                        assert_eq!(old, Some(OLD & mask), "{op:?} {width:?}");
                        let new = op.eval(width, OLD & mask, src, expected) & mask;
                        let all = OLD & !mask | new;
                        assert_eq!(bytes.load(0, 8), Some(all), "{op:?} {width:?} {src:#x}");
                    }
                }
            }
        }
        // SAFETY: there are 4 bytes; the address is unaligned.
        let none = unsafe { operate(bytes.host_address() + 2, AtomicOp::Add, Width::W32, 1, 0) };
        assert_eq!(none, None);
    }

    /// The instructions and `bytewise` have the same results.
    #[test]
    fn exchanges_only_what_is_expected() {
        type Exchange = unsafe fn(u64, Width, u64, u64) -> u64;
        type Add = unsafe fn(u64, Width, u64) -> u64;
        let each: [(Exchange, Add); 2] = [
            (numbers::compare_exchange, numbers::add),
            (bytewise::compare_exchange, bytewise::add),
        ];
        let bytes = SharedBytes::zeroed(16);
        let host = bytes.host_address() + 8;
        for (exchange, add) in each {
            for (width, new, sum) in [
                (Width::W32, 0x8877_6655_0000_0009, 0x8877_6655_0000_0008),
                (Width::W64, 9, 8),
            ] {
                let there = NUMBER & width.size().max();
                bytes.store(8, 8, NUMBER);
                // SAFETY: there are 8 aligned bytes.
                unsafe {
                    assert_eq!(exchange(host, width, there ^ 1, 9), there);
                    assert_eq!(bytes.load(8, 8), Some(NUMBER));
                    assert_eq!(exchange(host, width, there, 9), there);
                    assert_eq!(bytes.load(8, 8), Some(new));
                    assert_eq!(add(host, width, u64::MAX), 9);
                    assert_eq!(bytes.load(8, 8), Some(sum));
                }
            }
            assert_eq!(bytes.load(0, 8), Some(0));
        }
    }

    #[test]
    fn no_addition_is_lost_between_threads() {
        let bytes = SharedBytes::zeroed(8);
        std::thread::scope(|scope| {
            for width in [Width::W32, Width::W64].repeat(2) {
                let bytes = &bytes;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        // SAFETY: there are 8 aligned bytes.
                        let old =
                            unsafe { operate(bytes.host_address(), AtomicOp::Add, width, 1, 0) };
                        assert!(old.is_some());
                    }
                });
            }
        });
        assert_eq!(bytes.load(0, 8), Some(4000));
    }
}
