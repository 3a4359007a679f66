//! The value of a devmap or cpumap: a number, and a program that runs at the target
//! (`struct bpf_devmap_val`, `struct bpf_cpumap_val`).

use super::handle::ProgramHandle;
use crate::util::Errno;

/// The target of a redirect, and the program that runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectValue {
    /// The number of a device, or the queue length of a CPU.
    pub target: u32,
    /// The program.
    pub program: Option<ProgramHandle>,
}

impl RedirectValue {
    /// A value with this target and program.
    #[must_use]
    pub const fn new(target: u32, program: Option<ProgramHandle>) -> Self {
        Self { target, program }
    }

    fn word(value: &[u8], index: usize) -> Option<u32> {
        let (words, _) = value.as_chunks::<4>();
        words.get(index).copied().map(u32::from_le_bytes)
    }

    /// Parses a stored value; `None` if it is empty (zero). User space reads the program's id in
    /// it: the handle's number plus 1, or 0 for none.
    #[must_use]
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let target = Self::word(value, 0).filter(|target| *target != 0)?;
        let id = Self::word(value, 1).unwrap_or_default();
        let program = id.checked_sub(1).map(ProgramHandle);
        Some(Self { target, program })
    }

    /// The stored bytes; `EINVAL` if the value has no room for the program.
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

    /// The program's file descriptor in a value that user space writes; values below 1 mean no
    /// program.
    pub(super) fn descriptor(value: &[u8]) -> Option<u32> {
        Self::word(value, 1).filter(|fd| fd.cast_signed() > 0)
    }

    /// Clears the program in a value.
    pub(super) fn forget_program(value: &mut [u8]) {
        if let Some(program) = value.get_mut(4..) {
            program.fill(0);
        }
    }
}
