//! What kind of programs are made.

use crate::spec::ProgType;

/// What kind of programs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The type of the programs; any of [`TYPES`](super::TYPES) if none is given.
    pub prog_type: Option<ProgType>,
    /// Leaves out what the language does not define, or what depends on the machine: a
    /// kernel's run comes to the same then. Those are bytes of the stack that nobody
    /// wrote, the bits of addresses, and what some helpers return (time, chance, CPU),
    /// which a program calls all the same, but forgets:
    /// [`Made::masked`](super::Made::masked) counts them.
    pub defined: bool,
    /// For runs of a tracing program that are recorded: what depends on the machine is kept
    /// and goes on to be computed with, since the recording tells it; memory anywhere is
    /// read; and what can't be recorded (walks over hashes) is rare.
    pub recorded: bool,
    /// Programs that jump to one another and to themselves from any of their functions,
    /// static and global, up to the limit of tail calls and beyond, and go on with what
    /// the callers get back.
    pub tail_calls: bool,
}

impl Options {
    /// Tracing programs of a type, to be recorded in a kernel and replayed.
    #[must_use]
    pub const fn recorded(prog_type: ProgType) -> Self {
        Self {
            prog_type: Some(prog_type),
            defined: true,
            recorded: true,
            tail_calls: false,
        }
    }

    /// Whether a program forgets what depends on the machine.
    pub(super) const fn masks(self) -> bool {
        self.defined && !self.recorded
    }
}
