//! Small questions about BTF types that collecting an object asks again and again.

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// How many typedefs and qualifiers are looked through: the kernel's limit
/// (`MAX_RESOLVE_DEPTH`, `kernel/bpf/btf.c`). Hostile BTF has endless chains.
const MAX_DEPTH: usize = 32;

/// The type under typedefs and qualifiers.
pub(super) fn resolve(btf: &Btf, id: TypeId) -> Type<'_> {
    let mut ty = btf.ty(id);
    for _ in 0..MAX_DEPTH {
        match ty.target() {
            Some(target) if ty.kind().is_modifier() => ty = target,
            _ => break,
        }
    }
    ty
}

/// The first section of this name.
pub(super) fn section<'a>(btf: &'a Btf, name: &str) -> Option<Type<'a>> {
    btf.find(name, Kind::Datasec)
}
