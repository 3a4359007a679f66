//! Finds code that computes a binary logarithm step by step, as histograms do.
//!
//! BPF has no instruction for the position of the highest bit, so programs compare and shift:
//!
//! ```text
//! if r1 < 0x10000 goto a      // r0: the sum of the shifts so far
//! r1 >>= 16
//! r0 += 16
//! a: if r1 < 0x100 goto b
//! …
//! ```
//!
//! Compilers write the steps in many ways, so no shape is searched for. Instead the code is
//! executed from some operation on, for each position that the highest bit of one register,
//! the input, may have. A value is then a constant, or the input shifted by a known distance,
//! of which the highest bit is known, too. If that decides each branch, all paths meet, and
//! one register has the position plus a constant there, then this is what the code computes.
//! Whatever else it writes must be dead there.

use super::effect::effect;
use super::flow::graph;
use super::lowered::Lowered;
use super::op::{Op, Target};
use crate::analysis::Liveness;
use crate::isa::{AluOp, JumpOp, Operand, Reg, RegSet, Width, low32, sign_extend32};

/// Operations that compute a binary logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logarithm {
    /// The first operation.
    pub start: Target,
    /// Where all paths from there meet.
    pub end: Target,
    /// From `start` to here no operation is executed otherwise.
    pub dead: Target,
    /// Gets the position of the highest bit of `src`, 0 if there is none, plus `plus`.
    pub dst: Reg,
    /// The input.
    pub src: Reg,
    /// How much of the input counts.
    pub width: Width,
    /// Added to the position.
    pub plus: i32,
}

/// The numbers with which the first step compares, for inputs of 32 and 64 bits: searched for,
/// since programs have few of them.
const FIRST: [u64; 4] = [0xffff, 1 << 16, 0xffff_ffff, 1 << 32];
/// How many operations before this comparison the code may start.
const BEFORE: u32 = 12;
/// The most operations of a path.
const MOST: usize = 160;

/// Finds the binary logarithms that a program computes, in order.
pub(super) fn logarithms(program: &Lowered) -> Vec<Logarithm> {
    let mut found: Vec<Logarithm> = Vec::new();
    let mut search = Search {
        program,
        live: None,
        visited: Vec::new(),
    };
    for (op, at) in program.ops.iter().zip(0..) {
        if is_first(op) && !search.visited.contains(&at) {
            found.extend(search.around(at));
        }
    }
    found.sort_by_key(|it| it.start);
    found.dedup_by_key(|it| it.start);
    // What another one leads to is executed.
    let ends: Vec<Target> = found.iter().map(|it| it.end).collect();
    for it in &mut found {
        let within = ends.iter().filter(|end| (it.start..it.dead).contains(*end));
        it.dead = within.copied().min().unwrap_or(it.dead);
    }
    found
}

/// Whether a first step may compare with this operation's number.
fn is_first(op: &Op) -> bool {
    let number = match *op {
        Op::LoadImm { value, .. } => value,
        Op::Alu {
            op: AluOp::Mov,
            src: Operand::Imm(imm),
            ..
        }
        | Op::JumpIf {
            src: Operand::Imm(imm),
            ..
        } => sign_extend32(imm),
        _ => return false,
    };
    FIRST.contains(&number)
}

struct Search<'a> {
    program: &'a Lowered,
    /// Computed when it is first needed.
    live: Option<Liveness>,
    /// The operations of what was found.
    visited: Vec<Target>,
}

