//! A ring buffer of the kernel, as its consumer (`kernel/bpf/ringbuf.c`).
//!
//! The consumer's position is the first word of a page that it writes; the producers' is
//! that of a page which it can only read, and behind that page lies the data, twice, so
//! that each record is in one piece.

#![allow(unsafe_code, reason = "memory that the kernel writes to meanwhile")]

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::kernel::sys::{MapFd, Mapping, page_size, poll};
use crate::spec::limits::{RINGBUF_BUSY, RINGBUF_DISCARD, RINGBUF_HEADER};
use crate::util::Errno;

/// The consumer of a ring buffer in the kernel, the only one of its map in this process.
///
/// It copes with half a million records a second and more: reading one takes some
/// nanoseconds, and nothing is copied or allocated.
#[derive(Debug)]
pub struct KernelRing {
    consumer: Mapping,
    producer: Mapping,
    page: usize,
    /// Bytes of data minus 1, all ones.
    mask: u64,
    map: MapFd,
    /// Whether `drain` is under way.
    busy: AtomicBool,
    _turn: Turn,
}

/// The right to read a map's ring, which is given back when this is dropped.
#[derive(Debug)]
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(read: &Arc<AtomicBool>) -> Result<Self, Errno> {
        match read.swap(true, Ordering::Acquire) {
            true => Err(Errno::EBUSY),
            false => Ok(Self(read.clone())),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A reading that is under way. Its end, also by a panic, tells the kernel which records
/// were read.
struct Reading<'a> {
    ring: &'a KernelRing,
    at: u64,
    told: u64,
}

impl Reading<'_> {
    fn tell(&mut self) {
        self.ring.consumer().store(self.at, Ordering::Release);
        self.told = self.at;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.tell();
        self.ring.busy.store(false, Ordering::Release);
    }
}

impl KernelRing {
    pub(in crate::kernel) fn new(map: &MapFd) -> Result<Self, Errno> {
        let turn = Turn::take(map.is_read())?;
        let [consumer, producer] = map.map_ring()?;
        let page = page_size();
        let size = producer.size().saturating_sub(page) as u64 / 2;
        // Only sizes that are powers of two are made.
        let mask = size.checked_sub(1).filter(|_| size.is_power_of_two());
        Ok(Self {
            consumer,
            producer,
            page,
            mask: mask.ok_or(Errno::EINVAL)?,
            map: map.try_clone()?,
            busy: AtomicBool::new(false),
            _turn: turn,
        })
    }

    /// The consumer's position.
    fn consumer(&self) -> &AtomicU64 {
        // SAFETY: the page begins with this word, is aligned, stays mapped as long as
        // `self`, and nobody but this type, by atomic accesses, and the kernel use it.
        unsafe { AtomicU64::from_ptr(self.consumer.start().cast()) }
    }

    /// The producers' position.
    fn producer(&self) -> u64 {
        // SAFETY: as above; the page can only be read, which is all that is done.
        let position = unsafe { AtomicU64::from_ptr(self.producer.start().cast()) };
        position.load(Ordering::Acquire)
    }

    /// The byte of the data at a position, and how many lie from there on.
    fn at(&self, position: u64) -> (*mut u8, usize) {
        let offset = usize::try_from(position & self.mask).unwrap_or_default();
        let offset = self.page + offset;
        let left = self.producer.size() - offset;
        // SAFETY: the mapping is a page and twice the data; the offset lies in the first.
        (unsafe { self.producer.start().add(offset) }, left)
    }

    /// Hands over all records that are ready, oldest first, without copying them; says how
    /// many. The kernel has the room for new ones as the reading goes on, and what comes
    /// meanwhile is read as well. Discarded records are passed over.
    ///
    /// A reading inside of another, by `each` or in another thread, finds nothing.
    pub fn drain(&self, mut each: impl FnMut(&[u8])) -> usize {
        if self.busy.swap(true, Ordering::Acquire) {
            return 0;
        }
        let at = self.consumer().load(Ordering::Relaxed);
        let mut reading = Reading {
            ring: self,
            at,
            told: at,
        };
        let mut count = 0;
        loop {
            let end = self.producer();
            let mut is_stopped = false;
            while reading.at < end && !is_stopped {
                is_stopped = !self.record(&mut reading, &mut count, &mut each);
            }
            if reading.told == reading.at {
                return count;
            }
            reading.tell();
            // Who sends a record wakes the reader only if that has read all others. So the
            // position must be seen before the next record is looked for.
            fence(Ordering::SeqCst);
        }
    }

    /// Reads one record; whether it was ready.
    fn record(
        &self,
        reading: &mut Reading<'_>,
        count: &mut usize,
        each: &mut impl FnMut(&[u8]),
    ) -> bool {
        let (start, left) = self.at(reading.at);
        // SAFETY: records begin at multiples of 8, so the header is aligned, and four
        // bytes lie there, since the second copy of the data follows; it is only read.
        let header = unsafe { AtomicU32::from_ptr(start.cast()) };
        let header = header.load(Ordering::Acquire);
        if header & RINGBUF_BUSY != 0 {
            return false;
        }
        let len = (header & !RINGBUF_DISCARD) as usize;
        let head = RINGBUF_HEADER as usize;
        reading.at += (len + head).next_multiple_of(8) as u64;
        if header & RINGBUF_DISCARD == 0 {
            *count += 1;
            // SAFETY: so many bytes lie behind the header. The kernel does not write to a
            // record that is sent until the consumer's position is behind it, which `each`
            // can't bring about: only this reading, of which there is one at a time, tells
            // positions, and it does so between records.
            let record = unsafe {
                std::slice::from_raw_parts(start.add(head), len.min(left.saturating_sub(head)))
            };
            each(record);
        }
        if reading.at.wrapping_sub(reading.told) > self.mask / 8 {
            reading.tell();
        }
        true
    }

    /// Takes all records that are ready, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        self.drain(|record| records.push(record.to_vec()));
        records
    }

    /// Bytes of records that are there, or being written.
    #[must_use]
    pub fn filled(&self) -> u64 {
        let consumer = self.consumer().load(Ordering::Relaxed);
        self.producer().saturating_sub(consumer)
    }

    /// Waits until there is a record, or for so long (forever without a time): whether
    /// there is. A signal ends the waiting.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
        Ok(poll(&[self.as_fd()], timeout)? > 0)
    }
}

impl AsFd for KernelRing {
    /// The map, which is ready to be read when there is a record.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
