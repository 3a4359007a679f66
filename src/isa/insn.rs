//! The decoded instruction.

use super::opcode::{class, op};
use super::raw::RawInsn;
use super::reg::{Reg, RegSet};
use super::table::{
    AluOp, AtomicOp, EndianOp, EndianSize, IsaVersion, JumpOp, Pseudo, SignedSize, Size, Width,
};
use crate::util::{HelperId, Pc, TypeId};

/// One instruction with checked fields: [`decode`](super::decode) creates it from slots,
/// [`Insn::encode`] encodes it.
///
/// Offsets of jumps and calls count slots from the one after the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(
    missing_docs,
    reason = "the fields are the machine's; variants say what they do"
)]
#[non_exhaustive]
pub enum Insn {
    /// `dst op= src`. Immediates are sign-extended for 64-bit operations.
    Alu {
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    },
    /// `dst = (sN)src`, sign-extended to the width. (32 to 32 bits does not exist; it
    /// encodes as the plain move.)
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
    /// `dst = src`, converting a pointer from address space `from` to `to`; one of them is
    /// 0 (the kernel's), the other 1 (the arena's).
    AddrSpaceCast {
        dst: Reg,
        src: Reg,
        to: u16,
        from: u16,
    },
    /// `dst = value`: two slots.
    LoadImm64 { dst: Reg, value: u64 },
    /// `dst` = the address that `source` refers to: two slots.
    LoadPseudo { dst: Reg, source: Pseudo },
    /// `dst = *(uN *)(base + off)`, zero-extended.
    Load {
        size: Size,
        dst: Reg,
        base: Reg,
        off: i16,
    },
    /// `dst = *(sN *)(base + off)`, sign-extended to 64 bits.
    LoadSx {
        from: SignedSize,
        dst: Reg,
        base: Reg,
        off: i16,
    },
    /// `*(uN *)(base + off) = src`; an immediate is sign-extended.
    Store {
        size: Size,
        base: Reg,
        off: i16,
        src: Operand,
    },
    /// Atomic read-modify-write of the memory at `base + off`.
    Atomic {
        op: AtomicOp,
        width: Width,
        base: Reg,
        off: i16,
        src: Reg,
    },
    /// `dst = *(uN *)(base + off)` with acquire ordering, zero-extended.
    LoadAcquire {
        size: Size,
        dst: Reg,
        base: Reg,
        off: i16,
    },
    /// `*(uN *)(base + off) = src` with release ordering.
    StoreRelease {
        size: Size,
        base: Reg,
        off: i16,
        src: Reg,
    },
    /// `r0` = packet bytes at `index + off` (or at `off`) in host order, of 1, 2 or 4
    /// bytes. The context must be in `r6`; `r1` to `r5` are clobbered; a read past the end
    /// exits the program with 0.
    LoadPacket {
        size: Size,
        index: Option<Reg>,
        off: i32,
    },
    /// `goto off`.
    Jump { off: i16 },
    /// `gotol off`: a jump with 32 bits of offset.
    JumpLong { off: i32 },
    /// `if dst op src goto off`.
    JumpIf {
        op: JumpOp,
        width: Width,
        dst: Reg,
        src: Operand,
        off: i16,
    },
    /// Jumps once the loop's budget is used up, otherwise falls through.
    MayGoto { off: i16 },
    /// A call whose target is in the instruction.
    Call(CallTarget),
    /// A call of the subprogram whose address is in the register. The kernel rejects it;
    /// clang emits it.
    CallReg { target: Reg },
    /// Leaves the program or subprogram with `r0`.
    Exit,
}

/// The second operand: a register or a sign-extended constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A constant.
    Imm(i32),
}

impl Operand {
    /// The register, if it is one.
    #[must_use]
    pub const fn reg(self) -> Option<Reg> {
        match self {
            Self::Reg(reg) => Some(reg),
            Self::Imm(_) => None,
        }
    }

