//! Cells, host registers, and the locations of BPF registers.

#![allow(unsafe_code)] // the invariant is at `Handler`

use crate::isa::Reg;
use crate::lower::Target;

/// The part of a run that the functions of cells access directly: a run begins with it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Host {
    /// The registers that are not in host registers.
    pub regs: [u64; Reg::COUNT],
    /// The host address of the end of the frame.
    pub frame_end: u64,
    /// The host address of the context.
    pub context: u64,
    /// The host address of [`Space::deltas`](crate::vm::memory::Space::deltas).
    pub deltas: u64,
    /// The limit minus the base: negative if the budget may not last until the next jump backwards.
    pub left: i64,
    /// The highest base with which it lasts.
    pub limit: i64,
}

/// A function that executes a cell's operation and continues with the next cell.
///
/// # Safety
/// The `Host` pointer is that of a run, which begins with its `Host`. The cell belongs to
/// the run's current program, and is one of its operations. The run and its machine are
/// alive, and nothing else refers to them meanwhile. The numbers are those of the program's
/// four registers in the host.
pub(crate) type Handler = unsafe fn(*const Cell, *mut Host, u64, u64, u64, u64);

/// An operation with the function that executes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub handler: Handler,
    /// A constant; for an access, the offset from the base.
    pub imm: u64,
    /// For a jump, bytes from this cell to the target; for a store, a constant operand.
    pub jump: i32,
    /// For a jump, what it adds to the instruction count when taken.
    pub count: i32,
    /// Its operation, or the first of several.
    pub at: Target,
    /// The numbers of BPF registers.
    pub dst: u8,
    pub src: u8,
    pub third: u8,
    /// A shift distance in bits.
    pub by: u8,
}

impl Cell {
    /// The number of a helper or function, which replaces the registers.
    pub fn number(&self) -> u16 {
        u16::from_le_bytes([self.dst, self.src])
    }

    /// The same cell with such a number.
    pub fn with_number(self, number: u16) -> Self {
        let [dst, src] = number.to_le_bytes();
        Self { dst, src, ..self }
    }
}

/// The location of an operand: 0 to 3 is a host register, 4 is memory.
pub(crate) const IN_MEMORY: u8 = 4;
/// See [`IN_MEMORY`]: the operand is a constant in the cell.
pub(crate) const CONSTANT: u8 = 5;

/// The four host registers.
#[derive(Clone, Copy)]
pub(crate) struct Regs(pub u64, pub u64, pub u64, pub u64);

impl Regs {
    /// The register `number`, whose location is `L`.
    ///
    /// # Safety
    /// As of [`Handler`]; `number` is that of a BPF register.
    #[inline(always)]
    pub unsafe fn get<const L: u8>(&self, run: *mut Host, number: u8) -> u64 {
        match L {
            0 => self.0,
            1 => self.1,
            2 => self.2,
            3 => self.3,
            // SAFETY: the run is alive, and has each register.
            _ => unsafe { *(&raw const (*run).regs).cast::<u64>().add(number.into()) },
        }
    }

    /// Sets the register `number`, whose location is `L`.
    ///
    /// # Safety
    /// As of [`get`](Self::get).
    #[inline(always)]
    pub unsafe fn set<const L: u8>(&mut self, run: *mut Host, number: u8, value: u64) {
        match L {
            0 => self.0 = value,
            1 => self.1 = value,
            2 => self.2 = value,
            3 => self.3 = value,
            // SAFETY: as in `get`.
            _ => unsafe { *(&raw mut (*run).regs).cast::<u64>().add(number.into()) = value },
        }
    }

    /// The second operand of a cell, whose location is `L`.
    ///
    /// # Safety
    /// As of [`get`](Self::get).
    #[inline(always)]
    pub unsafe fn operand<const L: u8>(&self, cell: *const Cell, run: *mut Host) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match L {
                CONSTANT => (*cell).imm,
                _ => self.get::<L>(run, (*cell).src),
            }
        }
    }

    /// Executes a cell's operation by another function: must be the last call.
    ///
    /// # Safety
    /// As of [`Handler`].
    #[inline(always)]
    pub unsafe fn by(self, handler: Handler, cell: *const Cell, run: *mut Host) {
        // SAFETY: guaranteed by the caller.
        unsafe { handler(cell, run, self.0, self.1, self.2, self.3) }
    }

    /// Continues with a cell: must be the last call.
    ///
    /// # Safety
    /// As of [`Handler`].
    #[inline(always)]
    pub unsafe fn go(self, cell: *const Cell, run: *mut Host) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.by((*cell).handler, cell, run) }
    }
}

/// Defines a function of cells: its constants, and its body, which uses the cell, the run
/// and the host registers, and hands them on at its end.
macro_rules! handler {
    (
        $(#[$doc:meta])*
        $visible:vis fn $name:ident<$(const $constant:ident: $type:ty),*>(
            $cell:ident, $run:ident, $regs:ident
        ) $body:block
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As of [`Handler`]; the cell has such an operation.
        #[allow(unused_mut, reason = "some only read")]
        $visible unsafe fn $name<$(const $constant: $type),*>(
            $cell: *const Cell, $run: *mut Host, a: u64, b: u64, c: u64, d: u64,
        ) {
            let mut $regs = Regs(a, b, c, d);
            // SAFETY: guaranteed by the caller; accesses were proved to be in bounds.
            unsafe { $body }
        }
    };
}
pub(crate) use handler;

/// Functions for each location of a second operand.
macro_rules! by_src {
    ($f:ident $(, $c:expr)*) => {
        [
            $f::<$({ $c },)* 0>, $f::<$({ $c },)* 1>, $f::<$({ $c },)* 2>,
            $f::<$({ $c },)* 3>, $f::<$({ $c },)* 4>, $f::<$({ $c },)* 5>,
        ]
    };
}
pub(crate) use by_src;

/// Functions for each location of a first operand, and then of a second.
macro_rules! by_dst_src {
    ($f:ident $(, $c:expr)*) => {
        [
            by_src!($f, $($c,)* 0), by_src!($f, $($c,)* 1), by_src!($f, $($c,)* 2),
            by_src!($f, $($c,)* 3), by_src!($f, $($c,)* 4),
        ]
    };
}
pub(crate) use by_dst_src;

/// Functions for each location of the only operand.
macro_rules! by_dst {
    ($f:ident $(, $c:expr)*) => {
        [
            $f::<$({ $c },)* 0>, $f::<$({ $c },)* 1>, $f::<$({ $c },)* 2>,
            $f::<$({ $c },)* 3>, $f::<$({ $c },)* 4>,
        ]
    };
}
pub(crate) use by_dst;
