//! Machine code as data.

/// Emitted machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The code.
    pub bytes: Vec<u8>,
    /// For each operation, where its code begins.
    pub ops: Vec<usize>,
    /// For each function its first operation, and where its code begins.
    pub entries: Vec<(u32, usize)>,
    /// Where the ways into them are.
    pub ways: Ways<usize>,
}

/// The ways into a program's machine code; what comes in is said in `jit/runtime.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways<T> {
    /// Into any function.
    pub function: T,
    /// Into the main program.
    pub main: T,
    /// Into the main program in place of another one.
    pub tail: T,
}
