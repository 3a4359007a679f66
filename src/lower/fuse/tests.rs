//! What is fused, and that it has the results of the plain operations.

use super::{Branch, Fused, SelectValue};
use crate::isa::{AluOp, JumpOp, Operand, Reg, Size, Width, assemble, movsx, neg, sign_extend32};
use crate::lower::tests::lowered;
use crate::lower::{Lowered, MemRef, Op, Passes, Target};

type Regs = [u64; Reg::COUNT];

/// Reads the number behind an operand.
fn operand(regs: &Regs, operand: Operand) -> u64 {
    match operand {
        Operand::Reg(reg) => regs[reg.index()],
        Operand::Imm(imm) => sign_extend32(imm),
    }
}

/// Executes register-only operations from `at` on, until one after `end` or before `at` is
/// next: returns that one, and how many were executed.
fn plain(program: &Lowered, at: Target, end: Target, regs: &mut Regs) -> (Target, u32) {
    let (mut next, mut count) = (at, 0);
    while (at..end).contains(&next) {
        count += 1;
        let mut to = next + 1;
        match program.ops()[next as usize] {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => regs[dst.index()] = op.eval(width, regs[dst.index()], operand(regs, src)),
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => regs[dst.index()] = movsx(width, from, regs[src.index()]),
            Op::Neg { width, dst } => regs[dst.index()] = neg(width, regs[dst.index()]),
            Op::Jump { target } => to = target,
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                if op.eval(width, regs[dst.index()], operand(regs, src)) {
                    to = target;
                }
            }
            other => panic!("{other:?}"),
        }
        next = to;
    }
    (next, count)
}

fn branch(branch: Branch, (end, n): (Target, u32), regs: &Regs) -> (Target, u32) {
    let (x, y) = (regs[branch.left.index()], operand(regs, branch.right));
    if branch.op.eval(branch.width, x, y) == branch.when {
        (branch.target, n)
    } else {
        (end, n - u32::from(branch.skips))
    }
}

/// The same for a fused operation, as documented.
fn fused(it: Fused, end: (Target, u32), regs: &mut Regs) -> (Target, u32) {
    let before = *regs;
    let mut set = |dst: Reg, value| regs[dst.index()] = value;
    let shift = |op: AluOp, width, value, by: u8| op.eval(width, value, by.into());
    match it {
        Fused::Alu {
            op,
            width,
            dst,
            left,
            right,
        } => set(
            dst,
            op.eval(width, before[left.index()], operand(&before, right)),
        ),
        Fused::Rotate {
            width,
            dst,
            src,
            by,
        } => {
            let value = before[src.index()];
            set(
                dst,
                match width {
                    Width::W64 => value.rotate_left(by.into()),
                    Width::W32 => crate::isa::low32(value).rotate_left(by.into()).into(),
                },
            );
        }
        Fused::Extract {
            width,
            dst,
            src,
            left,
            right,
            signed,
        } => {
            let shifted = shift(AluOp::Lsh, width, before[src.index()], left);
            let back = if signed { AluOp::Arsh } else { AluOp::Rsh };
            set(dst, shift(back, width, shifted, right));
        }
        Fused::Bits {
            width,
            dst,
            src,
            right,
            mask,
        } => {
            let shifted = shift(AluOp::Rsh, width, before[src.index()], right);
            set(dst, AluOp::And.eval(width, shifted, sign_extend32(mask)));
        }
        Fused::ShiftAdd {
            dst,
            base,
            index,
            left,
        } => {
            let offset = before[index.index()] << left;
            set(dst, before[base.index()].wrapping_add(offset));
        }
        Fused::Branch(it) => return branch(it, end, regs),
        Fused::Select {
            op,
            width,
            left,
            right,
            dst,
            yes,
            no,
        } => {
            let holds = op.eval(width, before[left.index()], operand(&before, right));
            let from = if holds { yes } else { no };
            let moved = AluOp::Mov.eval(from.width, 0, operand(&before, from.from));
            set(dst, shift(AluOp::Rsh, from.width, moved, from.right));
            let skipped = if holds { u32::from(it.skipped()) } else { 0 };
            return (end.0, end.1 - skipped);
        }
        Fused::AluBranch {
            copy,
            op,
            width,
            dst,
            src,
            branch: it,
        } => {
            if let Some((to, from)) = copy {
                regs[to.index()] = before[from.index()];
            }
            let mut set = |dst: Reg, value| regs[dst.index()] = value;
            let (x, y) = (before[dst.index()], operand(&before, src));
            set(dst, op.eval(width, x, y));
            return branch(it, end, regs);
        }
        other => panic!("{other:?}"),
    }
    end
}

