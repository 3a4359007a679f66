//! The special fields in a map's value, as far as they decide whether a program may
//! use the map (`btf_parse_fields`, `kernel/bpf/btf.c`).

use crate::btf::{Btf, Kind};
use crate::spec::ValueField;
use crate::util::TypeId;

/// How deep structs are looked into (`MAX_RESOLVE_DEPTH`, `kernel/bpf/btf.c`).
const MAX_DEPTH: usize = 32;

/// Structs that the kernel watches over.
const WATCHED: &[(&str, ValueField)] = &[
    ("bpf_spin_lock", ValueField::SpinLock),
    ("bpf_res_spin_lock", ValueField::SpinLock),
    ("bpf_timer", ValueField::Timer),
    ("bpf_wq", ValueField::Workqueue),
    ("bpf_list_head", ValueField::Graph),
    ("bpf_rb_root", ValueField::Graph),
];

/// Whether a value of this type holds such a field, in whatever depth.
pub(super) fn holds(btf: &Btf, value: TypeId, field: ValueField) -> bool {
    holds_within(btf, value, field, MAX_DEPTH)
}

fn holds_within(btf: &Btf, value: TypeId, field: ValueField, depth: usize) -> bool {
    let (Some(depth), Some(ty)) = (depth.checked_sub(1), btf.get(value)) else {
        return false;
    };
    let inside = |id: TypeId| holds_within(btf, id, field, depth);
    match ty.kind() {
        Kind::Struct | Kind::Union => match WATCHED.iter().find(|(name, _)| *name == ty.name()) {
            Some((_, found)) => *found == field,
            None => ty.members().any(|member| inside(member.ty)),
        },
        Kind::Datasec => ty.variables().any(|var| {
            btf.get(var.ty)
                .and_then(|var| var.target_id())
                .is_some_and(inside)
        }),
        Kind::Array => ty.array().is_some_and(|array| inside(array.element)),
        _ => false,
    }
}
