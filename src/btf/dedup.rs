//! Merges equal types, as a linker does after it has appended several tables.
//!
//! Two types are equal if kind, name, sizes, members and, recursively, the types they refer
//! to are equal. With reference loops that is the coarsest partition in which equal types
//! refer to equal types. It is found by refinement: at first, all types that look alike on
//! their own share a class; then classes are split by the classes of the types they refer
//! to, until no class splits any more.
//!
//! A forward declaration is merged with the definition of its name if all definitions of
//! that name look alike. Variables and sections are storage, not types, and are never
//! merged.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::blob::Btf;
use super::builder::Builder;
use super::error::BtfError;
use super::kind::{Kind, Word};
use super::types::Type;
use crate::util::TypeId;

/// Rounds of refinement before giving up: the longest reference chain at whose end types
/// may differ. Tables that need more are left as they are.
const MAX_ROUNDS: usize = 256;

impl Btf {
    /// The same types with equal ones merged, and the new id of each old one. Ids of the
    /// base are kept; types are not merged with base types.
    ///
    /// # Errors
    /// [`BtfError`] if the result doesn't pass the checks, which would be a bug here.
    pub fn deduplicate(&self) -> Result<(Self, Vec<TypeId>), BtfError> {
        let first = self.first_id();
        let stands_for = definitions(self);
        let classes = refine(self, &stands_for);

        let mut builder = match self.base() {
            Some(base) => Builder::split(base),
            None => Builder::new(),
        };
        // The first type of each class is kept; ids are assigned in the old order.
        let mut ids: FxHashMap<u32, TypeId> = FxHashMap::default();
        let mut kept = Vec::new();
        let mut next = first.0;
        for ty in self.own_types() {
            if resolve(&stands_for, ty.id()) != ty.id() {
                continue;
            }
            let class = class(&classes, first, ty.id());
            ids.entry(class).or_insert_with(|| {
                kept.push(ty.id());
                next += 1;
                TypeId(next - 1)
            });
        }
        let map = |old: TypeId| {
            let class = class(&classes, first, resolve(&stands_for, old));
            if old < first {
                old
            } else {
                ids.get(&class).copied().unwrap_or(old)
            }
        };
        for id in kept {
            builder.copy(self.ty(id), map);
        }
        let all = (0..self.count()).map(|old| map(TypeId(old))).collect();
        Ok((builder.build()?, all))
    }
}

/// The definition that a type stands for, or the type itself.
fn resolve(stands_for: &FxHashMap<TypeId, TypeId>, id: TypeId) -> TypeId {
    stands_for.get(&id).copied().unwrap_or(id)
}

/// A type's class; each base type is a class of its own.
fn class(classes: &[u32], first: TypeId, id: TypeId) -> u32 {
    match id.index().checked_sub(first.index()) {
        None => id.0,
        Some(own) => classes.get(own).copied().unwrap_or(u32::MAX),
    }
}

/// Maps each forward declaration to its definition.
fn definitions(btf: &Btf) -> FxHashMap<TypeId, TypeId> {
    let mut found = FxHashMap::default();
    let mut by_name: HashMap<(&str, Kind), Option<TypeId>> = HashMap::new();
    for ty in btf
        .own_types()
        .filter(|ty| ty.is_forward() && !ty.name().is_empty())
    {
        let kind = match ty.kind() {
            Kind::Fwd if ty.kind_flag() => Kind::Union,
            Kind::Fwd => Kind::Struct,
            kind => kind,
        };
        let definition = *by_name.entry((ty.name(), kind)).or_insert_with(|| {
            let mut all = btf.named(ty.name()).filter(|other| {
                other.kind() == kind && !other.is_forward() && other.id() >= btf.first_id()
            });
            let one = all.next()?;
            all.all(|other| alike(one, other)).then_some(one.id())
        });
        if let Some(definition) = definition {
            found.insert(ty.id(), definition);
        }
    }
    found
}

/// Whether two types are equal except for their references.
fn alike(one: Type<'_>, other: Type<'_>) -> bool {
    one.record().count() == other.record().count()
        && one
            .record()
            .zip(other.record())
            .all(|((a, meaning), (b, _))| match meaning {
                Word::Name => one.btf().string(a) == other.btf().string(b),
                Word::Type => true,
                Word::Data => a == b,
            })
}

