//! Operations fused with a branch at their end.

use super::fused::{Branch, Fused, SelectValue};
use super::window::{Window, is_sure};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Width};
use crate::lower::op::{Op, Order};

/// The branch after `n` operations, with the jump that it skips, and the number of
/// operations in all.
fn branch(window: &Window<'_>, n: usize) -> Option<(Branch, usize)> {
    let Op::JumpIf {
        op,
        width,
        dst,
        src,
        target,
    } = *window.ops.get(n)?
    else {
        return None;
    };
    let plain = Branch {
        op,
        width,
        left: dst,
        right: src,
        when: true,
        target,
        skips: false,
    };
    match window.ops.get(n + 1) {
        Some(Op::Jump { target: other }) if target == window.after(n + 2) => {
            let inverted = Branch {
                when: false,
                target: *other,
                skips: true,
                ..plain
            };
            Some((inverted, n + 2))
        }
        _ => Some((plain, n + 1)),
    }
}

/// Whether a register is dead on both sides of a branch, the last of `n` operations.
fn is_dead_after(window: &Window<'_>, reg: Reg, branch: &Branch, n: usize) -> bool {
    window.is_dead(reg, window.after(n)) && window.is_dead(reg, branch.target)
}

/// Replaces a branch that compares a masked number with zero by one that tests whether any
/// bit of the mask is set in `left`.
fn test(branch: Branch, mask: (Width, Operand), left: Reg) -> Option<Branch> {
    let when = match branch.op {
        JumpOp::Eq => !branch.when,
        JumpOp::Ne => branch.when,
        _ => return None,
    };
    // The upper half takes part only if both the mask and the comparison have 64 bits.
    let width = match (mask.0, branch.width) {
        (Width::W64, Width::W64) => Width::W64,
        _ => Width::W32,
    };
    (branch.right == Operand::Imm(0)).then_some(Branch {
        op: JumpOp::Set,
        width,
        left,
        right: mask.1,
        when,
        ..branch
    })
}

/// A branch over a jump, inverted.
pub(super) fn over_jump(window: &Window<'_>) -> Option<(Fused, u8)> {
    let (branch, n) = branch(window, 0)?;
    branch
        .skips
        .then_some((Fused::Branch(branch), u8::try_from(n).ok()?))
}

/// A test of single bits, or an operation and the branch on its result.
pub(super) fn after_arithmetic(window: &Window<'_>) -> Option<(Fused, u8)> {
    let Op::Alu {
        op,
        width,
        dst,
        src,
    } = *window.ops.first()?
    else {
        return None;
    };
    // tmp = left; tmp &= mask; if tmp == 0 …
    if let (
        AluOp::Mov,
        Operand::Reg(left),
        Some(Op::Alu {
            op: AluOp::And,
            width: masked,
            dst: and,
            src: mask,
        }),
    ) = (op, src, window.ops.get(1))
        && *and == dst
        && *mask != Operand::Reg(dst)
        && (width == Width::W64 || *masked == Width::W32)
        && let Some((fused, n)) = tested(window, 2, (*masked, *mask), (dst, left))
    {
        return Some((fused, n));
    }
    if op == AluOp::And
        && src != Operand::Reg(dst)
        && let Some(found) = tested(window, 1, (width, src), (dst, dst))
    {
        return Some(found);
    }
    let copy = copy_beside(window.ops.get(1)?, dst, src);
    let (branch, n) = branch(window, if copy.is_some() { 2 } else { 1 })?;
    let fused = Fused::AluBranch {
        copy,
        op,
        width,
        dst,
        src,
        branch,
    };
    Some((fused, u8::try_from(n).ok()?))
}

/// A copy between registers that can be moved before the operation `dst op= src`.
fn copy_beside(op: &Op, dst: Reg, src: Operand) -> Option<(Reg, Reg)> {
    let Op::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: to,
        src: Operand::Reg(from),
    } = *op
    else {
        return None;
    };
    let is_beside = from != dst && to != dst && src != Operand::Reg(to);
    is_beside.then_some((to, from))
}

/// A branch over a move, or over a move and a shift.
pub(super) fn select(window: &Window<'_>) -> Option<(Fused, u8)> {
    let is_move = |n: usize| match *window.ops.get(n)? {
        Op::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src: from,
        } => Some((
            dst,
            SelectValue {
                width,
                from,
                right: 0,
            },
        )),
        _ => None,
    };
    let first = is_move(0);
    let at = usize::from(first.is_some());
    let Op::JumpIf {
        op,
        width,
        dst: left,
        src: right,
        target,
    } = *window.ops.get(at)?
    else {
        return None;
    };
    let (dst, mut no) = is_move(at + 1)?;
    let mut n = at + 2;
    if target == window.after(n + 1)
        && let Op::Alu {
            op: AluOp::Rsh,
            width,
            dst: shifted,
            src: Operand::Imm(by),
        } = *window.ops.get(n)?
        && shifted == dst
        && width == no.width
    {
        // A shift by 0 would not be told from none.
        let is_valid = |by: &u8| (1..width.bits()).contains(by);
        no.right = u8::try_from(by).ok().filter(is_valid)?;
        n += 1;
    }
    let as_it_is = SelectValue {
        width: Width::W64,
        from: Operand::Reg(dst),
        right: 0,
    };
    let yes = match first {
        Some((set, yes)) if set == dst => yes,
        Some(_) => return None,
        None => as_it_is,
    };
    // With a move first, the condition and the other move read its result.
    let reads_dst = left == dst || right == Operand::Reg(dst) || no.from == Operand::Reg(dst);
    let is_it = target == window.after(n) && !(first.is_some() && reads_dst);
    is_it.then_some(())?;
    let fused = Fused::Select {
        op,
        width,
        left,
        right,
        dst,
        yes,
        no,
    };
    Some((fused, u8::try_from(n).ok()?))
}

/// The branch after `n` operations as a test of bits in `left`, if the masked number is
/// dead.
fn tested(
    window: &Window<'_>,
    n: usize,
    mask: (Width, Operand),
    (masked, left): (Reg, Reg),
) -> Option<(Fused, u8)> {
    let (branch, n) = branch(window, n)?;
    if branch.left != masked {
        return None;
    }
    let test = test(branch, mask, left)?;
    is_dead_after(window, masked, &branch, n)
        .then_some((Fused::Branch(test), u8::try_from(n).ok()?))
}

/// A load and the branch on the loaded number, or on some bits of it.
pub(super) fn after_load(window: &Window<'_>) -> Option<(Fused, u8)> {
    let Op::Load {
        size,
        dst,
        mem,
        order: Order::Relaxed,
    } = *window.ops.first()?
    else {
        return None;
    };
    if !is_sure(mem) {
        return None;
    }
    let fused = |dst, branch, n| {
        let fused = Fused::LoadBranch {
            size,
            mem,
            dst,
            branch,
        };
        Some((fused, u8::try_from(n).ok()?))
    };
    if let Some(Op::Alu {
        op: AluOp::And,
        width,
        dst: masked,
        src: Operand::Imm(mask),
    }) = window.ops.get(1)
        && *masked == dst
        && let Some((branch, n)) = branch(window, 2)
        && branch.left == dst
        && let Some(test) = test(branch, (*width, Operand::Imm(*mask)), dst)
        && is_dead_after(window, dst, &branch, n)
    {
        return fused(None, test, n);
    }
    let (branch, n) = branch(window, 1)?;
    if branch.left != dst || branch.right == Operand::Reg(dst) {
        return None;
    }
    let is_dead = is_dead_after(window, dst, &branch, n);
    fused((!is_dead).then_some(dst), branch, n)
}
