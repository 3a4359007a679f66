//! BTF look-ups that collecting an object needs often.

use rustc_hash::FxHashMap;

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// The type without typedefs and qualifiers; `void` for a reference loop, so that checks of
/// the kind fail.
pub(super) fn resolve(btf: &Btf, id: TypeId) -> Type<'_> {
    btf.resolve(id).unwrap_or_else(|_| btf.ty(TypeId(0)))
}

/// The first section of each name, cached: an object can have thousands.
#[derive(Debug, Default)]
pub(super) struct Sections<'a>(FxHashMap<&'a str, Type<'a>>);

impl<'a> Sections<'a> {
    pub fn new(btf: Option<&'a Btf>) -> Self {
        let types = btf.into_iter().flat_map(Btf::own_types);
        let sections = types.filter(|ty| ty.kind() == Kind::Datasec);
        // The last insertion wins, and it should be the first section.
        Self(sections.rev().map(|ty| (ty.name(), ty)).collect())
    }

    /// The first section of this name.
    pub fn get(&self, name: &str) -> Option<Type<'a>> {
        self.0.get(name).copied()
    }
}
