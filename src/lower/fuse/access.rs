//! Loads fused with the operations on the loaded number.

use super::fused::Fused;
use super::window::{Window, is_direct, is_sure};
use crate::isa::{AluOp, Operand, Width};
use crate::lower::op::{Op, Order};

/// A load whose address is the sum of two registers, or of a register and a constant.
pub(super) fn indexed(window: &Window<'_>) -> Option<(Fused, u8)> {
    let add = |op: &Op| match *op {
        Op::Alu {
            op: AluOp::Add,
            width: Width::W64,
            dst,
            src,
        } => Some((dst, src)),
        _ => None,
    };
    let (sum, left, right, n) = match *window.ops.first()? {
        Op::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst,
            src: Operand::Reg(left),
        } => {
            let (sum, right) = add(window.ops.get(1)?)?;
            (sum == dst && right != Operand::Reg(sum)).then_some((sum, left, right, 2))?
        }
        ref op => {
            let (sum, right) = add(op)?;
            (sum, sum, right, 1)
        }
    };
    let Op::Load {
        size,
        dst,
        mem,
        order: Order::Relaxed,
    } = *window.ops.get(n)?
    else {
        return None;
    };
    let is_it = is_sure(mem) && mem.base() == Some(sum);
    if !is_it || dst != sum && !window.is_dead(sum, window.after(n + 1)) {
        return None;
    }
    let fused = Fused::LoadIndexed {
        size,
        mem,
        dst,
        left,
        right,
    };
    Some((fused, u8::try_from(n + 1).ok()?))
}

/// The fused form of a load and the operations after it, and how many operations it fuses.
pub(super) fn access(window: &Window<'_>) -> Option<(Fused, u8)> {
    let [
        Op::Load {
            size,
            dst: loaded,
            mem,
            order: Order::Relaxed,
        },
        second,
        rest @ ..,
    ] = window.ops
    else {
        return None;
    };
    let (size, loaded, mem) = (*size, *loaded, *mem);
    if !is_sure(mem) {
        return None;
    }
    let unless_dead = |n| {
        let is_dead = window.is_dead(loaded, window.after(n));
        (!is_dead).then_some(loaded)
    };
    let base_is_kept = mem.base() != Some(loaded);
    match (*second, rest.first()) {
        (
            Op::Alu {
                op,
                width,
                dst,
                src,
            },
            Some(Op::Store {
                size: stored,
                mem: to,
                src: Operand::Reg(what),
                order: Order::Relaxed,
            }),
        ) if dst == loaded
            && *what == loaded
            && (*stored, *to) == (size, mem)
            && base_is_kept
            && src != Operand::Reg(loaded)
            && op != AluOp::Mov =>
        {
            let update = Fused::Update {
                size,
                mem,
                op,
                width,
                src,
                dst: unless_dead(3),
            };
            Some((update, 3))
        }
        (
            Op::Alu {
                op,
                width,
                dst,
                src: Operand::Reg(src),
            },
            _,
        ) if src == loaded && dst != loaded && op != AluOp::Mov => {
            let fused = Fused::LoadAlu {
                size,
                mem,
                loaded: unless_dead(2),
                op,
                width,
                dst,
            };
            Some((fused, 2))
        }
        (
            Op::Store {
                size: stored,
                mem: to,
                src: Operand::Reg(what),
                order: Order::Relaxed,
            },
            _,
        ) if what == loaded && stored == size && is_direct(to) && to.base() != Some(loaded) => {
            let copy = Fused::Copy {
                size,
                from: mem,
                to,
                via: unless_dead(2),
            };
            Some((copy, 2))
        }
        _ => None,
    }
}
