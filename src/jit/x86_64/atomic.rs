//! Read-modify-write, sequentially consistent as all `lock` instructions are.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::alu::by_width;
use super::emitter::{Emitter, Stub, asm};
use super::operand::Opcode;
use super::regs::{FIRST, Host, LEFT, RAX, SECOND, host};
use crate::isa::{AtomicOp, Reg, Width};
use crate::lower::{MemRef, Notes, Target};

/// The 64-bit or 32-bit form of an instruction on the memory that [`FIRST`] points to.
macro_rules! locked {
    ($emitter:expr, $width:expr, $name:ident, $src:expr) => {
        match $width {
            Width::W64 => asm!($emitter ; lock $name QWORD [Rq(FIRST)], Rq($src)),
            Width::W32 => asm!($emitter ; lock $name DWORD [Rq(FIRST)], Rd($src)),
        }
    };
}

impl Emitter<'_> {
    /// `op` at `mem`; false if the interpreter's step has to do it.
    pub(super) fn atomic(
        &mut self,
        at: Target,
        op: AtomicOp,
        width: Width,
        mem: MemRef,
        src: Reg,
    ) -> bool {
        let (Some(src), Some(mem)) = (host(src), self.address(at, mem)) else {
            return false;
        };
        self.with_memory(Opcode::LEA, FIRST, mem);
        if !self.lowered.note(at).contains(Notes::ALIGNED) {
            // The interpreter's step reports an unaligned atomic.
            let judged = self.stub(Stub::Step(at));
            let mask = width.size().bytes() as i8 - 1;
            asm!(self ; test Rb(FIRST), mask ; jnz =>judged);
        }
        match op {
            AtomicOp::Add => locked!(self, width, add, src),
            AtomicOp::Or => locked!(self, width, or, src),
            AtomicOp::And => locked!(self, width, and, src),
            AtomicOp::Xor => locked!(self, width, xor, src),
            AtomicOp::FetchAdd => locked!(self, width, xadd, src),
            // `xchg` locks implicitly.
            AtomicOp::Xchg => match width {
                Width::W64 => asm!(self ; xchg QWORD [Rq(FIRST)], Rq(src)),
                Width::W32 => asm!(self ; xchg DWORD [Rq(FIRST)], Rd(src)),
            },
            AtomicOp::Cmpxchg => {
                locked!(self, width, cmpxchg, src);
                if width == Width::W32 {
                    // Clears the upper half of r0, which the host may leave.
                    asm!(self ; mov eax, eax);
                }
            }
            AtomicOp::FetchOr | AtomicOp::FetchAnd | AtomicOp::FetchXor => {
                self.fetch(op, width, src);
            }
        }
        true
    }

    /// Repeats until no other access intervened.
    fn fetch(&mut self, op: AtomicOp, width: Width, src: Host) {
        let again = self.code.new_dynamic_label();
        // The old r0 is in `SECOND`.
        let operand = if src == RAX { SECOND } else { src };
        asm!(self ; push Rq(LEFT) ; mov Rq(SECOND), rax);
        match width {
            Width::W64 => asm!(self ; mov rax, [Rq(FIRST)]),
            Width::W32 => asm!(self ; mov eax, [Rq(FIRST)]),
        }
        asm!(self ; =>again ; mov Rq(LEFT), rax);
        match op {
            AtomicOp::FetchOr => by_width!(self, width, or, LEFT, operand),
            AtomicOp::FetchAnd => by_width!(self, width, and, LEFT, operand),
            _ => by_width!(self, width, xor, LEFT, operand),
        }
        locked!(self, width, cmpxchg, LEFT);
        asm!(self ; jnz =>again ; pop Rq(LEFT));
        if src != RAX {
            asm!(self ; mov Rq(src), rax ; mov rax, Rq(SECOND));
        }
    }
}
