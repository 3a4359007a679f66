//! Zeroes memory in both forms, so that its former contents are no input.

use std::collections::BTreeSet;

use super::dataflow::Bytes;
use super::emit::pieces;
use super::find::Clear;
use super::patch::{Block, Patch};
use super::plan::Plan;
use crate::isa::{AluOp, Code, Insn, JumpOp, Operand, Reg, RegSet, Size, Width};
use crate::util::Pc;

/// Inserts the zeros: into ring-buffer records, where they are known to be reserved, and at the
/// start of functions into stack that is read before it is written.
///
/// A record is zeroed where the program's own null test has found it. A null test before that
/// one would be correct, too, but Linux 6.1 does not know of a ring-buffer record that a
/// second test can't fail: it follows the path with a record that is null and never released.
pub(super) fn insert(plan: &Plan, patch: &mut Patch) {
    let targets = targets(&plan.code);
    for clear in &plan.clears {
        match null_test(&plan.code, &targets, clear.pc) {
            Some(test) => test.clear(clear, patch),
            None => at_once(clear, patch),
        }
    }
    for function in &plan.functions {
        if function.unwritten != Bytes::default() {
            let mut block = Block::default();
            for slot in function.unwritten.slots() {
                block.store(Size::Dw, Reg::FP, slot, 0);
            }
            patch.entry(function.start, block);
        }
    }
}

/// Zeroes a record right after the call that reserves it.
fn at_once(clear: &Clear, patch: &mut Patch) {
    let null = patch.label();
    let mut block = Block::default();
    block.jump_if(JumpOp::Eq, Reg::R0, 0, null);
    zero(&mut block, Reg::R0, clear.size);
    block.bind(null);
    patch.after(clear.pc, block);
}

fn zero(block: &mut Block, record: Reg, bytes: u32) {
    for (at, size) in pieces(0, 8, bytes) {
        block.store(size, record, at, 0);
    }
}

/// The null test of a record.
struct NullTest {
    /// The conditional jump.
    pc: Pc,
    /// The register that it tests.
    record: Reg,
    /// The target of the jump, if it jumps when there is a record; otherwise the program goes on
    /// there.
    jumps_to: Option<Pc>,
}

impl NullTest {
    /// Zeroes the record on the branch on which it is there.
    fn clear(&self, clear: &Clear, patch: &mut Patch) {
        let mut block = Block::default();
        let Some(target) = self.jumps_to else {
            zero(&mut block, self.record, clear.size);
            patch.after(self.pc, block);
            return;
        };
        let null = patch.label();
        block.jump_if(JumpOp::Eq, self.record, 0, null);
        zero(&mut block, self.record, clear.size);
        block.jump_to(target);
        block.bind(null);
        patch.instead(self.pc, block);
    }
}

/// The null test of what the call at `call` returned, if the program comes to it from there and
/// nowhere else, without another call or jump between them.
fn null_test(code: &Code, targets: &BTreeSet<Pc>, call: Pc) -> Option<NullTest> {
    let mut copies = RegSet::of(&[Reg::R0]);
    let mut after = code.iter().skip_while(|(pc, _)| *pc <= call);
    loop {
        let (pc, insn) = after.next()?;
        let insn = insn.ok().filter(|_| !targets.contains(&pc))?;
        match insn {
            Insn::JumpIf {
                op: op @ (JumpOp::Eq | JumpOp::Ne),
                width: Width::W64,
                dst,
                src: Operand::Imm(0),
                ..
            } if copies.contains(dst) => {
                let jumps_to = match op {
                    JumpOp::Ne => Some(Pc(u32::try_from(insn.jump_target(pc)?).ok()?)),
                    _ => None,
                };
                return Some(NullTest {
                    pc,
                    record: dst,
                    jumps_to,
                });
            }
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Reg(src),
            } => {
                copies = match copies.contains(src) {
                    true => copies.with(dst),
                    false => copies.minus(RegSet::of(&[dst])),
                };
            }
            Insn::Call(_) | Insn::Exit => return None,
            _ if insn.jump_target(pc).is_some() => return None,
            _ => copies = copies.minus(insn.writes()),
        }
    }
}

/// The instructions that jumps lead to.
fn targets(code: &Code) -> BTreeSet<Pc> {
    let jumps = code.iter().filter_map(|(pc, insn)| {
        let insn = insn.ok()?;
        insn.jump_target(pc).or_else(|| insn.subprogram_target(pc))
    });
    jumps
        .filter_map(|to| u32::try_from(to).ok().map(Pc))
        .collect()
}
