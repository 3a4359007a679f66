//! A program of cells.

#![allow(unsafe_code)] // cells are identified by their addresses

use super::cell::Cell;
use crate::lower::Target;

/// See [`Threaded::cell`].
pub(crate) const NONE: u32 = u32::MAX;

/// A program as cells.
#[derive(Debug)]
pub(crate) struct Threaded {
    cells: Box<[Cell]>,
    /// For each operation its cell, or the next one's for an operation that is only
    /// counted; [`NONE`] for one that an earlier operation's cell executes.
    cell_of: Box<[u32]>,
    /// The numbers of the BPF registers that are kept in host registers.
    hot: [u8; 4],
}

// SAFETY: cells are plain numbers and functions.
unsafe impl Send for Threaded {}
// SAFETY: cells are never changed.
unsafe impl Sync for Threaded {}

impl Threaded {
    /// Creates a program of these cells, which keeps these BPF registers in host registers.
    pub(crate) const fn new(cells: Box<[Cell]>, cell_of: Box<[u32]>, hot: [u8; 4]) -> Self {
        Self {
            cells,
            cell_of,
            hot,
        }
    }

    /// The cell of an operation; none for one in the middle of several that are executed as
    /// one.
    pub(crate) fn cell(&self, at: Target) -> Option<*const Cell> {
        let cell = *self.cell_of.get(at as usize)?;
        self.cells.get(cell as usize).map(std::ptr::from_ref)
    }

    /// The index of the operation of a cell of this program.
    pub(crate) fn index(&self, cell: *const Cell) -> Target {
        let bytes = cell.addr().wrapping_sub(self.cells.as_ptr().addr());
        let cell = self.cells.get(bytes / size_of::<Cell>());
        cell.map_or(Target::MAX, |cell| cell.at)
    }

    /// The numbers of the BPF registers that are kept in host registers.
    pub(crate) const fn hot(&self) -> [u8; 4] {
        self.hot
    }
}
