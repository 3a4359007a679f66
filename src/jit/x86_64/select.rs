//! Selection without a branch.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm};
use super::regs::{FIRST, Host, host};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Width, sign_extend32};
use crate::lower::SelectValue;

/// Expands a macro with the suffix of the host's condition that, after a comparison, is true
/// if `op` holds as it `should`.
macro_rules! on_condition {
    ($op:expr, $should:expr, $expand:ident) => {
        match ($op, $should) {
            (JumpOp::Eq, true) | (JumpOp::Ne, false) => $expand!(sete, cmove),
            (JumpOp::Ne, true) | (JumpOp::Eq, false) => $expand!(setne, cmovne),
            (JumpOp::Gt, true) | (JumpOp::Le, false) => $expand!(seta, cmova),
            (JumpOp::Ge, true) | (JumpOp::Lt, false) => $expand!(setae, cmovae),
            (JumpOp::Lt, true) | (JumpOp::Ge, false) => $expand!(setb, cmovb),
            (JumpOp::Le, true) | (JumpOp::Gt, false) => $expand!(setbe, cmovbe),
            (JumpOp::Sgt, true) | (JumpOp::Sle, false) => $expand!(setg, cmovg),
            (JumpOp::Sge, true) | (JumpOp::Slt, false) => $expand!(setge, cmovge),
            (JumpOp::Slt, true) | (JumpOp::Sge, false) => $expand!(setl, cmovl),
            (JumpOp::Sle, true) | (JumpOp::Sgt, false) => $expand!(setle, cmovle),
            (JumpOp::Set, true) => $expand!(setne, cmovne),
            (JumpOp::Set, false) => $expand!(sete, cmove),
        }
    };
}

impl Emitter<'_> {
    /// `dst = if left op right { yes } else { no }`; false if a register is r10.
    pub(super) fn select(
        &mut self,
        (op, width, left, right): (JumpOp, Width, Reg, Operand),
        dst: Reg,
        yes: SelectValue,
        no: SelectValue,
    ) -> bool {
        let is_host = |operand| match operand {
            Operand::Reg(reg) => host(reg).is_some(),
            Operand::Imm(_) => true,
        };
        let operands = [Operand::Reg(left), right, yes.from, no.from];
        let Some(to) = host(dst).filter(|_| operands.into_iter().all(is_host)) else {
            return false;
        };
        if let (Some(if_yes @ (0 | 1)), Some(if_no @ (0 | 1))) = (constant(yes), constant(no))
            && if_yes != if_no
        {
            let is_compared = left == dst || right == Operand::Reg(dst);
            if !is_compared {
                self.constant(to, 0);
            }
            self.compare(op, width, left, right);
            macro_rules! set {
                ($set:ident, $move:ident) => {
                    asm!(self ; $set Rb(to))
                };
            }
            on_condition!(op, if_yes == 1, set);
            if is_compared {
                asm!(self ; movzx Rd(to), Rb(to));
            }
            return true;
        }
        self.held = None;
        self.value(FIRST, no);
        if no.right > 0 {
            self.shift_imm(AluOp::Rsh, no.width, FIRST, no.right.into());
        }
        self.compare(op, width, left, right);
        // This must preserve the flags.
        if yes.from != Operand::Reg(dst) || yes.width != Width::W64 {
            self.value(to, yes);
        }
        macro_rules! choose {
            ($set:ident, $move:ident) => {
                asm!(self ; $move Rq(to), Rq(FIRST))
            };
        }
        on_condition!(op, false, choose);
        true
    }

    /// `dst` = the value before its shift; preserves the flags.
    fn value(&mut self, dst: Host, value: SelectValue) {
        match (value.from, value.width) {
            (Operand::Imm(imm), Width::W32) => asm!(self ; mov Rd(dst), imm),
            (Operand::Imm(imm), Width::W64) => match u32::try_from(imm) {
                Ok(_) => asm!(self ; mov Rd(dst), imm),
                Err(_) => asm!(self ; mov Rq(dst), DWORD imm),
            },
            (Operand::Reg(from), width) => {
                let from = host(from).unwrap_or(dst);
                match width {
                    Width::W32 => asm!(self ; mov Rd(dst), Rd(from)),
                    Width::W64 => asm!(self ; mov Rq(dst), Rq(from)),
                }
            }
        }
    }
}

/// The value if it is constant.
fn constant(value: SelectValue) -> Option<u64> {
    match (value.from, value.width, value.right) {
        (Operand::Imm(imm), Width::W32, 0) => Some(imm.cast_unsigned().into()),
        (Operand::Imm(imm), Width::W64, 0) => Some(sign_extend32(imm)),
        _ => None,
    }
}
