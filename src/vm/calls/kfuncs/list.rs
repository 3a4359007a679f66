//! Lists of allocated objects (`__bpf_list_add` and others, `kernel/bpf/helpers.c`).
//!
//! ```text
//! struct bpf_list_head { next, prev }          circular through the head; 0, 0 when new
//! struct bpf_list_node { next, prev, owner }   owner: the head of its list
//! ```

use super::graph::{object_of, root, take_in};
use crate::btf::FieldKind;
use crate::util::Errno;
use crate::vm::machine::objects::{NEXT, PREV, broken, link, load, next, store};
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// Offset of the owner in a node.
const OWNER: u64 = 16;

/// The head in argument 1; a new head is linked to itself.
fn head(call: &Call<'_>) -> Result {
    let head = root(call, "the list's head")?;
    if next(call.machine, head)? == 0 {
        link(call.machine, head, head)?;
    }
    Ok(head)
}

fn push(call: &mut Call<'_>, at_end: bool) -> Result {
    let head = head(call)?;
    let wanted = "a bpf_list_node of an allocated object";
    let object = object_of(call, 2, FieldKind::ListNode, wanted)?;
    let node = call.arg(2);
    if !take_in(call, object, node.wrapping_add(OWNER))? {
        return Ok(Errno::EINVAL.to_ret());
    }
    let machine = &*call.machine;
    let (before, after) = if at_end {
        (load(machine, head.wrapping_add(PREV))?, head)
    } else {
        (head, next(machine, head)?)
    };
    link(machine, node, after)?;
    link(machine, before, node)?;
    store(machine, node.wrapping_add(OWNER), head)?;
    Ok(0)
}

pub(super) fn push_front(call: &mut Call<'_>) -> Result {
    push(call, false)
}

pub(super) fn push_back(call: &mut Call<'_>) -> Result {
    push(call, true)
}

/// The first or last node; null in an empty list. No reference is acquired.
fn end(call: &Call<'_>, direction: u64) -> Result {
    let head = head(call)?;
    let node = load(call.machine, head.wrapping_add(direction))?;
    Ok(if node == head { 0 } else { node })
}

fn pop(call: &mut Call<'_>, direction: u64) -> Result {
    let node = end(call, direction)?;
    if node == 0 {
        return Ok(0);
    }
    let machine = &mut *call.machine;
    if load(machine, node.wrapping_add(OWNER))? != call.args[0] {
        return Ok(0);
    }
    let (before, after) = (
        load(machine, node.wrapping_add(PREV))?,
        next(machine, node)?,
    );
    link(machine, before, after)?;
    link(machine, node, node)?;
    store(machine, node.wrapping_add(OWNER), 0)?;
    let object = machine.shared.objects.at(node).map(|(start, _)| start);
    let object = object.ok_or_else(|| broken("a node is in no object"))?;
    machine.acquire(object);
    Ok(node)
}

pub(super) fn pop_front(call: &mut Call<'_>) -> Result {
    pop(call, NEXT)
}

pub(super) fn pop_back(call: &mut Call<'_>) -> Result {
    pop(call, PREV)
}

pub(super) fn front(call: &mut Call<'_>) -> Result {
    end(call, NEXT)
}

pub(super) fn back(call: &mut Call<'_>) -> Result {
    end(call, PREV)
}
