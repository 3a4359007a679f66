//! Saved interrupt states on the stack (`process_irq_flag`).

use super::Call;
use crate::isa::Reg;
use crate::verifier::env::Verifier;
use crate::verifier::references::{Reference, ReferenceKind};
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack::{SLOT, Slot, SlotKind};

/// How messages call it.
const NAME: &str = "irq_flag";

impl Verifier<'_> {
    /// Saves the interrupt state to the slot that an argument points to, or restores it from
    /// there.
    pub(super) fn check_irq_flag(&mut self, call: &Call<'_>, at: usize, reg: Reg) -> VerifyResult {
        let Kind::Stack { frame } = self.reg(reg).kind else {
            reject!(EINVAL, "arg#{at} doesn't point to an irq flag on stack");
        };
        let by_lock = call.saves_for_lock();
        if call.is("bpf_local_irq_save") || call.takes_lock() {
            self.save_irq_flag(at, reg, frame, by_lock)
        } else {
            self.restore_irq_flag(at, reg, frame, by_lock)
        }
    }

    fn save_irq_flag(&mut self, at: usize, reg: Reg, frame: u8, by_lock: bool) -> VerifyResult {
        let expected = format!("expected uninitialized irq flag as arg#{at}");
        let state = *self.reg(reg);
        let found = self.object_slot(&state, frame, NAME, 1);
        // The store that follows extends the stack, if it has no such slot yet.
        if let Some(number) = found.map_err(|why| why.and(&expected))? {
            let slot = self.irq_slot_mut(frame, number);
            if slot.is_some_and(|slot| slot.bytes.contains(&SlotKind::IrqFlag)) {
                reject!(EINVAL, "{expected}");
            }
        }
        self.write_object(reg, 1)?;
        let Some(number) = self.object_slot(&state, frame, NAME, 1)? else {
            reject!(EFAULT, "no stack slot for an irq flag");
        };
        let id = self.new_id();
        self.state.refs.push(Reference {
            id,
            pc: self.pc(),
            kind: ReferenceKind::Irq,
        });
        self.state.irq_id = id;
        if let Some(slot) = self.irq_slot_mut(frame, number) {
            slot.reg = RegState {
                ref_id: id,
                ..RegState::pointer(Kind::IrqFlag { by_lock }, Default::default())
            };
            slot.bytes = [SlotKind::IrqFlag; SLOT];
        }
        self.stack_write(frame, 1 << number);
        self.log.touch_slot(number);
        Ok(())
    }

    fn restore_irq_flag(&mut self, at: usize, reg: Reg, frame: u8, by_lock: bool) -> VerifyResult {
        let expected = format!("expected an initialized irq flag as arg#{at}");
        let state = *self.reg(reg);
        let found = self.object_slot(&state, frame, NAME, 1);
        let Some(number) = found.map_err(|why| why.and(&expected))? else {
            reject!(EINVAL, "{expected}");
        };
        let Some(slot) = self.irq_slot_mut(frame, number).copied() else {
            reject!(EINVAL, "{expected}");
        };
        let Kind::IrqFlag { by_lock: saved } = slot.reg.kind else {
            reject!(EINVAL, "{expected}");
        };
        if slot.bytes != [SlotKind::IrqFlag; SLOT] {
            reject!(EINVAL, "{expected}");
        }
        self.stack_read(frame, 1 << number);
        self.log.touch_slot(number);
        if saved != by_lock {
            let name = |by_lock| if by_lock { "lock" } else { "native" };
            reject!(
                EINVAL,
                "irq flag acquired by {} kfuncs cannot be restored with {} kfuncs",
                name(saved),
                name(by_lock)
            );
        }
        self.release_irq_flag(slot.reg.ref_id)?;
        if let Some(slot) = self.irq_slot_mut(frame, number) {
            *slot = Slot::EMPTY;
        }
        self.stack_write(frame, 1 << number);
        Ok(())
    }

    /// Releases the reference of a saved state, which must be the innermost one
    /// (`release_irq_state`).
    fn release_irq_flag(&mut self, id: u32) -> VerifyResult {
        let innermost = self.state.irq_id;
        let saved = |reference: &&Reference| reference.kind == ReferenceKind::Irq;
        if id != innermost {
            let mut refs = self.state.refs.newest_first();
            let pc = refs.find(|reference| reference.id == innermost);
            let pc = pc.map_or(0, |reference| reference.pc.0);
            reject!(
                EACCES,
                "cannot restore irq state out of order, expected id={innermost} \
                 acquired at insn_idx={pc}"
            );
        }
        let outer = self
            .state
            .refs
            .oldest_first()
            .filter(saved)
            .map(|one| one.id);
        let outer = outer.take_while(|one| *one != id).last();
        self.state.irq_id = outer.unwrap_or(0);
        let is_it = |one: &Reference| one.kind == ReferenceKind::Irq && one.id == id;
        self.state.refs.remove(is_it);
        Ok(())
    }

    fn irq_slot_mut(&mut self, frame: u8, number: usize) -> Option<&mut Slot> {
        let frame = self.state.frames.get_mut(usize::from(frame))?;
        frame.stack.get_mut(number)
    }
}