const NUMBERS: [u64; 8] = [
    0,
    1,
    u64::MAX,
    0x8000_0000,
    0x1234_5678_9abc_def0,
    0xffff_fff7,
    1 << 63,
    42,
];

/// Registers with numbers of all kinds in them, differently for each `seed`.
fn some_regs(seed: u32) -> Regs {
    let mut at = 0;
    [(); Reg::COUNT].map(|()| {
        at += 1;
        NUMBERS[(at * 3 + seed as usize) % NUMBERS.len()].rotate_left(seed)
    })
}

/// The fused operations of a program, after they were compared with the plain ones on many
/// numbers, in the registers of `live`.
fn tried(text: &str, live: &[Reg]) -> Vec<(Fused, u8)> {
    let program = lowered(text, &[], Passes::all()).unwrap();
    let mut all = Vec::new();
    for at in 0..u32::try_from(program.ops().len()).unwrap() {
        let Some((&it, n)) = program.fused(at) else {
            continue;
        };
        all.push((it, n));
        for seed in 0..16 {
            let (mut one, mut other) = (some_regs(seed), some_regs(seed));
            let end = at + u32::from(n);
            let there = plain(&program, at, end, &mut one);
            assert_eq!(fused(it, (end, n.into()), &mut other), there, "{it:?}");
            for reg in live {
                assert_eq!(one[reg.index()], other[reg.index()], "{reg} after {it:?}");
            }
        }
    }
    all
}

/// The only fused operation, with registers r0 and r6 to r9 alive.
fn one(text: &str) -> (Fused, u8) {
    let live = [Reg::R0, Reg::R6, Reg::R7, Reg::R8, Reg::R9];
    let all = tried(&format!("{START}{text}"), &live);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all[0]
}

/// Unknown numbers, without any operation that fuses.
const START: &str = "r6 = *(u32 *)(r1 + 12)
    r7 = *(u32 *)(r1 + 16)
    r1 = *(u64 *)(r10 - 8)
    r8 = *(u64 *)(r10 - 16)
";

#[test]
fn rotates_in_the_shapes_that_clang_emits() {
    let rotate = |width, dst, src, by| Fused::Rotate {
        width,
        dst,
        src,
        by,
    };
    let (w32, w64) = (Width::W32, Width::W64);
    let shapes = [
        (
            "w0 = w1\n w0 <<= 5\n w1 >>= 27\n w0 |= w1\n exit",
            w32,
            5,
            4,
        ),
        (
            "w0 = w1\n w0 >>= 27\n w1 <<= 5\n w0 |= w1\n exit",
            w32,
            5,
            4,
        ),
        (
            "r0 = r1\n r0 <<= 13\n r1 >>= 51\n r0 ^= r1\n exit",
            w64,
            13,
            4,
        ),
        (
            "r0 = r1\n r0 >>= 51\n r1 <<= 13\n r0 += r1\n exit",
            w64,
            13,
            4,
        ),
        (
            "r0 = r1\n r0 <<= 7\n r2 = r1\n r2 >>= 57\n r0 |= r2\n exit",
            w64,
            7,
            5,
        ),
    ];
    for (text, width, by, n) in shapes {
        assert_eq!(
            one(text),
            (rotate(width, Reg::R0, Reg::R1, by), n),
            "{text}"
        );
    }
    let other_way = "w2 = w1\n w2 <<= 5\n w1 >>= 27\n w1 |= w2\n w0 = w1\n exit";
    assert_eq!(one(other_way), (rotate(w32, Reg::R1, Reg::R1, 5), 4));
    // Live registers keep their values: here only the copy is fused with the next
    // operation.
    let alive = "w0 = w1\n w0 <<= 5\n w1 >>= 27\n w0 |= w1\n r0 += r1\n exit";
    assert!(!matches!(one(alive).0, Fused::Rotate { .. }));
    let no_rotation = "w0 = w1\n w0 <<= 5\n w1 >>= 26\n w0 |= w1\n exit";
    assert!(!matches!(one(no_rotation).0, Fused::Rotate { .. }));
}

