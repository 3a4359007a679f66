//! Stores to the stack (`check_stack_write`).
//!
//! A store of a whole register at the start of a slot spills it with its state; pointers
//! can only be stored like this. Any other store leaves bytes that are known to be zero, or
//! of unknown value.

use super::MemoryAccess;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack::{
    SLOT, Slot, SlotKind, byte_of, in_frame, slot_number, slot_of, starts_slot,
};

impl Verifier<'_> {
    pub(super) fn check_stack_write(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        frame: u8,
        off: i32,
    ) -> VerifyResult {
        match reg.var.value() {
            Some(var) => self.write_fixed(
                a,
                frame,
                in_frame(var.cast_signed().wrapping_add(off.into())),
            ),
            None => self.write_variable(a, reg, frame, off),
        }
    }

    fn slot_mut(&mut self, frame: u8, slot: usize) -> Option<&mut Slot> {
        self.state
            .frames
            .get_mut(usize::from(frame))?
            .stack
            .get_mut(slot)
    }

    fn write_fixed(&mut self, a: &MemoryAccess, frame: u8, off: i32) -> VerifyResult {
        let slot = slot_of(off);
        let size = a.size as usize;
        let starts_slot = starts_slot(off);
        self.check_overwritten(a, frame, off)?;
        self.destroy_dynptr_at(frame, slot)?;
        if starts_slot && size == SLOT {
            // Only a whole slot counts as overwritten.
            self.stack_write(frame, 1 << slot);
        }
        self.check_fastcall_contract(frame, off);
        self.touch_stack(frame, slot);
        let stored = a.value.map(|value| *self.reg(value));
        let keeps_numbers = starts_slot && self.privileges.bpf_capable;
        let spilled = match (&stored, a.constant) {
            (Some(reg), _) if keeps_numbers && reg.is_scalar() => {
                let fits = size == SLOT || reg.var.umax >> (8 * size) == 0;
                if fits && let Some(value) = a.value {
                    self.link_before_move(value);
                    Some(*self.reg(value))
                } else {
                    Some(RegState { id: 0, ..*reg })
                }
            }
            (None, Some(constant)) if keeps_numbers => {
                Some(RegState::constant(i64::from(constant).cast_unsigned()))
            }
            (Some(reg), _) if reg.is_spillable() => {
                if size != SLOT {
                    reject!(EACCES, "invalid size of register spill");
                }
                let current = self.state.current();
                if usize::from(frame) != current
                    && matches!(reg.kind, Kind::Stack { .. })
                    && reg.flags.is_empty()
                {
                    reject!(
                        EINVAL,
                        "cannot spill pointers to stack into stack frame of the caller"
                    );
                }
                Some(*reg)
            }
            _ => None,
        };
        if let Some(reg) = spilled {
            if let Some(slot) = self.slot_mut(frame, slot) {
                slot.spill(&reg, size);
            }
            self.note_step(Some((frame, slot_number(slot))), Default::default());
            return Ok(());
        }
        let zero = stored.as_ref().is_some_and(RegState::is_null)
            || stored.is_none() && a.constant == Some(0);
        if let Some(value) = a.value
            && zero
        {
            // The bytes are not a spilled register, so they can't be marked as precise
            // later.
            self.mark_precise(value)?;
        }
        let Some(content) = self.slot_mut(frame, slot) else {
            return Ok(());
        };
        if content.is_spill() || content.is_special() {
            content.scrub();
        }
        content.reg = RegState::NOT_INIT;
        let kind = if zero { SlotKind::Zero } else { SlotKind::Misc };
        let first = byte_of(off);
        for n in 0..size {
            content.bytes[(SLOT + first - n) % SLOT] = kind;
        }
        Ok(())
    }

    /// Checks that a store replaces no pointer in part, and decides whether it needs a barrier:
    /// a load might overtake it, and read what it replaces.
    fn check_overwritten(&mut self, a: &MemoryAccess, frame: u8, off: i32) -> VerifyResult {
        let Some(content) = self.slot_mut(frame, slot_of(off)).copied() else {
            return Ok(());
        };
        let size = a.size as usize;
        let leaks = !self.privileges.allow_ptr_leaks;
        if leaks && content.is_spill() && !content.is_scalar_spill() && size != SLOT {
            reject!(EACCES, "attempt to corrupt spilled pointer on stack");
        }
        if self.privileges.bypass_spec_v4 {
            return Ok(());
        }
        let is_pointer = a.value.is_some_and(|value| self.reg(value).is_spillable());
        let first = byte_of(off);
        let mut replaced = (0..size).map(|n| content.bytes[(SLOT + first - n) % SLOT]);
        let plain = |kind| matches!(kind, SlotKind::Misc | SlotKind::Zero);
        if is_pointer || !replaced.all(plain) {
            self.speculation.put_barrier_after(self.position.pc());
        }
        Ok(())
    }

    /// A store at a variable offset: all possible bytes become unknown, but zero bytes stay
    /// zero if zero is written.
    fn write_variable(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        frame: u8,
        off: i32,
    ) -> VerifyResult {
        // The bounds are checked: all these bytes are in the frame.
        let min = in_frame(reg.var.smin + i64::from(off));
        let max = in_frame(reg.var.smax + i64::from(off) + i64::from(a.size));
        let zero = match a.value {
            Some(value) => self.reg(value).is_null(),
            None => a.constant == Some(0),
        };
        for off in min..max {
            self.destroy_dynptr_at(frame, slot_of(off))?;
        }
        self.check_fastcall_contract(frame, min);
        let mut zero_used = false;
        let (pc, privileges) = (self.pc(), self.privileges);
        for off in min..max {
            let slot = slot_of(off);
            self.touch_stack(frame, slot);
            let Some(content) = self.slot_mut(frame, slot) else {
                continue;
            };
            let byte = byte_of(off);
            let kind = content.bytes[byte];
            if !privileges.allow_ptr_leaks && !matches!(kind, SlotKind::Misc | SlotKind::Zero) {
                reject!(
                    EINVAL,
                    "spilled ptr in range of var-offset stack write; insn {pc}, ptr off: {off}"
                );
            }
            if zero
                && kind == SlotKind::Spill
                && content.is_scalar_spill()
                && content.reg.var.value() == Some(0)
            {
                zero_used = true;
                continue;
            }
            if content.is_spill() {
                content.scrub();
            }
            content.reg = RegState::NOT_INIT;
            if kind == SlotKind::Invalid && !privileges.allow_uninit_stack {
                reject!(
                    EINVAL,
                    "uninit stack in range of var-offset write prohibited for !root; insn {pc}, \
                     off: {off}"
                );
            }
            content.bytes[byte] = if zero && kind == SlotKind::Zero {
                zero_used = true;
                SlotKind::Zero
            } else {
                SlotKind::Misc
            };
        }
        if zero_used && let Some(value) = a.value {
            self.mark_precise(value)?;
        }
        Ok(())
    }
}
