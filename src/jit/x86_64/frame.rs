//! Entering and leaving functions; `jit/runtime.rs` has the convention.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Ends, Stub, asm};
use super::operand::{At, Opcode};
use super::regs::{FIRST, FRAME, Host, LEFT, R13, R14, R15, RBX, RCX, RDX, RUN};
use crate::engine::STRIDE;
use crate::isa::{Reg, Size};
use crate::jit::runtime::shims;
use crate::lower::{Function, MemRef, Op, Target, effect};
use crate::spec::ProgType;
use crate::spec::limits::MAX_MAY_GOTO;

/// The callee-saved registers of Rust's convention, besides those that always change.
const KEPT: [Host; 4] = [RBX, R13, R14, R15];
/// Up to this many bytes are zeroed by single stores; more by a loop.
const UNROLLED: i32 = 256;

impl Emitter<'_> {
    /// Emits the entry points from Rust into functions, and from another program into `main`,
    /// the first function. The arguments are in `rdi` (the run), `rsi` (the function), `rdx`
    /// (the number of instructions left), `rcx` (the caller's end of frame) and `r8` (r1).
    pub(super) fn emit_entry_points(&mut self, main: &Function) {
        let entry_points = self.entry_points;
        let before = self.counts.before(main.entry);
        asm!(self ; =>entry_points.function ; push Rq(RUN) ; push Rq(FRAME));
        for &host in &KEPT {
            asm!(self ; push Rq(host));
        }
        // The code called next returns to the address below the stack pointer.
        asm!(self
            ; push rax
            ; lea rax, [rsp - 8]
            ; mov Rq(RUN), rdi
            ; mov [Rq(RUN) + Self::unwind()], rax
            ; mov Rq(FRAME), rcx
            ; mov Rq(FIRST), rsi
        );
        self.take_left(before);
        self.reload(&Reg::ARGUMENTS);
        asm!(self ; call Rq(FIRST));
        self.give_left(0);
        asm!(self ; pop rcx);
        for &host in KEPT.iter().rev() {
            asm!(self ; pop Rq(host));
        }
        asm!(self ; pop Rq(FRAME) ; pop Rq(RUN) ; ret);

        asm!(self ; =>entry_points.tail);
        self.survey_main(main);
        self.save();
        self.load_left(before);
        asm!(self ; mov rdi, [Rq(RUN) + Self::saved(Reg::R1)]);
        if self.has_frame {
            self.with_memory(Opcode::LEA, FRAME, At::new(RCX, -(STRIDE as i32)));
        }
        let in_place = self.in_place;
        asm!(self ; jmp =>in_place);
    }

    /// The number of instructions left, an argument, plus `phase`: the flags say whether it
    /// is negative.
    fn take_left(&mut self, phase: i32) {
        if self.counts.is_on {
            asm!(self ; mov Rq(LEFT), rdx ; add Rq(LEFT), phase);
        }
    }

    /// The number of instructions left, minus `phase`, as a result.
    fn give_left(&mut self, phase: i32) {
        if self.counts.is_on {
            self.with_memory(Opcode::LEA, RDX, At::new(LEFT, -phase));
        }
    }

    /// Determines what the main program has to save.
    fn survey_main(&mut self, main: &Function) {
        self.is_main = true;
        self.has_functions = self.lowered.functions().len() > 1;
        if self.has_functions {
            // A run that stops in a function skips the code that restores what it saved.
            self.changed = KEPT.into_iter().collect();
        }
        let ops = self.lowered.ops_of(main);
        self.has_frame = self.counts.is_on || ops.iter().any(|op| !is_frameless(*op));
        // Only code that is never reached, and not emitted, may use a frame that is not there.
        self.frame_escapes = main.frame_escapes && self.has_frame;
        let pushed =
            1 + usize::from(self.has_frame) + usize::from(self.has_functions) + self.changed.len();
        self.align(pushed);
    }

    /// After this many pushes the stack must be aligned to 16 bytes where calls are likely.
    fn align(&mut self, pushed: usize) {
        let is_even = pushed.is_multiple_of(2);
        self.is_padded = is_even && self.calls;
        self.is_odd = is_even && !self.calls;
    }

    /// Saves the registers that the main program changes, and where functions that stop
    /// return to; the run is in `rdi`.
    fn save(&mut self) {
        asm!(self ; push Rq(RUN));
        if self.has_frame {
            asm!(self ; push Rq(FRAME));
        }
        for host in self.changed.clone() {
            asm!(self ; push Rq(host));
        }
        if self.is_padded {
            asm!(self ; push rax);
        }
        asm!(self ; mov Rq(RUN), rdi);
        if self.has_functions {
            let unwound = self.unwound;
            asm!(self
                ; lea rax, [=>unwound]
                ; push rax
                ; mov [Rq(RUN) + Self::unwind()], rsp
            );
        }
    }

    /// Restores what [`save`](Self::save) saved; preserves all other registers.
    fn restore_saved(&mut self) {
        let dropped = 8 * (i32::from(self.is_padded) + i32::from(self.has_functions));
        if dropped > 0 {
            asm!(self ; add rsp, dropped);
        }
        self.pop_saved();
    }

    fn pop_saved(&mut self) {
        for host in self.changed.clone().into_iter().rev() {
            asm!(self ; pop Rq(host));
        }
        if self.has_frame {
            asm!(self ; pop Rq(FRAME));
        }
        asm!(self ; pop Rq(RUN));
    }

    /// The start of a function. The flags say whether the count is negative.
    pub(super) fn enter(&mut self, function: &Function, is_main: bool) {
        self.ends = Ends {
            leave: self.code.new_dynamic_label(),
            back: self.code.new_dynamic_label(),
            stop: self.code.new_dynamic_label(),
        };
        if is_main {
            let main = self.entry_points.main;
            asm!(self ; =>main);
            self.survey_main(function);
            self.save();
            if self.has_frame {
                self.with_memory(Opcode::LEA, FRAME, At::new(RCX, -(STRIDE as i32)));
            }
            // A program may leave r0 unwritten where its function returns nothing (struct_ops).
            asm!(self ; xor eax, eax);
            self.take_left(self.counts.before(function.entry));
            asm!(self ; mov rdi, r8);
            // An extension has the arguments of the function that it replaces.
            if self.lowered.program().prog_type == ProgType::Ext {
                self.reload(&[Reg::R2, Reg::R3, Reg::R4, Reg::R5]);
            }
        } else {
            (self.is_main, self.frame_escapes) = (false, function.frame_escapes);
            for host in self.changed.clone() {
                asm!(self ; push Rq(host));
            }
            self.align(self.changed.len());
            if self.is_padded {
                asm!(self ; push rax);
            }
            self.move_frame(-(STRIDE as i32));
        }
        if self.has_frame || !is_main {
            self.clear(&function.zeroed);
        }
        if self.tail_calls {
            let stack = i32::from(function.stack);
            asm!(self ; mov DWORD [Rq(FRAME) + Self::clean()], stack);
        }
        if is_main {
            let in_place = self.in_place;
            asm!(self ; =>in_place);
        }
        if self.counts_loops {
            let (at, loops) = (Self::loops_left(), MAX_MAY_GOTO.cast_signed());
            asm!(self ; mov DWORD [Rq(FRAME) + at], loops);
        }
        if self.counts.is_on {
            let bail = self.stub(Stub::Bail(function.entry));
            asm!(self ; js =>bail);
        }
        self.load_pins();
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
                );
                if self.counts.is_on {
                    asm!(self ; test Rq(LEFT), Rq(LEFT));
                }
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

    /// Restores the caller's registers, and returns.
    fn leave(&mut self) {
        if self.is_main {
            self.restore_saved();
        } else {
            self.move_frame(STRIDE as i32);
            if self.is_padded {
                asm!(self ; pop rcx);
            }
            for host in self.changed.clone().into_iter().rev() {
                asm!(self ; pop Rq(host));
            }
        }
        asm!(self ; ret);
    }

    /// Leaves the frame and jumps to the code that replaces this one: only in the main
    /// program.
    pub(super) fn leave_to(&mut self, code: Host) {
        self.with_memory(Opcode::LEA, RCX, At::new(FRAME, STRIDE as i32));
        asm!(self ; mov rdi, Rq(RUN));
        self.restore_saved();
        asm!(self ; jmp Rq(code));
    }

    /// `exit`.
    pub(super) fn exit(&mut self, at: Target) {
        let during = self.counts.during(at);
        if self.frame_escapes {
            self.take(during);
            let leave = self.ends.leave;
            asm!(self ; jmp =>leave);
            return;
        }
        match self.is_main {
            true => self.give_left(during),
            false => self.take(during),
        }
        self.leave();
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
            self.keep_left();
        }
        asm!(self ; =>back);
        if self.is_main {
            asm!(self ; =>stop);
            if self.has_functions {
                let unwound = self.unwound;
                asm!(self ; pop rcx ; =>unwound);
            }
            if self.counts.is_on {
                asm!(self ; mov rdx, [Rq(RUN) + Self::left()]);
            }
            if self.is_padded {
                asm!(self ; pop rcx);
            }
            self.pop_saved();
            asm!(self ; ret);
        } else {
            self.reload_left();
            self.leave();
            asm!(self ; =>stop);
            self.reload_left();
            asm!(self ; mov rsp, [Rq(RUN) + Self::unwind()] ; ret);
        }
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

