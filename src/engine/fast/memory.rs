//! Accesses to bytes by host addresses.

#![allow(unsafe_code)] // each function documents its invariant

use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::isa::{AtomicOp, Size, Width, low32};

/// The pointer of a host address.
fn pointer<T>(host: u64) -> *mut T {
    // A host address came from a pointer, so it fits.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    with_exposed_provenance_mut(host as usize)
}

/// Loads a number from bytes that other programs may use concurrently: in one piece if
/// aligned.
///
/// # Safety
/// A live [`SharedBytes`](crate::vm::memory::SharedBytes) has `size` bytes at `host`.
#[inline(always)]
pub(crate) unsafe fn load_shared(host: u64, size: Size) -> u64 {
    // SAFETY: guaranteed by the caller; accesses are atomic only where aligned. Unaligned
    // ones are not atomic in the kernel, either.
    unsafe {
        match size {
            Size::B => AtomicU8::from_ptr(pointer(host))
                .load(Ordering::Relaxed)
                .into(),
            Size::H if host.is_multiple_of(2) => {
                u16::from_le(AtomicU16::from_ptr(pointer(host)).load(Ordering::Relaxed)).into()
            }
            Size::W if host.is_multiple_of(4) => {
                u32::from_le(AtomicU32::from_ptr(pointer(host)).load(Ordering::Relaxed)).into()
            }
            Size::Dw if host.is_multiple_of(8) => {
                u64::from_le(AtomicU64::from_ptr(pointer(host)).load(Ordering::Relaxed))
            }
            _ => load_bytes(host, size),
        }
    }
}

/// The same, byte by byte.
///
/// # Safety
/// As of [`load_shared`].
#[cold]
unsafe fn load_bytes(host: u64, size: Size) -> u64 {
    (0..u64::from(size.bytes())).rev().fold(0, |number, at| {
        // SAFETY: guaranteed by the caller.
        let byte = unsafe { AtomicU8::from_ptr(pointer(host.wrapping_add(at))) };
        number << 8 | u64::from(byte.load(Ordering::Relaxed))
    })
}

/// Copies bytes that other programs may use concurrently: a word at a time where aligned.
///
/// # Safety
/// A live [`SharedBytes`](crate::vm::memory::SharedBytes) has as many bytes as `into` at
/// `host`.
#[inline]
pub(crate) unsafe fn read_shared(host: u64, into: &mut [u8]) {
    let (words, rest) = into.as_chunks_mut::<8>();
    let mut at = host;
    for word in words {
        // SAFETY: guaranteed by the caller.
        *word = unsafe { load_shared(at, Size::Dw) }.to_le_bytes();
        at = at.wrapping_add(8);
    }
    let (halves, rest) = rest.as_chunks_mut::<4>();
    for half in halves {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { load_shared(at, Size::W) }.to_le_bytes();
        half.copy_from_slice(&bytes[..4]);
        at = at.wrapping_add(4);
    }
    for byte in rest {
        // SAFETY: guaranteed by the caller.
        [*byte, ..] = unsafe { load_shared(at, Size::B) }.to_le_bytes();
        at = at.wrapping_add(1);
    }
}

/// Stores the low bytes of a number to bytes that other programs may use concurrently.
///
/// # Safety
/// As of [`load_shared`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bytes are meant")]
pub(crate) unsafe fn store_shared(host: u64, size: Size, value: u64) {
    // SAFETY: as in `load_shared`.
    unsafe {
        match size {
            Size::B => AtomicU8::from_ptr(pointer(host)).store(value as u8, Ordering::Relaxed),
            Size::H if host.is_multiple_of(2) => {
                AtomicU16::from_ptr(pointer(host)).store((value as u16).to_le(), Ordering::Relaxed)
            }
            Size::W if host.is_multiple_of(4) => {
                AtomicU32::from_ptr(pointer(host)).store((value as u32).to_le(), Ordering::Relaxed)
            }
            Size::Dw if host.is_multiple_of(8) => {
                AtomicU64::from_ptr(pointer(host)).store(value.to_le(), Ordering::Relaxed);
            }
            _ => store_bytes(host, size, value),
        }
    }
}

/// The same, byte by byte.
///
/// # Safety
/// As of [`load_shared`].
#[cold]
unsafe fn store_bytes(host: u64, size: Size, value: u64) {
    for (at, byte) in (0..u64::from(size.bytes())).zip(value.to_le_bytes()) {
        // SAFETY: guaranteed by the caller.
        let place = unsafe { AtomicU8::from_ptr(pointer(host.wrapping_add(at))) };
        place.store(byte, Ordering::Relaxed);
    }
}

/// Loads a number from bytes that only this run uses: a stack, a context, a packet.
///
/// # Safety
/// As of [`load_shared`], and no other thread writes the bytes meanwhile.
#[inline(always)]
pub(crate) unsafe fn load_own(host: u64, size: Size) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            Size::B => u64::from(pointer::<u8>(host).read()),
            Size::H => u16::from_le(pointer::<u16>(host).read_unaligned()).into(),
            Size::W => u32::from_le(pointer::<u32>(host).read_unaligned()).into(),
            Size::Dw => u64::from_le(pointer::<u64>(host).read_unaligned()),
        }
    }
}

