//! Trees of allocated objects (`bpf_rbtree_add` and others, `kernel/bpf/helpers.c`).
//!
//! `struct bpf_rb_node` is a node of a [tree](Tree), followed by the root that it belongs to.

use super::graph::{object_of, root, take_in};
use crate::btf::FieldKind;
use crate::util::Errno;
use crate::vm::machine::objects::{Side, Tree, broken, load, store};
use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// Offset of the owner in a node.
const OWNER: u64 = 24;
const NODE: &str = "a bpf_rb_node of an allocated object";

fn tree<'m>(call: &'m Call<'_>) -> std::result::Result<Tree<'m>, HelperProblem> {
    let root = root(call, "the tree's root")?;
    Ok(Tree {
        machine: &*call.machine,
        root,
    })
}

/// `bpf_rbtree_add(root, node, less)`: inserts the node at the position that the program's
/// function in argument 3 determines.
pub(super) fn add(call: &mut Call<'_>) -> Result {
    let root = tree(call)?.root;
    let object = object_of(call, 2, FieldKind::RbNode, NODE)?;
    let node = call.arg(2);
    if !take_in(call, object, node.wrapping_add(OWNER))? {
        return Ok(Errno::EINVAL.to_ret());
    }
    // While its function compares nodes, the program has the reference.
    call.machine.acquire(object);
    let (mut parent, mut side, mut leftmost) = (0, Side::Left, true);
    let mut next = tree(call)?.top()?;
    let mut depth = 0;
    while next != 0 {
        if Tree::is_too_deep(depth) {
            return Err(broken("it is too deep"));
        }
        depth += 1;
        parent = next;
        side = if call.call_back(3, [node, parent, 0, 0, 0])? != 0 {
            Side::Left
        } else {
            leftmost = false;
            Side::Right
        };
        next = tree(call)?.child(parent, side)?;
    }
    call.machine.release(2, object)?;
    tree(call)?.link(node, parent, side, leftmost)?;
    store(call.machine, node.wrapping_add(OWNER), root)?;
    Ok(0)
}

/// Whether the node in argument 2 is in the tree in argument 1.
fn is_member(call: &Call<'_>) -> std::result::Result<bool, HelperProblem> {
    let root = tree(call)?.root;
    object_of(call, 2, FieldKind::RbNode, NODE)?;
    Ok(load(call.machine, call.arg(2).wrapping_add(OWNER))? == root)
}

pub(super) fn remove(call: &mut Call<'_>) -> Result {
    if !is_member(call)? {
        return Ok(0);
    }
    let node = call.arg(2);
    tree(call)?.erase(node)?;
    store(call.machine, node.wrapping_add(OWNER), 0)?;
    let object = object_of(call, 2, FieldKind::RbNode, NODE)?;
    call.machine.acquire(object);
    Ok(node)
}

pub(super) fn first(call: &mut Call<'_>) -> Result {
    tree(call)?.first()
}

pub(super) fn top(call: &mut Call<'_>) -> Result {
    tree(call)?.top()
}

pub(super) fn left(call: &mut Call<'_>) -> Result {
    child(call, Side::Left)
}

pub(super) fn right(call: &mut Call<'_>) -> Result {
    child(call, Side::Right)
}

fn child(call: &Call<'_>, side: Side) -> Result {
    if !is_member(call)? {
        return Ok(0);
    }
    tree(call)?.child(call.arg(2), side)
}
