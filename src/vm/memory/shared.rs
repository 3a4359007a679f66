//! Bytes that several programs can use concurrently, like kernel memory. There are never Rust
//! references to them; they are copied in and out. Why that is sound although programs race:
//! [`raw`].

#![allow(unsafe_code)] // map storage: see the invariant of `SharedBytes`

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

use super::raw;
use super::touched::touched;
use crate::isa::{Size, Width};

/// A block of memory of fixed size and address, shared without a lock.
///
/// Invariant: while `self` lives, its bytes are only accessed by the functions of `raw`, which
/// this type and the engines call, and by machine code. The memory never moves while `self`
/// lives.
pub struct SharedBytes {
    words: NonNull<[u64]>,
    len: usize,
}

// SAFETY: `words` is owned.
unsafe impl Send for SharedBytes {}
// SAFETY: by the invariant no accesses race; there is no other state.
unsafe impl Sync for SharedBytes {}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: `of` leaked a box; nothing accesses its bytes any more.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}

impl SharedBytes {
    /// `len` zero bytes, aligned to 8. Untouched pages use no memory.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        // `vec!` of zeros uses `calloc`: the system maps pages on first use.
        Self::of(vec![0; len.div_ceil(8)], len)
    }

    /// The first `len` bytes of these words.
    fn of(words: Vec<u64>, len: usize) -> Self {
        let words = NonNull::from(Box::leak(words.into_boxed_slice()));
        Self { words, len }
    }

    /// A copy of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (chunks, rest) = bytes.as_chunks();
        let mut last = [0; 8];
        if let Some(last) = last.get_mut(..rest.len()) {
            last.copy_from_slice(rest);
        }
        let mut words = Vec::with_capacity(bytes.len().div_ceil(8));
        words.extend(chunks.iter().map(|word| u64::from_ne_bytes(*word)));
        words.extend((!rest.is_empty()).then(|| u64::from_ne_bytes(last)));
        Self::of(words, bytes.len())
    }

    /// Size in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The host address of the first byte, valid while `self` lives. Users (machine code, fast
    /// engines) must keep to the invariant.
    #[must_use]
    pub fn host_address(&self) -> u64 {
        self.words.cast::<u8>().as_ptr().expose_provenance() as u64
    }

    /// The host address of the byte at `at`, if `len` bytes are in bounds there.
    #[inline]
    fn host(&self, at: usize, len: usize) -> Option<u64> {
        (at.checked_add(len)? <= self.len).then(|| self.host_address() + at as u64)
    }

    /// Loads a little-endian number of `size` (1, 2, 4 or 8) bytes, in one piece if aligned;
    /// `None` out of bounds or for another size.
    #[must_use]
    pub fn load(&self, at: usize, size: usize) -> Option<u64> {
        let host = self.host(at, size)?;
        // SAFETY: `host` has checked the bounds.
        Some(unsafe { raw::load(host, Size::of_bytes(size)?) })
    }

    /// Stores the low `size` (1, 2, 4 or 8) bytes of `value`, in one piece if aligned; out of
    /// bounds, returns `None` and stores nothing.
    pub fn store(&self, at: usize, size: usize, value: u64) -> Option<()> {
        let host = self.host(at, size)?;
        // SAFETY: as in `load`.
        unsafe { raw::store(host, Size::of_bytes(size)?, value) };
        Some(())
    }

    /// Replaces the aligned 4- or 8-byte number `n` at `at` with `f(n)` and returns `n`.
    /// Atomic and sequentially consistent, as BPF atomics are (RFC 9669, section 5.3). `None`
    /// out of bounds or if misaligned.
    pub fn update(&self, at: usize, size: usize, f: impl Fn(u64) -> u64) -> Option<u64> {
        let host = self.host(at, size)?;
        let width = match size {
            4 => Width::W32,
            8 => Width::W64,
            _ => return None,
        };
        // SAFETY: as in `load`.
        unsafe { raw::update(host, width, f) }
    }

    /// Copies out `into.len()` bytes from `at`; `None` out of bounds. Aligned words are read in
    /// one piece each.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) -> Option<()> {
        let host = self.host(at, into.len())?;
        // SAFETY: as in `load`.
        unsafe { raw::read(host, into) };
        Some(())
    }

    /// Whether `bytes` equal the bytes at `at`; `None` out of bounds.
    #[must_use]
    pub fn equals(&self, at: usize, bytes: &[u8]) -> Option<bool> {
        self.host(at, bytes.len())?;
        let mut at = at;
        for chunk in bytes.chunks(64) {
            let mut own = [0; 64];
            let own = own.get_mut(..chunk.len())?;
            self.read(at, own)?;
            if own != chunk {
                return Some(false);
            }
            at += chunk.len();
        }
        Some(true)
    }

    /// Copies `from` to `at`; out of bounds, returns `None` and copies nothing. Aligned words
    /// are written in one piece each.
    #[inline]
    pub fn write(&self, at: usize, from: &[u8]) -> Option<()> {
        let host = self.host(at, from.len())?;
        // SAFETY: as in `load`.
        unsafe { raw::write(host, from) };
        Some(())
    }

    /// A copy of the `len` bytes at `at`; `None` out of bounds.
    #[must_use]
    pub fn copy(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append(at, len, &mut bytes)?;
        Some(bytes)
    }

    /// Appends a copy of the `len` bytes at `at` to `to`; `None` out of bounds.
    pub fn append(&self, at: usize, len: usize, to: &mut Vec<u8>) -> Option<()> {
        let host = self.host(at, len)?;
        to.reserve(len);
        let room = to.spare_capacity_mut().get_mut(..len)?;
        // SAFETY: as in `load`; `fill` initialises the `len` bytes after the existing ones.
        unsafe {
            raw::fill(host, room);
            to.set_len(to.len() + len);
        }
        Some(())
    }

    /// A copy of everything.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.copy(0, self.len).unwrap_or_default()
    }

    /// The ranges of bytes, in order, outside of which all bytes are zero. Linux tells which
    /// pages of a large block were never used; looking at them would use them.
    #[must_use]
    pub fn used(&self) -> Vec<Range<usize>> {
        let start = self.host_address();
        let ranges = touched(start..start + self.len as u64).into_iter();
        let offset = |host: u64| usize::try_from(host - start).unwrap_or(self.len);
        ranges
            .map(|range| offset(range.start)..offset(range.end))
            .collect()
    }

    /// Sets all bytes to zero.
    pub fn clear(&self) {
        self.clear_words(0..self.words.len());
    }

    /// Sets these 8-byte words to zero; none if the range is out of bounds.
    pub fn clear_words(&self, words: Range<usize>) {
        let host = self.host_address();
        if words.end <= self.words.len() {
            for word in words {
                // SAFETY: the word is one of `self.words`.
                unsafe { raw::store(host + 8 * word as u64, Size::Dw, 0) };
            }
        }
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_aligned_and_not() {
        let shared = SharedBytes::zeroed(17);
        for size in [1, 2, 4, 8] {
            for at in 0..=(17 - size) {
                let value = 0x8877_6655_4433_2211;
                shared.clear();
                assert_eq!(shared.store(at, size, value), Some(()));
                assert_eq!(
                    shared.load(at, size),
                    Some(value & (u64::MAX >> (64 - 8 * size)))
                );
                assert_eq!(
                    shared.copy(at, size),
                    Some(value.to_le_bytes()[..size].to_vec())
                );
            }
        }
        assert_eq!(shared.load(16, 2), None);
        assert_eq!(shared.store(10, 8, 1), None);
        assert_eq!(shared.load(usize::MAX, 8), None);
        assert_eq!(shared.load(0, 3), None);
        assert_eq!(shared.load(0, 0), None);
    }

    #[test]
    fn copies_at_every_alignment() {
        let bytes: Vec<u8> = (1..=21).collect();
        for at in 0..12 {
            let shared = SharedBytes::zeroed(33);
            assert_eq!(shared.write(at, &bytes), Some(()));
            assert_eq!(shared.copy(at, 21), Some(bytes.clone()));
        }
        assert_eq!(SharedBytes::zeroed(8).write(1, &[0; 8]), None);
    }

    #[test]
    fn equal_in_every_byte() {
        let bytes: Vec<u8> = (0..150).collect();
        let shared = SharedBytes::zeroed(160);
        shared.write(3, &bytes);
        assert_eq!(shared.equals(3, &bytes), Some(true));
        assert_eq!(shared.equals(160, &[]), Some(true));
        assert_eq!(shared.equals(11, &bytes), None);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(shared.equals(3, &other), Some(false));
        }
    }

    /// A block of 1 GiB: looking for its three used bytes uses no other page.
    #[test]
    fn used_bytes_are_found_without_touching_others() {
        let shared = SharedBytes::zeroed(1 << 30);
        let places = [5, 77 << 12, (1 << 30) - 1];
        for at in places {
            shared.store(at, 1, 9).unwrap();
        }
        let used = shared.used();
        for at in places {
            assert!(used.iter().any(|range| range.contains(&at)), "{at}");
        }
        assert!(used.windows(2).all(|pair| pair[0].end < pair[1].start));
        let bytes: usize = used.iter().map(ExactSizeIterator::len).sum();
        // The system may use large pages. An emulator may not tell.
        if cfg!(target_os = "linux") && std::env::var_os("BPFLAB_EMULATED").is_none() {
            assert!(bytes <= 3 << 21, "{bytes}");
        }
        assert_eq!(shared.used(), used);
        // A small block is one range.
        let small = SharedBytes::zeroed(24).used();
        assert_eq!((small.len(), small.first()), (1, Some(&(0..24))));
    }

    #[test]
    fn updates_return_the_old_number_and_ask_for_alignment() {
        let shared = SharedBytes::from_bytes(&[5, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(shared.update(4, 4, |v| v + 1), Some(7));
        assert_eq!(shared.load(4, 4), Some(8));
        assert_eq!(shared.update(0, 8, |v| v ^ 1), Some(0x8_0000_0005));
        assert_eq!(shared.update(2, 4, |v| v), None);
        assert_eq!(shared.update(8, 8, |v| v), None);
    }

    #[test]
    fn no_update_is_lost_between_threads() {
        let shared = SharedBytes::zeroed(8);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..1000).for_each(|_| assert!(shared.update(0, 8, |v| v + 1).is_some()))
                });
            }
        });
        assert_eq!(shared.load(0, 8), Some(4000));
    }
}
