//! Helpers, functions, tail calls, and operations without code of their own.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Ends, Stub, asm};
use super::operand::{At, Digit, Opcode};
use super::regs::{FIRST, FRAME, LEFT, RAX, RUN, SECOND, host};
use crate::engine::fast::held_pointer;
use crate::isa::{Reg, Size, Width};
use crate::jit::runtime::{AWAY, ON, STOPPED, shims};
use crate::lower::{Op, Target};

/// The registers that a call may change.
const SCRATCH: [Reg; 6] = [Reg::R0, Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];

impl Emitter<'_> {
    /// Stores registers to the run.
    pub(super) fn spill(&mut self, regs: &[Reg]) {
        for reg in regs {
            if let Some(host) = host(*reg) {
                asm!(self ; mov [Rq(RUN) + Self::saved(*reg)], Rq(host));
            }
        }
    }

    /// Loads registers from the run.
    pub(super) fn reload(&mut self, regs: &[Reg]) {
        for reg in regs {
            if let Some(host) = host(*reg) {
                asm!(self ; mov Rq(host), [Rq(RUN) + Self::saved(*reg)]);
            }
        }
    }

    /// Stores the end of the frame, and the number of instructions left, to the run: the
    /// register's value minus `phase`.
    pub(super) fn store_left(&mut self, phase: i32) {
        if self.counts.is_on {
            self.with_memory(Opcode::LEA, SECOND, At::new(LEFT, -phase));
            asm!(self ; mov [Rq(RUN) + Self::left()], Rq(SECOND));
        }
        asm!(self ; mov [Rq(RUN) + Self::frame_end()], Rq(FRAME));
    }

    /// Loads the number of instructions left from the run, plus `phase`; sets the sign flag
    /// if the sum is negative.
    pub(super) fn load_left(&mut self, phase: i32) {
        if self.counts.is_on {
            asm!(self ; mov Rq(LEFT), [Rq(RUN) + Self::left()] ; add Rq(LEFT), phase);
        }
    }

    /// Stores the count's register to the run.
    pub(super) fn keep_left(&mut self) {
        if self.counts.is_on {
            asm!(self ; mov [Rq(RUN) + Self::left()], Rq(LEFT));
        }
    }

    /// Loads the count's register from the run.
    pub(super) fn reload_left(&mut self) {
        if self.counts.is_on {
            asm!(self ; mov Rq(LEFT), [Rq(RUN) + Self::left()]);
        }
    }

    /// Checks the budget after a call that may have used up instructions: bails out if few
    /// are left. The next operation's phase holds from here on.
    fn check_budget_after(&mut self, at: Target) {
        if !self.counts.is_on {
            return;
        }
        let bail = self.stub(Stub::Bail(at + 1));
        self.load_left(self.counts.before(at + 1));
        asm!(self ; js =>bail);
    }

    /// `dst` = the pointer that a context field loads as.
    pub(super) fn load_pointer(&mut self, at: Target, size: Size, dst: Reg, off: u16) -> bool {
        let Some(dst) = host(dst) else {
            return false;
        };
        if let Some((number, or_null)) = held_pointer(self.lowered, off, size) {
            self.load_field(dst, Self::pointer(number));
            if or_null {
                let judged = self.stub(Stub::Step(at));
                asm!(self ; test Rq(dst), Rq(dst) ; jz =>judged);
            }
            return true;
        }
        self.spill(&SCRATCH);
        self.keep_left();
        asm!(self
            ; mov rdi, Rq(RUN)
            ; mov esi, i32::from(off)
            ; mov edx, i32::from(size.bytes())
        );
        self.call_host(shims::pointer as *const () as usize);
        asm!(self ; mov Rq(FIRST), rax);
        self.reload(&SCRATCH);
        let judged = self.stub(Stub::Step(at));
        self.reload_left();
        asm!(self
            ; test Rq(FIRST), Rq(FIRST)
            ; jz =>judged
            ; mov Rq(dst), Rq(FIRST)
        );
        true
    }

    /// A call of a helper.
    pub(super) fn call_helper(&mut self, at: Target, helper: u16) {
        self.helper(at, helper);
        let stop = self.ends.stop;
        asm!(self ; test edx, edx ; jnz =>stop);
        self.check_budget_after(at);
    }

    /// A call of a helper that stops the run.
    pub(super) fn throw(&mut self, at: Target, helper: u16) {
        self.helper(at, helper);
        let stop = self.ends.stop;
        asm!(self ; jmp =>stop);
    }

    fn helper(&mut self, at: Target, helper: u16) {
        self.store_left(self.counts.during(at));
        // The arguments are already in the host's argument registers. A function that calls
        // helpers keeps the stack aligned.
        asm!(self
            ; mov r9, Rq(RUN)
            ; push i32::from(helper)
            ; push at.cast_signed()
        );
        self.call_host(shims::helper as *const () as usize);
        asm!(self ; add rsp, 16);
    }

    /// A call of a function.
    pub(super) fn call_function(&mut self, at: Target, function: u16) {
        let callee = self.functions.get(usize::from(function)).copied();
        let entry = self.lowered.functions().get(usize::from(function));
        let (Some(callee), Some(entry)) = (callee, entry) else {
            return;
        };
        if !self.counts.is_on {
            return asm!(self ; call =>callee);
        }
        let edge = self.counts.edge(at, entry.entry);
        self.take(edge);
        if edge == 0 {
            asm!(self ; test Rq(LEFT), Rq(LEFT));
        }
        asm!(self ; call =>callee);
        let bail = self.stub(Stub::Bail(at + 1));
        self.with_immediate(Digit::ADD, Width::W64, LEFT, self.counts.before(at + 1));
        asm!(self ; js =>bail);
    }

    /// A tail call.
    pub(super) fn tail_call(&mut self, at: Target) {
        self.spill(&SCRATCH);
        self.store_left(self.counts.during(at));
        asm!(self
            ; mov rdi, Rq(RUN)
            ; mov esi, at.cast_signed()
            ; mov edx, i32::from(self.is_main)
        );
        self.call_host(shims::tail_call as *const () as usize);
        let (Ends { back, stop, .. }, follow) = (self.ends, self.code.new_dynamic_label());
        asm!(self
            ; cmp edx, ON as i32
            ; je =>follow
            ; test edx, edx
            ; jz =>back
            ; cmp edx, STOPPED as i32
            ; je =>stop
        );
        self.leave_to(RAX);
        asm!(self ; =>follow);
        self.reload(&SCRATCH);
        self.check_budget_after(at);
    }

    /// Continues with the next operation as long as the frame has loops left.
    pub(super) fn may_goto(&mut self, at: Target, target: Target) {
        let (loops_left, follow) = (Self::loops_left(), self.code.new_dynamic_label());
        asm!(self
            ; mov Rd(FIRST), [Rq(FRAME) + loops_left]
            ; sub Rd(FIRST), 1
            ; jnc =>follow
        );
        self.jump(at, target);
        asm!(self ; =>follow ; mov [Rq(FRAME) + loops_left], Rd(FIRST));
    }

    /// Executes an operation by the interpreter's step, then continues after it.
    pub(super) fn step(&mut self, at: Target) {
        self.spill(&Reg::ALL);
        self.store_left(self.counts.during(at));
        asm!(self ; mov rdi, Rq(RUN) ; mov esi, at.cast_signed());
        self.call_host(shims::step as *const () as usize);
        let Ends { back, stop, .. } = self.ends;
        if let Some(Op::LoadPacket { .. }) = self.lowered.ops().get(at as usize) {
            let follow = self.code.new_dynamic_label();
            asm!(self ; cmp eax, AWAY as i32 ; jne =>follow);
            self.reload(&[Reg::R0]);
            if self.frame_escapes {
                let leave = self.ends.leave;
                self.reload_left();
                asm!(self ; jmp =>leave);
            } else {
                asm!(self ; jmp =>back);
            }
            asm!(self ; =>follow);
        }
        asm!(self ; test eax, eax ; jnz =>stop);
        self.reload(&Reg::ALL);
        self.load_left(self.counts.during(at));
    }
}
