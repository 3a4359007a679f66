//! Which instructions matter to backtracking.
//!
//! Most instructions on the way back neither set nor compare a wanted register. They are found by
//! a bit mask of each instruction, which is computed once for a program.

use crate::isa::{AluOp, Insn, Operand, Reg};

/// Registers of the current frame, and a bit for slots: those on which a step back over an instruction
/// depends, or those that are wanted. If no bit is in both, the step changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::verifier) struct Affected(u16);

impl Affected {
    /// Slots of any frame.
    const SLOTS: u16 = 1 << 14;
    /// Of every set of marks: calls and exits change the frame.
    const ALWAYS: u16 = 1 << 15;

    /// The marks that a step back over this instruction may change, apart from registers and
    /// slots that a comparison links.
    pub(in crate::verifier) fn by(insn: &Insn) -> Self {
        let bit = |reg: Reg| 1 << reg.number();
        let store = |base: Reg| bit(base) | Self::SLOTS;
        Self(match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                ..
            }
            | Insn::Alu {
                dst,
                src: Operand::Reg(_),
                ..
            }
            | Insn::MovSx { dst, .. }
            | Insn::AddrSpaceCast { dst, .. }
            | Insn::LoadImm64 { dst, .. }
            | Insn::LoadPseudo { dst, .. }
            | Insn::Load { dst, .. }
            | Insn::LoadSx { dst, .. }
            | Insn::LoadAcquire { dst, .. } => bit(dst),
            Insn::Store { base, .. } | Insn::StoreRelease { base, .. } => store(base),
            Insn::Atomic { op, base, src, .. } => op.old(src).map_or_else(|| store(base), bit),
            Insn::LoadPacket { .. } => bit(Reg::R0),
            Insn::JumpIf {
                dst,
                src: Operand::Reg(src),
                ..
            } => bit(dst) | bit(src),
            Insn::Alu { .. }
            | Insn::JumpIf { .. }
            | Insn::Neg { .. }
            | Insn::Endian { .. }
            | Insn::Jump { .. }
            | Insn::JumpLong { .. }
            | Insn::MayGoto { .. } => 0,
            _ => Self::ALWAYS,
        })
    }

    /// What is wanted: these registers of the current frame, and slots or none.
    pub(super) const fn wanted(regs: u16, slots: bool) -> Self {
        Self(regs | Self::ALWAYS | if slots { Self::SLOTS } else { 0 })
    }

    /// Whether the sets have a common element.
    #[inline]
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::Size;
    use crate::isa::arbitrary::insn;
    use crate::spec::ProgType;
    use crate::util::Pc;
    use crate::verifier::history::{History, LinkedSet};
    use crate::verifier::precision::back::{Back, StepBack};
    use crate::verifier::precision::marks::{Marks, bits};
    use crate::verifier::structure::tests::of;

    /// Registers and slots of two frames.
    fn marks((inner, outer): ((u16, u64), (u16, u64))) -> Marks {
        let mut marks = Marks::new(1);
        for (frame, (regs, slots)) in [(1, inner), (0, outer)] {
            bits(u64::from(regs & 0x3ff)).for_each(|reg| marks.set_reg(frame, reg));
            bits(slots).for_each(|slot| marks.set_slot(frame, slot));
        }
        marks
    }

    /// Few of them.
    fn wanted() -> impl Strategy<Value = (u16, u64)> {
        let few = (any::<u16>(), any::<u16>()).prop_map(|(a, b)| a & b);
        (few, prop_oneof![Just(0), 1u64..16])
    }

    proptest! {
        /// A step back over an instruction that affects nothing wanted changes nothing.
        #[test]
        fn what_is_not_affected_stays(
            insn in insn(),
            wanted in (wanted(), wanted()),
            slot in (0u8..2, 0u8..4),
        ) {
            let before = marks(wanted);
            prop_assume!(!Affected::by(&insn).meets(before.wanted()));
            let mut history = History::default();
            history.push(Pc(0), Pc(1));
            history.note(Some(slot), LinkedSet::default());
            let back = StepBack {
                structure: &of(ProgType::SocketFilter, "r0 = 0\nexit"),
                pc: Pc(0),
                insn,
                next: Some(Pc(1)),
                step: history.steps().last_at(Pc(0)),
                links: LinkedSet::default(),
            };
            let mut after = before;
            prop_assert_eq!(back.take(&mut after).ok(), Some(Back::Traced));
            prop_assert_eq!(after, before);
        }
    }

    /// A store to a slot is one of the instructions that matter as soon as any slot is wanted.
    #[test]
    fn slots_of_all_frames_count() {
        let store = Insn::Store {
            size: Size::B,
            base: Reg::R1,
            off: 0,
            src: Operand::Imm(0),
        };
        let mut marks = Marks::new(1);
        marks.set_reg(1, 2);
        assert!(!Affected::by(&store).meets(marks.wanted()));
        marks.set_slot(0, 3);
        assert!(Affected::by(&store).meets(marks.wanted()));
        assert!(marks.take_slot(0, 3));
        assert!(!Affected::by(&store).meets(marks.wanted()));
    }
}
