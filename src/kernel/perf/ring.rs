//! The ring buffer of a perf event (`struct perf_event_mmap_page`): a control page with the
//! positions of writer and reader, and the data pages.

#![allow(unsafe_code, reason = "memory that the kernel writes to meanwhile")]

use std::sync::atomic::{AtomicU64, Ordering};

use super::record::HEADER;
use crate::kernel::sys::Mapping;
use crate::util::Errno;

/// Offsets in the control page of the writer's position (`data_head`) and the reader's
/// (`data_tail`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The only reader of an event's ring buffer.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Memory,
    /// Buffer in which a record that wraps around the end is joined.
    whole: Vec<u8>,
}

#[derive(Debug)]
struct Memory {
    mapping: Mapping,
    /// Offset of the data.
    page: usize,
    /// Bytes of data, a power of two.
    size: usize,
}

/// Publishes the reader's position on drop, so also when the reader's callback panics.
struct Tail<'a> {
    shared: &'a AtomicU64,
    at: u64,
    published: u64,
}

impl Tail<'_> {
    fn publish(&mut self) {
        self.shared.store(self.at, Ordering::Release);
        self.published = self.at;
    }
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl Ring {
    /// Creates the reader of a mapping that [`PerfFd::map`](crate::kernel::sys::PerfFd::map)
    /// made with pages of this size.
    pub fn new(mapping: Mapping, page: usize) -> Result<Self, Errno> {
        let size = mapping.size().checked_sub(page).ok_or(Errno::EINVAL)?;
        if !size.is_power_of_two() || page <= TAIL + size_of::<u64>() {
            return Err(Errno::EINVAL);
        }
        Ok(Self {
            memory: Memory {
                mapping,
                page,
                size,
            },
            // The longest record.
            whole: vec![0; usize::from(u16::MAX) + 1],
        })
    }

    /// Whether there is no unread record.
    pub fn is_empty(&self) -> bool {
        let read = self.memory.word(TAIL).load(Ordering::Relaxed);
        self.memory.word(HEAD).load(Ordering::Acquire) == read
    }

    /// Passes each unread record to `each`, oldest first, with its header, and frees its room
    /// for the kernel as it goes. A malformed record is passed as an empty one and ends the
    /// reading: everything after it is skipped.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        self.memory.drain(&mut self.whole, &mut each)
    }
}

