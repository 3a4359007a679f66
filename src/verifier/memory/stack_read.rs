//! Loads from the stack (`check_stack_read`).
//!
//! A load of a spilled register with its full width restores that register. Any other load
//! gives an unknown scalar, or 0 if all its bytes are zero. Unwritten bytes may be read with
//! `CAP_PERFMON`: such a program may read kernel memory anyway.

use super::{Access, MemoryAccess};
use crate::isa::Reg;
use crate::spec::limits::{MAX_VAR_OFFSET, STACK_SIZE};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack::{
    SLOT, Slot, SlotKind, byte_of, in_frame, slot_number, slot_of, starts_slot,
};

const LOWEST: i64 = -(STACK_SIZE as i64);

impl Verifier<'_> {
    /// Checks that the bytes are in the frame, and adds the slots that they need
    /// (`check_stack_access_within_bounds`). `off` includes the register's fixed offset.
    pub(crate) fn check_stack_bounds(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        access: Access,
    ) -> VerifyResult {
        let reg = *self.reg(base);
        let at = base.number();
        let what = match access {
            Access::Read => " read from",
            Access::Write => " write to",
        };
        let (off, size) = (i64::from(off), i64::from(size.cast_signed()));
        let (min, max) = match reg.var.value() {
            Some(var) => (var.cast_signed() + off, var.cast_signed() + off + size),
            None => {
                if reg.var.smax >= MAX_VAR_OFFSET || reg.var.smin <= -MAX_VAR_OFFSET {
                    reject!(
                        EACCES,
                        "invalid unbounded variable-offset{what} stack R{at}"
                    );
                }
                (reg.var.smin + off, reg.var.smax + off + size)
            }
        };
        let lowest = match reg.kind {
            Kind::Stack { frame }
                if access == Access::Read && !self.privileges.allow_uninit_stack =>
            {
                -self.written_size(frame)
            }
            _ => LOWEST,
        };
        let outside = !(lowest..0).contains(&min);
        if outside || max > 0 || size < 0 {
            let text = if reg.var.is_const() {
                format!("invalid{what} stack R{at} off={off} size={size}")
            } else {
                let bits = reg.var.bits;
                format!(
                    "invalid variable-offset{what} stack R{at} var_off={bits} off={off} size={size}"
                )
            };
            if outside {
                reject!(EACCES, "{text}");
            } else if max > 0 {
                reject!(EINVAL, "{text}");
            }
            reject!(EFAULT, "{text}");
        }
        if let Kind::Stack { frame } = reg.kind {
            self.grow_stack(frame, slot_of(in_frame(min)));
        }
        Ok(())
    }

    /// The bytes of a frame that were touched so far.
    fn written_size(&self, frame: u8) -> i64 {
        let frame = self.state.frames.get(usize::from(frame));
        let slots = frame.map_or(0, |frame| frame.stack.len());
        i64::try_from(slots * SLOT).unwrap_or(0)
    }

    /// Extends a frame up to and including this slot, and updates the stack depth of its
    /// function.
    fn grow_stack(&mut self, frame: u8, slot: usize) {
        let Some(frame) = self.state.frames.get_mut(usize::from(frame)) else {
            return;
        };
        frame.grow(slot);
        // A stack has 64 slots at most.
        let depth = u32::try_from(frame.stack.len() * SLOT).unwrap_or(u32::MAX);
        self.usage.grow_stack(frame.subprogram, depth);
    }

    pub(super) fn check_stack_read(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        frame: u8,
        off: i32,
    ) -> VerifyResult {
        match reg.var.value() {
            Some(var) => self.read_fixed(
                a,
                frame,
                in_frame(var.cast_signed().wrapping_add(off.into())),
            ),
            None => {
                if a.value.is_none() {
                    reject!(
                        EACCES,
                        "variable offset stack pointer cannot be passed into helper function; \
                         var_off={} off={off} size={}",
                        reg.var.bits,
                        a.size
                    );
                }
                self.read_variable(a, reg, frame, off)
            }
        }
    }

    /// A load at a variable offset: 0 if all possible bytes are zero, otherwise unknown.
    fn read_variable(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        frame: u8,
        off: i32,
    ) -> VerifyResult {
        // The bounds are checked: all these bytes are in the frame.
        let min = in_frame(reg.var.smin + i64::from(off));
        let max = in_frame(reg.var.smax + i64::from(off) + i64::from(a.size));
        self.check_initialised(a.base, reg, frame, (min, max))?;
        let slots = (slot_of(max - 1)..=slot_of(min)).fold(0, |mask, slot| mask | 1u64 << slot);
        self.stack_read(frame, slots);
        self.check_fastcall_contract(frame, min);
        let value = self.bytes_as_number(frame, min, max);
        if let Some(to) = a.value {
            *self.reg_mut(to) = value;
        }
        Ok(())
    }

    fn read_fixed(&mut self, a: &MemoryAccess, frame: u8, off: i32) -> VerifyResult {
        let slot = slot_of(off);
        self.touch_stack(frame, slot);
        self.check_fastcall_contract(frame, off);
        self.stack_read(frame, 1 << slot);
        let Some(content) = self.slot(frame, slot).copied() else {
            return Ok(());
        };
        if !content.is_spill() {
            self.check_readable(&content, off, a.size)?;
            if let Some(to) = a.value {
                // The access is not wider than the slot.
                let value = self.bytes_as_number(frame, off, off + a.size.cast_signed());
                *self.reg_mut(to) = value;
            }
            return Ok(());
        }
        let bytes = content.bytes.iter().rev();
        let spilled = bytes.take_while(|kind| **kind == SlotKind::Spill).count();
        let size = a.size as usize;
        let filled = if size == SLOT && spilled == SLOT {
            let Some(to) = a.value else {
                if self.is_pointer_value(&content.reg) {
                    reject!(EACCES, "leaking pointer from stack off {off}");
                }
                self.note_step(Some((frame, slot_number(slot))), Default::default());
                return Ok(());
            };
            // A scalar without id (a widened one) stays without: fills don't create links.
            Some((to, content.reg))
        } else {
            if !content.reg.is_scalar() {
                reject!(EACCES, "invalid size of register fill");
            }
            let Some(to) = a.value else { return Ok(()) };
            // The lowest bytes of the register are at the lowest addresses.
            let aligned = starts_slot(off);
            if size <= spilled && aligned {
                let mut value = content.reg;
                if value.var.umax >> (8 * size) != 0 && size < SLOT {
                    value.unlink();
                }
                Some((to, value))
            } else {
                self.check_readable(&content, off, a.size)?;
                let (value, is_fill) = part_of(&content, off, size);
                *self.reg_mut(to) = value;
                if !is_fill {
                    return Ok(());
                }
                None
            }
        };
        if let Some((to, value)) = filled {
            *self.reg_mut(to) = value;
        }
        self.note_step(Some((frame, slot_number(slot))), Default::default());
        Ok(())
    }

    /// Checks that a load may read these bytes of a slot.
    fn check_readable(&self, content: &Slot, off: i32, size: u32) -> VerifyResult {
        let is_readable = |kind: &SlotKind| match kind {
            SlotKind::Invalid => self.privileges.allow_uninit_stack,
            kind => !kind.is_special(),
        };
        for number in 0..size.cast_signed() {
            let at = content.bytes.get(byte_of(off + number));
            if !at.is_none_or(is_readable) {
                reject!(
                    EACCES,
                    "invalid read from stack off {off}+{number} size {size}"
                );
            }
        }
        Ok(())
    }

    /// Checks that each byte in `[min, max)` may be read: that it was written, unless the
    /// loader may read unwritten ones, is not part of a pointer that must not leak, and does
    /// not belong to an object that only helpers and kfuncs may access (a part of
    /// `check_stack_range_initialized`). `max` is after the last byte at the largest offset of
    /// the register.
    pub(crate) fn check_initialised(
        &self,
        base: Reg,
        reg: &RegState,
        frame: u8,
        (min, max): (i32, i32),
    ) -> VerifyResult {
        if reg.var.value().is_none() && !self.privileges.bypass_spec_v1 {
            reject!(
                EACCES,
                "R{} variable offset stack access prohibited for !root, var_off={}",
                base.number(),
                reg.var.bits
            );
        }
        let is_readable = |off: i32| {
            let Some(slot) = self.slot(frame, slot_of(off)) else {
                return true;
            };
            match slot.bytes.get(byte_of(off)) {
                Some(SlotKind::Misc | SlotKind::Zero) | None => true,
                Some(SlotKind::Invalid) if self.privileges.allow_uninit_stack => true,
                _ => slot.is_spill() && !self.is_pointer_value(&slot.reg),
            }
        };
        let Some(at) = (min..max).find(|off| !is_readable(*off)) else {
            return Ok(());
        };
        let (base, at) = (base.number(), at - min);
        let spread = match reg.var.value() {
            Some(_) => 0,
            None => reg.var.smax.abs_diff(reg.var.smin),
        };
        let size = i64::from(max - min).cast_unsigned().wrapping_sub(spread);
        match reg.var.value() {
            Some(_) => reject!(
                EACCES,
                "invalid read from stack R{base} off {min}+{at} size {size}"
            ),
            None => reject!(
                EACCES,
                "invalid read from stack R{base} var_off {}+{at} size {size}",
                reg.var.bits
            ),
        }
    }

    fn slot(&self, frame: u8, slot: usize) -> Option<&Slot> {
        self.state.frames.get(usize::from(frame))?.stack.get(slot)
    }

    /// Marks a slot for the log, by its number only: the kernel ignores the frame here.
    pub(super) fn touch_stack(&mut self, _frame: u8, slot: usize) {
        self.log.touch_slot(slot);
    }

    /// The scalar in bytes `[min, max)`, which are not a whole spilled register
    /// (`mark_reg_stack_read`).
    fn bytes_as_number(&mut self, frame: u8, min: i32, max: i32) -> RegState {
        for off in min..max {
            let slot = slot_of(off);
            self.log.touch_slot(slot);
            let byte = byte_of(off);
            let kind = self.slot(frame, slot).and_then(|slot| slot.bytes.get(byte));
            if kind != Some(&SlotKind::Zero) {
                return RegState::UNKNOWN;
            }
        }
        RegState::constant(0)
    }
}

/// A load of a part of a slot that doesn't match a spilled scalar: zero if those bytes are
/// zero, and whether that depends on the spilled scalar.
fn part_of(slot: &Slot, off: i32, size: usize) -> (RegState, bool) {
    let first = byte_of(off);
    let count = |wanted: SlotKind| {
        let bytes = (0..size).filter_map(|n| slot.bytes.get((SLOT + first - n) % SLOT));
        bytes.filter(|kind| **kind == wanted).count()
    };
    if count(SlotKind::Spill) == size && slot.reg.var.value() == Some(0) {
        (RegState::constant(0), true)
    } else if count(SlotKind::Zero) == size {
        (RegState::constant(0), false)
    } else {
        (RegState::UNKNOWN, false)
    }
}
