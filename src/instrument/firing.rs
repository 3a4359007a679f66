//! The ring-buffer record of one run of a recorded program.
//!
//! ```text
//!  0  u32 program         16  u64 bytes of log       40  u64 produced
//!  4  u32 cpu             24  u64 sequence           48  u64 pid_tgid
//!  8  u16 depth           32  u64 time               56  u64 returned
//! 10  u16 flags           64  context, zero-padded to 8 bytes, then the log
//! 12  u32 bytes of context
//! ```
//!
//! Numbers are little-endian, as on all machines that bpflab records on.
//!
//! # The order of two firings
//!
//! A firing ends when its record gets its position in the ring buffer, and holds the ring's
//! producer position from its start. So a firing whose producer position is at or after the end
//! of another's record started after the other had ended, on whichever CPU: the kernel reserves
//! positions under a lock and publishes the producer position with a release store,
//! `bpf_ringbuf_query` reads it with an acquire load, and so the second firing sees the map
//! stores of the first. A clock is weaker: the clocks of two CPUs differ a little, a store may
//! still be in its CPU's store buffer when the clock has been read, and events that a kernel
//! lock separates (a task is woken on one CPU and switched to on another) may be less than that
//! apart.

use bitflags::bitflags;

use super::error::{Damage, Damaged};
use crate::spec::limits;
use crate::util::{ReadError, Reader};

/// The record of one run of a recorded program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing<'a> {
    /// The program's number: [`RecordOptions::number`](super::RecordOptions::number).
    pub program: u32,
    /// The CPU.
    pub cpu: u32,
    /// The number of recorded programs that it interrupted on that CPU.
    pub depth: u16,
    /// Flags.
    pub flags: FiringFlags,
    /// Its number among the firings of that CPU, in the order of their starts, from 0: a gap is
    /// a lost firing.
    pub sequence: u64,
    /// Start time: `bpf_ktime_get_ns`, in nanoseconds since boot.
    pub time: u64,
    /// The ring buffer's producer position at the start: every firing whose record
    /// [ends](Self::ring_bytes) there or before had ended.
    pub produced: u64,
    /// `bpf_get_current_pid_tgid` at the start.
    pub pid_tgid: u64,
    /// `r0` at the exit.
    pub returned: u64,
    /// The context at the start.
    pub context: &'a [u8],
    /// The entries: [`Plan::entries`](super::Plan::entries).
    pub log: &'a [u8],
}

bitflags! {
    /// Flags of a firing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct FiringFlags: u16 {
        /// The log was longer than the buffer: it is missing.
        const OVERFLOW = 1 << 0;
        /// A field was longer than its limit and was truncated.
        const CAPPED = 1 << 1;
    }
}

/// Offsets of the fields in bytes.
pub(super) mod offset {
    pub(in crate::instrument) const PROGRAM: u32 = 0;
    pub(in crate::instrument) const CPU: u32 = 4;
    pub(in crate::instrument) const DEPTH: u32 = 8;
    pub(in crate::instrument) const FLAGS: u32 = 10;
    pub(in crate::instrument) const CONTEXT_LEN: u32 = 12;
    pub(in crate::instrument) const LOG_LEN: u32 = 16;
    pub(in crate::instrument) const SEQUENCE: u32 = 24;
    pub(in crate::instrument) const TIME: u32 = 32;
    pub(in crate::instrument) const PRODUCED: u32 = 40;
    pub(in crate::instrument) const PID_TGID: u32 = 48;
    pub(in crate::instrument) const RETURNED: u32 = 56;
    pub(in crate::instrument) const CONTEXT: u32 = 64;
}

/// The context is padded to a multiple of this.
pub(super) const CONTEXT_UNIT: usize = 8;

