//! Objects in stack slots that only helpers and kfuncs may access: dynptrs, open-coded
//! iterators (`STACK_DYNPTR`, `STACK_ITER`).
//!
//! Each slot of such an object has bytes of a kind of its own, and in its register the part
//! of the object: slots in the order of their addresses, the first is the main one. A store
//! into an iterator makes it unusable; a store into a dynptr destroys it.

pub(crate) mod dynptr;
pub(crate) mod iterator;

use crate::isa::Reg;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::memory::{Access, MemoryAccess};
use crate::verifier::reg::RegState;
use crate::verifier::reject::{Reject, VerifyResult, reject};
use crate::verifier::stack::{SLOT, Slot, SlotKind, slot_of};

impl Verifier<'_> {
    /// The main slot of an object of `count` slots that a stack pointer points to
    /// (`stack_slot_obj_get_spi`). `None` if the object reaches beyond the slots that were
    /// touched so far (`-ERANGE`).
    pub(crate) fn object_slot(
        &self,
        reg: &RegState,
        frame: u8,
        what: &str,
        count: usize,
    ) -> VerifyResult<Option<usize>> {
        let Some(var) = reg.var.value() else {
            reject!(EINVAL, "{what} has to be at a constant offset");
        };
        // The kernel truncates to 32 bits.
        #[expect(clippy::cast_possible_truncation, reason = "what the kernel does")]
        let off = var.cast_signed().wrapping_add(reg.off.into()) as i32;
        let misplaced = |off| {
            let text = format!("cannot pass in {what} at an offset={off}");
            Reject::new(Errno::EINVAL, text)
        };
        // The kernel takes offset 0 for the slot below it. No object is there: the call would
        // read or write the frame above.
        if off == 0 && count == 1 {
            return Ok(None);
        }
        let slot = slot_of(off);
        if off >= 0 || off % 8 != 0 || slot + 1 < count {
            return Err(misplaced(off));
        }
        let frame = self.state.frames.get(usize::from(frame));
        Ok(frame
            .is_some_and(|frame| slot < frame.stack.len())
            .then_some(slot))
    }

    /// Stores unknown bytes to all slots of an object that a call creates, which checks the
    /// bounds and destroys what was there.
    pub(crate) fn write_object(&mut self, reg: Reg, count: usize) -> VerifyResult {
        for number in 0..count {
            self.check_memory(&MemoryAccess {
                base: reg,
                off: i32::try_from(number * SLOT).unwrap_or(i32::MAX),
                size: 8,
                access: Access::Write,
                value: None,
                constant: None,
                signed: false,
                strict: false,
            })?;
        }
        Ok(())
    }

    /// Marks the slots of an object as read by the current call (`mark_stack_slot_obj_read`).
    fn read_object(&mut self, frame: u8, main: usize, count: usize) {
        for slot in slots(main, count) {
            self.stack_read(frame, 1 << slot);
            self.log.touch_slot(slot);
        }
    }

    fn object_at(&self, frame: u8, slot: usize) -> Option<&Slot> {
        self.state.frames.get(usize::from(frame))?.stack.get(slot)
    }

    fn object_at_mut(&mut self, frame: u8, slot: usize) -> Option<&mut Slot> {
        let frame = self.state.frames.get_mut(usize::from(frame))?;
        frame.stack.get_mut(slot)
    }
}

impl Slot {
    /// Whether all bytes are of this kind.
    fn is_all(&self, kind: SlotKind) -> bool {
        self.bytes == [kind; SLOT]
    }
}

/// The numbers of the slots of an object, in the order of their addresses.
fn slots(main: usize, count: usize) -> impl Iterator<Item = usize> {
    (main.saturating_sub(count.saturating_sub(1))..=main).rev()
}
