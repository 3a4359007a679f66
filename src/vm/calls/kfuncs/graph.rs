//! Code shared by lists and trees: a lock beside their root protects them, and they hold
//! nodes of allocated objects.

use crate::btf::FieldKind;
use crate::vm::machine::objects::{broken, drop_object};
use crate::vm::machine::{Call, HelperProblem, Machine};
use crate::vm::memory::{AccessKind, Address, Body, Region};

/// A node's owner after the program passed the node and before it is inserted
/// (`BPF_PTR_POISON`).
const POISON: u64 = 0xeb9f_eb9f_0000_0000;

/// The root in argument 1, in a map value or an allocated object whose lock is held.
pub(super) fn root(call: &Call<'_>, what: &'static str) -> Result<u64, HelperProblem> {
    let root = call.arg(1);
    call.check(1, 16, AccessKind::Write)?;
    let machine = &*call.machine;
    let mut held = machine.run.locks.iter().copied();
    if held.any(|lock| are_together(machine, lock, root)) {
        return Ok(root);
    }
    Err(HelperProblem::Other(format!(
        "the lock beside {what} in {} is not held",
        machine.pointer(root)
    )))
}

/// Whether two addresses are in the same map value or object.
fn are_together(machine: &Machine, a: u64, b: u64) -> bool {
    let object = |register| machine.shared.objects.at(register).map(|(start, _)| start);
    if let Some(first) = object(a) {
        return Some(first) == object(b);
    }
    let place = |register| {
        let address = Address::from_register(register)?;
        let element = match &machine.space.region(address)?.body {
            Body::Elements(slab) => {
                let span = Region::element_span(slab.value_size());
                address.offset() / span.cast_signed().max(1)
            }
            _ => 0,
        };
        Some((address.region(), address.generation(), element))
    };
    place(a).is_some_and(|there| Some(there) == place(b))
}

/// The object that contains the node in an argument.
pub(super) fn object_of(
    call: &Call<'_>,
    arg: usize,
    kind: FieldKind,
    wanted: &'static str,
) -> Result<u64, HelperProblem> {
    let node = call.arg(arg);
    let found = call.machine.shared.objects.at(node);
    let object = found.filter(|(start, object)| {
        let offset = node - start;
        let mut nodes = object.fields.iter().filter(|field| field.kind == kind);
        nodes.any(|field| u64::from(field.off) == offset)
    });
    object
        .map(|(start, _)| start)
        .ok_or_else(|| call.wrong(arg, wanted))
}

/// Drops the object of the node in argument 2 after a failed insertion.
pub(super) fn give_up(call: &mut Call<'_>) -> Result<(), HelperProblem> {
    let object = call.machine.shared.objects.at(call.arg(2));
    let Some((object, _)) = object else {
        return Ok(());
    };
    call.machine.release(2, object)?;
    drop_object(call.machine, object).map(drop)
}

/// Takes a node from the program for insertion. A node that is already in a list or tree is
/// dropped (`false`): the program gave up its reference.
pub(super) fn take_in(call: &mut Call<'_>, object: u64, owner: u64) -> Result<bool, HelperProblem> {
    call.machine.release(2, object)?;
    let poison = |old: u64| if old == 0 { POISON } else { old };
    let old = call.machine.space.update(owner, 8, poison);
    if old.map_err(|fault| broken(&fault.to_string()))? == 0 {
        return Ok(true);
    }
    drop_object(call.machine, object)?;
    Ok(false)
}
