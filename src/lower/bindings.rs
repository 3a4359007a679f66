//! What a program is bound to when it is lowered.

use crate::vm::memory::Address;
use crate::vm::{Machine, MapHandle};

/// What a program is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The machine's maps, in the order of the program's.
    pub maps: &'a [MapHandle],
    /// The region whose offsets are the program's functions, by slot.
    pub functions: Address,
}
