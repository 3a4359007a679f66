//! What a program that runs acquires and gives back, as the machine keeps it.

use super::super::fault::HelperProblem;
use super::super::machine::Machine;
use super::super::memory::Pointer;
use super::held::Held;
use super::release::drop_object;

/// What is told of something that has no address.
fn named(place: impl Into<String>) -> Pointer {
    Pointer::Region {
        place: place.into(),
        offset: 0,
        len: 0,
        live: true,
    }
}

impl Machine {
    /// What the program that runs now holds.
    pub(super) const fn held(&mut self) -> &mut Held {
        &mut self.kfuncs.held
    }

    /// Notes that the program that runs now got a reference to an object, and has to give
    /// it back.
    pub fn acquire(&mut self, object: u64) {
        self.kfuncs.held.acquire(object);
    }

    /// Takes back the reference to an object that the program gives away.
    ///
    /// # Errors
    /// [`HelperProblem::Argument`] where it has none.
    pub fn release(&mut self, arg: usize, object: u64) -> Result<(), HelperProblem> {
        if self.kfuncs.held.release(object) {
            return Ok(());
        }
        Err(HelperProblem::Argument {
            arg,
            found: self.pointer(object),
            wanted: "an object that the program holds a reference to",
        })
    }

    /// What the program that runs now would have to give back before it ends, in words.
    pub(in crate::vm) fn still_held(&self) -> impl Iterator<Item = Pointer> {
        let held = &self.kfuncs.held;
        let references = held.references.iter().map(|object| self.pointer(*object));
        let iterators = held.iterators.iter().map(|(at, iterator)| {
            let at = self.pointer(*at);
            named(format!("iterator bpf_iter_{} at {at}", iterator.name()))
        });
        let sections = [
            (held.rcu, "RCU read section"),
            (held.preempt, "section with preemption disabled"),
        ];
        let sections = sections
            .into_iter()
            .flat_map(|(depth, name)| (0..depth).map(move |_| named(name)));
        let interrupts = held.interrupts.iter().map(|at| {
            let at = self.pointer(*at);
            named(format!("state of interrupts saved at {at}"))
        });
        references
            .chain(iterators)
            .chain(sections)
            .chain(interrupts)
    }

    /// The program has ended: nothing is held any more. What it had references to, loses
    /// them.
    pub(in crate::vm) fn forget_held(&mut self) {
        let Some(held) = self.kfuncs.end() else {
            return;
        };
        for object in held.references {
            // It is gone already, or was never ours.
            let _ = drop_object(self, object);
        }
    }
}
