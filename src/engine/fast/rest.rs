//! The rest of a function, which machine code hands over to the interpreters. Machine code's
//! functions have no [`SavedCaller`](super::run::SavedCaller): the run does not know where their
//! callers continue.

use super::run::Run;
use crate::lower::Target;
use crate::vm::{Fault, Machine};

impl Run<'_> {
    /// Takes over the innermost function, which has no saved caller, before one of its
    /// operations.
    pub(crate) fn take_over(&mut self, at: Target) {
        let functions = self.lowered.functions();
        let after = functions.partition_point(|function| function.entry <= at);
        let function = functions.get(after.saturating_sub(1));
        self.frame_escapes = function.is_none_or(|function| function.frame_escapes);
        self.load_frame_pointer();
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
