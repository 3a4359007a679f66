//! Look-ups in maps.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Stub, asm};
use super::operand::{Digit, Opcode};
use super::regs::{FIRST, RAX, RDI, RDX, RSI, SECOND};
use crate::isa::{Size, Width};
use crate::jit::runtime::shims;
use crate::lower::{BoundMap, CPU, Keys, MemRef, Target};

impl Emitter<'_> {
    /// `r0` = the address of the value under the key at `key`, or 0; false if the
    /// interpreter's step has to do it.
    pub(super) fn look_up(&mut self, at: Target, map: u16, key: MemRef, is_there: bool) -> bool {
        let Some(map) = self.lowered.maps().get(usize::from(map)) else {
            return false;
        };
        let (first, span) = (map.first, map.span);
        let (count, is_per_cpu) = match map.keys {
            Keys::Index { count } => (count, false),
            Keys::PerCpuIndex { count } => (count, true),
            Keys::Other { .. } => return self.look_up_key(at, map, key),
        };
        let Some(key) = self.address(at, key) else {
            return false;
        };
        self.with_memory(Opcode::load(Size::W), RAX, key);
        let back = self.code.new_dynamic_label();
        if !is_there {
            let nothing = self.stub(Stub::Nothing { back });
            self.with_immediate(Digit::CMP, Width::W32, RAX, count.cast_signed());
            asm!(self ; jae =>nothing);
        }
        if is_per_cpu {
            self.load_field(SECOND, Self::known(CPU));
            self.constant(FIRST, count.into());
            asm!(self ; imul Rq(SECOND), Rq(FIRST) ; add rax, Rq(SECOND));
        }
        match (span.is_power_of_two(), i32::try_from(span)) {
            (true, _) => asm!(self ; shl rax, span.trailing_zeros() as i8),
            (false, Ok(span)) => self.multiply(Width::W64, RAX, RAX, span),
            (false, Err(_)) => {
                self.constant(FIRST, span);
                asm!(self ; imul rax, Rq(FIRST));
            }
        }
        self.constant(FIRST, first);
        asm!(self ; add rax, Rq(FIRST) ; =>back);
        true
    }

    /// The same for a key that is no index.
    fn look_up_key(&mut self, at: Target, map: &BoundMap, key: MemRef) -> bool {
        let Some(key) = self.address(at, key) else {
            return false;
        };
        self.with_memory(Opcode::LEA, RSI, key);
        // The map's address is valid as long as the program lives.
        self.constant(RDI, std::ptr::from_ref(map).expose_provenance() as u64);
        self.load_field(RDX, Self::known(CPU));
        self.keep_left();
        self.call_host(shims::look_up as *const () as usize);
        self.reload_left();
        true
    }
}
