//! What machine code wants to know of the event: where its packet is, and what the
//! context's pointers are at the moment.

use super::run::Run;
use crate::vm::Machine;
use crate::vm::memory::Address;

impl Run<'_> {
    /// Looks up the packet, which is the same throughout a run.
    pub(super) fn see_packet(&mut self, machine: &Machine) {
        let packet = machine.current().and_then(|c| c.placed.packet.as_ref());
        let entry = packet.map(|packet| 8 * usize::from(packet.region.region()));
        let delta = entry.and_then(|entry| machine.space.deltas().load(entry, 8));
        self.packet = delta.unwrap_or(0);
    }

    /// Looks up the context's pointers for the program that runs now: they change with
    /// the program, and by helpers that change the packet. Those that are none are 0.
    pub(super) fn see_pointers(&mut self, machine: &Machine) {
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
