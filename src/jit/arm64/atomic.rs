//! Read-modify-write, sequentially consistent: pairs of exclusive accesses, tried until
//! nobody was in between. They acquire and release, and the barrier after them keeps
//! later accesses behind the store, too.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, asm, by_width};
use super::regs::{CONSTANT, Host, SECOND, THIRD, host};
use crate::isa::{AtomicOp, Reg, Width};
use crate::lower::{Place, Target};

impl Emitter<'_> {
    /// `op` at `place`; false where the interpreter's step has to do it.
    pub(super) fn atomic(
        &mut self,
        at: Target,
        op: AtomicOp,
        width: Width,
        place: Place,
        src: Reg,
    ) -> bool {
        // Whoever misaligns an atomic is told of it in words.
        let Some(address) = self.aligned(at, width.size(), place) else {
            return false;
        };
        let (src, r0) = (host(src), host(Reg::R0));
        let (again, done) = (self.code.new_dynamic_label(), self.code.new_dynamic_label());
        asm!(self ; =>again);
        match width {
            Width::W64 => asm!(self ; ldaxr X(SECOND), [X(address)]),
            Width::W32 => asm!(self ; ldaxr W(SECOND), [X(address)]),
        }
        let new = match op {
            AtomicOp::Xchg => src,
            AtomicOp::Cmpxchg => {
                by_width!(self, width, cmp, SECOND, r0);
                asm!(self ; b.ne =>done);
                src
            }
            _ => self.combine(op, width, src),
        };
        match width {
            Width::W64 => asm!(self ; stlxr W(CONSTANT), X(new), [X(address)]),
            Width::W32 => asm!(self ; stlxr W(CONSTANT), W(new), [X(address)]),
        }
        asm!(self ; cbnz W(CONSTANT), =>again ; =>done ; dmb ish);
        if op.compares() {
            asm!(self ; mov X(r0), X(SECOND));
        } else if op.fetches() {
            asm!(self ; mov X(src), X(SECOND));
        }
        true
    }

    /// What the old number becomes, with the old one in [`SECOND`].
    fn combine(&mut self, op: AtomicOp, width: Width, src: Host) -> Host {
        match op {
            AtomicOp::Add | AtomicOp::FetchAdd => by_width!(self, width, add, THIRD, SECOND, src),
            AtomicOp::Or | AtomicOp::FetchOr => by_width!(self, width, orr, THIRD, SECOND, src),
            AtomicOp::And | AtomicOp::FetchAnd => by_width!(self, width, and, THIRD, SECOND, src),
            _ => by_width!(self, width, eor, THIRD, SECOND, src),
        }
        THIRD
    }
}
