//! Small questions about BTF types that collecting an object asks again and again.

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// The type under typedefs and qualifiers; `void` for an endless chain of them, so
/// that whoever expects a kind doesn't find it.
pub(super) fn resolve(btf: &Btf, id: TypeId) -> Type<'_> {
    btf.resolve(id).unwrap_or_else(|_| btf.ty(TypeId(0)))
}

/// The first section of this name.
pub(super) fn section<'a>(btf: &'a Btf, name: &str) -> Option<Type<'a>> {
    btf.find(name, Kind::Datasec)
}