#[test]
fn moves_shifts_and_masks() {
    let (w32, w64) = (Width::W32, Width::W64);
    let alu = |op, width, left, right| Fused::Alu {
        op,
        width,
        dst: Reg::R0,
        left,
        right,
    };
    assert_eq!(
        one("r0 = r6\n r0 *= 31\n exit"),
        (alu(AluOp::Mul, w64, Reg::R6, Operand::Imm(31)), 2)
    );
    assert_eq!(
        one("r0 = r6\n w0 -= w7\n exit"),
        (alu(AluOp::Sub, w32, Reg::R6, Operand::Reg(Reg::R7)), 2)
    );
    assert_eq!(
        one("r0 = r6\n r0 *= r0\n exit"),
        (alu(AluOp::Mul, w64, Reg::R6, Operand::Reg(Reg::R6)), 2)
    );
    let extract = Fused::Extract {
        width: w64,
        dst: Reg::R0,
        src: Reg::R6,
        left: 32,
        right: 32,
        signed: true,
    };
    assert_eq!(one("r0 = r6\n r0 <<= 32\n r0 s>>= 32\n exit"), (extract, 3));
    let bits = Fused::Bits {
        width: w64,
        dst: Reg::R0,
        src: Reg::R6,
        right: 8,
        mask: 255,
    };
    assert_eq!(one("r0 = r6\n r0 >>= 8\n r0 &= 255\n exit"), (bits, 3));
    let add = Fused::ShiftAdd {
        dst: Reg::R6,
        base: Reg::R6,
        index: Reg::R7,
        left: 3,
    };
    assert_eq!(one("r1 = r7\n r1 <<= 3\n r6 += r1\n r0 = r6\n exit").0, add);
    // A 32-bit move truncates the number for the 64-bit operation.
    assert_eq!(tried("w0 = w1\n r0 += 5\n exit", &[Reg::R0]), []);
}

const fn to(op: JumpOp, left: Reg, right: i32, when: bool, target: Target) -> Branch {
    Branch {
        op,
        width: Width::W64,
        left,
        right: Operand::Imm(right),
        when,
        target,
        skips: false,
    }
}

#[test]
fn branches_with_what_they_branch_on() {
    let counted = Fused::AluBranch {
        copy: None,
        op: AluOp::Add,
        width: Width::W64,
        dst: Reg::R6,
        src: Operand::Imm(1),
        branch: to(JumpOp::Gt, Reg::R6, 9, true, 7),
    };
    let text = "r6 += 1\n if r6 > 9 goto +1\n r7 = 0\n r0 = r7\n exit";
    assert_eq!(one(text), (counted, 2));
    let tested = Fused::Branch(to(JumpOp::Set, Reg::R6, 4, false, 8));
    let text = "r1 = r6\n r1 &= 4\n if r1 == 0 goto +1\n r7 = 0\n r0 = r7\n exit";
    assert_eq!(one(text), (tested, 3));
    let alive = "r1 = r6\n r1 &= 4\n if r1 == 0 goto +1\n r7 = r1\n r0 = r7\n exit";
    let all = tried(&format!("{START}{alive}"), &[Reg::R6, Reg::R7, Reg::R1]);
    let is_test = |it: &(Fused, u8)| matches!(it.0, Fused::Branch(_));
    assert!(!all.iter().any(is_test), "{all:?}");
}

#[test]
fn a_copy_does_not_stand_between() {
    let text = "r6 += 1\n r8 = r7\n if r6 > r8 goto +1\n call bpf_ktime_get_ns\n r0 = r8\n exit";
    let (Fused::AluBranch { copy, .. }, 3) = one(text) else {
        panic!("{:?}", one(text));
    };
    assert_eq!(copy, Some((Reg::R8, Reg::R7)));
    let uses_it = "r6 += 1\n r8 = r6\n if r6 > 9 goto +1\n call bpf_ktime_get_ns\n r0 = r8\n exit";
    assert!(matches!(
        one(uses_it),
        (Fused::AluBranch { copy: None, .. }, 2)
    ));
}

#[test]
fn a_branch_over_moves_is_a_choice() {
    let (w32, w64) = (Width::W32, Width::W64);
    let source = |width, from, right| SelectValue { width, from, right };
    let select = |op, yes, no| Fused::Select {
        op,
        width: w64,
        left: Reg::R6,
        right: Operand::Imm(15),
        dst: Reg::R0,
        yes,
        no,
    };
    let text = "w0 = 1\n if r6 > 15 goto +1\n w0 = 0\n exit";
    let [one_, zero] = [1, 0].map(|imm| source(w32, Operand::Imm(imm), 0));
    assert_eq!(one(text), (select(JumpOp::Gt, one_, zero), 3));
    let text = "r0 = r6\n if r6 < 15 goto +2\n r0 = r6\n r0 >>= 16\n exit";
    let [same, shifted] = [0, 16].map(|by| source(w64, Operand::Reg(Reg::R6), by));
    assert_eq!(one(text), (select(JumpOp::Lt, same, shifted), 4));
    // A shift by 0 has no place in the fused form, and would not be counted.
    let text = "r0 = r6\n if r6 < 15 goto +2\n r0 = r6\n r0 >>= 0\n exit";
    let all = tried(&format!("{START}{text}"), &[Reg::R0, Reg::R6]);
    assert!(
        !all.iter()
            .any(|(fused, _)| matches!(fused, Fused::Select { .. })),
        "{all:?}"
    );
    let text = "r0 = r7\n r0 |= 1\n if r6 == 15 goto +1\n r0 = r8\n exit";
    let as_it_is = source(w64, Operand::Reg(Reg::R0), 0);
    let other = source(w64, Operand::Reg(Reg::R8), 0);
    let live = [Reg::R0, Reg::R6];
    let all = tried(&format!("{START}{text}"), &live);
    assert!(
        all.contains(&(select(JumpOp::Eq, as_it_is, other), 2)),
        "{all:?}"
    );
}

