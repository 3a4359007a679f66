//! What a lowered program is bound to.

use super::escape::EscapingFrames;
use crate::vm::memory::Address;
use crate::vm::{Machine, MapHandle};

/// The machine, maps and function addresses that a program is bound to, and whose frames get new
/// addresses there.
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The machine's maps, in the order of the program's maps.
    pub maps: &'a [MapHandle],
    /// The region whose offsets are the slots of the program's functions.
    pub functions: Address,
    /// The functions of the program whose frames escape.
    pub escaping: &'a EscapingFrames,
}
