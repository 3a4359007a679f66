//! Memory for the code of one program: first writable, then executable. Small buffers are kept
//! when their code is dropped, since mapping and unmapping memory takes longer than compiling a
//! small program.

use std::io;
use std::mem;
use std::sync::{Mutex, PoisonError};

use dynasmrt::cache_control::synchronize_icache;
use dynasmrt::mmap::MutableBuffer;
use dynasmrt::{AssemblyOffset, ExecutableBuffer};

/// Sizes are multiples of this; code of no more than [`KEPT_SIZE`] is kept.
const UNIT: usize = 1 << 14;
const KEPT_SIZE: usize = 1 << 16;
/// How many buffers are kept.
const KEPT: usize = 16;

/// The memory of dropped code. Nothing calls that code any more.
static UNUSED: Mutex<Vec<ExecutableBuffer>> = Mutex::new(Vec::new());

/// Executable machine code, which can't be changed any more.
#[derive(Debug)]
pub(super) struct CodeBuffer(ExecutableBuffer);

impl CodeBuffer {
    /// Copies `code` to executable memory.
    ///
    /// # Errors
    /// The system has no memory, or refuses to make it executable.
    pub(super) fn new(code: &[u8]) -> io::Result<Self> {
        let mut buffer = match unused(code.len()) {
            Some(buffer) => buffer.make_mut()?,
            None => MutableBuffer::new(code.len().max(1).next_multiple_of(UNIT))?,
        };
        buffer.set_len(code.len());
        buffer.copy_from_slice(code);
        let code = buffer.make_exec()?;
        // On hosts with separate instruction and data caches, this makes both coherent; on
        // x86-64 it does nothing.
        synchronize_icache(&code);
        Ok(Self(code))
    }

    /// The host address of the first byte; 0 if there is none.
    pub(super) fn start(&self) -> u64 {
        match self.0.is_empty() {
            true => 0,
            false => self.0.ptr(AssemblyOffset(0)).expose_provenance() as u64,
        }
    }
}

/// Unused memory with room for `len` bytes.
fn unused(len: usize) -> Option<ExecutableBuffer> {
    let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = unused.iter().position(|buffer| buffer.size() >= len)?;
    Some(unused.swap_remove(found))
}

impl Drop for CodeBuffer {
    fn drop(&mut self) {
        let buffer = mem::take(&mut self.0);
        if buffer.size() <= KEPT_SIZE {
            let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
            if unused.len() < KEPT {
                unused.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_dropped_code_holds_other_code() {
        for len in [0, 1, 100, UNIT, UNIT + 1, KEPT_SIZE, KEPT_SIZE + 1] {
            let bytes: Vec<u8> = (0..len).map(|at| at.to_le_bytes()[0]).collect();
            for _ in 0..3 {
                let code = CodeBuffer::new(&bytes).unwrap();
                assert_eq!(code.0[..], bytes[..]);
            }
        }
        assert!(UNUSED.lock().unwrap().len() <= KEPT);
    }
}
