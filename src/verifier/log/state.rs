//! A state in the log's notation (`print_verifier_state`, `kernel/bpf/log.c`).

use crate::verifier::env::Verifier;

impl Verifier<'_> {
    /// Prints the innermost frame of the current state: all of it, or what was touched
    /// since it was last printed.
    pub(crate) fn log_state(&mut self, _all: bool) {}

    /// Prints what the instruction changed, behind it (`print_insn_state`).
    pub(crate) fn log_insn_state(&mut self) {}

    /// Prints the instruction under way and the source line it came from.
    pub(crate) fn log_insn(&mut self) {}

    /// Prints a frame as a whole.
    pub(crate) fn log_frame(&mut self, _frame: usize) {}
}
