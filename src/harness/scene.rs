//! An event in a machine's memory while programs run on it.

use super::error::Result;
use crate::spec::ProgType;
use crate::vm::attach::Site;
use crate::vm::events::Event;
use crate::vm::{Machine, Outcome, Suspended};

/// An event that was placed for programs of a type. Dropping it takes the event out of
/// memory again; what came of it and was not [collected](Self::collect) is gone then.
pub(super) struct Scene<'v> {
    pub machine: &'v mut Machine,
    /// What r1 holds at a program's start.
    pub context: u64,
    /// The run in whose middle this one is.
    around: Option<Suspended>,
}

impl<'v> Scene<'v> {
    pub fn new(machine: &'v mut Machine, prog_type: ProgType, event: &Event) -> Result<Self> {
        machine.settle()?;
        let placed = event.place(prog_type, &mut machine.space)?;
        if let Some((at, bytes)) = event.user_stack() {
            machine.world.user().map(at, bytes);
        }
        let context = placed.r1();
        let around = machine.suspend();
        let scene = Self {
            machine,
            context,
            around,
        };
        scene.machine.enter(prog_type, placed)?;
        Ok(scene)
    }

    /// What helpers know of the place.
    pub const fn site(&mut self) -> Option<&mut Site> {
        self.machine.site()
    }

    /// Adds to an outcome what programs gave out, and what context and packet are now.
    pub fn collect(&mut self, outcome: &mut Outcome) {
        let machine = &mut *self.machine;
        if let Some(current) = machine.current() {
            outcome.context = current.placed.context_bytes(&machine.space);
            outcome.context_kind = Some(current.prog_type.info().context);
            outcome.kern = current.placed.kern.clone();
            outcome.packet = current.placed.packet_bytes(&machine.space);
            outcome.overridden = current.placed.site.overridden.or(outcome.overridden);
        }
        outcome.outputs.append(&mut machine.take_outputs());
        outcome.nested.append(&mut machine.take_nested());
        outcome.stale.append(&mut machine.space.take_stale());
        outcome.probed.append(&mut machine.take_probed());
        outcome.injected.append(&mut machine.injections.take());
        outcome.unreleased = machine.unreleased().collect();
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let machine = &mut *self.machine;
        if let Some(placed) = machine.leave() {
            placed.remove(&mut machine.space);
        }
        drop(machine.take_outputs());
        drop(machine.injections.take());
        drop(machine.space.take_stale());
        drop(machine.take_probed());
        drop(machine.take_nested());
        if let Some(around) = self.around.take() {
            machine.resume(around);
        }
    }
}
