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
//! Whatever else it writes must be dead there, or be the input or one number.
//!
//! Where the input is a quotient, clang compares the dividend with a multiple of a power, so the
//! division is part of the code:
//!
//! ```text
//! r1 = r0
//! r1 /= 1000
//! r2 = 0x3e80000 ll           // 1000 << 16
//! if r0 < r2 goto a
//! r1 >>= 16
//! ```

pub(super) mod found;
mod path;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashSet;

use super::flow::graph;
use super::lowered::{Helper, Lowered};
use super::op::{Op, Target};
use crate::analysis::{Effect, Liveness};
use crate::isa::{AluOp, Operand, Reg, RegSet, Width, sign_extend32};
use found::{Input, Logarithm};
use path::{MOST, Path};

/// The numbers with which the first step compares, for inputs of 32 and 64 bits: searched for,
/// since programs have few of them.
const FIRST: [u64; 4] = [0xffff, 1 << 16, 0xffff_ffff, 1 << 32];
/// How many operations before this comparison the code may start.
const BEFORE: u32 = 12;

/// Finds the binary logarithms that a program computes, in order.
pub(super) fn logarithms(program: &Lowered) -> Vec<Logarithm> {
    let mut found: Vec<Logarithm> = Vec::new();
    let mut search = Search {
        program,
        live: None,
        visited: FxHashSet::default(),
    };
    let ops = program.ops.iter().zip(0..);
    for (_, at) in ops.filter(|(op, _)| is_first(op)) {
        if !search.visited.contains(&at) {
            found.extend(search.around(at));
        }
    }
    found.sort_by_key(|it| it.start);
    found.dedup_by_key(|it| it.start);
    // What another one leads to is executed.
    let ends: Vec<Target> = found.iter().map(|it| it.end).collect();
    for it in &mut found {
        let within = ends
            .iter()
            .filter(|end| (it.start + 1..it.dead).contains(*end));
        it.dead = within.copied().min().unwrap_or(it.dead);
    }
    found
}

/// Whether a first step may compare with this operation's number.
fn is_first(op: &Op) -> bool {
    match *op {
        Op::LoadImm { value, .. } => FIRST.contains(&value),
        Op::Alu {
            op: AluOp::Mov,
            src: Operand::Imm(imm),
            ..
        }
        | Op::JumpIf {
            src: Operand::Imm(imm),
            ..
        } => FIRST.contains(&sign_extend32(imm)),
        _ => false,
    }
}

struct Search<'a> {
    program: &'a Lowered,
    /// Computed when it is first needed.
    live: Option<Liveness>,
    /// The operations of what was found.
    visited: FxHashSet<Target>,
}

