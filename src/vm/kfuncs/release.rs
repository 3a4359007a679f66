//! The last reference to an object goes, and the object with it, and what it owns
//! (`__bpf_obj_drop_impl`, `kernel/bpf/helpers.c`).

use super::super::fault::HelperProblem;
use super::super::machine::Machine;
use super::contents::{take_list, take_tree};
use crate::btf::{FieldKind, SpecialField};

/// Takes one reference from the object at an address, and frees it after the last one,
/// with all that it owns. Whether there is such an object: others are left alone.
///
/// # Errors
/// [`HelperProblem::Other`] where what it owns is not what it should be.
pub fn drop_object(machine: &mut Machine, at: u64) -> Result<bool, HelperProblem> {
    // Objects may own objects, as deep as a program likes.
    let mut left = vec![at];
    let mut found = false;
    while let Some(at) = left.pop() {
        let Some(object) = machine.kfuncs.objects.get(at) else {
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
        machine.kfuncs.objects.lock().remove(&at);
        machine.space.kernel().free(&object.block);
    }
    Ok(found)
}

/// Frees what the fields at an address own, and makes them zero: before the value of a
/// map is replaced or deleted (`bpf_obj_free_fields`, `kernel/bpf/syscall.c`).
///
/// # Errors
/// [`HelperProblem::Other`] where what they own is not what it should be.
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

/// The objects that the fields at an address own, which they don't any more.
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
