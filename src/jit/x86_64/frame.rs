//! Entering and leaving functions; `jit/runtime.rs` has the convention.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Ends, Stub, asm};
use super::operand::{At, Opcode};
use super::regs::{FIRST, FRAME, Host, LEFT, R13, R14, R15, RBX, RUN};
use crate::engine::STRIDE;
use crate::isa::{Reg, Size};
use crate::jit::runtime::shims;
use crate::lower::{Function, Op, Target};
use crate::spec::limits::MAX_MAY_GOTO;

/// The callee-saved registers of Rust's convention, besides those that always change.
const KEPT: [Host; 4] = [RBX, R13, R14, R15];
/// Up to this many bytes are zeroed by single stores; more by a loop.
const UNROLLED: i32 = 256;

impl Emitter<'_> {
    /// Emits the entry points from Rust, or from another program; `main` is the first
    /// function. The run is in `rdi`, the function in `rsi`.
    pub(super) fn emit_entry_points(&mut self, main: &Function) {
        let entry_points = self.entry_points;
        let before = self.counts.before(main.entry);
        asm!(self ; =>entry_points.function);
        self.prologue(&KEPT);
        asm!(self ; mov Rq(FIRST), rsi);
        self.reload(&Reg::ARGUMENTS);
        self.load_left(before);
        asm!(self ; call Rq(FIRST));
        self.epilogue(&KEPT);

        // The entry code saves registers for the main program. A tail call's target may
        // change any; and a run that stops in a function skips the code that restores what
        // the function saved.
        let changed = self.changed.clone();
        let is_alone = self.lowered.functions().len() == 1;
        let kept: &[Host] = match is_alone && !self.lowered.ops_of(main).contains(&Op::TailCall) {
            true => &changed,
            false => &KEPT,
        };
        asm!(self ; =>entry_points.main);
        self.prologue(kept);
        self.reload(&[Reg::R1]);
        self.load_left(before);
        let main = self.main;
        asm!(self ; call =>main);
        self.epilogue(kept);

        asm!(self ; =>entry_points.tail);
        self.reload(&[Reg::R1]);
        self.load_left(before);
        self.is_padded = self.calls;
        self.make_frame();
        let in_place = self.in_place;
        asm!(self ; jmp =>in_place);
    }

    /// Saves Rust's registers, and records where to return: the code called next returns
    /// there. The host's stack is aligned as functions need it.
    fn prologue(&mut self, kept: &[Host]) {
        asm!(self ; push Rq(RUN) ; mov Rq(RUN), rdi ; push Rq(FRAME));
        for &host in kept {
            asm!(self ; push Rq(host));
        }
        let (unwind, frame_end) = (Self::unwind(), Self::frame_end());
        if kept.len().is_multiple_of(2) {
            asm!(self ; push rax);
        }
        asm!(self
            ; lea rax, [rsp - 8]
            ; mov [Rq(RUN) + unwind], rax
            ; mov Rq(FRAME), [Rq(RUN) + frame_end]
        );
    }

    /// Restores Rust's registers, and returns to Rust.
    fn epilogue(&mut self, kept: &[Host]) {
        asm!(self ; mov [Rq(RUN) + Self::left()], Rq(LEFT));
        if kept.len().is_multiple_of(2) {
            asm!(self ; pop rcx);
        }
        for &host in kept.iter().rev() {
            asm!(self ; pop Rq(host));
        }
        asm!(self ; pop Rq(FRAME) ; pop Rq(RUN) ; ret);
    }

    /// The start of a function. The flags say whether the count is negative.
    pub(super) fn enter(&mut self, function: &Function, is_main: bool) {
        self.ends = Ends {
            leave: self.code.new_dynamic_label(),
            back: self.code.new_dynamic_label(),
            stop: self.code.new_dynamic_label(),
        };
        (self.is_main, self.frame_escapes) = (is_main, function.frame_escapes);
        if is_main {
            self.changed.clear();
        }
        for host in self.changed.clone() {
            asm!(self ; push Rq(host));
        }
        // With the return address, the pushes must keep the stack aligned to 16 bytes where
        // calls are likely.
        let is_even = self.changed.len().is_multiple_of(2);
        self.is_padded = is_even && self.calls;
        self.is_odd = is_even && !self.calls;
        self.make_frame();
        self.clear(&function.zeroed);
        let ops = self.lowered.ops_of(function);
        if ops.contains(&Op::TailCall) {
            let stack = i32::from(function.stack);
            asm!(self ; mov DWORD [Rq(FRAME) + Self::clean()], stack);
        }
        if is_main {
            let in_place = self.in_place;
            asm!(self ; =>in_place);
        }
        if ops.iter().any(|op| matches!(op, Op::MayGoto { .. })) {
            let (at, loops) = (Self::loops_left(), MAX_MAY_GOTO.cast_signed());
            asm!(self ; mov DWORD [Rq(FRAME) + at], loops);
        }
        let bail = self.stub(Stub::Bail(function.entry));
        asm!(self ; js =>bail);
        self.load_pins();
    }

    /// Moves on to the next frame; preserves the flags.
    fn make_frame(&mut self) {
        if self.is_padded {
            asm!(self ; push rax);
        }
        self.move_frame(-(STRIDE as i32));
    }

    /// Moves the end of the frame; preserves the flags.
    fn move_frame(&mut self, by: i32) {
        self.with_memory(Opcode::LEA, FRAME, At::new(FRAME, by));
    }

    /// Zeroes parts of the frame, which have multiples of 8 bytes; preserves the flags.
    fn clear(&mut self, zeroed: &[(u16, u16)]) {
        if zeroed.iter().any(|(from, to)| from - to >= 16) {
            asm!(self ; xorps xmm0, xmm0);
        }
        for &(from, to) in zeroed {
            let (mut at, to) = (-i32::from(from), -i32::from(to));
            if to - at > UNROLLED {
                let (again, len) = (self.code.new_dynamic_label(), (to - at) / 16 * 16);
                self.constant(FIRST, i64::from(-len).cast_unsigned());
                asm!(self
                    ; =>again
                    ; movups [Rq(FRAME) + Rq(FIRST) + (at + len)], xmm0
                    ; add Rq(FIRST), 16
                    ; jnz =>again
                    ; test Rq(LEFT), Rq(LEFT)
                );
                at += len;
            }
            while to - at >= 16 {
                asm!(self ; movups [Rq(FRAME) + at], xmm0);
                at += 16;
            }
            if to > at {
                asm!(self ; mov QWORD [Rq(FRAME) + at], 0);
            }
        }
    }

    /// Restores the caller's registers.
    pub(super) fn restore(&mut self) {
        self.move_frame(STRIDE as i32);
        if self.is_padded {
            asm!(self ; pop rcx);
        }
        for host in self.changed.clone().into_iter().rev() {
            asm!(self ; pop Rq(host));
        }
    }

    /// Leaves the frame and jumps to the code that replaces this one: only in the main
    /// program.
    pub(super) fn leave_to(&mut self, code: Host) {
        self.restore();
        asm!(self ; jmp Rq(code));
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        self.take(self.counts.during(at));
        if self.frame_escapes {
            let leave = self.ends.leave;
            asm!(self ; jmp =>leave);
        } else {
            self.restore();
            asm!(self ; ret);
        }
    }

    /// Emits the ends of a function, and the stubs.
    pub(super) fn finish(&mut self) {
        let Ends { leave, back, stop } = self.ends;
        asm!(self ; =>leave);
        if self.frame_escapes {
            self.store_left(0);
            asm!(self ; mov rdi, Rq(RUN) ; mov rsi, rax);
            self.call_host(shims::leave as *const () as usize);
        } else {
            asm!(self ; mov [Rq(RUN) + Self::left()], Rq(LEFT));
        }
        asm!(self ; =>back ; mov Rq(LEFT), [Rq(RUN) + Self::left()]);
        self.restore();
        asm!(self
            ; ret
            ; =>stop
            ; mov Rq(LEFT), [Rq(RUN) + Self::left()]
            ; mov rsp, [Rq(RUN) + Self::unwind()]
            ; ret
        );
        // Stubs may add more stubs.
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

    /// Bails out: the interpreter continues before an operation, to the function's end.
    fn bail(&mut self, at: Target) {
        self.spill(&Reg::ALL);
        self.store_left(self.counts.before(at));
        asm!(self ; mov rdi, Rq(RUN) ; mov esi, at.cast_signed());
        self.call_host(shims::finish as *const () as usize);
        let Ends { back, stop, .. } = self.ends;
        asm!(self ; test rdx, rdx ; jnz =>stop ; jmp =>back);
    }

    /// Continues after an operation.
    fn follow(&mut self, at: Target) {
        self.fall(at, at + 1);
        let next = self.label(at + 1);
        asm!(self ; jmp =>next);
    }

    /// Loads the value of r10.
    pub(super) fn load_number(&mut self, dst: Host) {
        self.with_memory(Opcode::load(Size::Dw), dst, At::new(FRAME, Self::number()));
    }
}
