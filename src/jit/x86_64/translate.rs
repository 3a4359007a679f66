//! Translates operations to code.

use dynasmrt::{DynamicLabel, DynasmApi as _, DynasmLabelApi as _};

use super::emitter::{Emitter, asm};
use super::features::Features;
use super::regs::{RAX, host};
use crate::isa::{AluOp, Operand, Width};
use crate::jit::count::Counts;
use crate::jit::emitted::{Emitted, EntryPoints};
use crate::lower::{Lowered, Notes, Op, Target};

/// The most operations: offsets in code and counts have 32 bits.
const MOST: usize = 1 << 22;

/// Emits the code of a program, beginning with the entry points from Rust. Only for a listing the
/// offsets of operations are noted.
pub(in crate::jit) fn emit(
    lowered: &Lowered,
    counts: &Counts,
    features: Features,
    is_listed: bool,
) -> Option<Emitted> {
    let ops = lowered.ops();
    if ops.len() > MOST {
        return None;
    }
    let mut emitter = Emitter::new(lowered, counts, features, is_listed);
    let no_function = emitter.ends;
    let mut at = 0;
    for (number, function) in lowered.functions().iter().enumerate() {
        let label = emitter.functions.get(number).copied()?;
        emitter.survey(function);
        if number == 0 {
            emitter.emit_entry_points(function);
        }
        emitter.code.align_here();
        asm!(emitter ; =>label);
        emitter.held = None;
        emitter.enter(function, number == 0);
        at = at.max(function.entry);
        while at < function.end {
            let mut unrolled = None;
            if emitter.loops.is_head(at) {
                emitter.code.align_here();
                unrolled = emitter.rounds(at);
            }
            at = match unrolled {
                Some(end) => end,
                None => emitter.one(at)?,
            };
        }
        emitter.finish();
    }
    // Labels for missing targets: nothing jumps there.
    asm!(emitter ; =>no_function.leave ; =>no_function.back ; =>no_function.stop ; ud2);
    let finished = emitter.code.finish()?;
    let places = |labels: &[DynamicLabel]| labels.iter().map(|l| finished.place(*l)).collect();
    let starts: Option<Vec<usize>> = places(&emitter.functions);
    let entries = lowered.functions().iter().map(|function| function.entry);
    let entry_points = emitter.entry_points;
    let position = |label| finished.place(label);
    Some(Emitted {
        entry_points: EntryPoints {
            function: position(entry_points.function)?,
            main: position(entry_points.main)?,
            tail: position(entry_points.tail)?,
            in_place: position(entry_points.in_place)?,
        },
        entries: entries.zip(starts?).collect(),
        ops: finished.noted,
        bytes: finished.bytes,
    })
}

impl Emitter<'_> {
    /// Emits the code of the operation at `at`, or of a fused one; returns the operation
    /// after it.
    pub(super) fn one(&mut self, at: Target) -> Option<Target> {
        if self.loops.is_target(at) {
            self.held = None;
        }
        self.begin(at);
        if let Some(end) = self.logarithm(at) {
            return Some(end);
        }
        self.code_of(at)
    }

    /// Emits the code of a binary logarithm that begins at an operation, if instructions are
    /// not counted; returns the operation after it.
    fn logarithm(&mut self, at: Target) -> Option<Target> {
        if self.counts.is_on || self.round.is_some() {
            return None;
        }
        let found = self.lowered.logarithm(at)?;
        let input = found.input;
        let (dst, notes) = (host(found.dst)?, Notes::empty());
        let copy = found.copy.unwrap_or(found.dst);
        self.alu(AluOp::Mov, input.width, copy, input.src.into(), notes);
        if let Some(divisor) = input.divisor {
            let by = Operand::Imm(divisor);
            self.alu(AluOp::Div, input.width, copy, by, notes);
        }
        if copy != found.dst {
            self.alu(AluOp::Mov, Width::W64, found.dst, copy.into(), notes);
        }
        asm!(self ; or Rq(dst), 1 ; bsr Rq(dst), Rq(dst));
        if found.plus > 0 {
            asm!(self ; add Rd(dst), found.plus);
        }
        for (reg, number) in &found.numbers {
            if let Some(reg) = host(*reg) {
                self.constant(reg, *number);
            }
        }
        if found.end != found.dead {
            let end = self.label(found.end);
            asm!(self ; jmp =>end);
        }
        for inner in at + 1..found.dead {
            self.begin(inner);
        }
        self.held = None;
        Some(found.dead)
    }

    /// The same without its label.
    #[inline(always)]
    pub(super) fn code_of(&mut self, at: Target) -> Option<Target> {
        let fused = self.lowered.fused(at);
        if let Some((fused, count)) = fused
            && self.fused(at, at + Target::from(count), fused)
        {
            let end = at + Target::from(count);
            // No jump leads into it; a listing shows all of it at the first one.
            for inner in at + 1..end {
                self.begin(inner);
            }
            if self.held.is_some() && !self.fused_keeps(fused) {
                self.held = None;
            }
            return Some(end);
        }
        let op = self.lowered.ops().get(at as usize)?;
        self.op(at, op);
        if self.held.is_some() && !self.keeps(op) {
            self.held = None;
        }
        Some(at + 1)
    }

    /// Emits the code of an operation, and of the edge to the next one.
    #[inline(always)]
    fn op(&mut self, at: Target, op: &Op) {
        let mut has_code = true;
        let notes = self.lowered.note(at);
        let width_of = |width| match notes.contains(Notes::NARROW) {
            true => Width::W32,
            false => width,
        };
        match *op {
            _ if notes.contains(Notes::NO_EFFECT) => {}
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => self.alu(op, width_of(width), dst, src, notes),
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => self.movsx(width_of(width), from, dst, src),
            Op::Neg { width, dst } => self.neg(width_of(width), dst),
            Op::Endian { op, size, dst } => self.endian(op, size, dst),
            Op::LoadImm { dst, value } => {
                if let Some(dst) = host(dst) {
                    self.constant(dst, value);
                }
            }
            Op::Load { size, dst, mem, .. } => has_code = self.load(at, size, dst, mem),
            Op::LoadSx { from, dst, mem } => has_code = self.load_signed(at, from, dst, mem),
            Op::Store { size, mem, src, .. } => has_code = self.store(at, size, mem, src),
            Op::Atomic {
                op,
                width,
                mem,
                src,
            } => has_code = self.atomic(at, op, width, mem, src),
            Op::LoadPointer { size, dst, off } => {
                has_code = self.load_pointer(at, size, dst, off);
            }
            Op::Cast { dst, src, to_user } => has_code = self.cast(dst, src, to_user),
            Op::LoadPacket { .. } => has_code = false,
            Op::MayGoto { target } => self.may_goto(at, target),
            Op::Lookup { map, key, is_there } => has_code = self.look_up(at, map, key, is_there),
            Op::Known { which } => self.load_field(RAX, Self::known(which)),
            Op::Jump { target } => return self.jump(at, target),
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => return self.jump_if(at, op, width_of(width), (dst, src), target),
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
        self.fall(at, at + 1);
    }
}