impl Memory {
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page has aligned words at `HEAD` and `TAIL`; it stays mapped as
        // long as `self`, and every user accesses these words atomically.
        unsafe { AtomicU64::from_ptr(self.mapping.start().add(at).cast()) }
    }

    /// `len` bytes of data from a position, unless they wrap around the end.
    fn bytes(&self, position: u64, len: usize) -> Option<&[u8]> {
        let start = self.offset(position);
        if len > self.size - start {
            return None;
        }
        // SAFETY: the bytes lie in the data, after the first page. They are between the
        // reader's position and the writer's, where the kernel does not write; only `drain`,
        // which has exclusive use of the ring, moves the reader's position.
        let first = unsafe { self.mapping.start().add(self.page + start) };
        // SAFETY: as above; any bytes are values of `u8`.
        Some(unsafe { std::slice::from_raw_parts(first, len) })
    }

    fn offset(&self, position: u64) -> usize {
        usize::try_from(position & (self.size as u64 - 1)).unwrap_or_default()
    }

    /// Joins a record that wraps around the end.
    fn joined(&self, position: u64, len: usize, into: &mut [u8]) -> Option<()> {
        let first = self.size - self.offset(position);
        let (start, end) = into.get_mut(..len)?.split_at_mut_checked(first)?;
        start.copy_from_slice(self.bytes(position, first)?);
        end.copy_from_slice(self.bytes(position.wrapping_add(first as u64), end.len())?);
        Some(())
    }

    fn drain(&self, whole: &mut [u8], each: &mut impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        // Only this reader writes it.
        let at = self.word(TAIL).load(Ordering::Relaxed);
        let mut tail = Tail {
            shared: self.word(TAIL),
            at,
            published: at,
        };
        loop {
            let head = self.word(HEAD).load(Ordering::Acquire);
            if tail.at == head {
                return count;
            }
            while tail.at != head {
                let left = head.wrapping_sub(tail.at);
                let header = self.bytes(tail.at, HEADER);
                let len = header.and_then(|header| <[u8; 2]>::try_from(header.get(6..8)?).ok());
                let len = usize::from(len.map_or(0, u16::from_ne_bytes));
                if len < HEADER || len as u64 > left {
                    // Malformed: the start of the next record is unknown, too.
                    tail.at = head;
                    count += 1;
                    each(&[]);
                    break;
                }
                match self.bytes(tail.at, len) {
                    Some(record) => each(record),
                    None => {
                        let joined = self.joined(tail.at, len, whole);
                        each(joined.and_then(|()| whole.get(..len)).unwrap_or_default());
                    }
                }
                count += 1;
                tail.at = tail.at.wrapping_add(len as u64);
                if tail.at.wrapping_sub(tail.published) > self.size as u64 / 4 {
                    tail.publish();
                }
            }
            tail.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    const PAGE: usize = 4096;

    /// A ring buffer in a file, with the test as its writer.
    struct Pair {
        ring: Ring,
        head: u64,
    }

    impl Pair {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("bpflab-ring-{}", std::process::id()));
            let mut file = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .unwrap();
            std::fs::remove_file(&path).unwrap();
            file.write_all(&[0; 2 * PAGE]).unwrap();
            let fd = OwnedFd::from(file);
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let memory = Mapping::new(&fd, 0, 2 * PAGE, rights, 0).unwrap();
            Self {
                ring: Ring::new(memory, PAGE).unwrap(),
                head: 0,
            }
        }

        fn put(&mut self, record: &[u8]) {
            for byte in record {
                let at = PAGE + self.ring.memory.offset(self.head);
                // SAFETY: the byte lies in the data, and no reference to it exists.
                unsafe { self.ring.memory.mapping.start().add(at).write(*byte) };
                self.head += 1;
            }
            self.ring
                .memory
                .word(HEAD)
                .store(self.head, Ordering::Release);
        }

        fn take(&mut self) -> Vec<Vec<u8>> {
            let mut taken = Vec::new();
            let count = self.ring.drain(|record| taken.push(record.to_vec()));
            assert_eq!(count, taken.len());
            taken
        }
    }

    fn record(len: u16, fill: u8) -> Vec<u8> {
        let mut record = vec![fill; usize::from(len)];
        record[6..8].copy_from_slice(&len.to_ne_bytes());
        record
    }

    #[test]
    fn records_come_whole_and_in_order_around_the_end() {
        let mut pair = Pair::new();
        assert!(pair.take().is_empty() && pair.ring.is_empty());
        // 1000 does not divide 4096, so that some records wrap around the end.
        for round in 0..40u8 {
            let records = [record(1000, round), record(24, !round)];
            records.iter().for_each(|record| pair.put(record));
            assert!(!pair.ring.is_empty());
            assert_eq!(pair.take(), records, "{round}");
            assert_eq!(
                pair.ring.memory.word(TAIL).load(Ordering::Relaxed),
                pair.head
            );
        }
    }

    #[test]
    fn what_is_no_record_ends_the_reading() {
        let mut pair = Pair::new();
        pair.put(&record(16, 1));
        pair.put(&[0; 16]);
        assert_eq!(
            pair.take(),
            [record(16, 1), Vec::new()],
            "the malformed record is passed on"
        );
        pair.put(&record(8, 2));
        assert_eq!(pair.take(), [record(8, 2)]);
    }

    #[test]
    fn a_panic_leaves_the_records_that_were_not_reached() {
        let mut pair = Pair::new();
        pair.put(&record(16, 1));
        pair.put(&record(16, 2));
        pair.put(&record(16, 3));
        let panics = std::panic::AssertUnwindSafe(|| {
            pair.ring
                .drain(|record| assert_ne!(record[0], 2, "the second"));
        });
        std::panic::catch_unwind(panics).unwrap_err();
        assert_eq!(pair.take(), [record(16, 2), record(16, 3)]);
    }
}
