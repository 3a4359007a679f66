//! The operations that engines run: decoded, their jumps resolved to operation indices,
//! their accesses classified by what the verifier proved about the address.
//!
//! Registers and semantics are BPF's, as defined by the functions of [`isa`](crate::isa)
//! (`AluOp::eval`, `JumpOp::eval`, `movsx`, …).

use crate::isa::{
    AluOp, AtomicOp, EndianOp, EndianSize, JumpOp, Operand, Reg, SignedSize, Size, Width,
};

/// The index of an operation in [`Lowered::ops`](super::Lowered::ops).
pub type Target = u32;

/// One operation. It is one BPF instruction, whose position is in
/// [`Lowered::pc`](super::Lowered::pc).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the variants' docs explain the fields")]
pub enum Op {
    /// `dst op= src`, as defined by [`AluOp::eval`]; a 64-bit operation sign-extends an
    /// immediate.
    Alu {
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    },
    /// `dst = (sN)src`, sign-extended to the width.
    MovSx {
        width: Width,
        from: SignedSize,
        dst: Reg,
        src: Reg,
    },
    /// `dst = -dst`.
    Neg { width: Width, dst: Reg },
    /// `dst = op(dst)`, zero-extended.
    Endian {
        op: EndianOp,
        size: EndianSize,
        dst: Reg,
    },
    /// `dst = value`: a constant, or the address of a map, of a map's value or of a
    /// function, bound to the machine.
    LoadImm { dst: Reg, value: u64 },
    /// `dst` = the `size` bytes at `mem`, zero-extended.
    Load {
        size: Size,
        dst: Reg,
        mem: MemRef,
        order: Order,
    },
    /// `dst` = the bytes at `mem`, sign-extended to 64 bits.
    LoadSx {
        from: SignedSize,
        dst: Reg,
        mem: MemRef,
    },
    /// `dst` = the pointer that a context field loads as: the value of the region's
    /// [`PointerField`](crate::vm::memory::PointerField) at `off` of `size` bytes, or the
    /// bytes there if it has none.
    LoadPointer { size: Size, dst: Reg, off: u16 },
    /// The `size` bytes at `mem` = the low bytes of `src`; an immediate is sign-extended.
    Store {
        size: Size,
        mem: MemRef,
        src: Operand,
        order: Order,
    },
    /// `dst` = the arena pointer in `src`, as the program loads from it or as user space does
    /// (`addr_space_cast`): [`Machine::cast`](crate::vm::Machine::cast).
    Cast { dst: Reg, src: Reg, to_user: bool },
    /// Atomic read-modify-write at `mem`, sequentially consistent.
    Atomic {
        op: AtomicOp,
        width: Width,
        mem: MemRef,
        src: Reg,
    },
    /// `r0` = packet bytes at `index + off` (or at `off`) in host order; outside the packet
    /// the function ends with 0. Always by a call:
    /// [`Machine::packet_bytes`](crate::vm::Machine::packet_bytes).
    LoadPacket {
        size: Size,
        index: Option<Reg>,
        off: i32,
    },
    /// Jumps to the target.
    Jump { target: Target },
    /// Jumps to the target if `dst op src` holds, else continues.
    JumpIf {
        op: JumpOp,
        width: Width,
        dst: Reg,
        src: Operand,
        target: Target,
    },
    /// Continues as long as the frame has loops left
    /// ([`MAX_MAY_GOTO`](crate::spec::limits::MAX_MAY_GOTO) at its start), else jumps to
    /// the target.
    MayGoto { target: Target },
    /// `r0 = helper(r1, …, r5)`, a helper or kfunc, by its index in
    /// [`Lowered::helpers`](super::Lowered::helpers). r1 to r5 keep their values.
    CallHelper { helper: u16 },
    /// `bpf_throw(r1)`, by its index in [`Lowered::helpers`](super::Lowered::helpers): ends the
    /// program, from whichever function calls it.
    Throw { helper: u16 },
    /// `bpf_map_lookup_elem` on a known map, an entry of
    /// [`Lowered::maps`](super::Lowered::maps), whose [`Keys`](super::Keys) determine the
    /// element: `r0` = the address of the value under the key at `key`, or 0. r1 to r5 keep
    /// their values.
    Lookup {
        map: u16,
        /// The key's bytes, 4 for an index. Not [`Checked`](MemRef::Checked).
        key: MemRef,
        /// The key is an index within the map: `r0` is not 0.
        is_there: bool,
    },
    /// A helper whose result is constant during a run: `r0` =
    /// [`KnownValues`](super::KnownValues)`[which]`. r1 to r5 keep their values.
    Known { which: u8 },
    /// A call of a function of the program, by its index in
    /// [`Lowered::functions`](super::Lowered::functions), in its own frame.
    CallFunction { function: u16 },
    /// `bpf_tail_call(r1, r2, r3)`: another program takes over the frame, or execution
    /// continues with the next operation.
    TailCall,
    /// Ends the function with `r0`.
    Exit,
}

