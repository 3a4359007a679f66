//! From operations to cells.

use super::access::{
    CONTEXT, MAP_VALUE, PACKET, STACK, TABLE, add_handler, indexed_handler, load_handler,
    store_handler,
};
use super::alu::{alu_handler, endian_handler, extend_handler, load_imm_handler, neg_handler};
use super::call::{
    call_function, call_helper, exit, generic, index_handler, known_handler, load_pointer_handler,
    look_up_handler,
};
use super::cell::{CONSTANT, Cell, IN_MEMORY};
use super::code::{NONE, Threaded};
use super::fused;
use super::hot::hot_registers;
use super::jump::{branch_handler, count_handler, jump_handler, select_handler};
use crate::isa::{AluOp, AtomicOp, Operand, Reg, Width, sign_extend32};
use crate::lower::{Branch, Fused, Keys, Lowered, Notes, Op, Order, Place, Source, Target};

/// Makes cells of a program's operations.
pub(in crate::interp) fn compile(program: &Lowered) -> Threaded {
    let ops = program.ops();
    let mut compiler = Compiler {
        program,
        hot: hot_registers(program),
        at: 0,
        cells: Vec::with_capacity(ops.len()),
        targets: Vec::new(),
    };
    let mut places = Vec::with_capacity(ops.len());
    while let Some(&op) = ops.get(places.len()) {
        places.push(number(compiler.cells.len()));
        compiler.at = number(places.len() - 1);
        if let Some(n) = compiler.several() {
            places.resize(places.len() + usize::from(n) - 1, NONE);
        } else if !compiler.is_nothing(op) {
            compiler.one(op);
        }
    }
    compiler.link(&places);
    Threaded::new(compiler.cells.into(), places.into(), compiler.hot)
}

/// Cells are few enough: no more than some for each operation.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}

/// Operations on their way to cells.
struct Compiler<'a> {
    program: &'a Lowered,
    hot: [u8; 4],
    /// The operation.
    at: Target,
    cells: Vec<Cell>,
    /// For each cell that jumps, the operation that it jumps to.
    targets: Vec<(usize, Target)>,
}