    /// The constant, if it is one.
    #[must_use]
    pub const fn imm(self) -> Option<i32> {
        match self {
            Self::Imm(imm) => Some(imm),
            Self::Reg(_) => None,
        }
    }
}

/// The target of a `call`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CallTarget {
    /// A helper function, by number.
    Helper(HelperId),
    /// A kfunc, by BTF id.
    Kfunc {
        /// The function's id in the kernel's BTF or in that of its module.
        id: TypeId,
        /// 0 for the kernel itself, else an index into the load command's `fd_array`.
        fd_index: i16,
    },
    /// A subprogram.
    Subprogram {
        /// Slots from the next instruction to the subprogram's first.
        rel: i32,
    },
}

/// Control flow after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// To the next instruction; calls are included, since they return.
    Next,
    /// To this target only, which may be outside the program: it is not checked.
    Goto(i64),
    /// To the next instruction or to this target.
    Branch(i64),
    /// Nowhere in this subprogram.
    Exit,
}

impl Flow {
    /// The control flow from a slot, determined by its opcode and offset alone: other
    /// fields may be invalid.
    #[must_use]
    pub fn of_raw(raw: RawInsn, pc: Pc) -> Self {
        let class = raw.opcode & class::MASK;
        if class != class::JMP && class != class::JMP32 {
            return Self::Next;
        }
        match raw.opcode & op::MASK {
            op::CALL => Self::Next,
            op::EXIT => Self::Exit,
            // `0x0e` is not an instruction, but the kernel reads its offset.
            op::JA if raw.opcode == class::JMP32 | op::JA => Self::Goto(target(pc, raw.imm)),
            op::JA => Self::Goto(target(pc, i32::from(raw.off))),
            _ => Self::Branch(target(pc, i32::from(raw.off))),
        }
    }
}

