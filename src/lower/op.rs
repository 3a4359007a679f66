//! The operations that engines run: decoded, their jumps resolved to operation
//! indices, their accesses classed by what the verifier proved of the address.
//!
//! Registers are BPF's, and so is what an operation computes: the functions of
//! [`isa`](crate::isa) (`AluOp::eval`, `JumpOp::eval`, `movsx`, …) say it.

use crate::isa::{
    AluOp, AtomicOp, EndianOp, EndianSize, JumpOp, Operand, Reg, SignedSize, Size, Width,
};

/// The index of an operation in [`Lowered::ops`](super::Lowered::ops).
pub type Target = u32;

/// One operation. It stands for one BPF instruction, whose position is in
/// [`Lowered::pc`](super::Lowered::pc).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are the machine's; variants say what they do"
)]
pub enum Op {
    /// `dst op= src`, as [`AluOp::eval`] has it; a 64-bit operation extends an
    /// immediate's sign.
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
    /// `dst` = the `size` bytes at `place`, zero-extended.
    Load {
        size: Size,
        dst: Reg,
        place: Place,
        order: Order,
    },
    /// `dst` = the bytes at `place`, sign-extended to 64 bits.
    LoadSx {
        from: SignedSize,
        dst: Reg,
        place: Place,
    },
    /// `dst` = the pointer that a field of the context loads as: the value of the
    /// region's [`PointerField`](crate::vm::memory::PointerField) at `off` of `size`
    /// bytes, or the bytes there if it has none.
    LoadPointer { size: Size, dst: Reg, off: u16 },
    /// The `size` bytes at `place` = the low bytes of `src`; an immediate's sign is
    /// extended.
    Store {
        size: Size,
        place: Place,
        src: Operand,
        order: Order,
    },
    /// Atomic read-modify-write at `place`, sequentially consistent.
    Atomic {
        op: AtomicOp,
        width: Width,
        place: Place,
        src: Reg,
    },
    /// `r0` = packet bytes at `index + off` (or at `off`) in host order; the function
    /// ends with 0 where there are none. Always by a call:
    /// [`Machine::packet_bytes`](crate::vm::Machine::packet_bytes).
    LoadPacket {
        size: Size,
        index: Option<Reg>,
        off: i32,
    },
    /// Goes on at the target.
    Jump { target: Target },
    /// Goes on at the target if `dst op src` holds, else with the next operation.
    JumpIf {
        op: JumpOp,
        width: Width,
        dst: Reg,
        src: Operand,
        target: Target,
    },
    /// Goes on with the next operation as long as the frame has loops left
    /// ([`MAX_MAY_GOTO`](crate::spec::limits::MAX_MAY_GOTO) at its start), else at the
    /// target.
    MayGoto { target: Target },
    /// `r0 = helper(r1, …, r5)`, by its index in
    /// [`Lowered::helpers`](super::Lowered::helpers). Registers r1 to r5 keep their
    /// values.
    CallHelper { helper: u16 },
    /// `bpf_map_lookup_elem` on a map that is known, an entry of
    /// [`Lowered::maps`](super::Lowered::maps), whose [`Keys`](super::Keys) say what is
    /// found: `r0` = the address of the value under the key at `key`, or 0. Registers
    /// r1 to r5 keep their values.
    Lookup {
        map: u16,
        /// As many bytes as a key has, 4 for an index. Not
        /// [`Checked`](Place::Checked).
        key: Place,
        /// The key is an index, and known to be one of the map's: `r0` is not 0.
        is_there: bool,
    },
    /// A helper whose result stays the same for a run: `r0` =
    /// [`KnownValues`](super::KnownValues)`[which]`. Registers r1 to r5 keep their
    /// values.
    Known { which: u8 },
    /// A call of a function of the program, by its index in
    /// [`Lowered::functions`](super::Lowered::functions), in a frame of its own.
    CallFunction { function: u16 },
    /// `bpf_tail_call(r1, r2, r3)`: the frame goes to another program, or on with the
    /// next operation.
    TailCall,
    /// Ends the function with `r0`.
    Exit,
}

impl Op {
    /// Where a load, a store or an atomic goes; none for other operations.
    #[must_use]
    pub const fn place(mut self) -> Option<Place> {
        match self.place_mut() {
            Some(place) => Some(*place),
            None => None,
        }
    }

    pub(super) const fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::Load { place, .. }
            | Self::LoadSx { place, .. }
            | Self::Store { place, .. }
            | Self::Atomic { place, .. } => Some(place),
            _ => None,
        }
    }
}

/// How an access is ordered among those of other threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Not at all.
    Relaxed,
    /// A load that later accesses stay behind.
    Acquire,
    /// A store that earlier accesses stay before.
    Release,
}

/// Where an access goes, and how its host address is found. Addresses and offsets
/// wrap. All but `Checked` were proved to be in bounds and allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
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
    /// Some region: with the address `a` = `base` + `off`, the host address is `a` +
    /// the entry of [`Space::deltas`](crate::vm::memory::Space::deltas) that bits 40
    /// to 55 of `a` select; where that is 0, the access goes as a `Checked` one.
    Table {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
    /// The packet, which no other program sees meanwhile; as `Table`.
    Packet {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
    /// Anywhere: [`Space::load`](crate::vm::memory::Space::load), `store` or `update`
    /// at `base` + `off`, which fault where nothing is.
    Checked {
        /// Holds the address.
        base: Reg,
        /// Added to it.
        off: i16,
    },
}

impl Place {
    /// The register that holds the address, unless the place is relative to the frame or
    /// the context.
    #[must_use]
    pub const fn base(self) -> Option<Reg> {
        match self {
            Self::Stack { .. } | Self::Context { .. } => None,
            Self::MapValue { base, .. }
            | Self::Packet { base, .. }
            | Self::Table { base, .. }
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