#[test]
fn a_branch_over_a_jump_is_inverted() {
    let text = "if r6 > 9 goto +1\n goto +1\n r7 = 0\n r0 = r7\n exit";
    let inverted = Branch {
        skips: true,
        ..to(JumpOp::Gt, Reg::R6, 9, false, 7)
    };
    assert_eq!(one(text), (Fused::Branch(inverted), 2));
}

/// The only fused operation of this program.
fn access(text: &str) -> (Fused, u8) {
    let program = lowered(text, &[], Passes::all()).unwrap();
    let all = (0..32).filter_map(|at| program.fused(at));
    let all: Vec<_> = all.map(|(fused, n)| (*fused, n)).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

#[test]
fn loads_with_what_is_done_with_the_number() {
    let mem = MemRef::Context { off: 12 };
    let slot = MemRef::Stack { off: -4 };
    let size = Size::W;
    let text = "r6 = r1\n r0 = 7\n r2 = *(u32 *)(r6 + 12)\n r0 ^= r2\n exit";
    let fused = Fused::LoadAlu {
        size,
        mem,
        loaded: None,
        op: AluOp::Xor,
        width: Width::W64,
        dst: Reg::R0,
    };
    assert_eq!(access(text), (fused, 2));
    let text = "*(u32 *)(r10 - 4) = 1
        r0 = *(u32 *)(r10 - 4)
        w0 += 3
        *(u32 *)(r10 - 4) = r0
        r0 = 0
        exit";
    let update = Fused::Update {
        size,
        mem: slot,
        op: AluOp::Add,
        width: Width::W32,
        src: Operand::Imm(3),
        dst: None,
    };
    assert_eq!(access(text), (update, 3));
    let text = "r2 = *(u32 *)(r1 + 4)
        r1 = *(u32 *)(r1 + 0)
        r3 = r1
        r3 += 64
        r4 = 7
        r0 = 0
        if r3 > r2 goto +3
        r5 = r1
        r5 += r4
        r0 = *(u8 *)(r5 + 2)
        exit";
    let indexed = Fused::LoadIndexed {
        size: Size::B,
        mem: MemRef::Packet {
            base: Reg::R5,
            off: 2,
        },
        dst: Reg::R0,
        left: Reg::R1,
        right: Operand::Reg(Reg::R4),
    };
    let program = lowered(text, &[], Passes::all()).unwrap();
    assert_eq!(program.fused(7), Some((&indexed, 3)));
    let text = "r0 = *(u32 *)(r1 + 12)\n *(u32 *)(r10 - 4) = r0\n exit";
    let copy = Fused::Copy {
        size,
        from: mem,
        to: slot,
        via: Some(Reg::R0),
    };
    assert_eq!(access(text), (copy, 2));
    let text = "r0 = *(u32 *)(r1 + 12)\n r0 &= 4\n if r0 == 0 goto +1\n r0 = 1\n r0 = 2\n exit";
    let branch = Fused::LoadBranch {
        size,
        mem,
        dst: None,
        branch: to(JumpOp::Set, Reg::R0, 4, false, 4),
    };
    assert_eq!(access(text), (branch, 3));
}

#[test]
fn nothing_jumps_into_the_middle() {
    let text = "r0 = 3
        again: r0 += 2
        if r0 > 9 goto +1
        goto again
        exit";
    let program = lowered(text, &[], Passes::all()).unwrap();
    let Some((Fused::AluBranch { branch, .. }, 3)) = program.fused(1) else {
        panic!("{:?}", program.fused(1));
    };
    assert!(branch.skips && branch.target == 1 && !branch.when);
    assert_eq!(program.fused(0), None);
    assert!(assemble(text).is_ok());
}
