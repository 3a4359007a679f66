//! The stack of a frame, in slots of eight bytes that grow as they are written.
//!
//! Slot 0 is the one at `fp-8`. Of each byte is known whether it was written, and if
//! so whether as part of a register that can be filled again (`Spill`), as a zero, or
//! as anything else. (`struct bpf_stack_state`, `enum bpf_stack_slot_type`.)

use super::reg::RegState;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 8;

/// What a byte of the stack holds; the letters are those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SlotKind {
    /// Never written.
    Invalid,
    /// A byte of the register in the slot.
    Spill,
    /// Written with something.
    Misc,
    /// Zero.
    Zero,
}

/// Eight bytes of stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    /// The register that was spilled here, if a byte is of kind `Spill`. A spill of
    /// fewer than eight bytes takes those at the lowest addresses.
    pub reg: RegState,
    /// Each byte; number 7 is `fp - 8 * (slot + 1)`, number 0 the highest address.
    pub bytes: [SlotKind; SLOT],
}

impl Slot {
    /// A slot that was never written.
    pub(crate) const EMPTY: Self = Self {
        reg: RegState::NOT_INIT,
        bytes: [SlotKind::Invalid; SLOT],
    };

    /// Whether a register of any width is spilled here (`is_spilled_reg`).
    pub(crate) fn is_spill(&self) -> bool {
        self.bytes[SLOT - 1] == SlotKind::Spill
    }

    /// Whether that is a number (`is_spilled_scalar_reg`).
    pub(crate) fn is_scalar_spill(&self) -> bool {
        self.is_spill() && self.reg.is_scalar()
    }

    /// Whether that is a number of eight bytes (`is_spilled_scalar_reg64`).
    pub(crate) fn is_scalar_spill64(&self) -> bool {
        self.bytes[0] == SlotKind::Spill && self.reg.is_scalar()
    }

    /// Whether nothing is known of the bytes, so that they are any number
    /// (`is_stack_all_misc` with `allow_uninit_stack`).
    pub(crate) fn is_all_misc(&self) -> bool {
        let anything = |kind: &SlotKind| matches!(kind, SlotKind::Misc | SlotKind::Invalid);
        self.bytes.iter().all(anything)
    }

    /// Forgets what the bytes hold, but not that they were written
    /// (`scrub_spilled_slot`).
    pub(crate) fn scrub(&mut self) {
        for kind in &mut self.bytes {
            if *kind != SlotKind::Invalid {
                *kind = SlotKind::Misc;
            }
        }
    }

    /// Spills the lowest `size` bytes of a register here (`save_register_state`).
    /// The bytes above keep being zero or unwritten, and else are anything.
    pub(crate) fn spill(&mut self, reg: &RegState, size: usize) {
        self.reg = *reg;
        for (at, kind) in self.bytes.iter_mut().enumerate() {
            if at >= SLOT.saturating_sub(size) {
                *kind = SlotKind::Spill;
            } else if *kind == SlotKind::Spill {
                *kind = SlotKind::Misc;
            }
        }
    }
}

/// The slot that holds the byte at `fp + off`, for an offset below zero
/// (`get_spi`), and past the end for others.
pub(crate) fn slot_of(off: i32) -> usize {
    usize::try_from(-1 - i64::from(off)).map_or(usize::MAX, |at| at / SLOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_count_down_from_the_frame_pointer() {
        assert_eq!([-1, -8, -9, -16, -512].map(slot_of), [0, 0, 1, 1, 63]);
        assert_eq!(slot_of(0), usize::MAX);
    }
}
