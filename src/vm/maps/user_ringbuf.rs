//! Ring buffers that user space fills and programs drain (`kernel/bpf/ringbuf.c`; the
//! producer's side is libbpf's `user_ring_buffer__reserve` and its like).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::memory::SharedBytes;
use super::base::Base;
use super::lock::Lock;
use super::ringbuf::Record;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{RingbufFlags, UpdateFlags, limits};
use crate::util::Errno;

/// `BPF_MAP_TYPE_USER_RINGBUF`. Samples lie one behind the other, each a header and its
/// bytes; one that reaches past the end of the ring goes on behind it, where the kernel
/// has the ring mapped a second time.
#[derive(Debug)]
pub struct UserRingBuf {
    base: Base,
    /// Bytes of data, a power of two.
    size: u64,
    area: Arc<SharedBytes>,
    /// Where the program reads next.
    consumer: AtomicU64,
    /// Where the next sample will be. Whoever sees it further sees the headers before it.
    producer: AtomicU64,
    /// Held by a producer that reserves.
    producing: Lock<()>,
    /// Whether a program drains it.
    busy: AtomicBool,
    wakeups: AtomicU64,
}

/// What a program finds at the consumer's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing, or a sample that is still being written.
    Nothing,
    /// A sample that was discarded: it was skipped.
    Skipped,
    /// A sample, to be [released](Draining::release).
    Sample(Record),
}

const HEADER: u64 = limits::RINGBUF_HEADER as u64;
const BUSY: u64 = limits::RINGBUF_BUSY as u64;
const DISCARD: u64 = limits::RINGBUF_DISCARD as u64;
/// The most bytes that a dynptr leads to (`DYNPTR_MAX_SIZE`, `include/linux/bpf.h`).
const MAX_SAMPLE: u64 = (1 << 24) - 1;

/// Bytes that a sample of this length takes.
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

    /// The data area; samples lie in it as [`Record`] says.
    #[must_use]
    pub const fn area(&self) -> &Arc<SharedBytes> {
        &self.area
    }

    /// Where a position is in the area.
    fn offset(&self, position: u64) -> usize {
        usize::try_from(position & (self.size - 1)).unwrap_or_default()
    }

    /// Reserves a sample of `len` bytes, to be written in the [area](Self::area) and
    /// [committed](Self::commit).
    ///
    /// # Errors
    /// `E2BIG` where the ring can't hold it, `ENOSPC` where it has no room now.
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
        let word = self.area.word(at / 8).ok_or(Errno::E2BIG)?;
        word.store((length | BUSY).to_le(), Ordering::Relaxed);
        self.producer
            .store(producer + span(length), Ordering::Release);
        Ok(Record {
            at: at + limits::RINGBUF_HEADER as usize,
            len,
        })
    }

    /// Hands a reserved sample to programs, or drops it.
    pub fn commit(&self, sample: Record, discard: bool) {
        let flag = if discard { DISCARD } else { 0 };
        let at = sample.at.saturating_sub(limits::RINGBUF_HEADER as usize);
        if let Some(word) = self.area.word(at / 8) {
            let header = u64::from_le(word.load(Ordering::Relaxed)) & !BUSY | flag;
            word.store(header.to_le(), Ordering::Release);
        }
    }

    /// Puts a sample of these bytes in.
    ///
    /// # Errors
    /// As of [`reserve`](Self::reserve).
    pub fn produce(&self, bytes: &[u8]) -> Result<(), Errno> {
        let sample = self.reserve(bytes.len())?;
        let written = self.area.write(sample.at, bytes);
        self.commit(sample, written.is_none());
        written.ok_or(Errno::E2BIG)
    }

    /// Begins to drain, for one program at a time.
    ///
    /// # Errors
    /// `EBUSY` where another one does.
    pub fn drain(&self) -> Result<Draining<'_>, Errno> {
        let begun = self
            .busy
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        begun.map(|_| Draining(self)).map_err(|_| Errno::EBUSY)
    }

    /// Bytes that samples take which wait, those that are being written included.
    #[must_use]
    pub fn available(&self) -> u64 {
        // The consumer is never ahead; it must not be read later.
        let consumer = self.consumer.load(Ordering::Acquire);
        self.producer.load(Ordering::Acquire) - consumer
    }

    /// How often a producer that waits for room has been woken.
    #[must_use]
    pub fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Wakes a producer that waits for room, as the flags of a drain say.
    pub fn wake(&self, samples: u64, flags: RingbufFlags) {
        let wakes = flags.contains(RingbufFlags::FORCE_WAKEUP)
            || samples > 0 && !flags.contains(RingbufFlags::NO_WAKEUP);
        if wakes {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The right to drain a ring; it ends with this value.
#[derive(Debug)]
pub struct Draining<'a>(&'a UserRingBuf);

impl Draining<'_> {
    /// What comes next (`__bpf_user_ringbuf_peek`).
    ///
    /// # Errors
    /// `EINVAL` and `E2BIG` for a header that a test wrote and no producer does; `E2BIG`
    /// for a sample that a dynptr can't hold.
    pub fn next(&self) -> Result<Next, Errno> {
        let ring = self.0;
        let consumer = ring.consumer.load(Ordering::Relaxed);
        let waiting = ring.producer.load(Ordering::Acquire) - consumer;
        if waiting == 0 {
            return Ok(Next::Nothing);
        }
        let at = ring.offset(consumer);
        let word = ring.area.word(at / 8).ok_or(Errno::EINVAL)?;
        let header = u64::from_le(word.load(Ordering::Acquire)) & u64::from(u32::MAX);
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

    /// Gives the room of the sample that came last back to producers.
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
