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
}
