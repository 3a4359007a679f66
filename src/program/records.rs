//! The types of records.

use rustc_hash::FxHashMap;

use super::MapDef;
use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// The types of records in ring and perf buffers.
///
/// An object need not declare them. The type of a record is
///
/// 1. the type that was set for its map ([`RecordTypes::set`]);
/// 2. the value type that the map declares, if that is a struct or union;
/// 3. the struct of the record's size that is called `event` or that a global variable points
///    to, if there is exactly one: authors keep the type in BTF by `const struct event *unused`.
#[derive(Debug, Clone, Default)]
pub struct RecordTypes {
    btf: Option<Btf>,
    of_map: FxHashMap<String, TypeId>,
    kept: Vec<TypeId>,
}

impl RecordTypes {
    /// The types that the maps of an object declare.
    #[must_use]
    pub fn new(btf: Option<&Btf>, maps: &[MapDef]) -> Self {
        let mut types = Self {
            btf: btf.cloned(),
            ..Self::default()
        };
        let Some(btf) = btf else {
            return types;
        };
        for map in maps {
            if let Some(ty) = map.value_type
                && btf.resolve(ty).is_ok_and(|ty| ty.kind().is_composite())
            {
                types.of_map.insert(map.name.clone(), ty);
            }
        }
        let pointed_to = |variable: Type<'_>| {
            let pointer = btf.resolve(variable.target_id()?).ok()?;
            let target = btf.resolve(pointer.target_id()?).ok()?;
            (pointer.kind() == Kind::Ptr && target.kind() == Kind::Struct).then_some(target.id())
        };
        let variables = btf.own_types().filter(|ty| ty.kind() == Kind::Var);
        types.kept = variables.filter_map(pointed_to).collect();
        types
            .kept
            .extend(btf.find("event", Kind::Struct).map(|ty| ty.id()));
        types.kept.sort_unstable();
        types.kept.dedup();
        types
    }

    /// Sets the type of a map's records by its name in C (`struct event`); false if there is none.
    pub fn set(&mut self, map: &str, name: &str) -> bool {
        let kinds: &[Kind] = match name.split_once(' ') {
            Some(("struct", _)) => &[Kind::Struct],
            Some(("union", _)) => &[Kind::Union],
            _ => &[Kind::Typedef, Kind::Struct, Kind::Union, Kind::Int],
        };
        let bare = name.rsplit(' ').next().unwrap_or(name);
        let found = self.btf.as_ref().and_then(|btf| {
            kinds
                .iter()
                .find_map(|kind| btf.find(bare, *kind))
                .map(|ty| ty.id())
        });
        if let Some(ty) = found {
            self.of_map.insert(map.to_owned(), ty);
        }
        found.is_some()
    }

    /// The BTF that the types are of.
    #[must_use]
    pub const fn btf(&self) -> Option<&Btf> {
        self.btf.as_ref()
    }

    /// The type of a map's record of this many bytes, if it is known.
    #[must_use]
    pub fn type_of(&self, map: &str, len: usize) -> Option<TypeId> {
        let btf = self.btf.as_ref()?;
        let size_of = |ty| btf.size_of(ty).ok().map(|size| size as usize);
        let known = self.of_map.get(map).copied();
        let known = known.filter(|ty| size_of(*ty).is_some_and(|size| size <= len));
        let mut fitting = self.kept.iter().filter(|ty| size_of(**ty) == Some(len));
        match (known, fitting.next(), fitting.next()) {
            (Some(ty), ..) => Some(ty),
            (None, Some(ty), None) => Some(*ty),
            _ => None,
        }
    }
}
