//! Access to the words of lists and trees in the machine's memory.

use super::super::fault::HelperProblem;
use super::super::state::Machine;

/// Loads a word of a list or tree.
pub(in crate::vm) fn load(machine: &Machine, at: u64) -> Result<u64, HelperProblem> {
    let loaded = machine.space.load(at, 8);
    loaded.map_err(|fault| broken(&fault.to_string()))
}

/// Stores a word of a list or tree.
pub(in crate::vm) fn store(machine: &Machine, at: u64, value: u64) -> Result<(), HelperProblem> {
    let stored = machine.space.store(at, 8, value);
    stored.map_err(|fault| broken(&fault.to_string()))
}

/// The error for a corrupt list or tree.
pub(in crate::vm) fn broken(why: &str) -> HelperProblem {
    HelperProblem::Other(format!("the list or tree is broken: {why}"))
}

/// Offsets of the pointers in a list's head or node.
pub(in crate::vm) const NEXT: u64 = 0;
pub(in crate::vm) const PREV: u64 = 8;

/// The node after a list's head or node.
pub(in crate::vm) fn next(machine: &Machine, at: u64) -> Result<u64, HelperProblem> {
    load(machine, at.wrapping_add(NEXT))
}

/// Links two nodes.
pub(in crate::vm) fn link(machine: &Machine, first: u64, second: u64) -> Result<(), HelperProblem> {
    store(machine, first.wrapping_add(NEXT), second)?;
    store(machine, second.wrapping_add(PREV), first)
}
