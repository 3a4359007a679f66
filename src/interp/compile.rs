//! Compiles operations to cells.

use super::access::{
    ARENA, CONTEXT, MAP_VALUE, PACKET, STACK, TABLE, add_handler, load_handler, size_number,
    store_handler,
};
use super::alu::{alu_handler, endian_handler, extend_handler, load_imm_handler, neg_handler};
use super::call::{
    call_function, call_helper, exit, generic, index_handler, known_handler, load_pointer_handler,
    look_up_handler,
};
use super::hot::hot_registers;
use super::jump::{branch_handler, jump_handler};
use crate::engine::cells::{CONSTANT, Cell, IN_MEMORY};
use crate::engine::cells::{NONE, Threaded};
use crate::engine::fast::held_pointer;
use crate::isa::{AtomicOp, Operand, Reg, Width, sign_extend32};
use crate::lower::{Branch, Keys, Lowered, MemRef, Notes, Op, Order, Target};

/// Compiles a program's operations to cells.
pub(crate) fn compile(program: &Lowered) -> Threaded {
    let ops = program.ops();
    let mut compiler = Compiler {
        program,
        hot: hot_registers(program),
        at: 0,
        cells: Vec::with_capacity(ops.len()),
        targets: Vec::new(),
    };
    let mut cell_of = Vec::with_capacity(ops.len());
    while let Some(&op) = ops.get(cell_of.len()) {
        cell_of.push(number(compiler.cells.len()));
        compiler.at = number(cell_of.len() - 1);
        if let Some(n) = compiler.several() {
            cell_of.resize(cell_of.len() + usize::from(n) - 1, NONE);
        } else if !compiler.is_nothing(op) {
            compiler.one(op);
        }
    }
    compiler.link(&cell_of);
    Threaded::new(compiler.cells.into(), cell_of.into(), compiler.hot)
}

/// There are only a few cells for each operation, so their number fits.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}

/// The state of a compilation.
pub(super) struct Compiler<'a> {
    pub(super) program: &'a Lowered,
    hot: [u8; 4],
    /// The current operation.
    pub(super) at: Target,
    pub(super) cells: Vec<Cell>,
    /// For each cell that jumps, the operation that it jumps to.
    targets: Vec<(usize, Target)>,
}