impl Insn {
    /// The number of slots, 1 or 2.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        match self {
            Self::LoadImm64 { .. } | Self::LoadPseudo { .. } => 2,
            _ => 1,
        }
    }

    /// The offset of a jump of any kind, in slots from the next instruction.
    #[must_use]
    pub const fn jump_off(&self) -> Option<i32> {
        match *self {
            Self::Jump { off } | Self::JumpIf { off, .. } | Self::MayGoto { off } => {
                Some(off as i32)
            }
            Self::JumpLong { off } => Some(off),
            _ => None,
        }
    }

    /// The same jump with another offset; `None` if it does not fit, or if this is not a
    /// jump.
    #[must_use]
    pub fn with_jump_off(self, to: i32) -> Option<Self> {
        let short = i16::try_from(to);
        Some(match self {
            Self::Jump { .. } => Self::Jump { off: short.ok()? },
            Self::JumpLong { .. } => Self::JumpLong { off: to },
            Self::MayGoto { .. } => Self::MayGoto { off: short.ok()? },
            Self::JumpIf {
                op,
                width,
                dst,
                src,
                ..
            } => Self::JumpIf {
                op,
                width,
                dst,
                src,
                off: short.ok()?,
            },
            _ => return None,
        })
    }

    /// The control flow from this instruction at `pc`.
    #[must_use]
    pub fn flow(&self, pc: Pc) -> Flow {
        match *self {
            Self::Jump { off } => Flow::Goto(target(pc, i32::from(off))),
            Self::JumpLong { off } => Flow::Goto(target(pc, off)),
            Self::JumpIf { off, .. } | Self::MayGoto { off } => {
                Flow::Branch(target(pc, i32::from(off)))
            }
            Self::Exit => Flow::Exit,
            _ => Flow::Next,
        }
    }

    /// The target slot of a jump at `pc`, which may be out of bounds.
    #[must_use]
    pub fn jump_target(&self, pc: Pc) -> Option<i64> {
        self.jump_off().map(|off| target(pc, off))
    }

    /// The first slot of the subprogram that this instruction at `pc` calls or takes the
    /// address of; it may be out of bounds.
    #[must_use]
    pub fn subprogram_target(&self, pc: Pc) -> Option<i64> {
        match *self {
            Self::Call(CallTarget::Subprogram { rel })
            | Self::LoadPseudo {
                source: Pseudo::Func { rel },
                ..
            } => Some(target(pc, rel)),
            _ => None,
        }
    }

    /// Whether control can fall through to the next instruction.
    #[must_use]
    pub const fn falls_through(&self) -> bool {
        !matches!(self, Self::Jump { .. } | Self::JumpLong { .. } | Self::Exit)
    }

    /// Whether this is a call of any kind.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::CallReg { .. })
    }

    /// The registers that the instruction reads. A call counts as reading all argument
    /// registers, as the prototype is not known here. (The kernel's own liveness,
    /// `compute_insn_live_regs`, counts a packet load as reading every register.)
    #[must_use]
    pub fn reads(&self) -> RegSet {
        let operand = |set: RegSet, src: Operand| match src {
            Operand::Reg(reg) => set.with(reg),
            Operand::Imm(_) => set,
        };
        match *self {
            Self::Alu {
                op: AluOp::Mov,
                src,
                ..
            } => operand(RegSet::EMPTY, src),
            Self::Alu { dst, src, .. } | Self::JumpIf { dst, src, .. } => {
                operand(RegSet::of(&[dst]), src)
            }
            Self::MovSx { src, .. } | Self::AddrSpaceCast { src, .. } => RegSet::of(&[src]),
            Self::Neg { dst, .. } | Self::Endian { dst, .. } => RegSet::of(&[dst]),
            Self::Load { base, .. }
            | Self::LoadSx { base, .. }
            | Self::LoadAcquire { base, .. } => RegSet::of(&[base]),
            Self::Store { base, src, .. } => operand(RegSet::of(&[base]), src),
            Self::StoreRelease { base, src, .. } => RegSet::of(&[base, src]),
            Self::Atomic { op, base, src, .. } => {
                let set = RegSet::of(&[base, src]);
                if op.compares() {
                    set.with(Reg::R0)
                } else {
                    set
                }
            }
            Self::LoadPacket { index, .. } => {
                let set = RegSet::of(&[Reg::R6]);
                index.map_or(set, |index| set.with(index))
            }
            Self::Call(_) => RegSet::arguments(5),
            Self::CallReg { target } => RegSet::arguments(5).with(target),
            Self::Exit => RegSet::of(&[Reg::R0]),
            Self::LoadImm64 { .. }
            | Self::LoadPseudo { .. }
            | Self::Jump { .. }
            | Self::JumpLong { .. }
            | Self::MayGoto { .. } => RegSet::EMPTY,
        }
    }

    /// The registers whose old value is lost: written, or clobbered by a call.
    #[must_use]
    pub fn writes(&self) -> RegSet {
        match *self {
            Self::Alu { dst, .. }
            | Self::MovSx { dst, .. }
            | Self::Neg { dst, .. }
            | Self::Endian { dst, .. }
            | Self::AddrSpaceCast { dst, .. }
            | Self::LoadImm64 { dst, .. }
            | Self::LoadPseudo { dst, .. }
            | Self::Load { dst, .. }
            | Self::LoadSx { dst, .. }
            | Self::LoadAcquire { dst, .. } => RegSet::of(&[dst]),
            Self::Atomic { op, src, .. } => match op.old(src) {
                Some(old) => RegSet::of(&[old]),
                None => RegSet::EMPTY,
            },
            Self::LoadPacket { .. } | Self::Call(_) | Self::CallReg { .. } => RegSet::CALLER_SAVED,
            Self::Store { .. }
            | Self::StoreRelease { .. }
            | Self::Jump { .. }
            | Self::JumpLong { .. }
            | Self::JumpIf { .. }
            | Self::MayGoto { .. }
            | Self::Exit => RegSet::EMPTY,
        }
    }

    /// The memory that the instruction accesses through a register: base, offset
    /// and size in bytes.
    #[must_use]
    pub const fn memory(&self) -> Option<(Reg, i16, Size)> {
        match *self {
            Self::Load {
                size, base, off, ..
            }
            | Self::Store {
                size, base, off, ..
            }
            | Self::LoadAcquire {
                size, base, off, ..
            }
            | Self::StoreRelease {
                size, base, off, ..
            } => Some((base, off, size)),
            Self::LoadSx {
                from, base, off, ..
            } => Some((base, off, from.size())),
            Self::Atomic {
                width, base, off, ..
            } => Some((base, off, width.size())),
            _ => None,
        }
    }

    /// The lowest version of the instruction set that includes the instruction, by clang's
    /// `-mcpu`. (Kernels have supported 32-bit arithmetic from the start; clang emits it
    /// from v3.)
    #[must_use]
    pub fn since(&self) -> IsaVersion {
        let narrow = |width: Width| match width {
            Width::W32 => IsaVersion::V3,
            Width::W64 => IsaVersion::V1,
        };
        match *self {
            Self::Alu { op, width, .. } => op.since().max(narrow(width)),
            Self::JumpIf { op, width, .. } => op.since().max(narrow(width)),
            Self::Neg { width, .. } => narrow(width),
            Self::MovSx { from, .. } | Self::LoadSx { from, .. } => from.since(),
            Self::Endian { op, .. } => op.since(),
            Self::Atomic { op, .. } => op.since(),
            Self::JumpLong { .. } | Self::LoadAcquire { .. } | Self::StoreRelease { .. } => {
                IsaVersion::V4
            }
            Self::AddrSpaceCast { .. }
            | Self::LoadImm64 { .. }
            | Self::LoadPseudo { .. }
            | Self::Load { .. }
            | Self::Store { .. }
            | Self::LoadPacket { .. }
            | Self::Jump { .. }
            | Self::MayGoto { .. }
            | Self::Call(_)
            | Self::CallReg { .. }
            | Self::Exit => IsaVersion::V1,
        }
    }
}

