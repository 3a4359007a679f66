//! Code memory: no mapping of it is ever writable and executable.
//!
//! | file | what |
//! |---|---|
//! | `arena` | memory with two mappings, which programs share (Linux) |
//! | `spans` | which parts of an arena are unused |
//! | `buffer` | memory of one program, first writable, then executable |
//!
//! To place code in an arena takes at most one system call. Where the system refuses an arena, and
//! on other systems, each program has a buffer.

#[cfg(target_os = "linux")]
mod arena;
mod buffer;
#[cfg(any(target_os = "linux", test))]
mod spans;

use std::io;

use buffer::CodeBuffer;

/// Executable machine code, which stays in place and unchanged until it is dropped.
#[derive(Debug)]
pub(super) struct CodeMemory(Kind);

#[derive(Debug)]
enum Kind {
    #[cfg(target_os = "linux")]
    Arena(arena::Piece),
    Buffer(CodeBuffer),
}

impl CodeMemory {
    /// Copies `code` to executable memory.
    ///
    /// # Errors
    /// The system has no memory, or refuses to make it executable.
    pub(super) fn new(code: &[u8]) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(piece) = arena::place(code) {
            return Ok(Self(Kind::Arena(piece)));
        }
        CodeBuffer::new(code).map(|buffer| Self(Kind::Buffer(buffer)))
    }

    /// The host address of the first byte.
    pub(super) fn start(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Kind::Arena(piece) => piece.start(),
            Kind::Buffer(buffer) => buffer.start(),
        }
    }
}
