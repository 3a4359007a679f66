//! Entering and leaving functions.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Ends, Stub, asm};
use super::regs::{FRAME, R13, R14, R15, RBX, RUN};
use crate::interp::{DONE, STOPPED};
use crate::isa::Reg;
use crate::jit::runtime::shims;
use crate::lower::{Function, Target};

impl Emitter<'_> {
    /// The way from Rust into a function: the run is in `rdi`, the function in `rsi`.
    pub(super) fn trampoline(&mut self) {
        asm!(self
            ; push Rq(RUN)
            ; mov Rq(RUN), rdi
            ; call rsi
            ; pop Rq(RUN)
            ; ret
        );
    }

    /// The start of a function, whose frame was made.
    pub(super) fn enter(&mut self, function: &Function) {
        self.ends = Ends {
            leave: self.code.new_dynamic_label(),
            back: self.code.new_dynamic_label(),
            stop: self.code.new_dynamic_label(),
        };
        // With the return address these keep the host's stack aligned to 16 bytes.
        asm!(self
            ; push Rq(FRAME)
            ; push Rq(RBX)
            ; push Rq(R13)
            ; push Rq(R14)
            ; push Rq(R15)
            ; mov Rq(FRAME), [Rq(RUN) + Self::frame_end()]
        );
        self.reload(&Reg::ARGUMENTS);
        self.load_pins();
        let bail = self.stub(Stub::Bail(function.entry));
        self.hear_left(self.counts.before(function.entry));
        asm!(self ; js =>bail);
    }

    /// Gives the caller its registers back.
    pub(super) fn restore(&mut self) {
        asm!(self
            ; pop Rq(R15)
            ; pop Rq(R14)
            ; pop Rq(R13)
            ; pop Rq(RBX)
            ; pop Rq(FRAME)
        );
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        self.spill(&[Reg::R0]);
        self.tell_left(self.counts.during(at));
        let leave = self.ends.leave;
        asm!(self ; jmp =>leave);
    }

    /// The ends of a function, and what was put off.
    pub(super) fn finish(&mut self) {
        let Ends { leave, back, stop } = self.ends;
        asm!(self ; =>leave ; mov rdi, Rq(RUN));
        self.call_host(shims::leave as *const () as usize);
        asm!(self ; mov eax, DONE.cast_signed() ; =>back);
        self.restore();
        asm!(self ; ret ; =>stop ; mov eax, STOPPED.cast_signed() ; jmp =>back);
        // Code that is put off may put off more.
        while let Some((label, stub)) = self.stubs.pop() {
            asm!(self ; =>label);
            match stub {
                Stub::Bail(at) => self.bail(at),
                Stub::Edge { taken, label } => self.go(taken, label),
                Stub::Step(at) => {
                    self.step(at);
                    self.follow(at);
                }
                Stub::Division { division, by, back } => {
                    self.by_special(division, by);
                    asm!(self ; jmp =>back);
                }
                Stub::Nothing { back } => asm!(self ; xor eax, eax ; jmp =>back),
            }
        }
    }

    /// The interpreter goes on before an operation, to the function's end.
    fn bail(&mut self, at: Target) {
        self.spill(&Reg::ALL);
        self.tell_left(self.counts.before(at));
        asm!(self ; mov rdi, Rq(RUN) ; mov esi, at.cast_signed());
        self.call_host(shims::finish as *const () as usize);
        let back = self.ends.back;
        asm!(self ; jmp =>back);
    }

    /// On after an operation.
    fn follow(&mut self, at: Target) {
        self.fall(at, at + 1);
        let next = self.label(at + 1);
        asm!(self ; jmp =>next);
    }
}
