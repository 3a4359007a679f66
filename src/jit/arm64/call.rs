//! Helpers, functions, tail calls, and operations without code of their own.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, asm};
use super::labels::Stub;
use super::memory::field;
use super::regs::{FIRST, FRAME, LEFT, RUN, SECOND, SHARED, SHARED_TOO, X0, X1, X2, host};
use crate::engine::fast::held_pointer;
use crate::isa::{Reg, Size};
use crate::jit::layout;
use crate::jit::runtime::{AWAY, ON, shims};
use crate::lower::{Op, Target};
use crate::spec::limits::STACK_SIZE;

/// The registers that a call may change.
const SCRATCH: [Reg; 6] = [Reg::R0, Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];
/// All registers that a program can write.
pub(super) const WRITABLE: [Reg; 10] = [
    Reg::R0,
    Reg::R1,
    Reg::R2,
    Reg::R3,
    Reg::R4,
    Reg::R5,
    Reg::R6,
    Reg::R7,
    Reg::R8,
    Reg::R9,
];

/// Pairs of registers are loaded and stored at most this far into the run.
const _: () = assert!(layout::saved(Reg::R10) <= 63 * 8);

/// One register, or two that are adjacent in the run.
fn pair(regs: &[Reg]) -> Option<(Reg, Reg)> {
    match *regs {
        [first, second] if first.number() + 1 == second.number() => Some((first, second)),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Stores registers to the run.
    pub(super) fn spill(&mut self, regs: &[Reg]) {
        for regs in regs.chunks(2) {
            if let Some((first, second)) = pair(regs) {
                let (at, first, second) = (layout::saved(first), host(first), host(second));
                asm!(self ; stp X(first), X(second), [X(RUN), at]);
                continue;
            }
            for reg in regs {
                self.store_to(host(*reg), field(layout::saved(*reg)));
            }
        }
    }

    /// Loads registers from the run.
    pub(super) fn reload(&mut self, regs: &[Reg]) {
        for regs in regs.chunks(2) {
            if let Some((first, second)) = pair(regs) {
                let (at, first, second) = (layout::saved(first), host(first), host(second));
                asm!(self ; ldp X(first), X(second), [X(RUN), at]);
                continue;
            }
            for reg in regs {
                self.load_from(host(*reg), field(layout::saved(*reg)));
            }
        }
    }

    /// Stores the end of the frame, and the number of instructions left, to the run: the
    /// register's value minus `phase`.
    pub(super) fn store_left(&mut self, phase: i32) {
        if self.counts.is_on {
            self.add(SECOND, LEFT, -i64::from(phase));
            self.store_to(SECOND, field(layout::LEFT));
        }
        self.store_frame_end();
    }

    /// Stores the end of the frame to the run.
    fn store_frame_end(&mut self) {
        self.add(SECOND, FRAME, STACK_SIZE as i64);
        self.store_to(SECOND, field(layout::FRAME_END));
    }

    /// Loads the number of instructions left from the run, plus `phase`.
    pub(super) fn load_left(&mut self, phase: i32) {
        if self.counts.is_on {
            self.load_from(LEFT, field(layout::LEFT));
            self.add(LEFT, LEFT, phase.into());
        }
    }

    /// Bails out to the interpreter before an operation if the flags say that few
    /// instructions are left.
    pub(super) fn bail_if_few(&mut self, at: Target) {
        let bail = self.stub(Stub::Bail(at));
        asm!(self ; b.mi =>bail);
    }

    /// Checks the budget after a call that may have used up instructions. The next
    /// operation's phase holds from here on.
    fn check_budget_after(&mut self, at: Target) {
        if self.counts.is_on {
            self.take_and_test(-self.counts.before(at + 1));
            self.bail_if_few(at + 1);
        }
    }

    /// Sets the first two arguments of a call: the run and the operation.
    pub(super) fn run_and(&mut self, at: Target) {
        asm!(self ; mov X(X0), X(RUN));
        self.constant(X1, at.into());
    }

    /// `dst` = the pointer that a context field loads as.
    pub(super) fn load_pointer(&mut self, at: Target, size: Size, dst: Reg, off: u16) {
        if let Some((number, or_null)) = held_pointer(self.lowered, off, size) {
            let dst = host(dst);
            self.load_from(dst, field(layout::pointer(number)));
            if or_null {
                let judged = self.stub(Stub::Step(at));
                asm!(self ; cbz X(dst), =>judged);
            }
            return;
        }
        self.spill(&SCRATCH);
        self.run_and(off.into());
        self.constant(X2, size.bytes().into());
        self.call_host(shims::pointer as *const () as usize);
        asm!(self ; mov X(FIRST), X(X0));
        self.reload(&SCRATCH);
        let (judged, dst) = (self.stub(Stub::Step(at)), host(dst));
        asm!(self ; cbz X(FIRST), =>judged ; mov X(dst), X(FIRST));
    }

    /// A helper call.
    pub(super) fn call_helper(&mut self, at: Target, helper: u16) {
        self.helper(at, helper);
        let stop = self.stop();
        asm!(self ; cbnz X(X1), =>stop ; mov X(host(Reg::R0)), X(X0));
        self.load_left(0);
        self.check_budget_after(at);
    }

    /// A call of a helper that stops the run.
    pub(super) fn throw(&mut self, at: Target, helper: u16) {
        self.helper(at, helper);
        let stop = self.stop();
        asm!(self ; b =>stop);
    }

    /// Calls a helper: the arguments are already in the host's argument registers.
    fn helper(&mut self, at: Target, helper: u16) {
        self.store_left(self.counts.during(at));
        asm!(self ; mov x5, X(RUN));
        self.constant(6, at.into());
        self.constant(7, helper.into());
        self.call_host(shims::helper as *const () as usize);
    }

    /// A call of a function.
    pub(super) fn call_function(&mut self, at: Target, function: u16) {
        let entry = self.lowered.functions().get(usize::from(function));
        let (Some(callee), Some(entry)) = (self.labels.function(function), entry) else {
            return;
        };
        self.take(self.counts.edge(at, entry.entry));
        asm!(self ; bl =>callee);
        self.check_budget_after(at);
    }

    /// A tail call.
    pub(super) fn tail_call(&mut self, at: Target) {
        self.spill(&SCRATCH);
        self.store_left(self.counts.during(at));
        self.run_and(at);
        self.constant(X2, self.is_main.into());
        self.call_host(shims::tail_call as *const () as usize);
        let (back, stop) = (self.labels.ends.back, self.stop());
        let (follow, there) = (self.code.new_dynamic_label(), self.code.new_dynamic_label());
        asm!(self
            ; cmp XSP(X1), ON as u32
            ; b.eq =>follow
            ; b.hi =>there
            ; cbnz X(X1), =>stop
            ; mov X(host(Reg::R0)), X(X0)
            ; b =>back
            ; =>there
            ; mov X(SHARED), X(X0)
        );
        self.restore();
        asm!(self ; br X(SHARED) ; =>follow);
        self.reload(&SCRATCH);
        self.load_left(0);
        self.check_budget_after(at);
    }

    /// The code that all steps share. Arguments: the operation in [`SHARED`], and what to
    /// subtract from the count meanwhile in [`SHARED_TOO`]. Afterwards the status is in
    /// [`SHARED`], and the flags say whether the next operation follows.
    pub(super) fn shared_step(&mut self) {
        let step = self.step;
        asm!(self
            ; =>step
            ; stp x29, x30, [sp, -32]!
            ; mov x29, sp
            ; str X(SHARED_TOO), [sp, 16]
        );
        if self.counts.is_on {
            asm!(self ; sub X(SECOND), X(LEFT), X(SHARED_TOO));
            self.store_to(SECOND, field(layout::LEFT));
        }
        self.store_frame_end();
        self.spill(&WRITABLE);
        asm!(self ; mov X(X0), X(RUN) ; mov W(X1), W(SHARED));
        self.call_host(shims::step as *const () as usize);
        asm!(self ; mov W(SHARED), W(X0));
        self.reload(&WRITABLE);
        if self.counts.is_on {
            self.load_from(LEFT, field(layout::LEFT));
            asm!(self
                ; ldr X(SHARED_TOO), [sp, 16]
                ; add X(LEFT), X(LEFT), X(SHARED_TOO)
            );
        }
        asm!(self
            ; ldp x29, x30, [sp], 32
            ; ret
        );
    }

    /// Executes an operation by the interpreter's step, then continues after it.
    pub(super) fn step(&mut self, at: Target) {
        let step = self.step;
        self.constant(SHARED, at.into());
        let during = i64::from(self.counts.during(at));
        self.constant(SHARED_TOO, during.cast_unsigned());
        asm!(self ; bl =>step);
        let follow = self.code.new_dynamic_label();
        match self.lowered.ops().get(at as usize) {
            Some(Op::LoadPacket { .. }) => {
                let leave = self.labels.ends.leave;
                asm!(self ; cmp WSP(SHARED), AWAY as u32 ; b.ne =>follow);
                self.take(self.counts.during(at));
                asm!(self ; b =>leave);
            }
            _ => {
                let stop = self.stop();
                asm!(self ; cbnz W(SHARED), =>stop);
            }
        }
        asm!(self ; =>follow);
    }
}
