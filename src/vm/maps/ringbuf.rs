//! The ring buffer (`kernel/bpf/ringbuf.c`).
//!
//! Two positions count bytes and never wrap: the producers' and the consumer's. A record is an
//! 8-byte header and its data, rounded up to 8. The header's first word is the data's length,
//! with bit 31 set while the record is being written (busy), and bit 30 if it was discarded.
//! Records are consumed in the order in which they were reserved: a busy record blocks later
//! ones.
//!
//! The kernel maps the data area twice in a row, so that a record that wraps is contiguous. Here
//! the area has twice the size, and such a record extends into the second half.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::super::memory::SharedBytes;
use super::base::Base;
use super::lock::Lock;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{RingbufFlags, UpdateFlags, limits};
use crate::util::Errno;

/// `BPF_MAP_TYPE_RINGBUF`.
///
/// As in the kernel, producers take a lock to reserve, and none to commit. Any thread may
/// consume; one at a time.
#[derive(Debug)]
pub struct RingBuf {
    base: Base,
    /// Bytes of data, a power of two.
    size: u64,
    area: Arc<SharedBytes>,
    /// The consumer's position. A producer that sees it advanced may reuse the bytes before it.
    consumer: AtomicU64,
    /// Position of the next record. A reader that sees it advanced sees the headers before it.
    producer: AtomicU64,
    /// Lock for reserving; position of the oldest record that may still be busy.
    pending: Lock<u64>,
    /// Lock for consuming.
    consuming: Lock<()>,
    /// How often a sleeping consumer was woken.
    wakeups: AtomicU64,
}

/// A reserved record: the position of its data in the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Record {
    /// Offset of the data's first byte.
    pub at: usize,
    /// Bytes of data.
    pub len: usize,
}

const HEADER: u64 = limits::RINGBUF_HEADER as u64;
const BUSY: u64 = limits::RINGBUF_BUSY as u64;
const DISCARD: u64 = limits::RINGBUF_DISCARD as u64;

/// Total size of a record with this header.
const fn span(header: u64) -> u64 {
    ((header & !(BUSY | DISCARD)) + HEADER).next_multiple_of(8)
}

impl RingBuf {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        let size = u64::from(def.max_entries);
        Self {
            base: Base::new(def, cpus),
            size,
            area: Arc::new(SharedBytes::zeroed(def.max_entries as usize * 2)),
            consumer: AtomicU64::new(0),
            producer: AtomicU64::new(0),
            pending: Lock::new(0),
            consuming: Lock::new(()),
            wakeups: AtomicU64::new(0),
        }
    }

    /// The data area, with the records at their [`Record`] positions.
    #[must_use]
    pub const fn area(&self) -> &Arc<SharedBytes> {
        &self.area
    }

    /// Offset of a position in the area.
    fn offset(&self, position: u64) -> usize {
        usize::try_from(position & (self.size - 1)).unwrap_or_default()
    }

    /// The first word of the header at a position. A reader that sees a committed record sees its
    /// data.
    fn header(&self, position: u64) -> u64 {
        let header = self.area.load(self.offset(position), 4);
        fence(Ordering::Acquire);
        header.unwrap_or(BUSY)
    }

    /// Reserves a record of `size` bytes; `None` if there is no room (`__bpf_ringbuf_reserve`).
    /// The record's bytes are not cleared.
    #[must_use]
    pub fn reserve(&self, size: u64) -> Option<Record> {
        if size > u64::from(limits::RINGBUF_MAX_RECORD) || span(size) > self.size {
            return None;
        }
        let consumer = self.consumer.load(Ordering::Acquire);
        let mut pending = self.pending.lock();
        // Only changed while the lock is held.
        let producer = self.producer.load(Ordering::Relaxed);
        while *pending < producer {
            let header = self.header(*pending);
            if header & BUSY != 0 {
                break;
            }
            *pending += span(header);
        }
        // One byte stays free, so that a full ring differs from an empty one.
        let end = producer + span(size);
        let mask = self.size - 1;
        if end - consumer > mask || end - *pending > mask {
            return None;
        }
        let at = self.offset(producer);
        let page = at as u64 / u64::from(limits::PAGE_SIZE);
        let header = size | BUSY | page << 32;
        self.area.store(at, 8, header)?;
        self.producer.store(end, Ordering::Release);
        Some(Record {
            at: at + limits::RINGBUF_HEADER as usize,
            len: usize::try_from(size).ok()?,
        })
    }

    /// Commits or discards a reserved record (`bpf_ringbuf_commit`). Returns whether this wakes a
    /// sleeping consumer: if it had read everything before this record, or as flags say.
    pub fn commit(&self, record: Record, flags: RingbufFlags, discard: bool) -> bool {
        let at = record.at.saturating_sub(limits::RINGBUF_HEADER as usize);
        let flag = if discard { DISCARD } else { 0 };
        // The consumer stores its position and then loads the header; a producer does it the
        // other way round. So one of the two sees the other's store.
        self.area.update(at, 8, |header| header & !BUSY | flag);
        let caught_up = self.offset(self.consumer.load(Ordering::SeqCst)) == at;
        let wakes = flags.contains(RingbufFlags::FORCE_WAKEUP)
            || caught_up && !flags.contains(RingbufFlags::NO_WAKEUP);
        if wakes {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
        wakes
    }

    /// Consumes all records that are ready, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        self.consume(|record| records.extend(self.area.copy(record.at, record.len)));
        records
    }

    /// Consumes all records that are ready without returning them.
    pub fn skip(&self) {
        self.consume(|_| {});
    }

    fn consume(&self, mut each: impl FnMut(Record)) {
        let _guard = self.consuming.lock();
        let mut consumer = self.consumer.load(Ordering::Relaxed);
        while consumer < self.producer.load(Ordering::Acquire) {
            let header = self.header(consumer);
            if header & BUSY != 0 {
                break;
            }
            if header & DISCARD == 0 {
                each(Record {
                    at: self.offset(consumer) + limits::RINGBUF_HEADER as usize,
                    len: usize::try_from(header).unwrap_or_default(),
                });
            }
            consumer += span(header);
            self.consumer.store(consumer, Ordering::Release);
            // See `commit`: before the next header is loaded.
            fence(Ordering::SeqCst);
        }
    }

    /// Size of the data area, headers included.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The consumer's position, in bytes since the beginning.
    #[must_use]
    pub fn consumer_position(&self) -> u64 {
        self.consumer.load(Ordering::Acquire)
    }

    /// The producers' position, in bytes since the beginning.
    #[must_use]
    pub fn producer_position(&self) -> u64 {
        self.producer.load(Ordering::Acquire)
    }

    /// Bytes between the two positions, busy records included.
    #[must_use]
    pub fn available(&self) -> u64 {
        // Load the consumer's position first: then it is not ahead of the producer's.
        let consumer = self.consumer_position();
        self.producer_position() - consumer
    }

    /// How often a consumer that sleeps in `epoll_wait` was woken.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }
}

impl Map for RingBuf {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::RingBuf(self)
    }

    fn sys_lookup(&self, _key: &[u8]) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn sys_update(&self, _key: &[u8], _value: &[u8], _flags: UpdateFlags) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn sys_delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn sys_next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }
}
