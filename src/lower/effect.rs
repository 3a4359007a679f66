//! Which registers operations read and write, and whether they write the frame through
//! pointers.

use super::lowered::Helper;
use super::op::{MemRef, Op};
use crate::analysis::Effect;
use crate::isa::{AluOp, Operand, Reg, RegSet};
use crate::spec::call::{Access, ArgSpec, RegKind};
use crate::spec::helpers::Effects;

/// The registers that an operation reads and writes. Registers that the verifier makes
/// unreadable count as written: r1 to r5 after a call.
pub(crate) fn effect(op: &Op) -> Effect {
    let none = RegSet::EMPTY;
    let one = |reg: Reg| none.with(reg);
    let operand = |operand: Operand| operand.reg().map_or(none, one);
    let base = |mem: MemRef| mem.base().map_or(none, one);
    let (reads, writes) = match *op {
        Op::Alu {
            op: AluOp::Mov,
            dst,
            src,
            ..
        } => (operand(src), one(dst)),
        Op::Alu { dst, src, .. } => (one(dst).union(operand(src)), one(dst)),
        Op::MovSx { dst, src, .. } => (one(src), one(dst)),
        Op::Cast { dst, src, .. } => (one(src), one(dst)),
        Op::Neg { dst, .. } | Op::Endian { dst, .. } => (one(dst), one(dst)),
        Op::LoadImm { dst, .. } | Op::LoadPointer { dst, .. } => (none, one(dst)),
        Op::Load { dst, mem, .. } if op.may_fetch_nothing() => {
            (base(mem).union(one(dst)), one(dst))
        }
        Op::Load { dst, mem, .. } | Op::LoadSx { dst, mem, .. } => (base(mem), one(dst)),
        Op::Store { mem, src, .. } => (base(mem).union(operand(src)), none),
        Op::Atomic { op, mem, src, .. } => {
            let mut reads = base(mem).union(one(src));
            if op.compares() {
                reads = reads.union(one(Reg::R0));
            }
            (reads, op.old(src).map_or(none, one))
        }
        // Outside the packet the function ends; only the kernel needs the context in r6.
        Op::LoadPacket { index, .. } => (index.map_or(none, one), RegSet::CALLER_SAVED),
        Op::Jump { .. } | Op::MayGoto { .. } => (none, none),
        Op::JumpIf { dst, src, .. } => (one(dst).union(operand(src)), none),
        Op::CallHelper { .. } | Op::CallFunction { .. } | Op::TailCall => {
            (RegSet::arguments(5), RegSet::CALLER_SAVED)
        }
        Op::Lookup { key, .. } => (base(key), RegSet::CALLER_SAVED),
        Op::Known { .. } => (none, one(Reg::R0)),
        Op::Throw { .. } => (RegSet::arguments(1), none),
        Op::Exit => (one(Reg::R0), none),
    };
    Effect { reads, writes }
}

/// The registers that an operation writes.
pub(super) fn writes(op: Op) -> RegSet {
    effect(&op).writes
}

/// Whether a call may write to the caller's frame through its arguments.
pub(super) fn may_write_frame(op: Op, helpers: &[Helper]) -> bool {
    match op {
        Op::CallHelper { helper } => {
            let helper = helpers.get(usize::from(helper));
            helper.is_none_or(|helper| !only_reads(helper))
        }
        Op::CallFunction { .. } => true,
        // A tail call that returns has done nothing.
        _ => false,
    }
}

/// Whether a helper writes to the stack through no argument, and calls no callback that might.
fn only_reads(helper: &Helper) -> bool {
    let Some(helper) = helper.spec() else {
        return false;
    };
    let reads = |arg: &ArgSpec| match arg.region() {
        Some(region) => region.access == Access::Read,
        None => !arg.takes(RegKind::Stack),
    };
    !helper.effects.intersects(Effects::CALLS_BACK)
        && helper
            .prototypes
            .iter()
            .all(|prototype| prototype.arguments.iter().all(reads))
}