/// The slot at `off` from the one after `pc`. Offsets of a 64-bit immediate count from its
/// first slot, too.
fn target(pc: Pc, off: i32) -> i64 {
    i64::from(pc.0) + 1 + i64::from(off)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{arbitrary, assemble, decode};
    use super::*;

    fn insn(text: &str) -> Insn {
        decode(&assemble(text).unwrap(), Pc(0)).unwrap()
    }

    /// Four fit in a cache line.
    #[test]
    fn an_instruction_stays_small() {
        assert_eq!(size_of::<Insn>(), 16);
        assert_eq!(size_of::<Option<Insn>>(), 16);
    }

    /// One instruction per line: its text, the registers it reads and writes.
    #[test]
    fn registers_are_read_and_written() {
        let cases: [(&str, &[u8], &[u8]); 22] = [
            ("r1 = r2", &[2], &[1]),
            ("r1 = 5", &[], &[1]),
            ("w1 += w2", &[1, 2], &[1]),
            ("w1 = (s8)w2", &[2], &[1]),
            ("r1 = -r1", &[1], &[1]),
            ("r1 = be16 r1", &[1], &[1]),
            ("r1 = addr_space_cast(r2, 0, 1)", &[2], &[1]),
            ("r1 = 5 ll", &[], &[1]),
            ("r1 = *(u64 *)(r2 +8)", &[2], &[1]),
            ("*(u64 *)(r1 +8) = 7", &[1], &[]),
            ("*(u64 *)(r1 +8) = r2", &[1, 2], &[]),
            ("lock *(u64 *)(r1 +8) += r2", &[1, 2], &[]),
            ("r2 = atomic64_xchg((u64 *)(r1 +8), r2)", &[1, 2], &[2]),
            (
                "r0 = atomic64_cmpxchg((u64 *)(r1 +8), r0, r2)",
                &[0, 1, 2],
                &[0],
            ),
            ("r1 = load_acquire((u8 *)(r2 +8))", &[2], &[1]),
            ("store_release((u8 *)(r1 +8), r2)", &[1, 2], &[]),
            ("r0 = *(u8 *)skb[r7 + 3]", &[6, 7], &[0, 1, 2, 3, 4, 5]),
            ("if w1 > w2 goto +3", &[1, 2], &[]),
            ("may_goto +3", &[], &[]),
            ("call 7", &[1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 5]),
            ("callx r8", &[1, 2, 3, 4, 5, 8], &[0, 1, 2, 3, 4, 5]),
            ("exit", &[0], &[]),
        ];
        for (text, reads, writes) in cases {
            let set = |numbers: &[u8]| {
                numbers
                    .iter()
                    .filter_map(|n| Reg::from_number(*n))
                    .collect()
            };
            let insn = insn(text);
            assert_eq!(
                (insn.reads(), insn.writes()),
                (set(reads), set(writes)),
                "{text}"
            );
        }
    }

    #[test]
    fn versions_are_clangs() {
        let cases = [
            ("r1 += r2", IsaVersion::V1),
            ("r1 = be64 r1", IsaVersion::V1),
            ("lock *(u32 *)(r1 +0) += r2", IsaVersion::V1),
            ("if r1 s<= r2 goto +3", IsaVersion::V2),
            ("w1 += w2", IsaVersion::V3),
            ("if w1 s< w2 goto +3", IsaVersion::V3),
            (
                "r2 = atomic64_fetch_add((u64 *)(r1 +0), r2)",
                IsaVersion::V3,
            ),
            ("r1 s/= r2", IsaVersion::V4),
            ("w1 s%= w2", IsaVersion::V4),
            ("r1 = (s8)r2", IsaVersion::V4),
            ("r1 = *(s8 *)(r2 +0)", IsaVersion::V4),
            ("r1 = bswap16 r1", IsaVersion::V4),
            ("gotol +3", IsaVersion::V4),
        ];
        for (text, version) in cases {
            assert_eq!(insn(text).since(), version, "{text}");
        }
    }

    #[test]
    fn memory_is_named() {
        assert_eq!(
            insn("r1 = *(s16 *)(r2 -8)").memory(),
            Some((Reg::R2, -8, Size::H))
        );
        assert_eq!(
            insn("lock *(u32 *)(r3 +4) |= r1").memory(),
            Some((Reg::R3, 4, Size::W))
        );
        assert_eq!(insn("r0 = *(u8 *)skb[4]").memory(), None);
    }

    proptest! {
        #[test]
        fn the_opcode_decides_the_flow(insn in arbitrary::insn(), pc in 0u32..9) {
            prop_assert_eq!(Flow::of_raw(insn.encode()[0], Pc(pc)), insn.flow(Pc(pc)));
        }

        /// Only the offset changes, and jumps accept their whole offset range.
        #[test]
        fn a_jump_can_be_aimed(insn in arbitrary::insn(), off in any::<i16>()) {
            let aimed = insn.with_jump_off(off.into());
            prop_assert_eq!(aimed.is_some(), insn.jump_off().is_some());
            if let (Some(aimed), Some(old)) = (aimed, insn.jump_off()) {
                prop_assert_eq!(aimed.jump_off(), Some(off.into()));
                prop_assert_eq!(aimed.with_jump_off(old), Some(insn));
                prop_assert_eq!(aimed.jump_target(Pc(7)), Some(8 + i64::from(off)));
                let wide = insn.with_jump_off(40_000);
                prop_assert_eq!(wide.is_some(), matches!(insn, Insn::JumpLong { .. }));
            }
            let falls = matches!(insn.flow(Pc(0)), Flow::Next | Flow::Branch(_));
            prop_assert_eq!(insn.falls_through(), falls);
        }
    }
}
