//! Accesses to bytes that one thread uses: ordinary memory.

use std::ptr::with_exposed_provenance_mut;

use crate::isa::Size;

/// The pointer of a host address.
pub(super) fn pointer<T>(host: u64) -> *mut T {
    // A host address came from a pointer, so it fits.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    with_exposed_provenance_mut(host as usize)
}

/// Loads a number from bytes that only this run uses.
///
/// # Safety
/// A live [`SharedBytes`](super::super::SharedBytes) has `size` bytes at `host`, and no other
/// thread writes the bytes meanwhile.
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
/// A live [`SharedBytes`](super::super::SharedBytes) has `len` bytes at `host`, and no other thread
/// uses them meanwhile.
#[inline(always)]
pub(crate) unsafe fn clear_own(host: u64, len: u64) {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: guaranteed by the caller.
    unsafe { pointer::<u8>(host).write_bytes(0, len) }
}
