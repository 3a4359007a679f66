//! Stack memory of a helper's argument (`check_stack_range_initialized`,
//! `get_constant_map_key`).

use crate::isa::Reg;
use crate::spec::limits::STACK_SIZE;
use crate::verifier::env::Verifier;
use crate::verifier::memory::Access;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack::{SLOT, Slot, SlotKind, in_frame, slot_of};

impl Verifier<'_> {
    /// Checks stack bytes that a helper reads or may write. With `fills`, the helper
    /// overwrites them: if so, returns `true` and leaves their state to the caller.
    /// With `CAP_PERFMON` a program may pass uninitialised bytes.
    pub(super) fn check_stack_range(
        &mut self,
        base: Reg,
        frame: u8,
        size: u32,
        access: Access,
        zero: bool,
        fills: bool,
    ) -> VerifyResult<bool> {
        if size == 0 && !zero {
            reject!(EACCES, "invalid zero-sized read");
        }
        let reg = *self.reg(base);
        self.check_stack_bounds(base, reg.off, size, access)?;
        let (first, last) = match reg.var.value() {
            Some(var) => (var.cast_signed(), var.cast_signed()),
            None => (reg.var.smin, reg.var.smax),
        };
        // The bounds are checked: all of it is within a frame.
        let end = last.saturating_add(i64::from(reg.off) + i64::from(size));
        let start = first.saturating_add(i64::from(reg.off)).max(-FRAME);
        let (start, end) = (in_frame(start), in_frame(end.min(0)));
        if fills && first == last {
            self.check_no_dynptr(frame, start, end)?;
            return Ok(true);
        }
        self.check_initialised(base, &reg, frame, (start, end))?;
        let mut slots = 0;
        for off in start..end {
            let number = slot_of(off);
            slots |= 1u64 << number;
            if access == Access::Write {
                self.blur(frame, number, off);
            }
        }
        self.stack_read(frame, slots);
        Ok(false)
    }

    /// Checks that a helper overwrites no dynptr: it might be another argument.
    fn check_no_dynptr(&self, frame: u8, start: i32, end: i32) -> VerifyResult {
        let frame = self.state.frames.get(usize::from(frame));
        for off in start..end {
            let slot = frame.and_then(|frame| frame.stack.get(slot_of(off)));
            if slot.and_then(|slot| slot.bytes.get(byte_of(off))) == Some(&SlotKind::Dynptr) {
                reject!(EACCES, "potential write to dynptr at off={off} disallowed");
            }
        }
        Ok(())
    }

    /// Makes a byte unknown that a helper may write.
    fn blur(&mut self, frame: u8, number: usize, off: i32) {
        let may_read_unwritten = self.privileges.allow_uninit_stack;
        let frames = &mut self.state.frames;
        let Some(slot) = frames
            .get_mut(usize::from(frame))
            .and_then(|frame| frame.stack.get_mut(number))
        else {
            return;
        };
        let at = byte_of(off);
        match slot.bytes.get_mut(at) {
            Some(SlotKind::Misc) | None => {}
            Some(kind @ SlotKind::Zero) => *kind = SlotKind::Misc,
            Some(kind @ SlotKind::Invalid) if may_read_unwritten => *kind = SlotKind::Misc,
            Some(_) => {
                slot.reg = RegState::UNKNOWN;
                slot.scrub();
            }
        }
    }

    /// The value of a key on the stack, if it is constant; it becomes precise. Not for loaders
    /// without `CAP_BPF`.
    pub(super) fn constant_key(&mut self, reg: Reg, key_size: u32) -> VerifyResult<Option<u64>> {
        if !self.privileges.bpf_capable {
            return Ok(None);
        }
        let state = *self.reg(reg);
        let (Kind::Stack { frame }, Some(var)) = (state.kind, state.var.value()) else {
            return Ok(None);
        };
        let Ok(off) = i32::try_from(var.cast_signed().saturating_add(state.off.into())) else {
            return Ok(None);
        };
        let number = slot_of(off);
        let frames = &self.state.frames;
        let Some(slot) = frames
            .get(usize::from(frame))
            .and_then(|frame| frame.stack.get(number))
        else {
            return Ok(None);
        };
        if run(slot, off, SlotKind::Zero) >= key_size {
            return Ok(Some(0));
        }
        if !slot.is_scalar_spill() || run(slot, off, SlotKind::Spill) != key_size {
            return Ok(None);
        }
        let Some(key) = slot.reg.var.value() else {
            return Ok(None);
        };
        self.mark_slot_precise(frame, number)?;
        Ok(Some(key))
    }
}

const FRAME: i64 = STACK_SIZE as i64;

/// The number of a byte in its slot.
fn byte_of(off: i32) -> usize {
    usize::try_from(-1 - i64::from(off)).map_or(0, |at| at % SLOT)
}

/// The number of bytes of a kind from `off` upwards, within the slot.
fn run(slot: &Slot, off: i32, kind: SlotKind) -> u32 {
    let bytes = slot.bytes.get(..=byte_of(off)).unwrap_or_default();
    let count = bytes.iter().rev().take_while(|byte| **byte == kind).count();
    u32::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_bytes_ends_with_the_slot() {
        let mut slot = Slot::EMPTY;
        slot.spill(&RegState::constant(7), 4);
        assert_eq!(run(&slot, -8, SlotKind::Spill), 4);
        assert_eq!(run(&slot, -6, SlotKind::Spill), 2);
        assert_eq!(run(&slot, -4, SlotKind::Spill), 0);
        slot.bytes = [SlotKind::Zero; SLOT];
        assert_eq!(run(&slot, -4, SlotKind::Zero), 4);
        assert_eq!(run(&slot, -8, SlotKind::Zero), 8);
    }
}