/// The class of each own type.
fn refine(btf: &Btf, stands_for: &FxHashMap<TypeId, TypeId>) -> Vec<u32> {
    let first = btf.first_id();
    let mut strings: HashMap<&str, u32> = HashMap::new();
    let mut alone = Numbering::new(first);
    let mut classes: Vec<u32> = btf
        .own_types()
        .map(|ty| {
            let mut signature: Vec<u32> = ty
                .record()
                .map(|(word, meaning)| match meaning {
                    Word::Name => {
                        let next = TypeId::from_index(strings.len()).0;
                        *strings
                            .entry(btf.string(word).unwrap_or_default())
                            .or_insert(next)
                    }
                    Word::Type => 0,
                    Word::Data => word,
                })
                .collect();
            if matches!(ty.kind(), Kind::Var | Kind::Datasec) {
                signature.push(ty.id().0);
            }
            alone.of(signature)
        })
        .collect();
    let mut count = alone.known.len();

    for _ in 0..MAX_ROUNDS {
        let mut numbering = Numbering::new(first);
        let split: Vec<u32> = btf
            .own_types()
            .map(|ty| {
                let own = class(&classes, first, ty.id());
                let references = ty.record().filter(|(_, meaning)| *meaning == Word::Type);
                let references = references
                    .map(|(word, _)| class(&classes, first, resolve(stands_for, TypeId(word))));
                numbering.of(std::iter::once(own).chain(references).collect())
            })
            .collect();
        classes = split;
        if numbering.known.len() == count {
            return classes;
        }
        count = numbering.known.len();
    }
    (first.0..btf.count()).collect()
}

/// Numbers signatures, starting above the ids of the base.
struct Numbering {
    first: u32,
    known: HashMap<Vec<u32>, u32>,
}

impl Numbering {
    fn new(first: TypeId) -> Self {
        Self {
            first: first.0,
            known: HashMap::new(),
        }
    }

    fn of(&mut self, signature: Vec<u32>) -> u32 {
        let next = self
            .first
            .saturating_add(TypeId::from_index(self.known.len()).0);
        *self.known.entry(signature).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::zoo;
    use super::super::{Encoding, Linkage, Member};
    use super::*;

    fn member(name: &str, ty: TypeId) -> Member<'_> {
        Member {
            name,
            ty,
            bit_offset: 0,
            bitfield: None,
        }
    }

    /// `struct list { struct list *next; }`, with the pointer type added first or last.
    fn list(b: &mut Builder, name: &str) -> TypeId {
        let ptr = b.ptr(TypeId(b.next_id().0 + 1));
        b.structure("list", 8, &[member(name, ptr)])
    }

    #[test]
    fn two_copies_become_one_but_for_their_variables() {
        let zoo_btf = zoo().build().unwrap();
        let (once, _) = zoo_btf.deduplicate().unwrap();
        let mut twice = zoo();
        let moved = twice.append(&zoo_btf);
        let (merged, map) = twice.build().unwrap().deduplicate().unwrap();
        assert_eq!(
            merged.count(),
            once.count() + 2,
            "a second variable and section"
        );
        for ty in zoo_btf
            .types()
            .filter(|ty| !matches!(ty.kind(), Kind::Var | Kind::Datasec))
        {
            assert_eq!(
                map[ty.id().index()],
                map[moved.get(ty.id()).index()],
                "{ty:?}"
            );
            assert_eq!(merged.ty(map[ty.id().index()]).name(), ty.name());
        }
    }

    #[test]
    fn circles_merge_and_what_differs_stays() {
        let mut b = Builder::new();
        let (one, two, other) = (
            list(&mut b, "next"),
            list(&mut b, "next"),
            list(&mut b, "prev"),
        );
        let int = b.int("int", 4, Encoding::Signed);
        let proto = b.prototype(int, &[]);
        b.function("f", proto, Linkage::Static);
        let (btf, map) = b.build().unwrap().deduplicate().unwrap();
        assert_eq!(map[one.index()], map[two.index()]);
        assert_ne!(map[one.index()], map[other.index()]);
        assert_eq!(btf.named("list").count(), 2);
        let merged = btf.ty(map[two.index()]);
        let pointer = btf.ty(merged.members().next().unwrap().ty);
        assert_eq!(
            pointer.target_id(),
            Some(merged.id()),
            "the circle is closed"
        );
    }

    #[test]
    fn a_declaration_becomes_its_definition_if_there_is_one() {
        let mut b = Builder::new();
        let forward = b.forward("list", false);
        let to_forward = b.ptr(forward);
        let full = list(&mut b, "next");
        let to_full = b.ptr(full);
        let lonely = b.forward("unknown", false);
        let (btf, map) = b.build().unwrap().deduplicate().unwrap();
        assert_eq!(map[forward.index()], map[full.index()]);
        assert_eq!(map[to_forward.index()], map[to_full.index()]);
        assert_eq!(btf.ty(map[lonely.index()]).kind(), Kind::Fwd);
        assert_eq!(btf.count(), 1 + 3);
    }

    #[test]
    fn a_chain_that_differs_at_its_end_is_left_alone() {
        let mut b = Builder::new();
        for name in ["a", "b"] {
            let mut chain = b.forward(name, false);
            for _ in 0..MAX_ROUNDS + 10 {
                chain = b.ptr(chain);
            }
        }
        let btf = b.build().unwrap();
        assert_eq!(btf.deduplicate().unwrap().0.count(), btf.count());
    }
}
