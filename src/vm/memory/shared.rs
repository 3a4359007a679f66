//! Bytes that several programs can use concurrently, like kernel memory. There are never Rust
//! references to them; they are copied in and out.

#![allow(unsafe_code)] // map storage: see the invariant of `SharedBytes`

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A zeroed block of memory of fixed size and address, shared without a lock.
///
/// Invariant: `cells` is only accessed by relaxed atomic accesses, both by this type and by
/// machine code that holds its address. A race can at worst tear a value, as in the kernel.
/// The memory never moves while `self` lives.
pub struct SharedBytes {
    cells: Box<[UnsafeCell<u64>]>,
    len: usize,
}

// SAFETY: by the invariant all accesses are atomic; there is no other state.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// `len` zero bytes, aligned to 8. Untouched pages use no memory.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        // `vec!` of zeros uses `calloc`: the system maps pages on first use.
        Self::of(vec![0; len.div_ceil(8)], len)
    }

    /// The first `len` bytes of these words.
    fn of(words: Vec<u64>, len: usize) -> Self {
        let cells = words.into_boxed_slice();
        // SAFETY: `UnsafeCell<u64>` has the layout of `u64`, and the box is given
        // up here, so that nothing else refers to it.
        let cells = unsafe { Box::from_raw(Box::into_raw(cells) as *mut [UnsafeCell<u64>]) };
        Self { cells, len }
    }

    /// A copy of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks();
        let mut last = [0; 8];
        if let Some(last) = last.get_mut(..rest.len()) {
            last.copy_from_slice(rest);
        }
        let mut cells = Vec::with_capacity(bytes.len().div_ceil(8));
        cells.extend(words.iter().map(|word| u64::from_ne_bytes(*word)));
        cells.extend((!rest.is_empty()).then(|| u64::from_ne_bytes(last)));
        Self::of(cells, bytes.len())
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
    /// engines) must keep to the invariant;
    /// [`with_exposed_provenance`](std::ptr::with_exposed_provenance) makes a pointer of it.
    #[must_use]
    pub fn host_address(&self) -> u64 {
        UnsafeCell::raw_get(self.cells.as_ptr()).expose_provenance() as u64
    }

    /// The `index`th 8-byte word, for internal data that no program sees and that needs
    /// ordered accesses; `None` past the end.
    pub(in crate::vm) fn word(&self, index: usize) -> Option<&AtomicU64> {
        let cell = self.cells.get(index)?;
        // SAFETY: a cell is an aligned u64; all accesses are atomic.
        Some(unsafe { AtomicU64::from_ptr(cell.get()) })
    }

    /// The address of the byte at `at`, if `len` bytes are in bounds there.
    fn pointer(&self, at: usize, len: usize) -> Option<*mut u8> {
        if at.checked_add(len)? > self.len {
            return None;
        }
        let base = UnsafeCell::raw_get(self.cells.as_ptr()).cast::<u8>();
        // SAFETY: `at + len <= self.len`, which lies within the cells.
        Some(unsafe { base.add(at) })
    }

    /// Loads a little-endian number of `size` (1, 2, 4 or 8) bytes, in one atomic access if
    /// aligned; `None` out of bounds or for another size.
    #[must_use]
    pub fn load(&self, at: usize, size: usize) -> Option<u64> {
        let p = self.pointer(at, size)?;
        if !at.is_multiple_of(size.max(1)) {
            let mut bytes = [0; 8];
            self.read(at, bytes.get_mut(..size)?)?;
            return Some(u64::from_le_bytes(bytes));
        }
        // SAFETY: `size` bytes lie at `p`; `at` is a multiple of `size` and the
        // cells are aligned to 8, so `p` is aligned; all accesses are atomic.
        unsafe {
            Some(match size {
                1 => u64::from(AtomicU8::from_ptr(p).load(Ordering::Relaxed)),
                2 => u64::from(
                    AtomicU16::from_ptr(p.cast())
                        .load(Ordering::Relaxed)
                        .to_le(),
                ),
                4 => u64::from(
                    AtomicU32::from_ptr(p.cast())
                        .load(Ordering::Relaxed)
                        .to_le(),
                ),
                8 => AtomicU64::from_ptr(p.cast())
                    .load(Ordering::Relaxed)
                    .to_le(),
                _ => return None,
            })
        }
    }

    /// Stores the low `size` (1, 2, 4 or 8) bytes of `value`, in one atomic access if aligned;
    /// out of bounds, returns `None` and stores nothing.
    #[expect(clippy::cast_possible_truncation, reason = "the low bytes are meant")]
    pub fn store(&self, at: usize, size: usize, value: u64) -> Option<()> {
        let p = self.pointer(at, size)?;
        if !at.is_multiple_of(size.max(1)) {
            return self.write(at, value.to_le_bytes().get(..size)?);
        }
        // SAFETY: as in `load`.
        unsafe {
            match size {
                1 => AtomicU8::from_ptr(p).store(value as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(p.cast()).store((value as u16).to_le(), Ordering::Relaxed),
                4 => AtomicU32::from_ptr(p.cast()).store((value as u32).to_le(), Ordering::Relaxed),
                8 => AtomicU64::from_ptr(p.cast()).store(value.to_le(), Ordering::Relaxed),
                _ => return None,
            }
        }
        Some(())
    }

    /// Replaces the aligned 4- or 8-byte number `n` at `at` with `f(n)` and returns `n`.
    /// Atomic and sequentially consistent, as BPF atomics are (RFC 9669, section 5.3). `None`
    /// out of bounds or if misaligned.
    #[expect(clippy::cast_possible_truncation, reason = "the low bytes are meant")]
    pub fn update(&self, at: usize, size: usize, f: impl Fn(u64) -> u64) -> Option<u64> {
        let p = self.pointer(at, size)?;
        if !at.is_multiple_of(size.max(1)) {
            return None;
        }
        let order = Ordering::SeqCst;
        match size {
            // SAFETY: as in `load`.
            4 => unsafe { AtomicU32::from_ptr(p.cast()) }
                .fetch_update(order, order, |v| {
                    Some((f(u64::from(v.to_le())) as u32).to_le())
                })
                .ok()
                .map(|old| u64::from(old.to_le())),
            // SAFETY: as in `load`.
            8 => unsafe { AtomicU64::from_ptr(p.cast()) }
                .fetch_update(order, order, |v| Some(f(v.to_le()).to_le()))
                .ok()
                .map(u64::to_le),
            _ => None,
        }
    }

    /// Copies out `into.len()` bytes from `at`; `None` out of bounds. Aligned words are read in
    /// one access each.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) -> Option<()> {
        // SAFETY: `u8` and `MaybeUninit<u8>` have the same layout, and `fill` initialises bytes.
        let into = unsafe { &mut *(ptr::from_mut(into) as *mut [MaybeUninit<u8>]) };
        self.fill(at, into)
    }

    /// Like [`read`](Self::read), and initialises all of `into`.
    #[inline]
    fn fill(&self, at: usize, into: &mut [MaybeUninit<u8>]) -> Option<()> {
        let mut from = self.pointer(at, into.len())?;
        let mut rest = into;
        // SAFETY: `into.len()` bytes are in bounds at `from`, which advances by the bytes read and
        // is as aligned as `at`; all accesses are atomic.
        unsafe {
            if at.is_multiple_of(8) {
                let (words, tail) = rest.as_chunks_mut::<8>();
                for word in words {
                    let read = AtomicU64::from_ptr(from.cast()).load(Ordering::Relaxed);
                    *word = read.to_ne_bytes().map(MaybeUninit::new);
                    from = from.add(8);
                }
                rest = tail;
            }
            if at.is_multiple_of(4) {
                let (halves, tail) = rest.as_chunks_mut::<4>();
                for half in halves {
                    let read = AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed);
                    *half = read.to_ne_bytes().map(MaybeUninit::new);
                    from = from.add(4);
                }
                rest = tail;
            }
            for byte in rest {
                byte.write(AtomicU8::from_ptr(from).load(Ordering::Relaxed));
                from = from.add(1);
            }
        }
        Some(())
    }

    /// Whether `bytes` equal the bytes at `at`; `None` out of bounds.
    #[must_use]
    pub fn equals(&self, at: usize, bytes: &[u8]) -> Option<bool> {
        self.pointer(at, bytes.len())?;
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
    /// are written in one access each.
    #[inline]
    pub fn write(&self, at: usize, from: &[u8]) -> Option<()> {
        let mut to = self.pointer(at, from.len())?;
        let mut rest = from;
        // SAFETY: `from.len()` bytes are in bounds at `to`, which advances by the bytes written and
        // is as aligned as `at`; all accesses are atomic.
        unsafe {
            if at.is_multiple_of(8) {
                let (words, tail) = rest.as_chunks::<8>();
                for word in words {
                    let word = u64::from_ne_bytes(*word);
                    AtomicU64::from_ptr(to.cast()).store(word, Ordering::Relaxed);
                    to = to.add(8);
                }
                rest = tail;
            }
            if at.is_multiple_of(4) {
                let (halves, tail) = rest.as_chunks::<4>();
                for half in halves {
                    let half = u32::from_ne_bytes(*half);
                    AtomicU32::from_ptr(to.cast()).store(half, Ordering::Relaxed);
                    to = to.add(4);
                }
                rest = tail;
            }
            for byte in rest {
                AtomicU8::from_ptr(to).store(*byte, Ordering::Relaxed);
                to = to.add(1);
            }
        }
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
        self.pointer(at, len)?;
        to.reserve(len);
        self.fill(at, to.spare_capacity_mut().get_mut(..len)?)?;
        // SAFETY: `fill` has initialised the `len` bytes after the existing ones.
        unsafe { to.set_len(to.len() + len) };
        Some(())
    }

    /// A copy of everything.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.copy(0, self.len).unwrap_or_default()
    }

    /// Sets all bytes to zero.
    pub fn clear(&self) {
        self.clear_words(0..self.cells.len());
    }

    /// Sets these 8-byte words to zero; none if the range is out of bounds.
    pub fn clear_words(&self, words: Range<usize>) {
        for cell in self.cells.get(words).unwrap_or_default() {
            // SAFETY: a cell is an aligned u64; all accesses are atomic.
            unsafe { AtomicU64::from_ptr(cell.get()) }.store(0, Ordering::Relaxed);
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