impl<'a> Firing<'a> {
    /// Parses a ring-buffer record.
    ///
    /// # Errors
    /// [`Damaged`] if it is not a firing. The log itself is not checked.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let (program, cpu) = (take(reader.u32())?, take(reader.u32())?);
        let (depth, flags) = (take(reader.u16())?, take(reader.u16())?);
        let context_len = take(reader.u32())?;
        let log_len = take(reader.u64())?;
        let (sequence, time) = (take(reader.u64())?, take(reader.u64())?);
        let (produced, pid_tgid) = (take(reader.u64())?, take(reader.u64())?);
        let returned = take(reader.u64())?;
        let flags = FiringFlags::from_bits(flags).ok_or(Damaged {
            offset: offset::FLAGS as usize,
            damage: Damage::Flags(flags),
        })?;
        let len = |len: u64| usize::try_from(len).unwrap_or(usize::MAX);
        let context_len = len(context_len.into());
        let context = take(reader.bytes(context_len))?;
        let filling = context_len.next_multiple_of(CONTEXT_UNIT) - context_len;
        take(reader.bytes(filling))?;
        let log = take(reader.bytes(len(log_len)))?;
        // The kernel returns a record's exact length.
        let left = bytes.len() - reader.offset();
        if left > 0 {
            return Err(Damaged {
                offset: reader.offset(),
                damage: Damage::Long(left),
            });
        }
        Ok(Self {
            program,
            cpu,
            depth,
            flags,
            sequence,
            time,
            produced,
            pid_tgid,
            returned,
            context,
            log,
        })
    }

    /// Writes the bytes that [`parse`](Self::parse) reads, at the end of `to`.
    pub fn write(&self, to: &mut Vec<u8>) {
        let context_len = u32::try_from(self.context.len()).unwrap_or(u32::MAX);
        to.extend(self.program.to_le_bytes());
        to.extend(self.cpu.to_le_bytes());
        to.extend(self.depth.to_le_bytes());
        to.extend(self.flags.bits().to_le_bytes());
        to.extend(context_len.to_le_bytes());
        to.extend((self.log.len() as u64).to_le_bytes());
        to.extend(self.sequence.to_le_bytes());
        to.extend(self.time.to_le_bytes());
        to.extend(self.produced.to_le_bytes());
        to.extend(self.pid_tgid.to_le_bytes());
        to.extend(self.returned.to_le_bytes());
        to.extend(self.context);
        let filled = self.context.len().next_multiple_of(CONTEXT_UNIT);
        to.resize(to.len() + filled - self.context.len(), 0);
        to.extend(self.log);
    }

    /// Bytes of the ring buffer that a record of `record` bytes takes, including its header: it
    /// ends that far after the end of the record before it.
    #[must_use]
    pub const fn ring_bytes(record: usize) -> u64 {
        (record as u64 + limits::RINGBUF_HEADER as u64).next_multiple_of(8)
    }
}

/// The value read, or the error that the bytes are truncated.
fn take<T>(read: Result<T, ReadError>) -> Result<T, Damaged> {
    read.map_err(|error| Damaged {
        offset: error.offset,
        damage: Damage::Short {
            needed: error.wanted,
            left: error.left,
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn firing<'a>(context: &'a [u8], log: &'a [u8]) -> Firing<'a> {
        Firing {
            program: 3,
            cpu: 1,
            depth: 2,
            flags: FiringFlags::CAPPED,
            sequence: 1 << 40,
            time: 5,
            produced: 6,
            pid_tgid: 7 << 32 | 8,
            returned: u64::MAX,
            context,
            log,
        }
    }

    fn bytes(firing: Firing<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        firing.write(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            context in proptest::collection::vec(any::<u8>(), 0..40),
            log in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let written = firing(&context, &log);
            let bytes = bytes(written);
            prop_assert_eq!(Firing::parse(&bytes), Ok(written));
        }
    }

    #[test]
    fn each_byte_that_is_missing_is_missed() {
        let whole = bytes(firing(&[1; 12], &[2; 5]));
        assert_eq!(whole.len(), 64 + 16 + 5);
        for len in 0..whole.len() {
            let error = Firing::parse(&whole[..len]).unwrap_err();
            assert!(
                matches!(error.damage, Damage::Short { .. }),
                "{len}: {error}"
            );
        }
        let long = [whole, vec![0]].concat();
        assert_eq!(
            Firing::parse(&long).unwrap_err().to_string(),
            "byte 85: 1 bytes too many"
        );
    }

    #[test]
    fn lengths_and_flags_that_lie_are_errors() {
        let mut long = bytes(firing(&[], &[]));
        long[16..24].fill(0xff);
        assert!(Firing::parse(&long).is_err());
        let mut flagged = bytes(firing(&[], &[]));
        flagged[11] = 0x80;
        assert_eq!(Firing::parse(&flagged).unwrap_err().offset, 10);
    }
}
