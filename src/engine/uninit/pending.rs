//! What a call does with undefined bytes when it returns.

use smallvec::SmallVec;

use super::found::Draft;

/// What happens when a call returns.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Memory that it writes: address, size, and whether r0 is the number of bytes.
    pub writes: SmallVec<[(u64, usize, bool); 2]>,
    /// Undefined bits that it writes, if it does not fail: address and bits.
    pub copies: SmallVec<[(u64, Vec<u8>); 1]>,
    /// What it sends, if it does not fail.
    pub drafts: Vec<Draft>,
    /// The record that it reserves: its size, and the address of its dynptr if it has one.
    pub reserves: Option<(usize, Option<u64>)>,
    /// The ring buffer, by register value.
    pub map: u64,
    /// Undefined bits of its result.
    pub result: u64,
}
