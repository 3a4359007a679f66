//! The value of a map of devices or CPUs: a number, and a program that runs on the other
//! side (`struct bpf_devmap_val`, `struct bpf_cpumap_val`).

use super::super::handle::ProgramHandle;
use crate::util::Errno;

/// Where a packet goes, and which program awaits it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectValue {
    /// The number of a device, or the length of a CPU's queue.
    pub target: u32,
    /// The program.
    pub program: Option<ProgramHandle>,
}

impl RedirectValue {
    /// These two.
    #[must_use]
    pub const fn new(target: u32, program: Option<ProgramHandle>) -> Self {
        Self { target, program }
    }

    fn word(value: &[u8], index: usize) -> Option<u32> {
        let (words, _) = value.as_chunks::<4>();
        words.get(index).copied().map(u32::from_le_bytes)
    }

    /// What a stored value says; `None` where it says nothing, being zero. User space
    /// reads a program's id in it, which is its handle's number plus 1: 0 is none.
    #[must_use]
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let target = Self::word(value, 0).filter(|target| *target != 0)?;
        let id = Self::word(value, 1).unwrap_or_default();
        let program = id.checked_sub(1).map(ProgramHandle);
        Some(Self { target, program })
    }

    /// The bytes that are stored; `EINVAL` where there is no place for the program.
    pub(super) fn write(self, size: u32) -> Result<Vec<u8>, Errno> {
        if self.program.is_some() && size < 8 {
            return Err(Errno::EINVAL);
        }
        let id = self.program.map_or(0, |program| program.0.wrapping_add(1));
        let mut value = self.target.to_le_bytes().to_vec();
        value.extend(id.to_le_bytes());
        value.truncate(size as usize);
        Ok(value)
    }

    /// The program's file descriptor in a value that user space writes; those below 1
    /// mean none.
    pub(super) fn descriptor(value: &[u8]) -> Option<u32> {
        Self::word(value, 1).filter(|fd| fd.cast_signed() > 0)
    }

    /// Takes the program out of a value.
    pub(super) fn forget_program(value: &mut [u8]) {
        if let Some(program) = value.get_mut(4..) {
            program.fill(0);
        }
    }
}
