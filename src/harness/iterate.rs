//! Iterators: calls a program with one object after another, and finally with null.

use super::error::{Error, Result};
use super::vm::Vm;
use crate::program::Program;
use crate::spec::iterator;
use crate::vm::events::{Event, FieldValue, Iteration};
use crate::vm::{Outcome, ProgramHandle};

/// How often an object is shown again to a program that returns 1: user space keeps
/// reading.
const RETRIES: u32 = 16;

/// The session number: one file is read.
const SESSION: u64 = 1;

impl Vm {
    /// Reads an iterator to its end: calls the program with each object, and once more with
    /// null (`bpf_seq_read`, `kernel/bpf/bpf_iter.c`). The objects are those of the
    /// iterator's target: tasks, sockets, maps.
    ///
    /// A program that returns 1 is shown the same object again. The outcome has all runs,
    /// what the program wrote to the file, and its other outputs.
    ///
    /// ```no_run
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// let task = vm.world().kernel("task_struct")?.set("pid", 7)?;
    /// let outcome = vm.iterate("dump_task", [&task])?;
    /// assert_eq!(outcome.runs.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Attach`] for a program that is no iterator; the errors of
    /// [`run`](Self::run) and [`iterator`](Self::iterator).
    pub fn iterate<V: Into<FieldValue>>(
        &mut self,
        program: &str,
        objects: impl IntoIterator<Item = V>,
    ) -> Result<Outcome> {
        let target = self.target_of(program)?;
        let event = self.iterator(&target)?;
        let Some(member) = first_element(&event, &target) else {
            return Err(Error::Attach {
                program: program.to_owned(),
                why: format!("the context of iterator '{target}' has no member for an object"),
            });
        };
        let shown = objects
            .into_iter()
            .map(|object| Ok(event.clone().set(&member, object)?))
            .collect::<Result<Vec<_>>>()?;
        self.iterate_events(program, &event, shown)
    }

    /// Iterates over the elements of a map, for `SEC("iter/bpf_map_elem")`: `map` points to
    /// the map, `key` and `value` to each element. Values of maps that are not per-CPU are
    /// the map's own, and may be changed.
    ///
    /// # Errors
    /// As of [`iterate`](Self::iterate); [`Error::NoMap`], and [`Error::MapOperation`] for
    /// a map that can't be iterated.
    pub fn iterate_map(&mut self, program: &str, map: &str) -> Result<Outcome> {
        let target = self.target_of(program)?;
        let event = self.iterator(&target)?;
        let view = self.map(map)?;
        let handle = view.handle();
        let entries = view.entries_bytes()?;
        let address = self.machine.map_address(handle).unwrap_or_default();
        let event = event.set("map", address)?;
        let mut shown = Vec::with_capacity(entries.len());
        for (key, bytes) in entries {
            let found = self.machine.map(handle).and_then(|map| {
                let element = map.lookup(self.machine.world.cpu(), &key).ok().flatten();
                let is_own = !map.def().map_type.info().per_cpu;
                element.filter(|_| is_own)
            });
            let own = found.and_then(|element| self.machine.value_address(handle, element));
            let value = match own {
                Some(address) => address,
                None => self.world().kernel_bytes(&bytes)?.writable().address(),
            };
            let key = self.world().kernel_bytes(&key)?.address();
            shown.push(event.clone().set("key", key)?.set("value", value)?);
        }
        self.iterate_events(program, &event, shown)
    }

    /// The target that a program iterates over.
    fn target_of(&self, program: &str) -> Result<String> {
        let handle = self.program_handle(program)?;
        let found = self.program(handle).filter(|program| is_iterator(program));
        let target = found.and_then(|program| program.attach_target.clone());
        target.ok_or_else(|| Error::Attach {
            program: program.to_owned(),
            why: "it is not an iterator program: use a section such as SEC(\"iter/task\")"
                .to_owned(),
        })
    }

    /// Calls the program with each object, and finally with the event without one.
    fn iterate_events(
        &mut self,
        program: &str,
        none: &Event,
        shown: Vec<Event>,
    ) -> Result<Outcome> {
        let handle = self.program_handle(program)?;
        let seq = self.world().kernel_bytes(&[0; 8])?;
        let at = |seq_num: u64| Iteration {
            seq: seq.address(),
            session_id: SESSION,
            seq_num,
        };
        let mut outcome = Outcome {
            passed: true,
            ..self.machine.outcome()
        };
        let mut seq_num = 0;
        for (number, event) in (0..).zip(shown) {
            seq_num = number;
            self.show(handle, &event.iteration(at(number)), &mut outcome)?;
        }
        self.show(handle, &none.clone().iteration(at(seq_num)), &mut outcome)?;
        Ok(outcome)
    }

    /// Shows one object, repeatedly if the program returns 1.
    fn show(&mut self, program: ProgramHandle, event: &Event, outcome: &mut Outcome) -> Result<()> {
        for _ in 0..RETRIES {
            let run = self.run(program, event)?;
            let again = run.passed;
            outcome.append(run);
            if !again {
                break;
            }
        }
        Ok(())
    }
}

fn is_iterator(program: &Program) -> bool {
    crate::vm::attach::Hook::of(program) == crate::vm::attach::Hook::Iterator
}

/// The member that points to the current object: the first that is null at the end.
fn first_element(event: &Event, target: &str) -> Option<String> {
    let known = iterator::find(&format!("{}{target}", iterator::PREFIX));
    let fields = &event.layout()?.fields;
    let mut members = (0..).zip(fields);
    let of_table = known.and_then(|known| {
        let found = members.find(|(number, _)| known.element(*number).is_some());
        found.map(|(_, field)| field)
    });
    // The first field is the iterator's metadata.
    let field = of_table.or_else(|| fields.get(1))?;
    Some(field.name.clone())
}
