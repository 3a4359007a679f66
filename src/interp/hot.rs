//! Chooses the BPF registers that are kept in host registers.

use crate::isa::Reg;
use crate::lower::{Lowered, MemRef, Op};

/// The registers that are used most; operations in loops weigh more.
pub(super) fn hot_registers(program: &Lowered) -> [u8; 4] {
    let weights = weights(program);
    let mut uses = [0u64; Reg::COUNT];
    for (op, weight) in program.ops().iter().zip(weights) {
        for reg in registers(*op).into_iter().flatten() {
            if let Some(count) = uses.get_mut(usize::from(reg.number())) {
                *count += weight;
            }
        }
    }
    let mut order: Vec<_> = (0u8..).zip(uses).collect();
    order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut hot = order.into_iter().map(|(number, _)| number);
    [(); 4].map(|()| hot.next().unwrap_or(0))
}

/// The weight of each operation: 8 times as much in each loop that contains it.
fn weights(program: &Lowered) -> Vec<u64> {
    let mut change = vec![0i32; program.ops().len() + 1];
    for (op, at) in program.ops().iter().zip(0u32..) {
        if let Op::Jump { target } | Op::JumpIf { target, .. } = op
            && *target <= at
        {
            change[*target as usize] += 1;
            change[at as usize + 1] -= 1;
        }
    }
    let mut depth = 0;
    let depths = change.iter().map(|change| {
        depth += change;
        8u64.pow(u32::try_from(depth.clamp(0, 4)).unwrap_or(0))
    });
    depths.collect()
}

/// The registers that an operation's function accesses.
fn registers(op: Op) -> [Option<Reg>; 2] {
    let base = |mem: MemRef| mem.base();
    match op {
        Op::Alu { dst, src, .. } | Op::JumpIf { dst, src, .. } => [Some(dst), src.reg()],
        Op::MovSx { dst, src, .. } => [Some(dst), Some(src)],
        Op::Neg { dst, .. }
        | Op::Endian { dst, .. }
        | Op::LoadImm { dst, .. }
        | Op::LoadPointer { dst, .. } => [Some(dst), None],
        Op::Load { dst, mem, .. } | Op::LoadSx { dst, mem, .. } => [Some(dst), base(mem)],
        Op::Store { mem, src, .. } => [base(mem), src.reg()],
        Op::Atomic { mem, src, .. } => [base(mem), Some(src)],
        _ => [None, None],
    }
}
