//! Type look-up by id and by name.

use super::blob::Btf;
use super::kind::Kind;
use super::names::essential_name;
use super::types::Type;
use crate::util::TypeId;

impl Btf {
    /// The type of this id; `void` for 0, `None` for a missing id.
    #[must_use]
    pub fn get(&self, id: TypeId) -> Option<Type<'_>> {
        if id >= self.first_id() {
            return Some(Type::new(self, id, self.record(id)?));
        }
        match self.base() {
            Some(base) => base.get(id).map(|found| found.seen_from(self)),
            None => Some(Type::void(self)),
        }
    }

    /// The type of this id; `void` for a missing id. References inside a table are checked
    /// when it is opened.
    #[must_use]
    pub fn ty(&self, id: TypeId) -> Type<'_> {
        self.get(id).unwrap_or(Type::void(self))
    }

    /// Every type in order of id: the base's first, without `void`.
    pub fn types(&self) -> impl DoubleEndedIterator<Item = Type<'_>> + ExactSizeIterator {
        self.types_from(TypeId(1))
    }

    /// The own types of this table, without those of the base.
    pub fn own_types(&self) -> impl DoubleEndedIterator<Item = Type<'_>> + ExactSizeIterator {
        self.types_from(self.first_id())
    }

    fn types_from(
        &self,
        first: TypeId,
    ) -> impl DoubleEndedIterator<Item = Type<'_>> + ExactSizeIterator {
        (first.index()..self.count() as usize).map(|index| self.ty(TypeId::from_index(index)))
    }

    /// The declaration tags of this table on a type and its members, in order of id.
    pub(crate) fn decl_tags(&self, of: TypeId) -> impl Iterator<Item = Type<'_>> {
        let pairs = self.target_and_tag();
        let first = pairs.partition_point(|(target, _)| *target < of);
        let on_it = pairs.iter().skip(first);
        on_it
            .take_while(move |(target, _)| *target == of)
            .map(|(_, tag)| self.ty(*tag))
    }

    /// The first type of this name and kind; base types come first.
    #[must_use]
    pub fn find(&self, name: &str, kind: Kind) -> Option<Type<'_>> {
        self.named(name).find(|found| found.kind() == kind)
    }

    /// The types of this name in order of id, of all kinds.
    pub fn named<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = Type<'a>> + use<'a, 'n> {
        self.flavors(name).filter(move |found| found.name() == name)
    }

    /// The types whose names equal `name`, both without flavor (`___x`), in order of id:
    /// the candidates of a CO-RE relocation.
    pub fn flavors<'a, 'n>(
        &'a self,
        name: &'n str,
    ) -> impl Iterator<Item = Type<'a>> + use<'a, 'n> {
        let name = essential_name(name);
        let mut tables: Vec<_> = std::iter::successors(self.base(), |base| base.base()).collect();
        tables.reverse();
        let of_base = tables
            .into_iter()
            .flat_map(move |table| table.own_flavors(name));
        of_base
            .map(|found| found.seen_from(self))
            .chain(self.own_flavors(name))
    }

    fn own_flavors<'a, 'n>(
        &'a self,
        essential: &'n str,
    ) -> impl Iterator<Item = Type<'a>> + use<'a, 'n> {
        self.names().candidates(essential).filter_map(move |entry| {
            let id = self.first_id().0.checked_add(u32::try_from(entry).ok()?)?;
            self.get(TypeId(id))
                .filter(|found| essential_name(found.name()) == essential)
        })
    }
}

impl<'a> Type<'a> {
    /// The type of [`target_id`](Self::target_id).
    #[must_use]
    pub fn target(&self) -> Option<Type<'a>> {
        self.target_id().map(|id| self.btf().ty(id))
    }
}
