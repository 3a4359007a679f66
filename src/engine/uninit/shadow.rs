//! Which bits of memory are undefined: of stack frames and of reserved ring-buffer records.

use smallvec::SmallVec;

use super::pending::Pending;
use crate::spec::limits::STACK_SIZE;
use crate::vm::SourceLine;

/// The undefined bits of memory that begins undefined.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// Of the active functions, the outermost first.
    pub frames: Vec<Frame>,
    /// Of the records that are reserved now.
    pub records: SmallVec<[Record; 2]>,
}

/// A function's frame.
#[derive(Debug)]
pub(super) struct Frame {
    /// The address of its first byte.
    base: u64,
    /// For each byte its undefined bits.
    bytes: Box<[u8; STACK_SIZE]>,
    /// The undefined bits of its caller's r6 to r9.
    pub saved: [u64; 4],
    /// The call that the function waits for.
    pub pending: Option<Box<Pending>>,
}

/// A reserved record.
#[derive(Debug)]
pub(super) struct Record {
    /// Its address.
    pub base: u64,
    /// For each byte its undefined bits.
    pub bytes: Vec<u8>,
    /// Its ring buffer, by register value.
    pub map: u64,
    /// The line of C that reserved it.
    pub reserved: Option<SourceLine>,
}

impl Frame {
    /// A frame that nothing was written to.
    pub fn new(base: u64, saved: [u64; 4]) -> Self {
        Self {
            base,
            bytes: Box::new([0xff; STACK_SIZE]),
            saved,
            pending: None,
        }
    }
}

/// The first `len` bytes at `address`, at most to the end of the block at `base`.
fn part(block: &[u8], base: u64, address: u64, len: usize) -> Option<std::ops::Range<usize>> {
    let at = usize::try_from(address.checked_sub(base)?).ok()?;
    (at < block.len()).then(|| at..at.saturating_add(len).min(block.len()))
}

impl Shadow {
    /// The undefined bits of up to `len` bytes at an address; `None` where all memory is
    /// defined.
    pub fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        for frame in self.frames.iter().rev() {
            if let Some(range) = part(&frame.bytes[..], frame.base, address, len) {
                return frame.bytes.get(range);
            }
        }
        let mut records = self.records.iter();
        records.find_map(|record| {
            let range = part(&record.bytes, record.base, address, len)?;
            record.bytes.get(range)
        })
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        for frame in self.frames.iter_mut().rev() {
            if let Some(range) = part(&frame.bytes[..], frame.base, address, len) {
                return frame.bytes.get_mut(range);
            }
        }
        let mut records = self.records.iter_mut();
        records.find_map(|record| {
            let range = part(&record.bytes, record.base, address, len)?;
            record.bytes.get_mut(range)
        })
    }

    /// The undefined bits of a number of up to 8 bytes.
    pub fn load(&self, address: u64, len: usize) -> u64 {
        let mut number = [0; 8];
        for (to, from) in number
            .iter_mut()
            .zip(self.bytes(address, len).unwrap_or(&[]))
        {
            *to = *from;
        }
        u64::from_le_bytes(number)
    }

    /// Sets the undefined bits of a number of up to 8 bytes; false where memory is always
    /// defined.
    pub fn store(&mut self, address: u64, len: usize, undefined: u64) -> bool {
        let Some(bytes) = self.bytes_mut(address, len) else {
            return false;
        };
        for (to, from) in bytes.iter_mut().zip(undefined.to_le_bytes()) {
            *to = from;
        }
        true
    }

    /// `len` bytes at an address were written.
    pub fn define(&mut self, address: u64, len: usize) {
        if let Some(bytes) = self.bytes_mut(address, len) {
            bytes.fill(0);
        }
    }

    /// Takes the record at an address out.
    pub fn take_record(&mut self, address: u64) -> Option<Record> {
        let at = self
            .records
            .iter()
            .position(|record| record.base == address)?;
        Some(self.records.remove(at))
    }
}
