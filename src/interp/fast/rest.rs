//! What machine code leaves to the interpreters: the rest of a function, and programs that
//! it is left for. Its functions have no [levels](super::run::Level): the run does not
//! know how their callers go on.

use super::super::image::Image;
use super::super::stack::STRIDE;
use super::run::Run;
use crate::lower::{Lowered, Target};
use crate::vm::{Fault, Machine};

impl<'a> Run<'a> {
    /// Takes over the innermost function, which has no level, before an operation of it.
    pub(crate) fn take_over(&mut self, at: Target) {
        let functions = self.lowered.functions();
        let after = functions.partition_point(|function| function.entry <= at);
        let function = functions.get(after.saturating_sub(1));
        self.lends = function.is_none_or(|function| function.lends);
        self.know_number();
    }

    /// Runs a program in the innermost frame, which is left to it, to its end; its r0.
    pub(crate) fn run_in_place(
        &mut self,
        machine: &mut Machine,
        image: &'a Image,
        lowered: &'a Lowered,
    ) -> Result<u64, Box<Fault>> {
        self.aside(machine, |run, machine| {
            run.leave_to(machine, image, lowered);
            if let Some(native) = run.native() {
                run.host.frame_end += STRIDE as u64;
                return run.execute_native(machine, native.way_in_place());
            }
            if let Some(main) = lowered.functions().first() {
                run.take_frame(main);
            }
            let floor = run.levels.len();
            run.thread(machine, 0, floor)
        })
    }

    /// Executes the rest of the innermost function, which has no level, from an operation
    /// on, its leaving included; its r0.
    pub(crate) fn finish(&mut self, machine: &mut Machine, at: Target) -> Result<u64, Box<Fault>> {
        self.aside(machine, |run, machine| {
            run.take_over(at);
            let floor = run.levels.len();
            run.execute(machine, at, floor)
        })
    }
}
