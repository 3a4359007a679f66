//! User ring buffers: user space produces, programs drain (`kernel/bpf/ringbuf.c`; the
//! producer's side is libbpf's `user_ring_buffer__reserve` and its siblings).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use super::super::memory::SharedBytes;
use super::base::Base;
use super::lock::Lock;
use super::ringbuf::Record;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{RingbufFlags, UpdateFlags, limits};
use crate::util::Errno;

/// `BPF_MAP_TYPE_USER_RINGBUF`. Samples are contiguous, each with a header. One that exceeds the
/// end of the ring continues after it, where the kernel maps the ring a second time.
#[derive(Debug)]
pub struct UserRingBuf {
    base: Base,
    /// Bytes of data, a power of two.
    size: u64,
    area: Arc<SharedBytes>,
    /// The consumer's position.
    consumer: AtomicU64,
    /// Position of the next sample. A reader that sees it advanced sees the headers before it.
    producer: AtomicU64,
    /// Lock for reserving.
    producing: Lock<()>,
    /// Whether a program drains the ring.
    busy: AtomicBool,
    wakeups: AtomicU64,
}

/// What a program finds at the consumer's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// No sample, or a busy one.
    Nothing,
    /// A discarded sample, which was skipped.
    Skipped,
    /// A sample, to be [released](Draining::release).
    Sample(Record),
}

const HEADER: u64 = limits::RINGBUF_HEADER as u64;
const BUSY: u64 = limits::RINGBUF_BUSY as u64;
const DISCARD: u64 = limits::RINGBUF_DISCARD as u64;
/// The maximum size of a dynptr (`DYNPTR_MAX_SIZE`, `include/linux/bpf.h`).
const MAX_SAMPLE: u64 = (1 << 24) - 1;

/// Total size of a sample with this length.
const fn span(len: u64) -> u64 {
    (len + HEADER).next_multiple_of(8)
}

impl UserRingBuf {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            size: u64::from(def.max_entries),
            area: Arc::new(SharedBytes::zeroed(def.max_entries as usize * 2)),
            consumer: AtomicU64::new(0),
            producer: AtomicU64::new(0),
            producing: Lock::new(()),
            busy: AtomicBool::new(false),
            wakeups: AtomicU64::new(0),
        }
    }

    /// The data area, with the samples at their [`Record`] positions.
    #[must_use]
    pub const fn area(&self) -> &Arc<SharedBytes> {
        &self.area
    }

    /// Offset of a position in the area.
    fn offset(&self, position: u64) -> usize {
        usize::try_from(position & (self.size - 1)).unwrap_or_default()
    }

    /// Reserves a sample of `len` bytes. Write it to the [area](Self::area) and
    /// [commit](Self::commit) it.
    ///
    /// # Errors
    /// `E2BIG` if it is larger than the ring, `ENOSPC` if there is no room now.
    pub fn reserve(&self, len: usize) -> Result<Record, Errno> {
        let length = u64::try_from(len).map_err(|_| Errno::E2BIG)?;
        if length >= DISCARD || span(length) > self.size {
            return Err(Errno::E2BIG);
        }
        let _guard = self.producing.lock();
        let producer = self.producer.load(Ordering::Relaxed);
        let used = producer - self.consumer.load(Ordering::Acquire);
        if self.size - used < span(length) {
            return Err(Errno::ENOSPC);
        }
        let at = self.offset(producer);
        let stored = self.area.store(at, 8, length | BUSY);
        stored.ok_or(Errno::E2BIG)?;
        self.producer
            .store(producer + span(length), Ordering::Release);
        Ok(Record {
            at: at + limits::RINGBUF_HEADER as usize,
            len,
        })
    }

    /// Commits or discards a reserved sample.
    pub fn commit(&self, sample: Record, discard: bool) {
        let flag = if discard { DISCARD } else { 0 };
        let at = sample.at.saturating_sub(limits::RINGBUF_HEADER as usize);
        if let Some(header) = self.area.load(at, 8) {
            // A reader that sees the header sees the sample.
            fence(Ordering::Release);
            self.area.store(at, 8, header & !BUSY | flag);
        }
    }

    /// Adds a sample with these bytes.
    ///
    /// # Errors
    /// As for [`reserve`](Self::reserve).
    pub fn produce(&self, bytes: &[u8]) -> Result<(), Errno> {
        let sample = self.reserve(bytes.len())?;
        let written = self.area.write(sample.at, bytes);
        self.commit(sample, written.is_none());
        written.ok_or(Errno::E2BIG)
    }

    /// Starts draining; one program at a time.
    ///
    /// # Errors
    /// `EBUSY` if another program drains the ring.
    pub fn drain(&self) -> Result<Draining<'_>, Errno> {
        let begun = self
            .busy
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        begun.map(|_| Draining(self)).map_err(|_| Errno::EBUSY)
    }

    /// Bytes of the waiting samples, busy ones included.
    #[must_use]
    pub fn available(&self) -> u64 {
        // Load the consumer's position first: then it is not ahead of the producer's.
        let consumer = self.consumer.load(Ordering::Acquire);
        self.producer.load(Ordering::Acquire) - consumer
    }

    /// How often a producer that waits for room was woken.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Wakes a producer that waits for room, depending on the flags of a drain.
    pub fn wake(&self, samples: u64, flags: RingbufFlags) {
        let wakes = flags.contains(RingbufFlags::FORCE_WAKEUP)
            || samples > 0 && !flags.contains(RingbufFlags::NO_WAKEUP);
        if wakes {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The right to drain a ring, until it is dropped.
#[derive(Debug)]
pub struct Draining<'a>(&'a UserRingBuf);

impl Draining<'_> {
    /// The next sample (`__bpf_user_ringbuf_peek`).
    ///
    /// # Errors
    /// `EINVAL` and `E2BIG` for an invalid header that a test wrote; `E2BIG` for a sample that
    /// is too large for a dynptr.
    pub fn next(&self) -> Result<Next, Errno> {
        let ring = self.0;
        let consumer = ring.consumer.load(Ordering::Relaxed);
        let waiting = ring.producer.load(Ordering::Acquire) - consumer;
        if waiting == 0 {
            return Ok(Next::Nothing);
        }
        let at = ring.offset(consumer);
        let header = ring.area.load(at, 4).ok_or(Errno::EINVAL)?;
        fence(Ordering::Acquire);
        let len = header & !(BUSY | DISCARD);
        if span(len) > waiting {
            return Err(Errno::EINVAL);
        }
        if span(len) > ring.size || len > MAX_SAMPLE {
            return Err(Errno::E2BIG);
        }
        if header & BUSY != 0 {
            return Ok(Next::Nothing);
        }
        if header & DISCARD != 0 {
            ring.consumer.store(consumer + span(len), Ordering::Release);
            return Ok(Next::Skipped);
        }
        Ok(Next::Sample(Record {
            at: at + limits::RINGBUF_HEADER as usize,
            len: usize::try_from(len).unwrap_or_default(),
        }))
    }

    /// Releases the room of the latest sample to producers.
    pub fn release(&self, sample: Record) {
        let consumer = self.0.consumer.load(Ordering::Relaxed);
        let next = consumer + span(sample.len as u64);
        self.0.consumer.store(next, Ordering::Release);
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Map for UserRingBuf {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::UserRingBuf(self)
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