/// Stores the low bytes of a number to bytes that only this run uses.
///
/// # Safety
/// As of [`load_own`], and no other thread reads the bytes meanwhile.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bytes are meant")]
pub(crate) unsafe fn store_own(host: u64, size: Size, value: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match size {
            Size::B => pointer::<u8>(host).write(value as u8),
            Size::H => pointer::<u16>(host).write_unaligned((value as u16).to_le()),
            Size::W => pointer::<u32>(host).write_unaligned((value as u32).to_le()),
            Size::Dw => pointer::<u64>(host).write_unaligned(value.to_le()),
        }
    }
}

/// Zeroes bytes that only this run uses.
///
/// # Safety
/// A live [`SharedBytes`](crate::vm::memory::SharedBytes) has `len` bytes at `host`, and no
/// other thread uses them meanwhile.
#[inline(always)]
pub(crate) unsafe fn clear_own(host: u64, len: u64) {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: guaranteed by the caller.
    unsafe { pointer::<u8>(host).write_bytes(0, len) }
}

/// Updates an aligned number atomically, sequentially consistent; returns the old one, or
/// none if it is unaligned.
///
/// # Safety
/// As of [`load_shared`].
pub(crate) unsafe fn update(
    host: u64,
    op: AtomicOp,
    width: Width,
    src: u64,
    expected: u64,
) -> Option<u64> {
    let order = Ordering::SeqCst;
    // SAFETY: guaranteed by the caller; the accesses are aligned.
    unsafe {
        match width {
            Width::W64 if host.is_multiple_of(8) => {
                let cell = AtomicU64::from_ptr(pointer(host));
                Some(match op {
                    AtomicOp::Add | AtomicOp::FetchAdd if cfg!(target_endian = "little") => {
                        cell.fetch_add(src, order)
                    }
                    _ => cell
                        .fetch_update(order, order, |old| {
                            Some(op.eval64(u64::from_le(old), src, expected).to_le())
                        })
                        .map_or(0, u64::from_le),
                })
            }
            Width::W32 if host.is_multiple_of(4) => {
                let cell = AtomicU32::from_ptr(pointer(host));
                let (src, expected) = (low32(src), low32(expected));
                let old = match op {
                    AtomicOp::Add | AtomicOp::FetchAdd if cfg!(target_endian = "little") => {
                        cell.fetch_add(src, order)
                    }
                    _ => cell
                        .fetch_update(order, order, |old| {
                            Some(op.eval32(u32::from_le(old), src, expected).to_le())
                        })
                        .map_or(0, u32::from_le),
                };
                Some(old.into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::memory::SharedBytes;

    #[test]
    fn every_size_at_every_place() {
        let bytes = SharedBytes::zeroed(16);
        for &size in Size::ALL {
            for at in 0..8 {
                let (host, number) = (bytes.host_address() + at, 0x8877_6655_4433_2211);
                let place = usize::try_from(at).unwrap();
                let len = usize::from(size.bytes());
                bytes.clear();
                // SAFETY: at most 8 bytes from one of the first 8 of 16; nothing else uses
                // them.
                unsafe {
                    store_shared(host, size, number);
                    assert_eq!(load_shared(host, size), number & Size::max(size));
                    assert_eq!(bytes.load(place, len), Some(number & Size::max(size)));
                    store_own(host, size, !number);
                    assert_eq!(load_own(host, size), !number & Size::max(size));
                    assert_eq!(bytes.load(place, len), Some(!number & Size::max(size)));
                }
            }
        }
    }

    #[test]
    fn copies_are_the_bytes() {
        let bytes = SharedBytes::zeroed(32);
        let numbers: Vec<u8> = (1..=32).collect();
        bytes.write(0, &numbers);
        for (at, len) in [(0, 15), (1, 8), (4, 4), (3, 0), (8, 23)] {
            let mut copy = vec![0; len];
            // SAFETY: the range lies in 32 bytes that nothing else uses.
            unsafe { read_shared(bytes.host_address() + at as u64, &mut copy) };
            assert_eq!(copy, numbers[at..at + len]);
        }
    }

    #[test]
    fn updates_as_the_shared_bytes_do_them() {
        let (ours, theirs) = (SharedBytes::zeroed(8), SharedBytes::zeroed(8));
        for op in AtomicOp::ALL {
            for width in [Width::W32, Width::W64] {
                for expected in [0x1_0000_0005, 7] {
                    ours.store(0, 8, 0x1_0000_0005);
                    theirs.store(0, 8, 0x1_0000_0005);
                    let size = usize::from(width.size().bytes());
                    // SAFETY: there are 8 bytes.
                    let old = unsafe { update(ours.host_address(), *op, width, 3, expected) };
                    let new = |old| op.eval(width, old, 3, expected);
                    assert_eq!(old, theirs.update(0, size, new), "{op:?} {width:?}");
                    assert_eq!(ours.to_vec(), theirs.to_vec(), "{op:?} {width:?}");
                }
            }
        }
        // SAFETY: there are 4 bytes; the address is unaligned.
        let none = unsafe { update(ours.host_address() + 2, AtomicOp::Add, Width::W32, 1, 0) };
        assert_eq!(none, None);
    }
}