impl Compiler<'_> {
    /// Makes a cell for several operations from `at` on, if they have a function; how
    /// many there are.
    fn several(&mut self) -> Option<u8> {
        let (fused, n) = self.program.fused(self.at)?;
        let before = self.cells.len();
        let made = self.fused(fused, n);
        if made.is_none() {
            self.cells.truncate(before);
        }
        made
    }

    /// Makes the cells of an operation.
    fn one(&mut self, op: Op) {
        let before = self.cells.len();
        if self.cell(op).is_none() {
            self.cells.truncate(before);
            self.targets.retain(|(cell, _)| *cell < before);
            self.cells.push(self.generic());
        }
    }

    /// Whether an operation need not be done, but only be counted, which the next one's
    /// cell does.
    fn is_nothing(&self, op: Op) -> bool {
        match op {
            Op::Jump { target } => target == self.at + 1 && self.count(self.at, target) == 0,
            _ => self.program.note(self.at).contains(Notes::NO_EFFECT),
        }
    }

    /// Says how far cells jump.
    fn link(&mut self, places: &[u32]) {
        for &(at, target) in &self.targets {
            let place = places.get(target as usize).copied().unwrap_or(0);
            let distance = i64::from(place) - i64::from(number(at));
            if let Some(cell) = self.cells.get_mut(at) {
                match i32::try_from(distance) {
                    Ok(distance) => cell.jump = distance,
                    Err(_) => cell.handler = generic,
                }
            }
        }
    }

    /// What a jump from one operation to another adds to the base.
    fn count(&self, from: Target, to: Target) -> i64 {
        let ordinal = |at| i64::from(self.program.ordinal(at));
        ordinal(from) + 1 - ordinal(to)
    }

    fn push(&mut self, cell: Cell) -> Option<()> {
        self.cells.push(cell);
        Some(())
    }

    /// A cell that jumps to an operation, the last of those that it stands for being
    /// `from`.
    fn push_jump(&mut self, cell: Cell, from: Target, target: Target) -> Option<()> {
        let count = i32::try_from(self.count(from, target)).ok()?;
        self.targets.push((self.cells.len(), target));
        self.push(Cell { count, ..cell })
    }

    /// Makes cells of what several operations are.
    fn fused(&mut self, fused: Fused, n: u8) -> Option<u8> {
        let base = self.generic();
        match fused {
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
                handler: fused::rotate_handler(width, self.place(dst), self.place(src))?,
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
                handler: alu_handler(AluOp::Mov, Width::W32, self.place(dst), self.place(src))?,
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
                handler: fused::extract_handler(width, signed, self.place(dst), self.place(src))?,
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
                handler: fused::bits_handler(width, self.place(dst), self.place(src))?,
                imm: sign_extend32(mask),
                by: right,
                ..self.registers(dst, src)
            })?,
            Fused::LoadIndexed {
                place,
                left,
                right: Operand::Imm(imm),
                size,
                dst,
            } => {
                let (place, _, off) = self.access(place)?;
                self.push(Cell {
                    handler: load_handler(place, size, self.place(dst), self.place(left))?,
                    imm: off.wrapping_add(sign_extend32(imm)),
                    ..self.registers(dst, left)
                })?;
            }
            Fused::LoadIndexed {
                size,
                place,
                dst,
                left,
                right: Operand::Reg(index),
            } => {
                let (place, _, imm) = self.access(place)?;
                let (to, base) = (self.place(dst), self.place(left));
                self.push(Cell {
                    handler: indexed_handler(place, size, to, base, self.place(index))?,
                    imm,
                    third: index.number(),
                    ..self.registers(dst, left)
                })?;
            }
            Fused::Select { .. } => self.select(fused)?,
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
                            self.place(to),
                            self.place(from),
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
        let (to, from, with) = (self.place(dst), self.place(left), self.operand(right));
        self.push(Cell {
            handler: fused::alu_handler(op, width, to, from, with)?,
            imm: right.imm().map_or(0, sign_extend32),
            third: right.reg().map_or(0, Reg::number),
            ..self.registers(dst, left)
        })
    }

    /// A choice by a comparison with a constant, of two constants that are not below
    /// zero, or of a register and the same shifted.
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
        let constant = |source: Source| match source.from {
            Operand::Imm(imm) if imm >= 0 && source.right == 0 => Some(imm),
            _ => None,
        };
        let same = Source { right: 0, ..no };
        let constants = constant(yes).zip(constant(no));
        let is_shift = yes == same && no.width == Width::W64 && no.from == Operand::Reg(left);
        if constants.is_none() && (!is_shift || no.right == 0) {
            return None;
        }
        let (to, from) = (self.place(dst), self.place(left));
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

    /// A branch that is the last of `n` operations.
    fn branch(&mut self, base: Cell, branch: Branch, n: u8) -> Option<()> {
        let Branch {
            op,
            width,
            left,
            right,
            when,
            target,
            ..
        } = branch;
        let last = self.at + u32::from(n) - 1;
        let (x, y) = (self.place(left), self.operand(right));
        let cell = Cell {
            handler: branch_handler((op, when), width, target <= last, x, y)?,
            at: base.at,
            ..self.operands(left, right)
        };
        self.push_jump(cell, last, target)
    }

    /// An addition of a constant and the branch on the sum, the last of `n` operations.
    fn count_and_branch(&mut self, dst: Reg, imm: i32, branch: Branch, n: u8) -> Option<()> {
        let Branch {
            op,
            width,
            right,
            when,
            target,
            ..
        } = branch;
        let (x, y) = (self.place(dst), self.operand(right));
        let compared = right.imm().map_or(0, sign_extend32);
        let cell = Cell {
            handler: count_handler((op, when), width, x, y)?,
            imm: compared << 32 | u64::from(imm.cast_unsigned()),
            ..self.operands(dst, right)
        };
        self.push_jump(cell, self.at + u32::from(n) - 1, target)
    }

    /// Makes the cells of an operation that has a function of its own.
    fn cell(&mut self, op: Op) -> Option<()> {
        let base = self.generic();
        let cell = match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => Cell {
                handler: alu_handler(op, width, self.place(dst), self.operand(src))?,
                ..self.operands(dst, src)
            },
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => Cell {
                handler: extend_handler(width, from, self.place(dst), self.place(src))?,
                ..self.registers(dst, src)
            },
            Op::Neg { width, dst } => Cell {
                handler: neg_handler(width, self.place(dst))?,
                dst: dst.number(),
                ..base
            },
            Op::LoadImm { dst, value } => Cell {
                handler: load_imm_handler(self.place(dst))?,
                imm: value,
                dst: dst.number(),
                ..base
            },
            Op::Endian { op, size, dst } => Cell {
                handler: endian_handler(op, size, self.place(dst))?,
                dst: dst.number(),
                ..base
            },
            Op::Load {
                size,
                dst,
                place,
                order: Order::Relaxed,
            } => {
                let (place, reg, imm) = self.access(place)?;
                Cell {
                    handler: load_handler(place, size, self.place(dst), self.place(reg))?,
                    imm,
                    ..self.registers(dst, reg)
                }
            }
            Op::LoadSx { from, dst, place } => {
                let (place, reg, imm) = self.access(place)?;
                self.push(Cell {
                    handler: load_handler(place, from.size(), self.place(dst), self.place(reg))?,
                    imm,
                    ..self.registers(dst, reg)
                })?;
                Cell {
                    handler: extend_handler(Width::W64, from, self.place(dst), self.place(dst))?,
                    ..self.registers(dst, dst)
                }
            }
            Op::Store {
                size,
                place,
                src,
                order: Order::Relaxed,
            } => {
                let (place, reg, imm) = self.access(place)?;
                Cell {
                    handler: store_handler(place, size, self.place(reg), self.operand(src))?,
                    imm,
                    jump: src.imm().unwrap_or(0),
                    dst: reg.number(),
                    src: src.reg().map_or(0, Reg::number),
                    ..base
                }
            }
            Op::Atomic {
                op: AtomicOp::Add,
                width: Width::W64,
                place: place @ Place::MapValue { .. },
                src,
            } => {
                let (_, reg, imm) = self.access(place)?;
                Cell {
                    handler: add_handler(self.place(reg), self.place(src))?,
                    imm,
                    ..self.registers(reg, src)
                }
            }
            Op::Jump { target } => {
                let cell = Cell {
                    handler: jump_handler(target <= self.at),
                    ..base
                };
                return self.push_jump(cell, self.at, target);
            }
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                let branch = Branch {
                    op,
                    width,
                    left: dst,
                    right: src,
                    when: true,
                    target,
                    skips: false,
                };
                return self.branch(base, branch, 1);
            }
            Op::LoadPointer { size, dst, off } => Cell {
                handler: load_pointer_handler(self.place(dst))?,
                imm: off.into(),
                jump: size.bytes().into(),
                dst: dst.number(),
                ..base
            },
            Op::CallHelper { helper } => Cell {
                handler: call_helper,
                ..base.with_number(helper)
            },
            Op::Lookup { map, key, is_there } => self.look_up(map, key, is_there)?,
            Op::Known { which } => Cell {
                handler: known_handler(self.place(Reg::R0))?,
                dst: Reg::R0.number(),
                src: which,
                ..base
            },
            Op::CallFunction { function } => Cell {
                handler: call_function,
                ..base.with_number(function)
            },
            Op::Exit => Cell {
                handler: exit,
                ..base
            },
            Op::Atomic { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::LoadPacket { .. }
            | Op::MayGoto { .. }
            | Op::TailCall => return None,
        };
        self.push(cell)
    }

    /// The cell of a look-up.
    fn look_up(&self, map: u16, key: Place, is_there: bool) -> Option<Cell> {
        let base = Cell {
            dst: Reg::R0.number(),
            ..self.generic()
        };
        let to = self.place(Reg::R0);
        let map = self.program.maps().get(usize::from(map))?;
        Some(match (map.keys, key) {
            (Keys::Index { count }, Place::Stack { off }) => Cell {
                handler: index_handler(is_there, to)?,
                imm: map.first,
                jump: off.into(),
                count: count.cast_signed(),
                by: u8::try_from(map.span.trailing_zeros()).ok()?,
                ..base
            },
            _ => Cell {
                handler: look_up_handler(to)?,
                ..base
            },
        })
    }

    /// A cell that does any operation.
    const fn generic(&self) -> Cell {
        Cell {
            handler: generic,
            imm: 0,
            jump: 0,
            count: 0,
            at: self.at,
            dst: 0,
            src: 0,
            third: 0,
            by: 0,
        }
    }

    /// Where a register is.
    fn place(&self, reg: Reg) -> u8 {
        let found = self
            .hot
            .iter()
            .zip(0..)
            .find(|(hot, _)| **hot == reg.number());
        found.map_or(IN_MEMORY, |(_, place)| place)
    }

    fn operand(&self, operand: Operand) -> u8 {
        operand.reg().map_or(CONSTANT, |reg| self.place(reg))
    }

    const fn registers(&self, dst: Reg, src: Reg) -> Cell {
        Cell {
            dst: dst.number(),
            src: src.number(),
            ..self.generic()
        }
    }

    fn operands(&self, dst: Reg, src: Operand) -> Cell {
        Cell {
            imm: src.imm().map_or(0, sign_extend32),
            dst: dst.number(),
            src: src.reg().map_or(0, Reg::number),
            ..self.generic()
        }
    }

    /// Where an access goes, its base, and what is to be added to that.
    fn access(&self, place: Place) -> Option<(u8, Reg, u64)> {
        let wide = |off: i16| i64::from(off).cast_unsigned();
        Some(match place {
            Place::Stack { off } => (STACK, Reg::FP, wide(off)),
            Place::Context { off } => (CONTEXT, Reg::FP, off.into()),
            Place::MapValue { base, off, map } => {
                let delta = self.program.maps().get(usize::from(map))?.delta;
                (MAP_VALUE, base, wide(off).wrapping_add(delta))
            }
            Place::Packet { base, off } => (PACKET, base, wide(off)),
            Place::Table { base, off } => (TABLE, base, wide(off)),
            Place::Checked { .. } => return None,
        })
    }
}

/// A register as it is.
const fn as_it_is(reg: Reg) -> Source {
    Source {
        width: Width::W64,
        from: Operand::Reg(reg),
        right: 0,
    }
}

/// The branch without the jump that it leads over: two cells cost as much, and have no
/// jump over a jump to count.
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