impl Search<'_> {
    /// The code around an operation, the longest.
    fn around(&mut self, at: Target) -> Option<Logarithm> {
        let starts = at.saturating_sub(BEFORE)..=at;
        starts.into_iter().find_map(|start| {
            let src = self.input(start)?;
            let mut widths = [Width::W64, Width::W32].into_iter();
            widths.find_map(|width| self.from(start, src, width))
        })
    }

    /// The register on which the first branch from an operation on depends.
    fn input(&self, start: Target) -> Option<Reg> {
        // What each register had at the start, perhaps shifted; none for a constant.
        let mut of = Reg::ALL.map(Some);
        for op in self.program.ops.get(start as usize..)?.iter().take(MOST) {
            match *op {
                Op::LoadImm { dst, .. } => of[dst.index()] = None,
                Op::Alu {
                    op: AluOp::Mov,
                    dst,
                    src,
                    ..
                } => of[dst.index()] = src.reg().and_then(|src| of[src.index()]),
                Op::Alu {
                    op: AluOp::Lsh | AluOp::Rsh,
                    src: Operand::Imm(_),
                    ..
                } => {}
                Op::JumpIf { dst, src, .. } => {
                    let src = src.reg().and_then(|src| of[src.index()]);
                    return match (of[dst.index()], src) {
                        (Some(reg), None) | (None, Some(reg)) => Some(reg),
                        _ => None,
                    };
                }
                _ => return None,
            }
        }
        None
    }

    /// The code that starts at an operation with this input.
    fn from(&mut self, start: Target, src: Reg, width: Width) -> Option<Logarithm> {
        let ops = &self.program.ops;
        let highest = (0..width.bits()).map(Some);
        let classes = std::iter::once(None).chain(highest);
        let mut paths: Vec<Path> = classes.map(|top| Path::new(start, src, width, top)).collect();
        let mut traces = Vec::with_capacity(paths.len());
        for path in &paths {
            traces.push(path.clone().trace(ops)?);
        }
        let (first, others) = traces.split_first()?;
        let mut met = first.iter().skip(1).copied();
        met.find_map(|end| {
            if !others.iter().all(|trace| trace.contains(&end)) {
                return None;
            }
            for path in &mut paths {
                path.advance(ops, end)?;
            }
            let written = paths.iter().map(|path| path.written);
            let written = written.fold(RegSet::EMPTY, RegSet::union);
            let (dst, plus) = result(&paths)?;
            let live = self.live.get_or_insert_with(|| {
                Liveness::new(&graph(self.program), self.program.effects.clone())
            });
            let mut others = Reg::ALL.into_iter().filter(|reg| *reg != dst);
            if others.any(|reg| written.contains(reg) && live.before(end).contains(reg)) {
                return None;
            }
            let mut visited: Vec<Target> = traces.iter().flatten().copied().collect();
            visited.retain(|at| *at != end);
            let dead = dead(ops, start, end, &visited);
            self.visited.append(&mut visited);
            Some(Logarithm {
                start,
                end,
                dead,
                dst,
                src,
                width,
                plus,
            })
        })
    }
}

/// The register that has the position of the highest bit plus a constant on every path, and
/// the constant. The first path is that of the input 0, then the positions follow.
fn result(paths: &[Path]) -> Option<(Reg, i32)> {
    Reg::ALL.into_iter().find_map(|reg| {
        let mut numbers = paths.iter().map(|path| match path.regs[reg.index()] {
            Value::Constant(number) => Some(number),
            Value::Unknown | Value::Low | Value::Part { .. } => None,
        });
        let zero = numbers.next()??;
        let plus = i32::try_from(zero).ok()?;
        let mut expected = zero..;
        numbers
            .all(|number| number == expected.next())
            .then_some((reg, plus))
    })
}

/// The operation after `start` up to which nothing but what was visited leads to the
/// operations.
fn dead(ops: &[Op], start: Target, end: Target, visited: &[Target]) -> Target {
    let mut dead = start + 1;
    while dead != end && visited.contains(&dead) {
        dead += 1;
    }
    loop {
        let inside = start + 1..dead;
        let jumps = ops.iter().zip(0..).filter_map(|(op, at)| Some((at, op.target()?)));
        let outside = jumps.filter(|(at, to)| inside.contains(to) && !(start..dead).contains(at));
        match outside.map(|(_, to)| to).min() {
            Some(to) => dead = to,
            None => return dead,
        }
    }
}

/// What a register has, where the highest bit of the input is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Unknown,
    Constant(u64),
    /// The input in the low half, and an unknown upper half.
    Low,
    /// `input >> right << left`: more than one bit, and no bit is lost at the left.
    Part { right: u8, left: u8 },
}

/// The execution for one position of the input's highest bit.
#[derive(Debug, Clone)]
struct Path {
    at: Target,
    /// The position; none if the input is 0.
    top: Option<u8>,
    regs: [Value; Reg::COUNT],
    written: RegSet,
}

impl Path {
    fn new(start: Target, src: Reg, width: Width, top: Option<u8>) -> Self {
        let mut path = Self {
            at: start,
            top,
            regs: [Value::Unknown; Reg::COUNT],
            written: RegSet::EMPTY,
        };
        path.regs[src.index()] = match width {
            Width::W64 => path.part(0, 0),
            Width::W32 => Value::Low,
        };
        path
    }

    /// The operations that the path executes, and the one before which it stops.
    fn trace(mut self, ops: &[Op]) -> Option<Vec<Target>> {
        let mut trace = vec![self.at];
        while self.step(ops).is_some() {
            trace.push(self.at);
            if trace.len() > MOST {
                return None;
            }
        }
        Some(trace)
    }

    /// Executes operations up to this one.
    fn advance(&mut self, ops: &[Op], end: Target) -> Option<()> {
        for _ in 0..MOST {
            if self.at == end {
                return Some(());
            }
            self.step(ops)?;
        }
        None
    }

