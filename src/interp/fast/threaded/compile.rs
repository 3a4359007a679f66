//! From operations to cells.

use super::access::{CONTEXT, MAP_VALUE, PACKET, STACK, TABLE, load_handler, store_handler};
use super::alu::{alu_handler, endian_handler, load_imm_handler};
use super::call::{GENERIC, call_function, call_helper, exit, load_pointer_handler};
use super::cell::{CONSTANT, Cell, IN_MEMORY};
use super::code::Threaded;
use super::jump::{branch_handler, jump_handler};
use crate::isa::{Operand, Reg, sign_extend32};
use crate::lower::{Lowered, Op, Place, Target};

/// Makes cells of a program's operations.
pub(in crate::interp) fn compile(program: &Lowered) -> Threaded {
    let hot = hot_registers(program);
    let cells = program
        .ops()
        .iter()
        .zip(0..)
        .map(|(op, at)| {
            let compiler = Compiler { program, hot, at };
            compiler.cell(*op).unwrap_or_else(|| compiler.generic())
        })
        .collect();
    Threaded::new(cells, hot)
}

/// The registers that are used most, an operation in a loop counting as several.
fn hot_registers(program: &Lowered) -> [u8; 4] {
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

/// How much an operation counts: 8 times as much in each loop that it is in.
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

/// The registers that an operation's function gets at.
fn registers(op: Op) -> [Option<Reg>; 2] {
    let base = |place| match place {
        Place::Stack { .. } | Place::Context { .. } => None,
        Place::MapValue { base, .. }
        | Place::Packet { base, .. }
        | Place::Table { base, .. }
        | Place::Checked { base, .. } => Some(base),
    };
    match op {
        Op::Alu { dst, src, .. } | Op::JumpIf { dst, src, .. } => [Some(dst), src.reg()],
        Op::MovSx { dst, src, .. } => [Some(dst), Some(src)],
        Op::Neg { dst, .. }
        | Op::Endian { dst, .. }
        | Op::LoadImm { dst, .. }
        | Op::LoadPointer { dst, .. } => [Some(dst), None],
        Op::Load { dst, place, .. } | Op::LoadSx { dst, place, .. } => [Some(dst), base(place)],
        Op::Store { place, src, .. } => [base(place), src.reg()],
        Op::Atomic { place, src, .. } => [base(place), Some(src)],
        _ => [None, None],
    }
}

/// An operation on its way to a cell.
struct Compiler<'a> {
    program: &'a Lowered,
    hot: [u8; 4],
    at: Target,
}

impl Compiler<'_> {
    /// The cell of an operation that has a function of its own.
    fn cell(&self, op: Op) -> Option<Cell> {
        let base = self.generic();
        Some(match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => Cell {
                handler: alu_handler(op, width, self.place(dst), self.operand(src))?,
                ..self.operands(dst, src)
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
                size, dst, place, ..
            } => {
                let (place, reg, imm) = self.access(place)?;
                Cell {
                    handler: load_handler(place, size, self.place(dst), self.place(reg))?,
                    imm,
                    dst: dst.number(),
                    src: reg.number(),
                    ..base
                }
            }
            Op::Store {
                size, place, src, ..
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
            Op::Jump { target } => Cell {
                handler: jump_handler(target <= self.at),
                ..self.jump(base, target)?
            },
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                let (to, with) = (self.place(dst), self.operand(src));
                Cell {
                    handler: branch_handler(op, width, target <= self.at, to, with)?,
                    ..self.jump(self.operands(dst, src), target)?
                }
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
            Op::CallFunction { function } => Cell {
                handler: call_function,
                ..base.with_number(function)
            },
            Op::Exit => Cell {
                handler: exit,
                ..base
            },
            _ => return None,
        })
    }

    /// A cell that does any operation.
    const fn generic(&self) -> Cell {
        Cell {
            handler: GENERIC,
            imm: 0,
            jump: 0,
            count: 0,
            dst: 0,
            src: 0,
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

    fn jump(&self, cell: Cell, target: Target) -> Option<Cell> {
        let ordinal = |at| i64::from(self.program.ordinal(at));
        let count = ordinal(self.at) + 1 - ordinal(target);
        let distance = i64::from(target) - i64::from(self.at);
        Some(Cell {
            jump: i32::try_from(distance).ok()?,
            count: i32::try_from(count).ok()?,
            ..cell
        })
    }
}
