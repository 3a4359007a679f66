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
}
