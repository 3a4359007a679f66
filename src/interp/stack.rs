//! The stack that all engines of a machine share: a region for each frame that was
//! ever in use, so that a pointer holds the same number whichever engine made it.

use std::sync::Arc;

use super::image::Image;
use crate::spec::limits::{MAX_MAY_GOTO, STACK_SIZE};
use crate::vm::Machine;
use crate::vm::memory::{Address, Region, SharedBytes, SpaceFull};

/// The frames that have ever been in use, outermost first.
#[derive(Debug, Default)]
pub struct Stack {
    frames: Vec<Slot>,
}

/// A frame's memory.
#[derive(Debug)]
struct Slot {
    address: Address,
    bytes: Arc<SharedBytes>,
    /// What messages call it.
    name: Arc<str>,
}

impl Stack {
    /// Gives the frame at this depth a life of its own: its first byte. The bytes are
    /// what the last use left.
    pub(super) fn enter(
        &mut self,
        machine: &mut Machine,
        depth: usize,
        name: &Arc<str>,
    ) -> Result<(Address, &SharedBytes), SpaceFull> {
        if depth >= self.frames.len() {
            let bytes = Arc::new(SharedBytes::zeroed(STACK_SIZE));
            let region = Region::bytes(name.clone(), bytes.clone());
            let address = machine.space.insert(region)?;
            let name = name.clone();
            self.frames.push(Slot {
                address,
                bytes,
                name,
            });
        } else if let Some(slot) = self.frames.get_mut(depth) {
            slot.address = machine.space.renew(slot.address);
            // Naming costs more than entering.
            if !Arc::ptr_eq(&slot.name, name)
                && let Some(mut region) = machine.space.region_mut(slot.address)
            {
                region.name = name.clone();
                slot.name = name.clone();
            }
        }
        let slot = self.frames.get(depth);
        slot.map(|slot| (slot.address, &*slot.bytes))
            .ok_or(SpaceFull)
    }

    /// Ends the life of the frame at this depth: pointers to it are stale.
    pub(super) fn leave(&mut self, machine: &mut Machine, depth: usize) {
        if let Some(slot) = self.frames.get_mut(depth) {
            slot.address = machine.space.renew(slot.address);
        }
    }

    /// The bytes of the frame at this depth.
    pub(super) fn bytes(&self, depth: usize) -> Option<&SharedBytes> {
        self.frames.get(depth).map(|slot| &*slot.bytes)
    }

    /// The first byte of the frame at this depth.
    pub(super) fn address(&self, depth: usize) -> Option<Address> {
        self.frames.get(depth).map(|slot| slot.address)
    }
}

/// A function under way: what its caller gets back when it ends.
#[derive(Debug, Clone)]
pub(super) struct Frame<'a> {
    /// Its first instruction's slot.
    pub start: i64,
    /// The slot of the call that led here.
    pub from: i64,
    /// The program that the caller runs.
    pub caller: &'a Image,
    /// The slot where the caller goes on.
    pub return_to: i64,
    /// The caller's r6 to r9.
    pub saved: [u64; 4],
    /// The caller's r10.
    pub frame_pointer: u64,
    /// What is left for `may_goto`.
    pub loops_left: u32,
}

impl<'a> Frame<'a> {
    /// The frame of a function that is called at `from`.
    pub(super) const fn new(
        start: i64,
        from: i64,
        return_to: i64,
        caller: &'a Image,
        regs: &[u64; 11],
    ) -> Self {
        let [.., r6, r7, r8, r9, r10] = *regs;
        Self {
            start,
            from,
            caller,
            return_to,
            saved: [r6, r7, r8, r9],
            frame_pointer: r10,
            loops_left: MAX_MAY_GOTO,
        }
    }

    /// Gives the caller its registers back.
    pub(super) const fn restore(&self, regs: &mut [u64; 11]) {
        let [.., r6, r7, r8, r9, r10] = regs;
        [*r6, *r7, *r8, *r9] = self.saved;
        *r10 = self.frame_pointer;
    }
}
