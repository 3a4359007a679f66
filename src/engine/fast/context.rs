//! The event's data as programs load it: the location of the packet, and the current values of
//! the context's pointers.

use super::run::{POINTERS, Run};
use crate::isa::Size;
use crate::lower::Lowered;
use crate::vm::Machine;
use crate::vm::memory::Address;

/// The number in [`Run::pointers`] of the context's pointer that a load reads, and whether it may
/// be null; none if runs don't hold it.
pub(crate) fn held_pointer(lowered: &Lowered, off: u16, size: Size) -> Option<(usize, bool)> {
    let wanted = (u32::from(off), u32::from(size.bytes()));
    let mut fields = lowered.context().pointers.iter().take(POINTERS).enumerate();
    fields.find_map(|(number, &(off, size, or_null))| {
        ((off, size) == wanted).then_some((number, or_null))
    })
}

impl Run<'_> {
    /// Looks up the packet, which stays the same during a run.
    pub(super) fn refresh_packet(&mut self, machine: &Machine) {
        let packet = machine.current().and_then(|c| c.placed.packet.as_ref());
        let entry = packet.map(|packet| 8 * usize::from(packet.region.region()));
        let delta = entry.and_then(|entry| machine.space.deltas().load(entry, 8));
        self.packet = delta.unwrap_or(0);
    }

    /// Looks up the context's pointers for the current program: they change with the
    /// program, and when helpers change the packet. Missing ones are 0.
    pub(super) fn refresh_pointers(&mut self, machine: &Machine) {
        if self.lowered.context().pointers.is_empty() {
            return;
        }
        let context = Address::from_register(self.context_address);
        let region = context.and_then(|context| machine.space.region(context));
        let Some(region) = region else {
            return;
        };
        let wanted = self.lowered.context().pointers.iter();
        for (pointer, &(offset, size, _)) in self.pointers.iter_mut().zip(wanted) {
            let mut fields = region.pointers.iter();
            let found = fields.find(|field| (field.offset, field.size) == (offset, size));
            *pointer = found.map_or(0, |field| field.value);
        }
    }
}
