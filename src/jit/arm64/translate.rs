//! Translates operations to code.

use dynasmrt::{DynasmApi as _, DynasmLabelApi as _};

use super::emitter::{Emitter, asm};
use super::features::Features;
use super::regs::host;
use crate::isa::{AluOp, Operand, Width};
use crate::jit::count::Counts;
use crate::jit::emitted::Emitted;
use crate::lower::{Lowered, Notes, Op, Target};

/// The most operations: offsets in code and counts have 32 bits.
const MOST: usize = 1 << 22;

/// Emits the code of a program, beginning with the entry points from Rust.
pub(in crate::jit) fn emit(
    lowered: &Lowered,
    counts: &Counts,
    features: Features,
) -> Option<Emitted> {
    let ops = lowered.ops();
    if ops.len() > MOST {
        return None;
    }
    let mut emitter = Emitter::new(lowered, counts, features);
    let no_function = emitter.labels.ends;
    let entry_points = emitter.emit_entry_points(lowered.functions().first()?);
    emitter.shared_step();
    let (mut at, mut entries) = (0, Vec::new());
    for (number, function) in (0..).zip(lowered.functions()) {
        let label = emitter.labels.function(number)?;
        entries.push((function.entry, emitter.offset()));
        asm!(emitter ; =>label);
        emitter.enter(function, number == 0);
        at = at.max(function.entry);
        while at < function.end {
            emitter.island();
            let label = emitter.labels.op(at);
            asm!(emitter ; =>label);
            let offset = emitter.offset();
            emitter.offsets.push(offset);
            if let Some(end) = emitter.logarithm(at) {
                emitter.offsets.extend((at + 1..end).map(|_| offset));
                at = end;
                continue;
            }
            let plain = *ops.get(at as usize)?;
            match lowered.fused(at) {
                Some((fused, n)) if emitter.fused(at, fused, n) => {
                    // No jump leads into their middle.
                    emitter.offsets.extend((1..n).map(|_| offset));
                    at += Target::from(n);
                }
                _ => {
                    emitter.op(at, plain);
                    at += 1;
                }
            }
        }
        emitter.finish();
    }
    // Labels for missing targets: nothing jumps there.
    asm!(emitter ; =>no_function.leave ; =>no_function.back ; =>no_function.stop ; brk 0);
    let bytes = emitter.code.finalize().ok()?;
    Some(Emitted {
        bytes,
        entry_points,
        ops: emitter.offsets,
        entries,
    })
}

impl Emitter<'_> {
    /// Emits the code of a binary logarithm that begins at an operation, if instructions are
    /// not counted; returns the operation after it.
    fn logarithm(&mut self, at: Target) -> Option<Target> {
        let found = self.lowered.logarithm(at)?;
        if self.counts.is_on {
            return None;
        }
        let (input, dst) = (found.input, host(found.dst));
        let copy = found.copy.unwrap_or(found.dst);
        let to = host(copy);
        self.alu(AluOp::Mov, input.width, to, to, input.src.into());
        if let Some(divisor) = input.divisor {
            self.alu(AluOp::Div, input.width, to, to, Operand::Imm(divisor));
        }
        if copy != found.dst {
            self.alu(AluOp::Mov, Width::W64, dst, dst, copy.into());
        }
        asm!(self ; orr XSP(dst), X(dst), 1 ; clz X(dst), X(dst) ; eor XSP(dst), X(dst), 63);
        if found.plus > 0 {
            self.alu(AluOp::Add, Width::W32, dst, dst, Operand::Imm(found.plus));
        }
        for (reg, number) in &found.numbers {
            self.constant(host(*reg), *number);
        }
        if found.end != found.dead {
            let end = self.labels.op(found.end);
            asm!(self ; b =>end);
        }
        Some(found.dead)
    }

    /// Emits the code of an operation, and of the edge to the next one.
    pub(super) fn op(&mut self, at: Target, op: Op) {
        let note = self.lowered.note(at);
        if note.contains(Notes::NO_EFFECT) {
            return self.take(self.counts.edge(at, at + 1));
        }
        let narrowed = |width| match note.contains(Notes::NARROW) {
            true => Width::W32,
            false => width,
        };
        let mut has_code = true;
        match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => self.alu(op, narrowed(width), host(dst), host(dst), src),
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => self.movsx(narrowed(width), from, dst, src),
            Op::Neg { width, dst } => self.neg(narrowed(width), dst),
            Op::Endian { op, size, dst } => self.endian(op, size, dst),
            Op::LoadImm { dst, value } => self.constant(host(dst), value),
            Op::Load {
                size,
                dst,
                mem,
                order,
            } => has_code = self.load(at, size, dst, mem, order),
            Op::LoadSx { from, dst, mem } => has_code = self.load_signed(at, from, dst, mem),
            Op::Store {
                size,
                mem,
                src,
                order,
            } => has_code = self.store(at, size, mem, src, order),
            Op::Atomic {
                op,
                width,
                mem,
                src,
            } => has_code = self.atomic(at, op, width, mem, src),
            Op::LoadPointer { size, dst, off } => self.load_pointer(at, size, dst, off),
            Op::Lookup { map, key, is_there } => {
                has_code = self.look_up(at, map, key, is_there);
            }
            Op::Known { which } => self.known(which),
            Op::Cast { dst, src, to_user } => has_code = self.cast(dst, src, to_user),
            Op::LoadPacket { .. } => has_code = false,
            Op::MayGoto { target } => self.may_goto(at, target),
            Op::Jump { target } => return self.jump(at, target),
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => self.jump_if(at, op, narrowed(width), (dst, src), target),
            // These count the edge themselves.
            Op::Throw { helper } => return self.throw(at, helper),
            Op::CallHelper { helper } => return self.call_helper(at, helper),
            Op::CallFunction { function } => return self.call_function(at, function),
            Op::TailCall => return self.tail_call(at),
            Op::Exit => return self.exit(at),
        }
        if !has_code {
            self.step(at);
        }
        self.take(self.counts.edge(at, at + 1));
    }
}
