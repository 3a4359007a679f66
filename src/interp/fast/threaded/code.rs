//! A program of cells.

#![allow(unsafe_code)] // cells are told by their addresses

use super::cell::Cell;
use crate::lower::Target;

/// See [`Threaded::cell`].
pub(super) const NONE: u32 = u32::MAX;

/// A program as cells.
#[derive(Debug)]
pub(in crate::interp) struct Threaded {
    cells: Box<[Cell]>,
    /// For each operation its cell, or that of the one that it is nothing before;
    /// [`NONE`] for one that is done by an earlier one's.
    places: Box<[u32]>,
    /// The numbers of the BPF registers that are kept in the host's.
    hot: [u8; 4],
}

// SAFETY: cells are plain numbers and functions.
unsafe impl Send for Threaded {}
// SAFETY: nothing changes them.
unsafe impl Sync for Threaded {}

impl Threaded {
    /// A program of these cells, which keeps these BPF registers in the host's.
    pub(super) const fn new(cells: Box<[Cell]>, places: Box<[u32]>, hot: [u8; 4]) -> Self {
        Self { cells, places, hot }
    }

    /// The cell of an operation; none for one in the middle of several that are one.
    pub(super) fn cell(&self, at: Target) -> Option<*const Cell> {
        let place = *self.places.get(at as usize)?;
        self.cells.get(place as usize).map(std::ptr::from_ref)
    }

    /// The index of the operation of a cell of this program.
    pub(super) fn index(&self, cell: *const Cell) -> Target {
        let bytes = cell.addr().wrapping_sub(self.cells.as_ptr().addr());
        let cell = self.cells.get(bytes / size_of::<Cell>());
        cell.map_or(Target::MAX, |cell| cell.at)
    }

    /// The numbers of the BPF registers that are kept in the host's.
    pub(super) const fn hot(&self) -> [u8; 4] {
        self.hot
    }
}
