//! A ring buffer of the kernel, as its consumer (`kernel/bpf/ringbuf.c`).
//!
//! The consumer's position is the first word of a page that it writes; the producers' is
//! that of a page which it can only read, and behind that page lies the data, twice.

#![allow(unsafe_code, reason = "memory that the kernel writes to meanwhile")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sys::{MapFd, Mapping};
use crate::spec::limits::{PAGE_SIZE, RINGBUF_BUSY, RINGBUF_DISCARD, RINGBUF_HEADER};
use crate::util::Errno;

/// The consumer of a ring buffer in the kernel. There should be one for a map.
#[derive(Debug)]
pub struct KernelRing {
    consumer: Mapping,
    producer: Mapping,
    /// Bytes of data minus 1, all ones.
    mask: u64,
}

impl KernelRing {
    pub(super) fn new(map: &MapFd) -> Result<Self, Errno> {
        let [consumer, producer] = map.map_ring()?;
        let size = (producer.size() - PAGE_SIZE as usize) as u64 / 2;
        // Only sizes that are powers of two are made.
        let mask = size.checked_sub(1).filter(|_| size.is_power_of_two());
        Ok(Self {
            consumer,
            producer,
            mask: mask.ok_or(Errno::EINVAL)?,
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
        let offset = PAGE_SIZE as usize + offset;
        let left = self.producer.size() - offset;
        // SAFETY: the mapping is a page and twice the data; the offset lies in the first.
        (unsafe { self.producer.start().add(offset) }, left)
    }

    /// Takes all records that are ready, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        let mut position = self.consumer().load(Ordering::Relaxed);
        while position < self.producer() {
            let (start, left) = self.at(position);
            // SAFETY: records begin at multiples of 8, so the header is aligned, and four
            // bytes lie there, since the second copy of the data follows; it is only read.
            let header = unsafe { AtomicU32::from_ptr(start.cast()) };
            let header = header.load(Ordering::Acquire);
            if header & RINGBUF_BUSY != 0 {
                break;
            }
            let len = (header & !RINGBUF_DISCARD) as usize;
            let head = RINGBUF_HEADER as usize;
            if header & RINGBUF_DISCARD == 0 {
                let mut record = vec![0; len.min(left - head)];
                // SAFETY: so many bytes lie behind the header, and in `record`. The kernel
                // does not write to a record that it has committed until it is taken.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        start.add(head),
                        record.as_mut_ptr(),
                        record.len(),
                    );
                }
                records.push(record);
            }
            position += (len + head).next_multiple_of(8) as u64;
            self.consumer().store(position, Ordering::Release);
        }
        records
    }
}