    /// Executes an operation; none if it has other effects, or is a branch that is not decided.
    fn step(&mut self, ops: &[Op]) -> Option<()> {
        let op = *ops.get(self.at as usize)?;
        let mut next = self.at + 1;
        match op {
            Op::LoadImm { dst, value } => self.regs[dst.index()] = Value::Constant(value),
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => self.regs[dst.index()] = self.alu(op, width, dst, src),
            Op::Neg { dst, .. } | Op::Endian { dst, .. } | Op::MovSx { dst, .. } => {
                self.regs[dst.index()] = Value::Unknown;
            }
            Op::Jump { target } => next = target,
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                let left = self.range(self.read(dst.into(), width))?;
                let right = self.range(self.read(src, width))?;
                if holds(op, width, left, right)? {
                    next = target;
                }
            }
            _ => return None,
        }
        self.written = self.written.union(effect(op).writes);
        self.at = next;
        Some(())
    }

    /// An operand of this width, zero-extended.
    fn read(&self, operand: Operand, width: Width) -> Value {
        let value = match operand {
            Operand::Imm(imm) => Value::Constant(sign_extend32(imm)),
            Operand::Reg(reg) => self.regs[reg.index()],
        };
        match (width, value) {
            (Width::W64, Value::Low) => Value::Unknown,
            (Width::W64, value) => value,
            (Width::W32, Value::Constant(number)) => Value::Constant(low32(number).into()),
            (Width::W32, Value::Low) => self.part(0, 0),
            (Width::W32, Value::Part { right, left }) if self.highest(right, left) < 32 => value,
            (Width::W32, _) => Value::Unknown,
        }
    }

    /// The position of the highest bit of a part that has bits.
    fn highest(&self, right: u8, left: u8) -> u8 {
        (self.top.unwrap_or(0) + left).saturating_sub(right)
    }

    /// The input shifted right, then left.
    fn part(&self, right: u8, left: u8) -> Value {
        match self.top {
            Some(top) if top > right => match top - right + left {
                0..64 => Value::Part { right, left },
                _ => Value::Unknown,
            },
            Some(top) if top == right && left < 64 => Value::Constant(1 << left),
            Some(top) if top == right => Value::Unknown,
            _ => Value::Constant(0),
        }
    }

    fn alu(&self, op: AluOp, width: Width, dst: Reg, src: Operand) -> Value {
        let right = self.read(src, width);
        match (op, width, src) {
            (AluOp::Mov, Width::W64, Operand::Reg(src)) => return self.regs[src.index()],
            (AluOp::Mov, ..) => return right,
            _ => {}
        }
        let Value::Constant(by) = right else {
            return Value::Unknown;
        };
        // What is shifted out of a register is no matter.
        if self.regs[dst.index()] == Value::Low && op == AluOp::Lsh && (32..64).contains(&by) {
            return match width {
                Width::W64 => self.part(0, by as u8),
                Width::W32 => Value::Unknown,
            };
        }
        let bits = width.bits();
        match self.read(dst.into(), width) {
            Value::Constant(left) => Value::Constant(op.eval(width, left, by)),
            Value::Part { right, left } => {
                // Less than the width.
                let by = (by % u64::from(bits)) as u8;
                let highest = self.highest(right, left);
                match op {
                    AluOp::Lsh if highest + by < bits => self.part(right, left + by),
                    AluOp::Arsh if highest + 1 == bits => Value::Unknown,
                    AluOp::Rsh | AluOp::Arsh if by <= left => self.part(right, left - by),
                    AluOp::Rsh | AluOp::Arsh => self.part(right + (by - left), 0),
                    _ => Value::Unknown,
                }
            }
            Value::Unknown | Value::Low => Value::Unknown,
        }
    }

    /// The least and the greatest number that a value may be.
    fn range(&self, value: Value) -> Option<(u64, u64)> {
        match value {
            Value::Unknown | Value::Low => None,
            Value::Constant(number) => Some((number, number)),
            Value::Part { right, left } => {
                let least = 1 << (self.highest(right, left) - left);
                let greatest = least | (least - 1);
                Some((least << left, greatest << left))
            }
        }
    }
}

