//! Read-modify-write, sequentially consistent.
//!
//! Where the host has atomic instructions, these acquire and release. Elsewhere pairs of
//! exclusive accesses are repeated until no other access intervened; the barrier after them
//! keeps later accesses after the store.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, asm, by_width};
use super::regs::{CONSTANT, Host, SECOND, THIRD, host};
use crate::isa::{AluOp, AtomicOp, Reg, Width};
use crate::lower::{MemRef, Target};

/// The two forms of an instruction on the memory that a register points to.
macro_rules! atomic {
    ($emitter:expr, $width:expr, $name:ident, $a:expr, $b:expr, $address:expr) => {
        match $width {
            Width::W64 => asm!($emitter ; $name X($a), X($b), [X($address)]),
            Width::W32 => asm!($emitter ; $name W($a), W($b), [X($address)]),
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
        // The interpreter's step reports an unaligned atomic.
        let Some(address) = self.aligned(at, width.size(), mem) else {
            return false;
        };
        // The old number goes to a spare register first: the operands may be needed.
        if self.features.lse {
            self.at_once(op, width, address, host(src));
        } else {
            self.exclusively(op, width, address, host(src));
        }
        if op.compares() {
            self.copy(host(Reg::R0), SECOND);
        } else if op.fetches() {
            self.copy(host(src), SECOND);
        }
        true
    }

    /// By one instruction; the old number goes to [`SECOND`].
    fn at_once(&mut self, op: AtomicOp, width: Width, address: Host, src: Host) {
        match op {
            AtomicOp::Add | AtomicOp::FetchAdd => {
                atomic!(self, width, ldaddal, src, SECOND, address);
            }
            AtomicOp::Or | AtomicOp::FetchOr => {
                atomic!(self, width, ldsetal, src, SECOND, address);
            }
            AtomicOp::And | AtomicOp::FetchAnd => {
                // The instruction clears the given bits.
                by_width!(self, width, mvn, THIRD, src);
                atomic!(self, width, ldclral, THIRD, SECOND, address);
            }
            AtomicOp::Xor | AtomicOp::FetchXor => {
                atomic!(self, width, ldeoral, src, SECOND, address);
            }
            AtomicOp::Xchg => atomic!(self, width, swpal, src, SECOND, address),
            AtomicOp::Cmpxchg => {
                self.copy(SECOND, host(Reg::R0));
                atomic!(self, width, casal, SECOND, src, address);
            }
        }
    }

    /// By a loop; the old number goes to [`SECOND`].
    fn exclusively(&mut self, op: AtomicOp, width: Width, address: Host, src: Host) {
        let (again, done) = (self.code.new_dynamic_label(), self.code.new_dynamic_label());
        asm!(self ; =>again);
        match width {
            Width::W64 => asm!(self ; ldaxr X(SECOND), [X(address)]),
            Width::W32 => asm!(self ; ldaxr W(SECOND), [X(address)]),
        }
        let combined = match op {
            AtomicOp::Add | AtomicOp::FetchAdd => Some(AluOp::Add),
            AtomicOp::Or | AtomicOp::FetchOr => Some(AluOp::Or),
            AtomicOp::And | AtomicOp::FetchAnd => Some(AluOp::And),
            AtomicOp::Xor | AtomicOp::FetchXor => Some(AluOp::Xor),
            AtomicOp::Xchg => None,
            AtomicOp::Cmpxchg => {
                by_width!(self, width, cmp, SECOND, host(Reg::R0));
                asm!(self ; b.ne =>done);
                None
            }
        };
        let new = combined.map_or(src, |op| {
            self.registers(op, width, THIRD, SECOND, src);
            THIRD
        });
        match width {
            Width::W64 => asm!(self ; stlxr W(CONSTANT), X(new), [X(address)]),
            Width::W32 => asm!(self ; stlxr W(CONSTANT), W(new), [X(address)]),
        }
        asm!(self ; cbnz W(CONSTANT), =>again ; =>done ; dmb ish);
    }
}