impl Search<'_> {
    /// The code around an operation, the longest.
    fn around(&mut self, at: Target) -> Option<Logarithm> {
        let starts = at.saturating_sub(BEFORE)..=at;
        starts.into_iter().find_map(|start| {
            let (src, divisor) = self.input(start)?;
            let mut widths = [Width::W64, Width::W32].into_iter();
            widths.find_map(|width| {
                let input = Input {
                    src,
                    divisor,
                    width,
                };
                self.from(start, input)
            })
        })
    }

    /// The register on which the first branch from an operation on depends, and a divisor that
    /// divides it before.
    fn input(&self, start: Target) -> Option<(Reg, Option<i32>)> {
        // What each register had at the start, perhaps shifted or divided; none for a constant.
        let mut of = Reg::ALL.map(Some);
        let mut divisor = None;
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
                Op::Alu {
                    op: AluOp::Div,
                    width: Width::W64,
                    src: Operand::Imm(by @ 1..),
                    ..
                } => divisor = Some(by),
                Op::JumpIf { dst, src, .. } => {
                    let src = src.reg().and_then(|src| of[src.index()]);
                    return match (of[dst.index()], src) {
                        (Some(reg), None) | (None, Some(reg)) => Some((reg, divisor)),
                        _ => None,
                    };
                }
                _ => return None,
            }
        }
        None
    }

    /// The code that starts at an operation with this input.
    fn from(&mut self, start: Target, input: Input) -> Option<Logarithm> {
        let ops = &self.program.ops;
        let positions = (0..64).take_while(|position| input.greatest() >> position > 0);
        let classes = std::iter::once(None).chain(positions.map(Some));
        let mut paths: Vec<Path> = classes
            .map(|highest| Path::new(start, input, highest))
            .collect();
        // What all paths pass lies on the first and the last one, which differ most.
        let [first, .., last] = paths.as_slice() else {
            return None;
        };
        let (first, last) = (
            first.clone().trace(self.program)?,
            last.clone().trace(self.program)?,
        );
        let mut met = first.into_iter().filter(|end| *end != start);
        let mut visited = FxHashSet::default();
        met.find_map(|end| {
            if !last.contains(&end) {
                return None;
            }
            for path in &mut paths {
                path.advance(self.program, end, &mut visited)?;
            }
            let written = paths.iter().map(|path| path.written);
            let written = written.fold(RegSet::EMPTY, RegSet::union);
            let (dst, plus) = result(&paths)?;
            let live = self
                .live
                .get_or_insert_with(|| Liveness::new(&graph(self.program), effects(self.program)));
            let live = live.before(end);
            let others = Reg::ALL.into_iter().filter(|reg| *reg != dst);
            let others = others.filter(|reg| written.contains(*reg) && live.contains(*reg));
            let (copies, others): (Vec<_>, Vec<_>) =
                others.partition(|reg| has_input(&paths, *reg));
            let copy = match *copies {
                [] => None,
                [copy] => Some(copy),
                _ => return None,
            };
            let others = others.into_iter();
            let numbers = others.map(|reg| Some((reg, number(&paths, reg)?)));
            let numbers = numbers.collect::<Option<Box<[_]>>>()?;
            let dead = dead(ops, start, end, &visited);
            self.visited.extend(visited.drain());
            Some(Logarithm {
                start,
                end,
                dead,
                dst,
                input,
                plus,
                copy,
                numbers,
            })
        })
    }
}

/// What the operations read and write, where a helper reads its own arguments only: clang leaves
/// numbers of the steps in the other registers.
fn effects(program: &Lowered) -> Vec<Effect> {
    let ops = program.ops.iter().zip(&program.effects);
    let effects = ops.map(|(op, effect)| match *op {
        Op::CallHelper { helper } => Effect {
            reads: arguments(program.helpers.get(usize::from(helper))),
            ..*effect
        },
        _ => *effect,
    });
    effects.collect()
}

/// The registers that a helper may read; all if it is not known.
fn arguments(helper: Option<&Helper>) -> RegSet {
    let spec = helper.and_then(Helper::spec);
    let spec = spec.filter(|spec| !spec.is_variadic());
    let prototypes = spec.map_or([].as_slice(), |spec| spec.prototypes);
    let count = prototypes.iter().map(|it| it.arguments.len()).max();
    let count = count.and_then(|count| u8::try_from(count).ok());
    RegSet::arguments(count.unwrap_or(u8::MAX))
}

/// Whether a register has the input on every path.
fn has_input(paths: &[Path], reg: Reg) -> bool {
    let mut paths = paths.iter();
    paths.all(|path| path.regs[reg.index()] == path.part(0, 0))
}

/// The number that a register has on every path.
fn number(paths: &[Path], reg: Reg) -> Option<u64> {
    let mut numbers = paths.iter().map(|path| path.regs[reg.index()].number());
    let first = numbers.next()??;
    numbers.all(|other| other == Some(first)).then_some(first)
}

/// The register that has the position of the highest bit plus a constant on every path, and
/// the constant. The first path is that of the input 0, then the positions follow.
fn result(paths: &[Path]) -> Option<(Reg, i32)> {
    Reg::ALL.into_iter().find_map(|reg| {
        let mut numbers = paths.iter().map(|path| path.regs[reg.index()].number());
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
fn dead(ops: &[Op], start: Target, end: Target, visited: &FxHashSet<Target>) -> Target {
    let mut dead = start + 1;
    while dead != end && visited.contains(&dead) {
        dead += 1;
    }
    loop {
        let inside = start + 1..dead;
        let jumps = ops
            .iter()
            .zip(0..)
            .filter_map(|(op, at)| Some((at, op.target()?)));
        let outside = jumps.filter(|(at, to)| inside.contains(to) && !(start..dead).contains(at));
        match outside.map(|(_, to)| to).min() {
            Some(to) => dead = to,
            None => return dead,
        }
    }
}
