//! The consumer of a BPF ring buffer in the kernel (`kernel/bpf/ringbuf.c`).
//!
//! The consumer's position is the first word of a writable page; the producers' is the first
//! word of a read-only page. After that page the data is mapped twice, so that each record is
//! contiguous.

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
/// It keeps up with half a million records a second and more: reading one takes some
/// nanoseconds, and nothing is copied or allocated.
#[derive(Debug)]
pub struct KernelRing {
    consumer: Mapping,
    producer: Mapping,
    page: usize,
    /// Bytes of data minus 1, a bit mask.
    mask: u64,
    map: MapFd,
    /// Whether `drain` is running.
    busy: AtomicBool,
    _lock: ConsumerLock,
}

/// The right to be the map's only consumer, released on drop.
#[derive(Debug)]
struct ConsumerLock(Arc<AtomicBool>);

impl ConsumerLock {
    fn take(read: &Arc<AtomicBool>) -> Result<Self, Errno> {
        match read.swap(true, Ordering::Acquire) {
            true => Err(Errno::EBUSY),
            false => Ok(Self(read.clone())),
        }
    }
}

impl Drop for ConsumerLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A running `drain`. Its drop, also after a panic, publishes the consumer's position.
struct Reading<'a> {
    ring: &'a KernelRing,
    at: u64,
    published: u64,
}

impl Reading<'_> {
    fn publish(&mut self) {
        self.ring.consumer().store(self.at, Ordering::Release);
        self.published = self.at;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.publish();
        self.ring.busy.store(false, Ordering::Release);
    }
}

impl KernelRing {
    pub(in crate::kernel) fn new(map: &MapFd) -> Result<Self, Errno> {
        let turn = ConsumerLock::take(map.is_read())?;
        let [consumer, producer] = map.map_ring()?;
        let page = page_size();
        let size = producer.size().saturating_sub(page) as u64 / 2;
        // The kernel only creates ring buffers whose size is a power of two.
        let mask = size.checked_sub(1).filter(|_| size.is_power_of_two());
        Ok(Self {
            consumer,
            producer,
            page,
            mask: mask.ok_or(Errno::EINVAL)?,
            map: map.try_clone()?,
            busy: AtomicBool::new(false),
            _lock: turn,
        })
    }

    /// The consumer's position.
    fn consumer(&self) -> &AtomicU64 {
        // SAFETY: the page begins with this word, is aligned and stays mapped as long as
        // `self`; only this type, atomically, and the kernel access it.
        unsafe { AtomicU64::from_ptr(self.consumer.start().cast()) }
    }

    /// The producers' position.
    fn producer(&self) -> u64 {
        // SAFETY: as above; the page is read-only and only read.
        let position = unsafe { AtomicU64::from_ptr(self.producer.start().cast()) };
        position.load(Ordering::Acquire)
    }

    /// The byte of the data at a position, and the number of mapped bytes from there.
    fn at(&self, position: u64) -> (*mut u8, usize) {
        let offset = usize::try_from(position & self.mask).unwrap_or_default();
        let offset = self.page + offset;
        let left = self.producer.size() - offset;
        // SAFETY: the mapping is a page and twice the data; the offset lies in the first copy.
        (unsafe { self.producer.start().add(offset) }, left)
    }

    /// Passes each ready record to `each`, oldest first, without copying. Returns their number.
    /// Frees room for the kernel as it goes, and also reads records that arrive meanwhile.
    /// Discarded records are skipped.
    ///
    /// A call within another, from `each` or in another thread, reads nothing.
    pub fn drain(&self, mut each: impl FnMut(&[u8])) -> usize {
        if self.busy.swap(true, Ordering::Acquire) {
            return 0;
        }
        let at = self.consumer().load(Ordering::Relaxed);
        let mut reading = Reading {
            ring: self,
            at,
            published: at,
        };
        let mut count = 0;
        loop {
            let end = self.producer();
            let mut is_stopped = false;
            while reading.at < end && !is_stopped {
                is_stopped = !self.record(&mut reading, &mut count, &mut each);
            }
            if reading.published == reading.at {
                return count;
            }
            reading.publish();
            // A producer wakes the reader only if all other records have been read. So the
            // position must be visible before the next record is looked for.
            fence(Ordering::SeqCst);
        }
    }

    /// Reads one record; returns whether it was ready.
    fn record(
        &self,
        reading: &mut Reading<'_>,
        count: &mut usize,
        each: &mut impl FnMut(&[u8]),
    ) -> bool {
        let (start, left) = self.at(reading.at);
        // SAFETY: records begin at multiples of 8, so the header is aligned, and four bytes
        // follow, since the data is mapped twice; the header is only read.
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
            // SAFETY: as many bytes follow the header. The kernel does not write to a submitted
            // record until the consumer's position is past it. `each` can't move that position:
            // only this `drain`, which runs once at a time, publishes it, and does so between
            // records.
            let record = unsafe {
                std::slice::from_raw_parts(start.add(head), len.min(left.saturating_sub(head)))
            };
            each(record);
        }
        if reading.at.wrapping_sub(reading.published) > self.mask / 8 {
            reading.publish();
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

    /// Bytes of records that are unread or being written.
    #[must_use]
    pub fn filled(&self) -> u64 {
        let consumer = self.consumer().load(Ordering::Relaxed);
        self.producer().saturating_sub(consumer)
    }

    /// Waits for a record, at most for `timeout` (forever without one). Returns whether there
    /// is one. A signal ends the wait.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
        Ok(poll(&[self.as_fd()], timeout)? > 0)
    }
}

impl AsFd for KernelRing {
    /// The map, which becomes readable when there is a record.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