/// Whether the code of an operation uses neither the frame nor a call.
fn is_frameless(op: Op) -> bool {
    let is_direct = |mem| {
        matches!(
            mem,
            MemRef::Context { .. } | MemRef::MapValue { .. } | MemRef::Packet { .. }
        )
    };
    let has_code = match op {
        Op::Alu { .. }
        | Op::MovSx { .. }
        | Op::Neg { .. }
        | Op::Endian { .. }
        | Op::LoadImm { .. }
        | Op::Known { .. }
        | Op::Jump { .. }
        | Op::JumpIf { .. }
        | Op::Exit => true,
        Op::Load { mem, .. } | Op::LoadSx { mem, .. } | Op::Store { mem, .. } => is_direct(mem),
        _ => false,
    };
    let effect = effect(&op);
    has_code && !effect.reads.union(effect.writes).contains(Reg::R10)
}

#[cfg(test)]
mod tests {
    use crate::engine::Counting;
    use crate::jit::emit_for;
    use crate::jit::testing::lowered;
    use crate::spec::context::Arch;

    /// The frame's register has the caller's value where no reached operation needs a frame.
    #[test]
    fn a_frame_that_is_not_there_is_not_zeroed() {
        let code = |branch: &str| {
            let text = format!(
                "r0 = 0
                {branch}
                *(u64 *)(r10 -16) = r0
                *(u64 *)(r10 -8) = r0
                r0 = *(u64 *)(r10 -16)
                out: exit"
            );
            let lowered = lowered(&text);
            let zeroes = !lowered.functions().first().unwrap().zeroed.is_empty();
            let emitted = emit_for(Arch::X86_64, &lowered, Counting::Off).unwrap();
            // movups [rbp + displacement], xmm0
            let stores = emitted.bytes.windows(2).any(|bytes| bytes == [0x0f, 0x11]);
            (zeroes, stores)
        };
        assert_eq!(code("if r0 == 0 goto out"), (true, false));
        assert_eq!(code("r0 = 1"), (true, true));
    }
}
