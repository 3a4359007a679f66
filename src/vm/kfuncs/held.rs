//! What a program that runs has to give back before it ends. The verifier lets no program
//! pass that forgets any of it; here it is kept track of.

use smallvec::SmallVec;

use super::super::machine::Machine;
use super::super::memory::Pointer;
use super::iterator::Iterator;
use crate::vm::fault::HelperProblem;

/// What one program that runs holds.
#[derive(Debug, Default)]
pub struct Held {
    /// Addresses of the objects it has references to, once for each reference.
    references: SmallVec<[u64; 4]>,
    /// Its iterators, by the address of their place on the stack.
    iterators: SmallVec<[(u64, Iterator); 2]>,
    /// How many RCU read sections it is in.
    pub(super) rcu: u32,
    /// How often it disabled preemption.
    pub(super) preempt: u32,
    /// Where it saved the interrupts' state, the last one last.
    pub(super) interrupts: SmallVec<[u64; 1]>,
}

impl Held {
    /// Notes a reference.
    pub(super) fn acquire(&mut self, object: u64) {
        self.references.push(object);
    }

    /// Forgets a reference; whether there was one.
    pub(super) fn release(&mut self, object: u64) -> bool {
        let at = self.references.iter().rposition(|held| *held == object);
        at.map(|at| self.references.remove(at)).is_some()
    }

    /// Makes an iterator at a place; whether there was none.
    pub(super) fn begin(&mut self, at: u64, iterator: Iterator) -> bool {
        let is_new = self.iterator(at).is_none();
        if is_new {
            self.iterators.push((at, iterator));
        }
        is_new
    }

    /// The iterator at a place.
    pub(super) fn iterator(&mut self, at: u64) -> Option<&mut Iterator> {
        let found = self.iterators.iter_mut().rfind(|(place, _)| *place == at);
        found.map(|(_, iterator)| iterator)
    }

    /// Ends the iterator at a place.
    pub(super) fn end(&mut self, at: u64) {
        self.iterators.retain(|(place, _)| *place != at);
    }
}

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
    pub(in crate::vm) fn still_held(&self) -> impl std::iter::Iterator<Item = Pointer> {
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
        let held = self.kfuncs.end();
        for object in held.references {
            // It is gone already, or was never ours.
            let _ = super::object::drop_object(self, object);
        }
    }
}
