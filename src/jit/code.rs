//! Code memory: first writable, then executable, never both.

use std::io;

use dynasmrt::cache_control::synchronize_icache;
use dynasmrt::mmap::MutableBuffer;
use dynasmrt::{AssemblyOffset, ExecutableBuffer};

/// Executable machine code, which can't be changed any more.
#[derive(Debug)]
pub(super) struct CodeMemory(ExecutableBuffer);

impl CodeMemory {
    /// Copies `code` to executable memory.
    ///
    /// # Errors
    /// The system has no memory, or refuses to make it executable.
    pub(super) fn new(code: &[u8]) -> io::Result<Self> {
        let mut buffer = MutableBuffer::new(code.len().max(1))?;
        buffer.set_len(code.len());
        buffer.copy_from_slice(code);
        let code = buffer.make_exec()?;
        // On hosts with separate instruction and data caches, this makes both coherent; on
        // x86-64 it does nothing.
        synchronize_icache(&code);
        Ok(Self(code))
    }

    /// The host address of the byte at `offset`, which must be inside.
    pub(super) fn address(&self, offset: usize) -> u64 {
        self.0.ptr(AssemblyOffset(offset)).expose_provenance() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_where_it_was_put() {
        let code = CodeMemory::new(&[0xc3; 5000]).unwrap();
        assert_eq!(code.0[4999], 0xc3);
        assert_eq!(code.address(7), code.address(0) + 7);
        assert!(CodeMemory::new(&[]).is_ok());
    }
}
