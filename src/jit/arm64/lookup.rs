//! Look-ups in known maps, and helpers whose result is constant during a run.

use dynasmrt::DynasmApi;

use super::emitter::{Emitter, asm};
use super::memory::field;
use super::regs::{CONSTANT, PARTIAL, RIGHT, SECOND, THIRD, host};
use crate::isa::{Reg, Size};
use crate::jit::layout;
use crate::lower::{BoundMap, CPU, Keys, MemRef, Target};

impl Emitter<'_> {
    /// `r0` = the result of a helper that is constant during a run.
    pub(super) fn known(&mut self, which: u8) {
        self.load_from(host(Reg::R0), field(layout::known(which)));
    }

    /// `r0` = the address of the value under the key at `key`, or 0; false if the
    /// interpreter's step has to do it.
    pub(super) fn look_up(&mut self, op: Target, map: u16, key: MemRef, is_there: bool) -> bool {
        let Some(map) = self.lowered.maps().get(usize::from(map)) else {
            return false;
        };
        let (count, is_per_cpu) = match map.keys {
            Keys::Index { count } => (count, false),
            Keys::PerCpuIndex { count } => (count, true),
            Keys::Other { .. } => return false,
        };
        let Some(at) = self.address(op, key) else {
            return false;
        };
        self.load_sized(Size::W, THIRD, at);
        let mut element = THIRD;
        if is_per_cpu {
            // `count` elements for each CPU precede this CPU's.
            self.load_from(SECOND, field(layout::known(CPU)));
            self.constant(CONSTANT, count.into());
            element = PARTIAL;
            asm!(self ; madd X(element), X(SECOND), X(CONSTANT), X(THIRD));
        }
        let r0 = host(Reg::R0);
        self.constant(RIGHT, map.first);
        self.times_span(map, element);
        if !is_there {
            match count {
                0..0x1000 => asm!(self ; cmp WSP(THIRD), count),
                _ => {
                    self.constant(SECOND, count.into());
                    asm!(self ; cmp W(THIRD), W(SECOND));
                }
            }
            asm!(self ; csel X(r0), X(r0), xzr, lo);
        }
        true
    }

    /// `r0` = the address of an element; the first one's is in [`RIGHT`].
    fn times_span(&mut self, map: &BoundMap, element: u8) {
        let (r0, span) = (host(Reg::R0), map.span);
        if span.is_power_of_two() {
            let shift = span.trailing_zeros();
            asm!(self ; add X(r0), X(RIGHT), X(element), LSL shift);
        } else {
            self.constant(CONSTANT, span);
            asm!(self ; madd X(r0), X(element), X(CONSTANT), X(RIGHT));
        }
    }
}
