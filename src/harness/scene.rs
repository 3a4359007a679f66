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
    /// Whether everything that programs gave out is in an outcome.
    is_collected: bool,
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
            is_collected: false,
        };
        scene.machine.enter(prog_type, placed)?;
        Ok(scene)
    }

    /// What helpers know of the place.
    pub const fn site(&mut self) -> Option<&mut Site> {
        self.machine.site()
    }

    /// Adds to an outcome what programs gave out, and what context and packet are now:
    /// the last thing to be done here.
    pub fn collect(&mut self, outcome: &mut Outcome) {
        let machine = &mut *self.machine;
        if let Some(current) = machine.current() {
            outcome.context = current.placed.context_bytes(&machine.space);
            outcome.context_kind = Some(current.prog_type.info().context);
            outcome.kern = current.placed.kern.clone();
            outcome.packet = current.placed.packet_bytes(&machine.space);
            outcome.overridden = current.placed.site.overridden.or(outcome.overridden);
        }
        add(&mut outcome.outputs, machine.take_outputs());
        add(&mut outcome.nested, machine.take_nested());
        add(&mut outcome.stale, machine.space.take_stale());
        add(&mut outcome.probed, machine.take_probed());
        add(&mut outcome.injected, machine.injections.take());
        outcome.unreleased = machine.unreleased();
        self.is_collected = true;
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let machine = &mut *self.machine;
        machine.leave();
        if !self.is_collected {
            drop(machine.take_outputs());
            drop(machine.take_nested());
            drop(machine.space.take_stale());
            drop(machine.take_probed());
            drop(machine.injections.take());
        }
        if let Some(around) = self.around.take() {
            machine.resume(around);
        }
    }
}

/// Adds what is nearly always nothing.
fn add<T>(to: &mut Vec<T>, mut taken: Vec<T>) {
    if !taken.is_empty() {
        to.append(&mut taken);
    }
}
