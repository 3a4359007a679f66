//! An event placed in a machine's memory while programs run on it.

use super::error::Result;
use crate::spec::ProgType;
use crate::vm::attach::Site;
use crate::vm::events::Event;
use crate::vm::{Machine, Outcome, Suspended};

/// An event placed for programs of a type. Dropping it removes the event from memory and
/// drops results that were not [collected](Self::collect).
pub(super) struct PlacedEvent<'v> {
    pub machine: &'v mut Machine,
    /// The value of r1 at a program's start.
    pub context: u64,
    /// The outer run that this one interrupts.
    around: Option<Suspended>,
    /// Whether all results were added to an outcome.
    is_collected: bool,
}

impl<'v> PlacedEvent<'v> {
    pub fn new(machine: &'v mut Machine, prog_type: ProgType, event: &Event) -> Result<Self> {
        machine.settle()?;
        let placed = event.place(prog_type, &mut machine.space)?;
        event.put_memory(&mut machine.world)?;
        let context = placed.r1();
        let around = machine.suspend();
        let this = Self {
            machine,
            context,
            around,
            is_collected: false,
        };
        this.machine.enter(prog_type, placed)?;
        Ok(this)
    }

    /// What helpers can read about the attach point.
    pub const fn site(&mut self) -> Option<&mut Site> {
        self.machine.site()
    }

    /// Adds the programs' outputs, and the final context and packet, to an outcome. To be
    /// called last.
    pub fn collect(&mut self, outcome: &mut Outcome) {
        let machine = &mut *self.machine;
        if let Some(current) = machine.current() {
            outcome.context = current.placed.context_bytes(&machine.space);
            outcome.context_kind = Some(current.prog_type.info().context);
            outcome.kern = current.placed.kern.clone();
            outcome.packet = current.placed.packet_bytes(&machine.space);
            outcome.metadata = current.placed.metadata(&machine.space).unwrap_or_default();
            outcome.overridden = current.placed.site.overridden.or(outcome.overridden);
        }
        add(&mut outcome.outputs, machine.take_outputs());
        add(&mut outcome.nested, machine.take_nested());
        add(&mut outcome.stale, machine.space.take_stale());
        add(&mut outcome.probed, machine.take_probed());
        add(&mut outcome.leaks, machine.take_leaks());
        add(&mut outcome.injected, machine.injections.take());
        outcome.unreleased = machine.unreleased();
        self.is_collected = true;
    }
}

impl Drop for PlacedEvent<'_> {
    fn drop(&mut self) {
        let machine = &mut *self.machine;
        machine.leave();
        if !self.is_collected {
            drop(machine.take_outputs());
            drop(machine.take_nested());
            drop(machine.space.take_stale());
            drop(machine.take_probed());
            drop(machine.take_leaks());
            drop(machine.injections.take());
        }
        if let Some(around) = self.around.take() {
            machine.resume(around);
        }
    }
}

/// Appends a list that is nearly always empty.
fn add<T>(to: &mut Vec<T>, mut taken: Vec<T>) {
    if !taken.is_empty() {
        to.append(&mut taken);
    }
}
