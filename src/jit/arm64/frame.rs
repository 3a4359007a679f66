//! Entering and leaving functions.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::call::WRITABLE;
use super::emitter::{Emitter, asm};
use super::labels::{Ends, Stub};
use super::memory::{At, Off, field};
use super::regs::{CONTEXT, DELTAS, FIRST, FRAME, LEFT, RUN, SHARED, X0, X1, X2, X3, X4, host};
use crate::engine::{STRIDE, in_head};
use crate::isa::Reg;
use crate::jit::emitted::EntryPoints;
use crate::jit::layout;
use crate::jit::runtime::shims;
use crate::lower::{Function, Op, Target, has_tail_call};
use crate::spec::limits::{MAX_MAY_GOTO, STACK_SIZE};

impl Emitter<'_> {
    /// Emits the entry points from Rust, or from another program, and returns their
    /// offsets. The arguments are the run, the function, the number of instructions left, the
    /// caller's end of frame, and r1.
    pub(super) fn emit_entry_points(&mut self, main: &Function) -> EntryPoints<usize> {
        let before = self.counts.before(main.entry);
        let function = self.offset();
        self.survey(main, true);
        asm!(self ; stp x29, x30, [sp, -112]! ; mov x29, sp);
        for (first, second, at) in KEPT {
            asm!(self ; stp X(first), X(second), [sp, at]);
        }
        asm!(self ; mov X(RUN), X(X0) ; mov X(SHARED), X(X1));
        if self.counts.is_on {
            self.add(LEFT, X2, before.into());
        }
        self.add(FRAME, X3, -(STACK_SIZE as i64));
        self.store_to(X4, field(layout::saved(Reg::R1)));
        self.load_from(FIRST, field(layout::UNWIND));
        asm!(self ; str X(FIRST), [sp, 96] ; mov XSP(FIRST), sp);
        self.store_to(FIRST, field(layout::UNWIND));
        self.load_from(CONTEXT, field(layout::CONTEXT));
        self.load_from(DELTAS, field(layout::DELTAS));
        self.reload(&Reg::ARGUMENTS);
        let back = self.return_to_rust;
        // A program may leave r0 unwritten where its function returns nothing (struct_ops).
        asm!(self
            ; movz X(host(Reg::R0)), 0
            ; blr X(SHARED)
            ; =>back
            ; mov X(X0), X(host(Reg::R0))
            ; mov X(X1), X(LEFT)
            ; ldr X(FIRST), [sp, 96]
        );
        self.store_to(FIRST, field(layout::UNWIND));
        for (first, second, at) in KEPT {
            asm!(self ; ldp X(first), X(second), [sp, at]);
        }
        asm!(self ; ldp x29, x30, [sp], 112 ; ret);

        let tail = self.offset();
        self.reload(&[Reg::R1]);
        self.load_left(before);
        self.make_frame();
        let in_place = self.in_place;
        asm!(self ; b =>in_place);
        EntryPoints {
            function,
            main: function,
            tail,
            in_place: function,
        }
    }

    /// Determines what a function has to save for its caller.
    fn survey(&mut self, function: &Function, is_main: bool) {
        (self.is_main, self.frame_escapes) = (is_main, function.frame_escapes);
        let registers = self.lowered.registers_of(function);
        let (reads, writes) = (registers.reads, registers.writes);
        self.has_number = reads.contains(Reg::R10);
        self.kept.clear();
        // The entry point of the main program saves its caller's registers.
        if !is_main {
            let written = [Reg::R6, Reg::R7, Reg::R8, Reg::R9];
            let written = written.into_iter().filter(|reg| writes.contains(*reg));
            let number = self.has_number.then_some(Reg::R10);
            self.kept.extend(written.chain(number).map(host));
        }
    }

    /// The start of a function.
    pub(super) fn enter(&mut self, function: &Function, is_main: bool) {
        self.labels.ends = Ends::new(&mut self.code);
        self.survey(function, is_main);
        self.make_frame();
        for &(from, to) in &function.zeroed {
            let (mut at, to) = (start_of(from), start_of(to));
            while at + 16 <= to {
                asm!(self ; stp xzr, xzr, [X(FRAME), at]);
                at += 16;
            }
            if at < to {
                asm!(self ; str xzr, [X(FRAME), at.cast_unsigned()]);
            }
        }
        let ops = self.lowered.ops_of(function);
        if has_tail_call(ops) {
            self.set_head(in_head!(clean), function.stack.into());
        }
        if is_main {
            let in_place = self.in_place;
            asm!(self ; =>in_place);
        }
        if ops.iter().any(|op| matches!(op, Op::MayGoto { .. })) {
            self.set_head(in_head!(loops_left), MAX_MAY_GOTO);
        }
        if self.counts.is_on {
            asm!(self ; tst X(LEFT), X(LEFT));
            self.bail_if_few(function.entry);
        }
    }

    /// Saves the caller's registers, and moves on to the next frame.
    fn make_frame(&mut self) {
        let size = self.kept_bytes();
        asm!(self ; stp x29, x30, [sp, -size]! ; mov x29, sp);
        for (regs, at) in self.kept.clone().chunks(2).zip((16..).step_by(16)) {
            match *regs {
                [first, second] => asm!(self ; stp X(first), X(second), [sp, at]),
                [one] => asm!(self ; str X(one), [sp, at.cast_unsigned()]),
                _ => {}
            }
        }
        self.add(FRAME, FRAME, -(STRIDE as i64));
        if self.has_number {
            self.load_from(host(Reg::R10), head(in_head!(number)));
        }
    }

    /// The bytes that a function uses of the host's stack, a multiple of 16.
    fn kept_bytes(&self) -> i32 {
        16 + 16 * self.kept.len().div_ceil(2) as i32
    }

    /// Sets a field of the frame's head.
    fn set_head(&mut self, at: usize, value: u32) {
        self.constant(FIRST, value.into());
        asm!(self ; str W(FIRST), [X(FRAME), (STACK_SIZE + at) as u32]);
    }

    /// Restores the caller's registers and frame.
    pub(super) fn restore(&mut self) {
        for (regs, at) in self.kept.clone().chunks(2).zip((16..).step_by(16)) {
            match *regs {
                [first, second] => asm!(self ; ldp X(first), X(second), [sp, at]),
                [one] => asm!(self ; ldr X(one), [sp, at.cast_unsigned()]),
                _ => {}
            }
        }
        self.add(FRAME, FRAME, STRIDE as i64);
        let size = self.kept_bytes();
        asm!(self ; ldp x29, x30, [sp], size);
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        self.take(self.counts.during(at));
        if self.frame_escapes {
            let leave = self.labels.ends.leave;
            asm!(self ; b =>leave);
        } else {
            self.restore();
            asm!(self ; ret);
        }
    }

    /// Emits the ends of a function, and the waiting stubs.
    pub(super) fn finish(&mut self) {
        let Ends { leave, back, stop } = self.labels.ends;
        asm!(self ; =>leave);
        if self.frame_escapes {
            self.store_left(0);
            asm!(self ; mov X(X0), X(RUN) ; mov X(X1), X(host(Reg::R0)));
            self.call_host(shims::leave as *const () as usize);
            asm!(self ; mov X(host(Reg::R0)), X(X0));
        } else if self.counts.is_on {
            self.store_to(LEFT, field(layout::LEFT));
        }
        asm!(self ; =>back);
        self.load_left(0);
        self.restore();
        let return_to_rust = self.return_to_rust;
        asm!(self ; ret ; =>stop);
        self.load_left(0);
        self.load_from(FIRST, field(layout::UNWIND));
        asm!(self ; mov sp, XSP(FIRST) ; b =>return_to_rust);
        self.stubs();
    }

    /// Emits a stub.
    pub(super) fn emit_stub(&mut self, stub: Stub) {
        match stub {
            Stub::Bail(at) => self.bail(at),
            Stub::Edge { from, to } => self.jump(from, to),
            Stub::Step(at) => {
                self.step(at);
                self.follow(at);
            }
            Stub::Plain { at, n } => {
                self.plain(at, n);
                let next = self.labels.op(at + Target::from(n));
                asm!(self ; b =>next);
            }
            Stub::Stop => {
                let stop = self.labels.ends.stop;
                asm!(self ; b =>stop);
            }
        }
    }

    /// Bails out: the interpreter continues before an operation, to the function's end.
    fn bail(&mut self, at: Target) {
        self.spill(&WRITABLE);
        self.store_left(self.counts.before(at));
        self.run_and(at);
        self.call_host(shims::finish as *const () as usize);
        let (back, stop) = (self.labels.ends.back, self.stop());
        asm!(self ; cbnz X(X1), =>stop ; mov X(host(Reg::R0)), X(X0) ; b =>back);
    }

    /// Continues after an operation.
    fn follow(&mut self, at: Target) {
        self.take(self.counts.edge(at, at + 1));
        let next = self.labels.op(at + 1);
        asm!(self ; b =>next);
    }
}

/// The address of a field of the frame's head.
const fn head(at: usize) -> At {
    At {
        base: FRAME,
        off: Off::Imm((STACK_SIZE + at) as i32),
    }
}

/// The offset from the frame's start of a byte below its end.
fn start_of(below: u16) -> i32 {
    STACK_SIZE as i32 - i32::from(below)
}

/// The callee-saved registers of Rust's convention, and where the entry code saves them.
const KEPT: [(u8, u8, i32); 5] = [
    (19, 20, 16),
    (21, 22, 32),
    (23, 24, 48),
    (25, 26, 64),
    (27, 28, 80),
];