/// Whether a tail call is among operations.
pub(crate) fn has_tail_call(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::TailCall))
}

impl Op {
    /// The memory reference of a load, store or atomic; none for other operations.
    #[must_use]
    pub const fn mem(&self) -> Option<MemRef> {
        match self {
            Self::Load { mem, .. }
            | Self::LoadSx { mem, .. }
            | Self::Store { mem, .. }
            | Self::Atomic { mem, .. } => Some(*mem),
            _ => None,
        }
    }

    /// The target of a jump; `None` for other operations.
    #[must_use]
    pub const fn target(&self) -> Option<Target> {
        match self {
            Self::Jump { target } | Self::JumpIf { target, .. } | Self::MayGoto { target } => {
                Some(*target)
            }
            _ => None,
        }
    }

    pub(super) const fn target_mut(&mut self) -> Option<&mut Target> {
        match self {
            Self::Jump { target } | Self::JumpIf { target, .. } | Self::MayGoto { target } => {
                Some(target)
            }
            _ => None,
        }
    }

    /// Whether it may leave its result as it was: an atomic operation that fetches, on a missing
    /// page of an arena. Linux clears the destination of other loads.
    pub const fn may_fetch_nothing(self) -> bool {
        let (Self::Atomic { mem, .. }
        | Self::Load {
            mem,
            order: Order::Acquire,
            ..
        }) = self
        else {
            return false;
        };
        matches!(mem, MemRef::Arena { .. })
    }

    pub(super) const fn mem_mut(&mut self) -> Option<&mut MemRef> {
        match self {
            Self::Load { mem, .. }
            | Self::LoadSx { mem, .. }
            | Self::Store { mem, .. }
            | Self::Atomic { mem, .. } => Some(mem),
            _ => None,
        }
    }
}

/// The memory ordering of an access with respect to other threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// No ordering.
    Relaxed,
    /// A load before all later accesses.
    Acquire,
    /// A store after all earlier accesses.
    Release,
}

/// The memory of an access, and how its host address is found. Addresses and offsets wrap.
/// All but `Kernel`, `Arena` and `Checked` were proved to be in bounds and allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemRef {
    /// The function's own frame: the host address of the frame's end (what `r10`
    /// points to) + `off`, which is below zero.
    Stack {
        /// From the frame's end.
        off: i16,
    },
    /// The context: the host address of its first byte + `off`.
    Context {
        /// From the context's start.
        off: u16,
    },
    /// A value of a map: the register `base` + `off` + the `delta` of this entry of
    /// [`Lowered::maps`](super::Lowered::maps).
    MapValue {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
        /// Index in [`Lowered::maps`](super::Lowered::maps).
        map: u16,
    },
    /// Some region: with the address `a` = `base` + `off`, the host address is `a` + the
    /// entry of `Space::deltas` that bits 40 to 55 of
    /// `a` select; if the entry is 0, the access is done as `Checked`.
    Table {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
    /// The packet, which no other program accesses meanwhile; otherwise as `Table`.
    Packet {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
    /// An object of the mocked kernel, or nothing: the verifier did not check the address, and
    /// a load that finds no bytes gives 0. Only loads have it. Objects that the CPU has read
    /// before are found in a table (`vm/memory/recent.rs`); loads from others are done as
    /// `Checked`.
    Kernel {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
        /// How many bytes are loaded.
        size: Size,
    },
    /// The arena: only the low 32 bits of the register `base` count. What is not there reads 0
    /// and can't be written; the access is then done by the interpreter's step, which reports it.
    Arena {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
        /// How many bytes are accessed.
        size: Size,
    },
    /// Any address: [`Space::load`](crate::vm::memory::Space::load), `store` or `update` at
    /// `base` + `off`, which fault if no region has it.
    Checked {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
}

impl MemRef {
    /// The base register, unless the reference is relative to the frame or the context.
    #[must_use]
    pub const fn base(self) -> Option<Reg> {
        match self {
            Self::Stack { .. } | Self::Context { .. } => None,
            Self::MapValue { base, .. }
            | Self::Packet { base, .. }
            | Self::Table { base, .. }
            | Self::Kernel { base, .. }
            | Self::Arena { base, .. }
            | Self::Checked { base, .. } => Some(base),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_stays_small() {
        assert!(size_of::<Op>() <= 24, "{}", size_of::<Op>());
    }
}
