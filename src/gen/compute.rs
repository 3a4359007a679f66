//! Steps that compute with registers and constants.

use super::body::Body;
use super::state::Holds;
use crate::isa::{AluOp, EndianOp, EndianSize, Insn, Operand, SignedSize, Width};

/// A constant number.
pub(super) fn constant(body: &mut Body<'_>) {
    let dst = body.free();
    body.constant_into(dst);
}

/// `dst op= src`, every operation in both widths.
pub(super) fn arithmetic(body: &mut Body<'_>) {
    let op = body.choices.pick(AluOp::ALL);
    let width = body.choices.pick(Width::ALL);
    let dst = body.own_number();
    let src = if body.choices.chance(50) {
        Operand::Reg(body.number())
    } else {
        Operand::Imm(allowed(op, width, body.choices.imm()))
    };
    body.alu(op, width, dst, src);
}

/// Replaces constants that the kernel refuses: zero divisors and too wide shifts.
fn allowed(op: AluOp, width: Width, imm: i32) -> i32 {
    match op {
        AluOp::Div | AluOp::Mod | AluOp::Sdiv | AluOp::Smod if imm == 0 => 3,
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => imm.rem_euclid(i32::from(width.bits())),
        _ => imm,
    }
}

/// Negation, sign extension, and byte swaps.
pub(super) fn unary(body: &mut Body<'_>) {
    let dst = body.own_number();
    let insn = match body.choices.below(3) {
        0 => Insn::Neg {
            width: body.choices.pick(Width::ALL),
            dst,
        },
        1 => Insn::Endian {
            op: body.choices.pick(EndianOp::ALL),
            size: body.choices.pick(EndianSize::ALL),
            dst,
        },
        _ => {
            let from = body.choices.pick(SignedSize::ALL);
            // There is no extension of 32 bits to 32.
            let width = match from {
                SignedSize::S32 => Width::W64,
                _ => body.choices.pick(Width::ALL),
            };
            let src = body.number();
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            }
        }
    };
    body.code.emit(insn);
}

/// A copy of a register; of a number, often its lower half.
pub(super) fn copy(body: &mut Body<'_>) {
    let held = body.state.with(|holds| holds != Holds::Nothing);
    let Some(src) = body.one_of(held) else {
        return;
    };
    let holds = body.state.get(src);
    let dst = body.free();
    let width = match holds {
        Holds::Number => body.choices.pick(Width::ALL),
        _ => Width::W64,
    };
    body.alu(AluOp::Mov, width, dst, Operand::Reg(src));
    body.state.set(dst, holds);
}