/// Whether a condition holds for all numbers of two ranges, or for none.
fn holds(op: JumpOp, width: Width, left: (u64, u64), right: (u64, u64)) -> Option<bool> {
    let both = |at_least: bool, at_most: bool| match (at_least, at_most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let sign = 1 << (width.bits() - 1);
    let is_signed = left.1 >= sign || right.1 >= sign;
    match op {
        _ if left.0 == left.1 && right.0 == right.1 => Some(op.eval(width, left.0, right.0)),
        JumpOp::Eq => both(false, left.1 < right.0 || right.1 < left.0),
        JumpOp::Ne => both(left.1 < right.0 || right.1 < left.0, false),
        JumpOp::Set => None,
        JumpOp::Sgt | JumpOp::Sge | JumpOp::Slt | JumpOp::Sle if is_signed => None,
        JumpOp::Gt | JumpOp::Sgt => both(left.0 > right.1, left.1 <= right.0),
        JumpOp::Ge | JumpOp::Sge => both(left.0 >= right.1, left.1 < right.0),
        JumpOp::Lt | JumpOp::Slt => both(left.1 < right.0, left.0 >= right.1),
        JumpOp::Le | JumpOp::Sle => both(left.1 <= right.0, left.0 > right.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::Passes;
    use crate::lower::tests::lowered;

    /// What is found in a program that gets r1 from a helper and returns r0; in all of them r0 to
    /// r5 may be written.
    fn found(code: &str) -> Vec<(Reg, Reg, Width, i32)> {
        let text = format!("call 5\n r1 = r0\n {code}\n exit");
        let lowered = lowered(&text, &[], Passes::all()).unwrap();
        let found = lowered.logarithms.iter();
        found
            .map(|it| (it.dst, it.src, it.width, it.plus))
            .collect()
    }

    /// Steps that each compare, shift, and add to r0.
    fn steps(start: i32, distances: &[u32]) -> String {
        let steps = distances.iter().zip(0..).map(|(by, number)| {
            let least = 1u64 << by;
            format!(
                "r2 = {least} ll
                if r1 < r2 goto below{number}
                r1 >>= {by}
                r0 += {by}
                below{number}:"
            )
        });
        format!("r0 = {start}\n{}", steps.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn steps_that_shift_and_add() {
        let all = [32, 16, 8, 4, 2, 1];
        // The input is the register from which r1 is copied.
        let expected = |plus| [(Reg::R0, Reg::R0, Width::W64, plus)];
        assert_eq!(found(&steps(0, &all)), expected(0));
        assert_eq!(found(&steps(7, &all)), expected(7));
        assert_eq!(found(&steps(0, &all[..5])), [], "a step is missing");
        // A step that is never taken.
        assert_eq!(found(&steps(0, &[32, 16, 8, 8, 4, 2, 1])), expected(0));
        assert_eq!(found(&steps(0, &[32, 16, 4, 8, 2, 1])), [], "they are not in order");
        assert_eq!(found(&steps(-1, &all)), [], "the sum wraps");
        let wrong = steps(0, &all).replace("r0 += 4", "r0 += 5");
        assert_eq!(found(&wrong), [], "a number is wrong");
    }

    /// As in the tools of BCC and libbpf: the distances are computed.
    const COMPUTED: &str = "
        w2 = 1
        if w1 > 0xffff goto a
        w2 = 0
        a: w2 <<= 4
        w1 >>= w2
        w3 = 1
        if w1 > 0xff goto b
        w3 = 0
        b: w3 <<= 3
        w1 >>= w3
        w2 |= w3
        w3 = 1
        if w1 > 0xf goto c
        w3 = 0
        c: w3 <<= 2
        w1 >>= w3
        w2 |= w3
        w3 = 1
        if w1 > 3 goto d
        w3 = 0
        d: w3 <<= 1
        w1 >>= w3
        w2 |= w3
        w1 >>= 1
        w2 |= w1
        r0 = r2";

    #[test]
    fn distances_that_are_computed() {
        assert_eq!(found(COMPUTED), [(Reg::R2, Reg::R0, Width::W32, 0)]);
        // A live register that the steps change.
        let live = format!("{COMPUTED}\n r0 += r1");
        assert_eq!(found(&live), []);
        // The steps do not look at the upper half.
        let wide = COMPUTED.replace('w', "r");
        assert_eq!(found(&wide), []);
        let halves = format!("r1 <<= 32\n r1 >>= 32\n{wide}");
        assert_eq!(found(&halves), [(Reg::R2, Reg::R0, Width::W32, 0)]);
    }

    /// The code after the steps is before them, as in a loop that a compiler turned round.
    #[test]
    fn paths_that_meet_before_the_start() {
        let text = "
            r6 = 0
            goto steps
            meet: *(u32 *)(r10 -4) = r1
            r0 = 0
            exit
            steps: call 7
            r1 = r0
            r0 = 1
            if w1 < 0x10000 goto a
            w1 >>= 16
            r0 += 16
            a: if w1 < 0x100 goto b
            w1 >>= 8
            r0 += 8
            b: if w1 < 0x10 goto c
            w1 >>= 4
            r0 += 4
            c: if w1 < 4 goto d
            w1 >>= 2
            r0 += 2
            d: if w1 < 2 goto e
            r0 += 1
            e: r1 = r0
            goto meet";
        let lowered = lowered(text, &[], Passes::all()).unwrap();
        let [found] = *lowered.logarithms else {
            panic!("{:?}", lowered.logarithms)
        };
        assert_eq!((found.dst, found.width, found.plus), (Reg::R0, Width::W32, 1));
        assert!(lowered.ops[found.end as usize].target().is_none());
    }
}
