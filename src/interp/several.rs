//! Compiles fused operations to cells.

use super::access::{indexed_handler, load_handler};
use super::alu::alu_handler;
use super::compile::Compiler;
use super::fused;
use super::jump::{count_handler, select_handler};
use crate::engine::cells::Cell;
use crate::isa::{AluOp, Operand, Reg, Width, sign_extend32};
use crate::lower::{Branch, Fused, SelectValue, Target};

impl Compiler<'_> {
    /// Adds a cell for several operations from `at` on, if they have a function; returns
    /// how many there are.
    pub(super) fn several(&mut self) -> Option<u8> {
        let (fused, n) = self.program.fused(self.at)?;
        let before = self.cells.len();
        let made = self.fused(fused, n);
        if made.is_none() {
            self.cells.truncate(before);
        }
        made
    }

    /// Adds the cells of a fused operation.
    fn fused(&mut self, fused: &Fused, n: u8) -> Option<u8> {
        let base = self.generic();
        match *fused {
            Fused::Alu {
                op,
                width,
                dst,
                left,
                right,
            } => self.alu(op, width, dst, left, right)?,
            Fused::Rotate {
                width,
                dst,
                src,
                by,
            } => self.push(Cell {
                handler: fused::rotate_handler(width, self.location(dst), self.location(src))?,
                by,
                ..self.registers(dst, src)
            })?,
            Fused::Extract {
                width: Width::W64,
                dst,
                src,
                left: 32,
                right: 32,
                signed: false,
            } => self.push(Cell {
                handler: alu_handler(
                    AluOp::Mov,
                    Width::W32,
                    self.location(dst),
                    self.location(src),
                )?,
                ..self.registers(dst, src)
            })?,
            Fused::Extract {
                width,
                dst,
                src,
                left,
                right,
                signed,
            } => self.push(Cell {
                handler: fused::extract_handler(
                    width,
                    signed,
                    self.location(dst),
                    self.location(src),
                )?,
                by: left,
                third: right,
                ..self.registers(dst, src)
            })?,
            Fused::Bits {
                width,
                dst,
                src,
                right,
                mask,
            } => self.push(Cell {
                handler: fused::bits_handler(width, self.location(dst), self.location(src))?,
                imm: sign_extend32(mask),
                by: right,
                ..self.registers(dst, src)
            })?,
            Fused::LoadIndexed {
                mem,
                left,
                right: Operand::Imm(imm),
                size,
                dst,
            } => {
                let (kind, _, off) = self.access(mem)?;
                self.push(Cell {
                    handler: load_handler(kind, size, self.location(dst), self.location(left))?,
                    imm: off.wrapping_add(sign_extend32(imm)),
                    ..self.registers(dst, left)
                })?;
            }
            Fused::LoadIndexed {
                size,
                mem,
                dst,
                left,
                right: Operand::Reg(index),
            } => {
                let (kind, _, imm) = self.access(mem)?;
                let (to, base) = (self.location(dst), self.location(left));
                self.push(Cell {
                    handler: indexed_handler(kind, size, to, base, self.location(index))?,
                    imm,
                    third: index.number(),
                    ..self.registers(dst, left)
                })?;
            }
            Fused::Select { .. } => self.select(*fused)?,
            Fused::Branch(branch) => {
                let (branch, n) = unskipped(branch, self.at, n);
                // A plain branch has a cell of its own.
                let is_test = n > 1;
                is_test.then_some(())?;
                self.branch(base, branch, n)?;
                return Some(n);
            }
            Fused::AluBranch {
                copy,
                op: AluOp::Add,
                width,
                dst,
                src: Operand::Imm(imm),
                branch,
            } if branch.left == dst && branch.width == width => {
                let (branch, n) = unskipped(branch, self.at, n);
                if let Some((to, from)) = copy {
                    self.push(Cell {
                        handler: alu_handler(
                            AluOp::Mov,
                            Width::W64,
                            self.location(to),
                            self.location(from),
                        )?,
                        ..self.registers(to, from)
                    })?;
                }
                self.count_and_branch(dst, imm, branch, n)?;
                return Some(n);
            }
            Fused::ShiftAdd { .. }
            | Fused::LoadAlu { .. }
            | Fused::Update { .. }
            | Fused::Copy { .. }
            | Fused::AluBranch { .. }
            | Fused::LoadBranch { .. } => return None,
        }
        Some(n)
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: Reg, left: Reg, right: Operand) -> Option<()> {
        let (to, from, with) = (self.location(dst), self.location(left), self.operand(right));
        self.push(Cell {
            handler: fused::alu_handler(op, width, to, from, with)?,
            imm: right.imm().map_or(0, sign_extend32),
            third: right.reg().map_or(0, Reg::number),
            ..self.registers(dst, left)
        })
    }

    /// Adds a selection by a comparison with a constant: of two constants that are not
    /// negative, or of a register and the same shifted.
    fn select(&mut self, fused: Fused) -> Option<()> {
        let Fused::Select {
            op,
            width,
            left,
            right: Operand::Imm(imm),
            dst,
            yes,
            no,
        } = fused
        else {
            return None;
        };
        let skipped = fused.skipped();
        let moved = u32::from(yes != as_it_is(dst));
        let at = self.at + moved;
        if self.count(at, at + 1 + u32::from(skipped)) != -i64::from(skipped) {
            return None;
        }
        let constant = |source: SelectValue| match source.from {
            Operand::Imm(imm) if imm >= 0 && source.right == 0 => Some(imm),
            _ => None,
        };
        let same = SelectValue { right: 0, ..no };
        let constants = constant(yes).zip(constant(no));
        let is_shift = yes == same && no.width == Width::W64 && no.from == Operand::Reg(left);
        if constants.is_none() && (!is_shift || no.right == 0) {
            return None;
        }
        let (to, from) = (self.location(dst), self.location(left));
        let (jump, count) = constants.unwrap_or_default();
        self.push(Cell {
            handler: select_handler(op, width, constants.is_some(), to, from)?,
            imm: sign_extend32(imm),
            jump,
            count,
            third: skipped,
            by: no.right,
            ..self.registers(dst, left)
        })
    }

    /// Adds an addition of a constant and the branch on the sum, the last of `n`
    /// operations.
    fn count_and_branch(&mut self, dst: Reg, imm: i32, branch: Branch, n: u8) -> Option<()> {
        let Branch {
            op,
            width,
            right,
            when,
            target,
            ..
        } = branch;
        let (x, y) = (self.location(dst), self.operand(right));
        let compared = right.imm().map_or(0, sign_extend32);
        let cell = Cell {
            handler: count_handler((op, when), width, x, y)?,
            imm: compared << 32 | u64::from(imm.cast_unsigned()),
            ..self.operands(dst, right)
        };
        self.push_jump(cell, self.at + u32::from(n) - 1, target)
    }
}

/// A register's value, unshifted.
const fn as_it_is(reg: Reg) -> SelectValue {
    SelectValue {
        width: Width::W64,
        from: Operand::Reg(reg),
        right: 0,
    }
}

/// The branch without the jump that it skips: two cells cost as much, and then no jump over
/// a jump has to be counted.
fn unskipped(branch: Branch, at: Target, n: u8) -> (Branch, u8) {
    if !branch.skips {
        return (branch, n);
    }
    let plain = Branch {
        when: !branch.when,
        target: at + u32::from(n),
        skips: false,
        ..branch
    };
    (plain, n - 1)
}
