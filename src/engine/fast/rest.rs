//! What machine code hands over to the interpreters: the rest of a function, and the
//! targets of tail calls. Machine code's functions have no
//! [`SavedCaller`](super::run::SavedCaller): the run does not know where their callers
//! continue.

use super::super::image::Image;
use super::super::stack::STRIDE;
use super::run::Run;
use crate::lower::{Lowered, Target};
use crate::vm::{Fault, Machine};

impl<'a> Run<'a> {
    /// Takes over the innermost function, which has no saved caller, before one of its
    /// operations.
    pub(crate) fn take_over(&mut self, at: Target) {
        let functions = self.lowered.functions();
        let after = functions.partition_point(|function| function.entry <= at);
        let function = functions.get(after.saturating_sub(1));
        self.frame_escapes = function.is_none_or(|function| function.frame_escapes);
        self.load_frame_pointer();
    }

    /// Runs a program in the innermost frame, which it takes over, to its end; returns r0. An
    /// exception of the program ends only the program.
    pub(crate) fn run_in_place(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) -> Result<u64, Box<Fault>> {
        self.nested(machine, |run, machine| {
            run.leave_to(machine, image, lowered);
            run.boundary = run.host.frame_end;
            let callers = run.saved_callers.len();
            let result = match run.native() {
                Some(native) => {
                    run.host.frame_end += STRIDE as u64;
                    run.execute_native(machine, native.tail_entry_point())
                }
                None => {
                    if let Some(main) = lowered.functions().first() {
                        run.take_frame(main);
                    }
                    run.thread(machine, 0, callers)
                }
            };
            run.catch(machine, result, callers)
        })
    }

    /// Executes the rest of the innermost function, which has no saved caller, from an
    /// operation on, including its exit; returns r0.
    pub(crate) fn finish(&mut self, machine: &mut Machine, at: Target) -> Result<u64, Box<Fault>> {
        self.nested(machine, |run, machine| {
            run.take_over(at);
            let floor = run.saved_callers.len();
            run.execute(machine, at, floor)
        })
    }
}
