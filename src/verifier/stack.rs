//! The stack of a frame, in slots of eight bytes that are added as they are touched
//! (`struct bpf_stack_state`, `enum bpf_stack_slot_type`).
//!
//! Slot 0 is at `fp-8`. Each byte is either unwritten, part of a spilled register
//! (`Spill`), a zero, part of a dynptr, an iterator or a saved interrupt state, or anything else
//! (`Misc`).

use super::reg::RegState;

/// Bytes of a slot.
pub(crate) const SLOT: usize = 8;

/// The type of a stack byte; the letters are those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SlotKind {
    /// Never written.
    Invalid,
    /// A byte of the register in the slot.
    Spill,
    /// Written with an unknown value.
    Misc,
    /// Zero.
    Zero,
    /// A byte of a dynptr.
    Dynptr,
    /// A byte of an iterator.
    Iter,
    /// A byte of a saved interrupt state.
    IrqFlag,
}

impl SlotKind {
    /// Whether the byte belongs to an object that only kfuncs and helpers may access
    /// (`is_stack_slot_special`).
    pub(crate) const fn is_special(self) -> bool {
        matches!(self, Self::Dynptr | Self::Iter | Self::IrqFlag)
    }
}

/// Eight bytes of stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    /// The register that was spilled here, if a byte is of kind `Spill`; a spill of fewer
    /// than eight bytes takes the lowest addresses. The part of an object, if the bytes are
    /// [special](SlotKind::is_special).
    pub reg: RegState,
    /// The type of each byte; number 7 is at `fp - 8 * (slot + 1)`, number 0 has the
    /// highest address.
    pub bytes: [SlotKind; SLOT],
}

impl Slot {
    /// A slot that was never written.
    pub(crate) const EMPTY: Self = Self {
        reg: RegState::NOT_INIT,
        bytes: [SlotKind::Invalid; SLOT],
    };

    /// A slot that no path from a checkpoint reads, where it has to differ from one that was never
    /// written (`Options::order_free`).
    pub(crate) const DEAD: Self = Self {
        reg: RegState::UNKNOWN,
        ..Self::EMPTY
    };

    /// The types of the bytes in one word, to compare them at once.
    const fn kinds(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.bytes;
        u64::from_le_bytes([
            a as u8, b as u8, c as u8, d as u8, e as u8, f as u8, g as u8, h as u8,
        ])
    }

    /// Whether both have bytes of the same types.
    pub(crate) const fn same_kinds(&self, other: &Self) -> bool {
        self.kinds() == other.kinds()
    }

    /// Whether a register of any width is spilled here (`is_spilled_reg`).
    pub(crate) fn is_spill(&self) -> bool {
        matches!(self.bytes[SLOT - 1], SlotKind::Spill)
    }

    /// Whether this is part of a dynptr, an iterator or a saved interrupt state
    /// (`is_stack_slot_special`).
    pub(crate) const fn is_special(&self) -> bool {
        self.bytes[SLOT - 1].is_special()
    }

    /// Whether a scalar is spilled here (`is_spilled_scalar_reg`).
    pub(crate) fn is_scalar_spill(&self) -> bool {
        self.is_spill() && self.reg.is_scalar()
    }

    /// Whether a scalar is spilled here with all eight bytes (`is_spilled_scalar_reg64`).
    pub(crate) fn is_scalar_spill64(&self) -> bool {
        matches!(self.bytes[0], SlotKind::Spill) && self.reg.is_scalar()
    }

    /// Whether the bytes are unknown, so that they read as an unknown scalar
    /// (`is_stack_all_misc` with `allow_uninit_stack`).
    pub(crate) const fn is_all_misc(&self) -> bool {
        const MISC: u64 = u64::from_le_bytes([SlotKind::Misc as u8; SLOT]);
        const { assert!(SlotKind::Invalid as u8 == 0 && (SlotKind::Misc as u8).is_power_of_two()) };
        self.kinds() & !MISC == 0
    }

    /// Whether no byte was ever written.
    pub(crate) const fn is_unwritten(&self) -> bool {
        const { assert!(SlotKind::Invalid as u8 == 0) };
        self.kinds() == 0
    }

    /// Whether every byte was written.
    pub(crate) fn is_written(&self) -> bool {
        !self.bytes.contains(&SlotKind::Invalid)
    }

    /// Turns the written bytes into bytes of unknown value (`scrub_spilled_slot`).
    pub(crate) fn scrub(&mut self) {
        for kind in &mut self.bytes {
            if *kind != SlotKind::Invalid {
                *kind = SlotKind::Misc;
            }
        }
    }

    /// Spills the lowest `size` bytes of a register here (`save_register_state`). The bytes
    /// above stay zero or unwritten; any others become unknown.
    pub(crate) fn spill(&mut self, reg: &RegState, size: usize) {
        self.reg = *reg;
        for (at, kind) in self.bytes.iter_mut().enumerate() {
            if at >= SLOT.saturating_sub(size) {
                *kind = SlotKind::Spill;
            } else if !matches!(kind, SlotKind::Invalid | SlotKind::Zero) {
                *kind = SlotKind::Misc;
            }
        }
    }
}

/// The slot that holds the byte at `fp + off`, for a negative offset (`get_spi`);
/// `usize::MAX` otherwise.
pub(crate) fn slot_of(off: i32) -> usize {
    usize::try_from(-1 - i64::from(off)).map_or(usize::MAX, |at| at / SLOT)
}

/// The number of the byte at `fp + off` in its slot, for a negative offset.
pub(crate) fn byte_of(off: i32) -> usize {
    usize::try_from(-1 - i64::from(off)).unwrap_or(0) % SLOT
}

/// Whether a slot begins at `fp + off`.
pub(crate) fn starts_slot(off: i32) -> bool {
    byte_of(off) == SLOT - 1
}

/// The number of a slot as the jump history stores it: there are 64 slots.
pub(crate) fn slot_number(slot: usize) -> u8 {
    u8::try_from(slot).unwrap_or(u8::MAX)
}

/// Narrows an offset from the frame pointer that was checked to be inside the frame.
pub(crate) fn in_frame(off: i64) -> i32 {
    i32::try_from(off).unwrap_or(i32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_count_down_from_the_frame_pointer() {
        assert_eq!([-1, -8, -9, -16, -512].map(slot_of), [0, 0, 1, 1, 63]);
        assert_eq!(slot_of(0), usize::MAX);
        assert_eq!([-1, -7, -8, -9].map(byte_of), [0, 6, 7, 0]);
        assert_eq!(
            [-1, -8, -12, -16].map(starts_slot),
            [false, true, false, true]
        );
    }
}
