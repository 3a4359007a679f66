//! References and other resources that the running program acquires and releases.

use super::super::fault::HelperProblem;
use super::super::state::Machine;
use super::acquired::AcquiredResources;
use super::release::drop_object;
use crate::vm::memory::Pointer;

/// A description of a resource without an address.
fn named(place: impl Into<String>) -> Pointer {
    Pointer::Region {
        place: place.into(),
        offset: 0,
        len: 0,
        live: true,
    }
}

impl Machine {
    /// The resources that the running program acquired.
    pub(in crate::vm) const fn acquired(&mut self) -> &mut AcquiredResources {
        &mut self.run.held
    }

    /// The structure of the iterator of the running program at an address, and whether it has no
    /// further elements.
    pub(crate) fn held_iterator(&self, at: u64) -> Option<(&'static str, bool)> {
        self.run.held.iterator_state(at)
    }

    /// The addresses of the objects to which the running program has references.
    pub(crate) fn held_references(&self) -> &[u64] {
        &self.run.held.references
    }

    /// The nesting depths of RCU read sections and of disabled preemption.
    pub(crate) const fn critical_sections(&self) -> (u32, u32) {
        (self.run.held.rcu, self.run.held.preempt)
    }

    /// The addresses of the running program's saved interrupt states.
    pub(crate) fn saved_interrupts(&self) -> &[u64] {
        &self.run.held.interrupts
    }

    /// Acquires a reference to an object for the running program.
    pub fn acquire(&mut self, object: u64) {
        self.run.held.acquire(object);
    }

    /// Releases the program's reference to an object.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] if the program has no reference to the object.
    pub fn release(&mut self, arg: usize, object: u64) -> Result<(), HelperProblem> {
        if self.run.held.release(object) {
            return Ok(());
        }
        Err(HelperProblem::Argument {
            arg,
            found: self.pointer(object),
            wanted: "an object that the program holds a reference to",
        })
    }

    /// Descriptions of all resources that the running program has not released.
    pub(in crate::vm) fn still_held(&self) -> impl Iterator<Item = Pointer> {
        let acquired = &self.run.held;
        let references = acquired
            .references
            .iter()
            .map(|object| self.pointer(*object));
        let iterators = acquired.iterators.iter().map(|(at, iterator)| {
            let at = self.pointer(*at);
            named(format!("iterator {} at {at}", iterator.kind().structure()))
        });
        let sections = [
            (acquired.rcu, "RCU read section"),
            (acquired.preempt, "section with preemption disabled"),
        ];
        let sections = sections
            .into_iter()
            .flat_map(|(depth, name)| (0..depth).map(move |_| named(name)));
        let interrupts = acquired.interrupts.iter().map(|at| {
            let at = self.pointer(*at);
            named(format!("state of interrupts saved at {at}"))
        });
        references
            .chain(iterators)
            .chain(sections)
            .chain(interrupts)
    }

    /// Drops all resources at the end of a program; its references are released.
    pub(in crate::vm) fn forget_held(&mut self) {
        if self.run.held.is_empty() {
            return;
        }
        for object in std::mem::take(&mut self.run.held).references {
            // The object was freed before, or programs did not allocate it.
            let _ = drop_object(self, object);
        }
    }
}
