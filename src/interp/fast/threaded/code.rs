//! A program of cells.

#![allow(unsafe_code)] // cells are told by their addresses

use super::cell::Cell;
use crate::lower::Target;

/// A program as cells.
#[derive(Debug)]
pub(in crate::interp) struct Threaded {
    cells: Box<[Cell]>,
    /// The numbers of the BPF registers that are kept in the host's.
    hot: [u8; 4],
}

// SAFETY: cells are plain numbers and functions.
unsafe impl Send for Threaded {}
// SAFETY: nothing changes them.
unsafe impl Sync for Threaded {}

impl Threaded {
    /// A program of these cells, which keeps these BPF registers in the host's.
    pub(super) const fn new(cells: Box<[Cell]>, hot: [u8; 4]) -> Self {
        Self { cells, hot }
    }

    /// The cell of an operation.
    pub(super) fn cell(&self, at: Target) -> Option<*const Cell> {
        self.cells.get(at as usize).map(std::ptr::from_ref)
    }

    /// The index of the operation of a cell of this program.
    pub(super) fn index(&self, cell: *const Cell) -> Target {
        let bytes = cell.addr().wrapping_sub(self.cells.as_ptr().addr());
        Target::try_from(bytes / size_of::<Cell>()).unwrap_or(Target::MAX)
    }

    /// The numbers of the BPF registers that are kept in the host's.
    pub(super) const fn hot(&self) -> [u8; 4] {
        self.hot
    }
}
