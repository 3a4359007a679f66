//! Subsets of a table: some types, and all types reachable from them.
//!
//! A program uses few of a kernel's 127,000 types. From a task some 6,000 others are
//! reachable; from a tracepoint's record a dozen.

use rustc_hash::FxHashSet;

use super::blob::Btf;
use super::builder::Builder;
use super::error::BtfError;
use super::kind::Word;
use crate::util::TypeId;

/// The ids of the types in a [part](Btf::part).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartIds {
    /// New ids without gaps, in the old order.
    Renumbered,
    /// The old ids, which instructions may refer to. Types outside of the part become an
    /// unnamed `const void`.
    Kept,
}

impl Btf {
    /// These types and all that they refer to, also through pointers. Types that refer to
    /// them (declaration tags, sections) are included only if listed. The base of a split
    /// table is kept whole.
    ///
    /// ```
    /// use bpflab::btf::{Builder, Encoding, Kind, PartIds};
    ///
    /// let mut builder = Builder::new();
    /// builder.structure("other", 0, &[]);
    /// let int = builder.int("int", 4, Encoding::Signed);
    /// let pointer = builder.ptr(int);
    /// let wanted = builder.typedef("number_p", pointer);
    /// let part = builder.build()?.part([wanted], PartIds::Renumbered)?;
    ///
    /// assert_eq!(part.own_types().count(), 3);
    /// assert!(part.find("int", Kind::Int).is_some());
    /// assert!(part.find("other", Kind::Struct).is_none());
    /// # Ok::<(), bpflab::btf::BtfError>(())
    /// ```
    ///
    /// # Errors
    /// [`BtfError`] if the result doesn't pass the checks, which would be a bug here.
    pub fn part(
        &self,
        wanted: impl IntoIterator<Item = TypeId>,
        ids: PartIds,
    ) -> Result<Self, BtfError> {
        let reached = self.reached(wanted);
        let first = self.first_id();
        let new_id = |old: TypeId| match (ids, reached.binary_search(&old)) {
            (PartIds::Renumbered, Ok(rank)) => TypeId(first.0 + TypeId::from_index(rank).0),
            _ => old,
        };
        let mut builder = match self.base() {
            Some(base) => Builder::split(base),
            None => Builder::new(),
        };
        for ty in self.own_types() {
            if reached.binary_search(&ty.id()).is_ok() {
                builder.copy(ty, new_id);
            } else if ids == PartIds::Kept {
                builder.constant(TypeId(0));
            }
        }
        builder.build()
    }

    /// The own types among these and all reachable from them, in order.
    fn reached(&self, from: impl IntoIterator<Item = TypeId>) -> Vec<TypeId> {
        let mut reached = FxHashSet::default();
        let mut waiting: Vec<_> = from.into_iter().collect();
        while let Some(id) = waiting.pop() {
            if id < self.first_id() || id.0 >= self.count() || !reached.insert(id) {
                continue;
            }
            let words = self.ty(id).record();
            let references = words.filter(|(_, meaning)| *meaning == Word::Type);
            waiting.extend(references.map(|(word, _)| TypeId(word)));
        }
        let mut reached = Vec::from_iter(reached);
        reached.sort_unstable();
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::tests::{vmlinux, zoo};
    use crate::btf::{Encoding, Kind, Member, Type};

    #[test]
    fn circles_are_followed_and_ids_are_as_asked_for() {
        let mut builder = Builder::new();
        builder.structure("left_out", 0, &[]);
        let int = builder.int("int", 4, Encoding::Signed);
        let list = TypeId(builder.next_id().0 + 1);
        let next = builder.ptr(list);
        let members = [("number", int, 0), ("next", next, 64)];
        let members = members.map(|(name, ty, bit_offset)| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        });
        builder.structure("list", 16, &members);
        let btf = builder.build().unwrap();

        let renumbered = btf.part([next, list], PartIds::Renumbered).unwrap();
        let names: Vec<_> = renumbered.own_types().map(|ty| ty.name()).collect();
        assert_eq!(names, ["int", "", "list"]);
        let found = renumbered.find("list", Kind::Struct).unwrap();
        let next = found.members().last().unwrap();
        assert_eq!(renumbered.ty(next.ty).target_id(), Some(found.id()));

        let kept = btf.part([list], PartIds::Kept).unwrap();
        assert_eq!(kept.count(), btf.count());
        assert_eq!(kept.find("list", Kind::Struct).unwrap().id(), list);
        assert!(kept.find("left_out", Kind::Struct).is_none());
        assert_eq!(
            kept.part([list], PartIds::Renumbered).unwrap().to_bytes(),
            renumbered.to_bytes()
        );
    }

    #[test]
    fn a_part_of_everything_is_everything() {
        let btf = zoo().build().unwrap();
        let all = || btf.own_types().map(|ty| ty.id());
        for ids in [PartIds::Renumbered, PartIds::Kept] {
            let part = btf.part(all(), ids).unwrap();
            assert_eq!(part.count(), btf.count());
            for (one, other) in btf.own_types().zip(part.own_types()) {
                assert_eq!(one.name(), other.name());
                let data = |ty: Type<'_>| -> Vec<_> {
                    ty.record()
                        .filter(|(_, meaning)| *meaning != Word::Name)
                        .collect()
                };
                assert_eq!(data(one), data(other), "{}", one.name());
            }
            let nothing = btf.part([TypeId(0), TypeId(u32::MAX)], ids).unwrap();
            assert!(nothing.own_types().all(|ty| ty.name().is_empty()));
        }
    }

    #[test]
    fn a_task_leads_to_a_small_part_of_the_kernel() {
        let Some(bytes) = vmlinux() else {
            return;
        };
        let btf = Btf::parse(&bytes).unwrap();
        let task = btf.find("task_struct", Kind::Struct).unwrap();
        let part = btf.part([task.id()], PartIds::Renumbered).unwrap();
        assert!(part.to_bytes().len() < bytes.len() / 4);
        let same = part.find("task_struct", Kind::Struct).unwrap();
        let offsets = |task: Type<'_>| -> Vec<_> {
            let members = task.members();
            members
                .map(|member| (member.name.to_owned(), member.bit_offset))
                .collect()
        };
        assert_eq!(offsets(task), offsets(same));
        assert_eq!(part.size_of(same.id()), btf.size_of(task.id()));
    }
}
