//! Removal of all objects from lists and trees that are freed.

use super::super::fault::HelperProblem;
use super::super::state::Machine;
use super::red_black::Tree;
use super::words::{broken, link, next, store};

/// The most nodes of a list or tree that is freed: more than a program has time to create.
const MAX_NODES: usize = 1 << 24;

/// Empties a list and returns its objects.
pub(in crate::vm) fn take_list(machine: &Machine, head: u64) -> Result<Vec<u64>, HelperProblem> {
    let mut found = Vec::new();
    let mut node = next(machine, head)?;
    while node != 0 && node != head {
        let object = machine.shared.objects.at(node);
        let (object, _) = object.ok_or_else(|| broken("a node is in no object"))?;
        if found.len() >= MAX_NODES {
            return Err(broken("it does not end"));
        }
        found.push(object);
        node = next(machine, node)?;
    }
    link(machine, head, head)?;
    Ok(found)
}

/// Empties a tree and returns its objects.
pub(in crate::vm) fn take_tree(machine: &Machine, root: u64) -> Result<Vec<u64>, HelperProblem> {
    let nodes = Tree { machine, root }.nodes(MAX_NODES)?;
    let object = |node| machine.shared.objects.at(node).map(|(start, _)| start);
    let objects: Option<Vec<_>> = nodes.into_iter().map(object).collect();
    store(machine, root, 0)?;
    store(machine, root.wrapping_add(8), 0)?;
    objects.ok_or_else(|| broken("a node is in no object"))
}