impl Compiler<'_> {
    /// Adds the cells of an operation.
    fn one(&mut self, op: Op) {
        let before = self.cells.len();
        if self.cell(op).is_none() {
            self.cells.truncate(before);
            self.targets.retain(|(cell, _)| *cell < before);
            self.cells.push(self.generic());
        }
    }

    /// Whether an operation has no effect except its count, which the next one's cell
    /// includes.
    fn is_nothing(&self, op: Op) -> bool {
        match op {
            Op::Jump { target } => target == self.at + 1 && self.count(self.at, target) == 0,
            _ => self.program.note(self.at).contains(Notes::NO_EFFECT),
        }
    }

    /// Resolves the distances of jumps.
    fn link(&mut self, cell_of: &[u32]) {
        for &(at, target) in &self.targets {
            let cell = cell_of.get(target as usize).copied().unwrap_or(0);
            let distance = (i64::from(cell) - i64::from(number(at))) * size_of::<Cell>() as i64;
            if let Some(cell) = self.cells.get_mut(at) {
                match i32::try_from(distance) {
                    Ok(distance) => cell.jump = distance,
                    Err(_) => cell.handler = generic,
                }
            }
        }
    }

    /// What a jump between two operations adds to the base.
    pub(super) fn count(&self, from: Target, to: Target) -> i64 {
        let ordinal = |at| i64::from(self.program.ordinal(at));
        ordinal(from) + 1 - ordinal(to)
    }

    pub(super) fn push(&mut self, cell: Cell) -> Option<()> {
        self.cells.push(cell);
        Some(())
    }

    /// Adds a cell that jumps to an operation; `from` is the last operation of the cell.
    pub(super) fn push_jump(&mut self, cell: Cell, from: Target, target: Target) -> Option<()> {
        let count = i32::try_from(self.count(from, target)).ok()?;
        self.targets.push((self.cells.len(), target));
        self.push(Cell { count, ..cell })
    }

    /// Adds a branch that is the last of `n` operations.
    pub(super) fn branch(&mut self, base: Cell, branch: Branch, n: u8) -> Option<()> {
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
        let (x, y) = (self.location(left), self.operand(right));
        let cell = Cell {
            handler: branch_handler((op, when), width, target <= last, x, y)?,
            at: base.at,
            ..self.operands(left, right)
        };
        self.push_jump(cell, last, target)
    }

    /// Adds the cells of an operation with a function of its own.
    fn cell(&mut self, op: Op) -> Option<()> {
        let base = self.generic();
        let cell = match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => Cell {
                handler: alu_handler(op, width, self.location(dst), self.operand(src))?,
                ..self.operands(dst, src)
            },
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => Cell {
                handler: extend_handler(width, from, self.location(dst), self.location(src))?,
                ..self.registers(dst, src)
            },
            Op::Neg { width, dst } => Cell {
                handler: neg_handler(width, self.location(dst))?,
                dst: dst.number(),
                ..base
            },
            Op::LoadImm { dst, value } => Cell {
                handler: load_imm_handler(self.location(dst))?,
                imm: value,
                dst: dst.number(),
                ..base
            },
            Op::Endian { op, size, dst } => Cell {
                handler: endian_handler(op, size, self.location(dst))?,
                dst: dst.number(),
                ..base
            },
            Op::Load {
                size,
                dst,
                mem,
                order: Order::Relaxed,
            } => {
                let (kind, reg, imm) = self.access(mem)?;
                Cell {
                    handler: load_handler(kind, size, self.location(dst), self.location(reg))?,
                    imm,
                    by: size_number(size),
                    ..self.registers(dst, reg)
                }
            }
            Op::LoadSx { from, dst, mem } => {
                let (kind, reg, imm) = self.access(mem)?;
                self.push(Cell {
                    handler: load_handler(
                        kind,
                        from.size(),
                        self.location(dst),
                        self.location(reg),
                    )?,
                    imm,
                    by: size_number(from.size()),
                    ..self.registers(dst, reg)
                })?;
                Cell {
                    handler: extend_handler(
                        Width::W64,
                        from,
                        self.location(dst),
                        self.location(dst),
                    )?,
                    ..self.registers(dst, dst)
                }
            }
            Op::Store {
                size,
                mem,
                src,
                order: Order::Relaxed,
            } => {
                let (kind, reg, imm) = self.access(mem)?;
                Cell {
                    handler: store_handler(kind, size, self.location(reg), self.operand(src))?,
                    imm,
                    jump: src.imm().unwrap_or(0),
                    dst: reg.number(),
                    src: src.reg().map_or(0, Reg::number),
                    by: size_number(size),
                    ..base
                }
            }
            Op::Atomic {
                op: AtomicOp::Add,
                width: Width::W64,
                mem: mem @ MemRef::MapValue { .. },
                src,
            } => {
                let (_, reg, imm) = self.access(mem)?;
                Cell {
                    handler: add_handler(self.location(reg), self.location(src))?,
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
            Op::LoadPointer { size, dst, off } => {
                let (number, _) = held_pointer(self.program, off, size)?;
                Cell {
                    handler: load_pointer_handler(self.location(dst))?,
                    dst: dst.number(),
                    src: u8::try_from(number).ok()?,
                    ..base
                }
            }
            Op::CallHelper { helper } => Cell {
                handler: call_helper,
                ..base.with_number(helper)
            },
            Op::Lookup { map, key, is_there } => self.look_up(map, key, is_there)?,
            Op::Known { which } => Cell {
                handler: known_handler(self.location(Reg::R0))?,
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
            | Op::Cast { .. }
            | Op::Throw { .. }
            | Op::MayGoto { .. }
            | Op::TailCall => return None,
        };
        self.push(cell)
    }

    /// The cell of a look-up.
    fn look_up(&self, map: u16, key: MemRef, is_there: bool) -> Option<Cell> {
        let base = Cell {
            dst: Reg::R0.number(),
            ..self.generic()
        };
        let to = self.location(Reg::R0);
        let map = self.program.maps().get(usize::from(map))?;
        Some(match (map.keys, key) {
            (Keys::Index { count }, MemRef::Stack { off }) => Cell {
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

    /// A cell that executes any operation.
    pub(super) const fn generic(&self) -> Cell {
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

    /// The location of a register.
    pub(super) fn location(&self, reg: Reg) -> u8 {
        let found = self
            .hot
            .iter()
            .zip(0..)
            .find(|(hot, _)| **hot == reg.number());
        found.map_or(IN_MEMORY, |(_, location)| location)
    }

    pub(super) fn operand(&self, operand: Operand) -> u8 {
        operand.reg().map_or(CONSTANT, |reg| self.location(reg))
    }

    pub(super) const fn registers(&self, dst: Reg, src: Reg) -> Cell {
        Cell {
            dst: dst.number(),
            src: src.number(),
            ..self.generic()
        }
    }

    pub(super) fn operands(&self, dst: Reg, src: Operand) -> Cell {
        Cell {
            imm: src.imm().map_or(0, sign_extend32),
            dst: dst.number(),
            src: src.reg().map_or(0, Reg::number),
            ..self.generic()
        }
    }

    /// The memory kind of an access, its base, and the offset.
    pub(super) fn access(&self, mem: MemRef) -> Option<(u8, Reg, u64)> {
        let wide = |off: i16| i64::from(off).cast_unsigned();
        Some(match mem {
            MemRef::Stack { off } => (STACK, Reg::FP, wide(off)),
            MemRef::Context { off } => (CONTEXT, Reg::FP, off.into()),
            MemRef::MapValue { base, off, map } => {
                let delta = self.program.maps().get(usize::from(map))?.delta;
                (MAP_VALUE, base, wide(off).wrapping_add(delta))
            }
            MemRef::Packet { base, off } => (PACKET, base, wide(off)),
            MemRef::Table { base, off } => (TABLE, base, wide(off)),
            MemRef::Arena { base, off, .. } => (ARENA, base, wide(off)),
            MemRef::Kernel { .. } | MemRef::Checked { .. } => return None,
        })
    }
}
