//! The ring buffer (`kernel/bpf/ringbuf.c`): one for all CPUs, records of any
//! size, consumed in the order in which they were reserved.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{UpdateFlags, limits};
use crate::util::Errno;
use crate::vm::memory::SharedBytes;

/// Bytes before each record: its length with two flags, and the kernel's page
/// offset, which is unused here (`BPF_RINGBUF_HDR_SZ`).
const HEADER: usize = 8;
/// The record is being written (`BPF_RINGBUF_BUSY_BIT`).
const BUSY: u32 = 1 << 31;
/// The record was given up (`BPF_RINGBUF_DISCARD_BIT`).
const DISCARD: u32 = 1 << 30;

/// `BPF_MAP_TYPE_RINGBUF`.
#[derive(Debug)]
pub struct RingBuf {
    def: MapDef,
    /// Twice the ring's size: a record that begins before the end goes on behind
    /// it, where the kernel maps the same pages a second time. Nobody else uses
    /// those bytes while the record is there.
    bytes: Arc<SharedBytes>,
    positions: Mutex<Positions>,
}

/// Bytes since the beginning; they only rise.
#[derive(Debug, Default)]
struct Positions {
    producer: u64,
    consumer: u64,
    /// The oldest record that may still be busy.
    pending: u64,
}

/// A record that waits to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// The position of its header, which names it.
    pub record: u64,
    /// Where its bytes begin in [`RingBuf::bytes`].
    pub offset: usize,
}

/// What `bpf_ringbuf_query` asks for (`BPF_RB_*`).
const AVAIL_DATA: u64 = 0;
const RING_SIZE: u64 = 1;
const CONS_POS: u64 = 2;
const PROD_POS: u64 = 3;

impl RingBuf {
    pub(super) fn new(def: MapDef) -> Self {
        let bytes = SharedBytes::zeroed(2 * def.max_entries as usize);
        Self {
            def,
            bytes: Arc::new(bytes),
            positions: Mutex::default(),
        }
    }

    /// The block that records lie in.
    #[must_use]
    pub const fn bytes(&self) -> &Arc<SharedBytes> {
        &self.bytes
    }

    fn positions(&self) -> MutexGuard<'_, Positions> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn size(&self) -> u64 {
        u64::from(self.def.max_entries)
    }

    /// Where a position lies in the block.
    fn offset(&self, position: u64) -> usize {
        // Below the ring's size, which is a u32.
        usize::try_from(position % self.size().max(1)).unwrap_or_default()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a header is a u32")]
    fn header(&self, position: u64) -> u32 {
        self.bytes
            .load(self.offset(position), 4)
            .unwrap_or_default() as u32
    }

    fn set_header(&self, position: u64, header: u32) {
        // In bounds: the block is twice the ring.
        let _ = self
            .bytes
            .store(self.offset(position), 4, u64::from(header));
    }

    /// Makes room for a record of `size` bytes (`__bpf_ringbuf_reserve`).
    ///
    /// # Errors
    /// `E2BIG` for a record that never fits, `EAGAIN` while there is no room.
    pub fn reserve(&self, size: u64) -> Result<Reserved, Errno> {
        let len = u32::try_from(size)
            .ok()
            .filter(|len| *len <= limits::RINGBUF_MAX_RECORD);
        let len = len.ok_or(Errno::E2BIG)?;
        let whole = (size + HEADER as u64).next_multiple_of(8);
        if whole > self.size() {
            return Err(Errno::E2BIG);
        }
        let mut positions = self.positions();
        while positions.pending < positions.producer {
            let header = self.header(positions.pending);
            if header & BUSY != 0 {
                break;
            }
            positions.pending += span(header);
        }
        let record = positions.producer;
        let end = record + whole;
        let mask = self.size() - 1;
        if end - positions.consumer > mask || end - positions.pending > mask {
            return Err(Errno::EAGAIN);
        }
        positions.producer = end;
        self.set_header(record, len | BUSY);
        Ok(Reserved {
            record,
            offset: self.offset(record) + HEADER,
        })
    }

    /// Hands a reserved record over to the consumer, or gives it up; its bytes.
    pub fn commit(&self, record: u64, discard: bool) -> Option<Vec<u8>> {
        let header = self.header(record);
        if header & BUSY == 0 {
            return None;
        }
        let len = header & !BUSY;
        self.set_header(record, len | if discard { DISCARD } else { 0 });
        self.bytes.copy(self.offset(record) + HEADER, len as usize)
    }

    /// Takes the records that are ready, oldest first, up to the first one that is
    /// still being written.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut positions = self.positions();
        let mut records = Vec::new();
        while positions.consumer < positions.producer {
            let header = self.header(positions.consumer);
            if header & BUSY != 0 {
                break;
            }
            if header & DISCARD == 0 {
                let len = (header & !DISCARD) as usize;
                records.extend(
                    self.bytes
                        .copy(self.offset(positions.consumer) + HEADER, len),
                );
            }
            positions.consumer += span(header);
        }
        positions.pending = positions.pending.max(positions.consumer);
        records
    }

    /// What `bpf_ringbuf_query` returns.
    #[must_use]
    pub fn query(&self, what: u64) -> u64 {
        let positions = self.positions();
        match what {
            AVAIL_DATA => positions.producer - positions.consumer,
            RING_SIZE => self.size(),
            CONS_POS => positions.consumer,
            PROD_POS => positions.producer,
            _ => 0,
        }
    }
}

