//! Entering and leaving functions; `jit/runtime.rs` has the convention.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Ends, Stub, asm};
use super::operand::{At, Opcode};
use super::regs::{FIRST, FRAME, Host, LEFT, R13, R14, R15, RBX, RUN};
use crate::interp::STRIDE;
use crate::isa::{Reg, Size};
use crate::jit::runtime::shims;
use crate::lower::{Function, Op, Target};
use crate::spec::limits::MAX_MAY_GOTO;

/// What Rust wants back as it was, besides what always changes.
const KEPT: [Host; 4] = [RBX, R13, R14, R15];
/// So many bytes are made zero one store behind the other; more in a loop.
const UNROLLED: i32 = 256;

impl Emitter<'_> {
    /// The ways from Rust, or from another program, into functions, of which `main` is
    /// the first. The run is in `rdi`, the function in `rsi`.
    pub(super) fn ways_in(&mut self, main: &Function) {
        let ways = self.ways;
        let before = self.counts.before(main.entry);
        asm!(self ; =>ways.function);
        self.way_in(&KEPT);
        asm!(self ; mov Rq(FIRST), rsi);
        self.reload(&Reg::ARGUMENTS);
        self.hear_left(before);
        asm!(self ; call Rq(FIRST));
        self.way_out(&KEPT);

        // The main program keeps nothing: this does. If it leaves its frame to another
        // one, that may change anything; and a run that stops in a function does not pass
        // the code that gives back what the function kept.
        let changed = self.changed.clone();
        let is_alone = self.lowered.functions().len() == 1;
        let kept: &[Host] = match is_alone && !self.lowered.ops_of(main).contains(&Op::TailCall) {
            true => &changed,
            false => &KEPT,
        };
        asm!(self ; =>ways.main);
        self.way_in(kept);
        self.reload(&[Reg::R1]);
        self.hear_left(before);
        let main = self.main;
        asm!(self ; call =>main);
        self.way_out(kept);

        asm!(self ; =>ways.tail);
        self.reload(&[Reg::R1]);
        self.hear_left(before);
        self.is_padded = self.calls;
        self.make_frame();
        let in_place = self.in_place;
        asm!(self ; jmp =>in_place);
    }

    /// Keeps what Rust wants back, and notes where to come back to: what is called next
    /// returns there. The host's stack is as functions want it.
    fn way_in(&mut self, kept: &[Host]) {
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

    /// The opposite, and back to Rust.
    fn way_out(&mut self, kept: &[Host]) {
        asm!(self ; mov [Rq(RUN) + Self::left()], Rq(LEFT));
        if kept.len().is_multiple_of(2) {
            asm!(self ; pop rcx);
        }
        for &host in kept.iter().rev() {
            asm!(self ; pop Rq(host));
        }
        asm!(self ; pop Rq(FRAME) ; pop Rq(RUN) ; ret);
    }

    /// The start of a function. The flags say whether the count is below zero.
    pub(super) fn enter(&mut self, function: &Function, is_main: bool) {
        self.ends = Ends {
            leave: self.code.new_dynamic_label(),
            back: self.code.new_dynamic_label(),
            stop: self.code.new_dynamic_label(),
        };
        (self.is_main, self.lends) = (is_main, function.lends);
        if is_main {
            self.changed.clear();
        }
        for host in self.changed.clone() {
            asm!(self ; push Rq(host));
        }
        // With the return address they are to keep the stack aligned to 16 bytes where
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

    /// Moves on to the next frame; the flags stay.
    fn make_frame(&mut self) {
        if self.is_padded {
            asm!(self ; push rax);
        }
        self.move_frame(-(STRIDE as i32));
    }

    /// Moves the end of the frame; the flags stay.
    fn move_frame(&mut self, by: i32) {
        self.with_memory(Opcode::LEA, FRAME, At::new(FRAME, by));
    }

    /// Makes parts of the frame zero, which have multiples of 8 bytes; the flags stay.
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

    /// Gives the caller its registers back.
    pub(super) fn restore(&mut self) {
        self.move_frame(STRIDE as i32);
        if self.is_padded {
            asm!(self ; pop rcx);
        }
        for host in self.changed.clone().into_iter().rev() {
            asm!(self ; pop Rq(host));
        }
    }

    /// Leaves the frame for code that is jumped to in place of this: only in the main
    /// program.
    pub(super) fn leave_to(&mut self, code: Host) {
        self.restore();
        asm!(self ; jmp Rq(code));
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        self.take(self.counts.during(at));
        if self.lends {
            let leave = self.ends.leave;
            asm!(self ; jmp =>leave);
        } else {
            self.restore();
            asm!(self ; ret);
        }
    }

    /// The ends of a function, and what was put off.
    pub(super) fn finish(&mut self) {
        let Ends { leave, back, stop } = self.ends;
        asm!(self ; =>leave);
        if self.lends {
            self.tell_left(0);
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
        let Ends { back, stop, .. } = self.ends;
        asm!(self ; test rdx, rdx ; jnz =>stop ; jmp =>back);
    }

    /// On after an operation.
    fn follow(&mut self, at: Target) {
        self.fall(at, at + 1);
        let next = self.label(at + 1);
        asm!(self ; jmp =>next);
    }

    /// The number that r10 holds.
    pub(super) fn load_number(&mut self, dst: Host) {
        self.with_memory(Opcode::load(Size::Dw), dst, At::new(FRAME, Self::number()));
    }
}
