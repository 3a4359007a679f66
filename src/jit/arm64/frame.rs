//! Entering and leaving functions.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::call::WRITABLE;
use super::emitter::{Emitter, asm};
use super::memory::field;
use super::regs::{CONTEXT, DELTAS, FRAME, LEFT, RUN, X0, X1, host};
use crate::interp::{DONE, STOPPED};
use crate::isa::Reg;
use crate::jit::labels::{Ends, Stub};
use crate::jit::layout;
use crate::jit::runtime::shims;
use crate::lower::{Function, Target};
use crate::spec::limits::STACK_SIZE;

impl Emitter<'_> {
    /// The way from Rust into a function: the run and the function are its arguments.
    pub(super) fn trampoline(&mut self) {
        asm!(self
            ; stp x29, x30, [sp, -48]!
            ; mov x29, sp
            ; stp X(RUN), X(LEFT), [sp, 16]
            ; stp X(CONTEXT), X(DELTAS), [sp, 32]
            ; mov X(RUN), X(X0)
        );
        self.load_from(CONTEXT, field(layout::CONTEXT));
        self.load_from(DELTAS, field(layout::DELTAS));
        asm!(self
            ; blr X(X1)
            ; ldp X(CONTEXT), X(DELTAS), [sp, 32]
            ; ldp X(RUN), X(LEFT), [sp, 16]
            ; ldp x29, x30, [sp], 48
            ; ret
        );
    }

    /// The start of a function, whose frame was made.
    pub(super) fn enter(&mut self, function: &Function) {
        self.labels.ends = Ends::new(&mut self.code);
        asm!(self ; stp x29, x30, [sp, -64]! ; mov x29, sp);
        for (first, second, at) in SAVED {
            asm!(self ; stp X(first), X(second), [sp, at]);
        }
        self.load_from(FRAME, field(layout::FRAME_END));
        self.add(FRAME, FRAME, -(STACK_SIZE as i64));
        self.reload(&Reg::ARGUMENTS);
        self.reload(&[Reg::R10]);
        self.hear_left(self.counts.before(function.entry));
        self.look(function.entry);
    }

    /// Gives the caller its registers back.
    pub(super) fn restore(&mut self) {
        for (first, second, at) in SAVED {
            asm!(self ; ldp X(first), X(second), [sp, at]);
        }
        asm!(self ; ldp x29, x30, [sp], 64);
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        self.spill(&[Reg::R0]);
        self.tell_left(self.counts.during(at));
        let leave = self.labels.ends.leave;
        asm!(self ; b =>leave);
    }

    /// The ends of a function, and what was put off.
    pub(super) fn finish(&mut self) {
        let Ends { leave, back, stop } = self.labels.ends;
        asm!(self ; =>leave ; mov X(X0), X(RUN));
        self.call_host(shims::leave as *const () as usize);
        asm!(self ; movz W(X0), DONE ; =>back);
        self.restore();
        asm!(self ; ret ; =>stop ; movz W(X0), STOPPED ; b =>back);
        self.stubs();
    }

    /// Code that was put off.
    pub(super) fn put_off(&mut self, stub: Stub) {
        match stub {
            Stub::Bail(at) => self.bail(at),
            Stub::Edge { from, to } => self.jump(from, to),
            Stub::Step(at) => {
                self.step(at);
                self.follow(at);
            }
            Stub::Stop => {
                let stop = self.labels.ends.stop;
                asm!(self ; b =>stop);
            }
        }
    }

    /// The interpreter goes on before an operation, to the function's end.
    fn bail(&mut self, at: Target) {
        self.spill(&WRITABLE);
        self.tell_left(self.counts.before(at));
        self.run_and(at);
        self.call_host(shims::finish as *const () as usize);
        let back = self.labels.ends.back;
        asm!(self ; b =>back);
    }

    /// On after an operation.
    fn follow(&mut self, at: Target) {
        self.take(self.counts.edge(at, at + 1));
        let next = self.labels.op(at + 1);
        asm!(self ; b =>next);
    }
}

/// What a function keeps for its caller, and where, from the stack pointer on.
const SAVED: [(u8, u8, i32); 3] = [
    (host(Reg::R6), host(Reg::R7), 16),
    (host(Reg::R8), host(Reg::R9), 32),
    (host(Reg::R10), FRAME, 48),
];
