//! Releasing references: the last one frees the object and everything it owns
//! (`__bpf_obj_drop_impl`, `kernel/bpf/helpers.c`).

use super::super::fault::HelperProblem;
use super::super::state::Machine;
use super::contents::{take_list, take_tree};
use crate::btf::{FieldKind, SpecialField};

/// Releases one reference to the object at an address. The last release frees the object and
/// everything it owns. Returns false, without an effect, if no program allocated the object.
///
/// # Errors
/// [`HelperProblem::Other`] if its lists or trees are corrupt.
pub fn drop_object(machine: &mut Machine, at: u64) -> Result<bool, HelperProblem> {
    // Objects may own objects to any depth.
    let mut left = vec![at];
    let mut found = false;
    while let Some(at) = left.pop() {
        let Some(object) = machine.shared.objects.get(at) else {
            continue;
        };
        found = true;
        if let Some(count) = object.field(FieldKind::Refcount) {
            let less = |count: u64| count.saturating_sub(1);
            let old = machine.space.update(at.wrapping_add(count), 4, less);
            let old = old.map_err(|fault| HelperProblem::Other(fault.to_string()))?;
            if old > 1 {
                continue;
            }
        }
        for part in object.parts(machine.world.cpus()) {
            left.extend(owned(machine, &object.fields, at.wrapping_add(part))?);
        }
        machine.shared.objects.lock().remove(&at);
        machine.space.kernel().free(&object.block);
    }
    Ok(found)
}

/// Frees the objects that the fields at an address own, and zeroes the fields, before a map
/// value is replaced or deleted (`bpf_obj_free_fields`, `kernel/bpf/syscall.c`).
///
/// # Errors
/// [`HelperProblem::Other`] if lists or trees are corrupt.
pub fn free_fields(
    machine: &mut Machine,
    fields: &[SpecialField],
    at: u64,
) -> Result<(), HelperProblem> {
    for object in owned(machine, fields, at)? {
        drop_object(machine, object)?;
    }
    Ok(())
}

/// Removes and returns the objects that the fields at an address own.
fn owned(machine: &Machine, fields: &[SpecialField], at: u64) -> Result<Vec<u64>, HelperProblem> {
    let mut found = Vec::new();
    for field in fields {
        let at = at.wrapping_add(u64::from(field.off));
        match field.kind {
            FieldKind::ListHead => found.extend(take_list(machine, at)?),
            FieldKind::RbRoot => found.extend(take_tree(machine, at)?),
            FieldKind::KptrRef | FieldKind::KptrPercpu => {
                let old = machine.space.update(at, 8, |_| 0);
                found.extend(old.ok().filter(|object| *object != 0));
            }
            _ => {}
        }
    }
    Ok(found)
}
