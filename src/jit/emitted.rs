//! Machine code as data.

/// Code in memory begins at a multiple of this: a cache line, so that writing one program's code
/// does not disturb another's.
pub(super) const CODE_ALIGNMENT: usize = 64;

/// Emitted machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The code.
    pub bytes: Vec<u8>,
    /// For each operation, the offset of its code.
    pub ops: Vec<usize>,
    /// For each function its first operation, and the offset of its code.
    pub entries: Vec<(u32, usize)>,
    /// The offsets of the entry points.
    pub entry_points: EntryPoints<usize>,
}

/// The entry points of a program's machine code; `jit/runtime.rs` has their convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPoints<T> {
    /// Into any function.
    pub function: T,
    /// Into the main program.
    pub main: T,
    /// Into the main program, replacing another one.
    pub tail: T,
    /// The same from Rust.
    pub in_place: T,
}
