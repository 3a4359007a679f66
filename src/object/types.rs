//! Small questions about BTF types that collecting an object asks again and again.

use rustc_hash::FxHashMap;

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// The type under typedefs and qualifiers; `void` for an endless chain of them, so
/// that whoever expects a kind doesn't find it.
pub(super) fn resolve(btf: &Btf, id: TypeId) -> Type<'_> {
    btf.resolve(id).unwrap_or_else(|_| btf.ty(TypeId(0)))
}

/// The first section of each name, looked up once: an object can have thousands.
#[derive(Debug, Default)]
pub(super) struct Sections<'a>(FxHashMap<&'a str, Type<'a>>);

impl<'a> Sections<'a> {
    pub fn new(btf: Option<&'a Btf>) -> Self {
        let types = btf.into_iter().flat_map(Btf::own_types);
        let sections = types.filter(|ty| ty.kind() == Kind::Datasec);
        // The last insertion stays, and it should be the first section.
        Self(sections.rev().map(|ty| (ty.name(), ty)).collect())
    }

    /// The first section of this name.
    pub fn get(&self, name: &str) -> Option<Type<'a>> {
        self.0.get(name).copied()
    }
}