/// Bytes from a record's header to the next one's.
fn span(header: u32) -> u64 {
    (u64::from(header & !(BUSY | DISCARD)) + HEADER as u64).next_multiple_of(8)
}

impl Map for RingBuf {
    fn def(&self) -> &MapDef {
        &self.def
    }

    fn kind(&self) -> Kind<'_> {
        Kind::RingBuf(self)
    }

    fn lookup(&self, _cpu: u32, _key: &[u8]) -> Result<Option<usize>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn update(
        &self,
        _cpu: u32,
        _key: &[u8],
        _value: &[u8],
        _flags: UpdateFlags,
    ) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn next_key(&self, _key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::spec::MapType;

    fn ring() -> RingBuf {
        RingBuf::new(MapDef::new("rb", MapType::Ringbuf, 0, 0, 4096))
    }

    fn put(ring: &RingBuf, data: &[u8]) -> Result<(), Errno> {
        let reserved = ring.reserve(data.len() as u64)?;
        ring.bytes.write(reserved.offset, data).unwrap();
        ring.commit(reserved.record, false).unwrap();
        Ok(())
    }

    #[test]
    fn a_busy_record_holds_back_the_later_ones() {
        let ring = ring();
        let first = ring.reserve(3).unwrap();
        put(&ring, b"later").unwrap();
        assert!(ring.take().is_empty());
        ring.bytes.write(first.offset, b"one").unwrap();
        assert_eq!(ring.commit(first.record, false), Some(b"one".to_vec()));
        assert_eq!(ring.commit(first.record, false), None);
        assert_eq!(ring.take(), [b"one".to_vec(), b"later".to_vec()]);
    }

    #[test]
    fn discarded_records_are_not_seen_and_free_their_room() {
        let ring = ring();
        let first = ring.reserve(4000).unwrap();
        assert_eq!(ring.reserve(100), Err(Errno::EAGAIN));
        ring.commit(first.record, true);
        assert_eq!(ring.query(AVAIL_DATA), 4008);
        assert!(ring.take().is_empty());
        assert_eq!(ring.query(AVAIL_DATA), 0);
        assert_eq!(put(&ring, &[7; 100]), Ok(()));
        assert_eq!(ring.take(), [vec![7; 100]]);
    }

    #[test]
    fn a_record_never_fills_the_ring() {
        let ring = ring();
        assert_eq!(ring.reserve(4096), Err(Errno::E2BIG));
        assert_eq!(ring.reserve(u64::MAX), Err(Errno::E2BIG));
        // Producer and consumer must not meet: one byte less than the size.
        assert_eq!(ring.reserve(4088), Err(Errno::EAGAIN));
        assert!(ring.reserve(4080).is_ok());
        assert_eq!((ring.query(RING_SIZE), ring.query(PROD_POS)), (4096, 4088));
    }

    proptest! {
        /// Whatever goes in comes out, whole and in order, also across the end.
        #[test]
        fn a_ring_is_a_queue(sizes in proptest::collection::vec((0..600usize, any::<bool>()), 0..100)) {
            let ring = ring();
            let mut model = VecDeque::new();
            for (n, (size, drain)) in sizes.into_iter().enumerate() {
                let data = vec![u8::try_from(n % 251).unwrap(); size];
                let used: u64 = model.iter().map(|d: &Vec<u8>| (d.len() as u64 + 8).next_multiple_of(8)).sum();
                let fits = used + (size as u64 + 8).next_multiple_of(8) < 4096;
                prop_assert_eq!(put(&ring, &data).is_ok(), fits);
                if fits {
                    model.push_back(data);
                }
                if drain {
                    prop_assert_eq!(ring.take(), model.drain(..).collect::<Vec<_>>());
                }
            }
        }
    }
}
