//! Cells, the registers of the host, and where a BPF register is.

#![allow(unsafe_code)] // the invariant stands at `Handler`

use crate::isa::Reg;
use crate::lower::Target;

/// What the functions of cells get at without asking: a run begins with it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Host {
    /// The registers, as far as they are not in the host's.
    pub regs: [u64; Reg::COUNT],
    /// The host address of the end of the frame.
    pub frame_end: u64,
    /// The host address of the context.
    pub context: u64,
    /// The host address of [`Space::deltas`](crate::vm::memory::Space::deltas).
    pub deltas: u64,
    /// The instructions that were executed before the operation under way are this many
    /// and as many as its ordinal says.
    pub base: i64,
    /// The highest base with which the budget lasts until the next jump backwards.
    pub limit: i64,
}

/// What does a cell's operation and goes on with the next one.
///
/// # Safety
/// The pointer is that of a run, which begins with what it points to. The cell is one of
/// the program that the run is in, and stands for an operation of it; the run and its machine are alive, and nobody else refers to them meanwhile. The
/// numbers are those of the program's four registers in the host.
pub(super) type Handler = unsafe fn(*const Cell, *mut Host, u64, u64, u64, u64);

/// An operation with the function that does it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub handler: Handler,
    /// A constant; of an access what is to be added to the base.
    pub imm: u64,
    /// Of a jump, cells from this one to the target; of a store, a constant operand.
    pub jump: i32,
    /// Of a jump, what taking it adds to the count of instructions.
    pub count: i32,
    /// The operation that it stands for, or the first one of several.
    pub at: Target,
    /// The numbers of BPF registers.
    pub dst: u8,
    pub src: u8,
    pub third: u8,
    /// By how many bits something is shifted.
    pub by: u8,
}

impl Cell {
    /// The number of a helper or function, in place of registers.
    pub fn number(&self) -> u16 {
        u16::from_le_bytes([self.dst, self.src])
    }

    /// The same with such a number.
    pub fn with_number(self, number: u16) -> Self {
        let [dst, src] = number.to_le_bytes();
        Self { dst, src, ..self }
    }
}

/// Where an operand is: 0 to 3 a register of the host, or one of these.
pub(super) const IN_MEMORY: u8 = 4;
/// See [`IN_MEMORY`]: in the cell.
pub(super) const CONSTANT: u8 = 5;

/// The four registers of the host.
#[derive(Clone, Copy)]
pub(super) struct Regs(pub u64, pub u64, pub u64, pub u64);

impl Regs {
    /// The register `number`, which is at `L`.
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

    /// Sets the register `number`, which is at `L`.
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

    /// The second operand of a cell, which is at `L`.
    ///
    /// # Safety
    /// As of [`get`](Self::get).
    #[inline(always)]
    pub unsafe fn operand<const L: u8>(&self, cell: *const Cell, run: *mut Host) -> u64 {
        // SAFETY: the caller's.
        unsafe {
            match L {
                CONSTANT => (*cell).imm,
                _ => self.get::<L>(run, (*cell).src),
            }
        }
    }

    /// Does a cell's operation by another function: to be called last.
    ///
    /// # Safety
    /// As of [`Handler`].
    #[inline(always)]
    pub unsafe fn by(self, handler: Handler, cell: *const Cell, run: *mut Host) {
        // SAFETY: the caller's.
        unsafe { handler(cell, run, self.0, self.1, self.2, self.3) }
    }

    /// Goes on with a cell: to be called last.
    ///
    /// # Safety
    /// As of [`Handler`].
    #[inline(always)]
    pub unsafe fn go(self, cell: *const Cell, run: *mut Host) {
        // SAFETY: the caller's.
        unsafe { self.by((*cell).handler, cell, run) }
    }
}

/// A function of cells: its constants, and what it does with the cell, the run and the
/// registers of the host, which it hands on at its end.
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
        /// As of [`Handler`]; the cell stands for such an operation.
        #[allow(unused_mut, reason = "some only read")]
        $visible unsafe fn $name<$(const $constant: $type),*>(
            $cell: *const Cell, $run: *mut Host, a: u64, b: u64, c: u64, d: u64,
        ) {
            let mut $regs = Regs(a, b, c, d);
            // SAFETY: the caller's; what is accessed was proved to be in bounds.
            unsafe { $body }
        }
    };
}
pub(super) use handler;

/// Functions for each place of a second operand.
macro_rules! by_src {
    ($f:ident $(, $c:expr)*) => {
        [
            $f::<$({ $c },)* 0>, $f::<$({ $c },)* 1>, $f::<$({ $c },)* 2>,
            $f::<$({ $c },)* 3>, $f::<$({ $c },)* 4>, $f::<$({ $c },)* 5>,
        ]
    };
}
pub(super) use by_src;

/// Functions for each place of a first operand, and then of a second.
macro_rules! by_dst_src {
    ($f:ident $(, $c:expr)*) => {
        [
            by_src!($f, $($c,)* 0), by_src!($f, $($c,)* 1), by_src!($f, $($c,)* 2),
            by_src!($f, $($c,)* 3), by_src!($f, $($c,)* 4),
        ]
    };
}
pub(super) use by_dst_src;

/// Functions for each place of the only operand.
macro_rules! by_dst {
    ($f:ident $(, $c:expr)*) => {
        [
            $f::<$({ $c },)* 0>, $f::<$({ $c },)* 1>, $f::<$({ $c },)* 2>,
            $f::<$({ $c },)* 3>, $f::<$({ $c },)* 4>,
        ]
    };
}
pub(super) use by_dst;
