//! Subsets of a table: some types, and all types reachable from them or contained in them.
//!
//! A program uses few of a kernel's 127,000 types. From a task some 6,000 others are
//! reachable; from a tracepoint's record a dozen.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::blob::Btf;
use super::builder::Builder;
use super::error::BtfError;
use super::kind::{Kind, Word};
use super::types::{Type, Variable};
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
        let reached = self.reached(wanted, |(_, via)| via);
        self.cut(&reached, ids)
    }

    /// These types with what their members contain. Other structs and unions, behind pointers
    /// in members, are only declared. Declaration tags of these types are included; sections
    /// have the variables that are.
    ///
    /// # Errors
    /// As for [`part`](Self::part).
    pub fn outline(&self, wanted: impl IntoIterator<Item = TypeId>) -> Result<Self, BtfError> {
        let is_section = |id: TypeId| self.ty(id).kind() == Kind::Datasec;
        let wanted = wanted.into_iter().filter(|id| !is_section(*id));
        let mut reached = self.reached(wanted, Via::inside);
        let keeps = |id| reached.get(&id) == Some(&true);
        let about = self.own_types().filter(|ty| match ty.kind() {
            Kind::DeclTag => ty.target_id().is_some_and(keeps),
            Kind::Datasec => ty.variables().any(|variable| keeps(variable.ty)),
            _ => false,
        });
        let about: Vec<_> = about.map(|ty| (ty.id(), true)).collect();
        reached.extend(about);
        self.cut(&reached, PartIds::Renumbered)
    }

    /// The table of these types only; those with `false` are only declared.
    fn cut(&self, reached: &BTreeMap<TypeId, bool>, ids: PartIds) -> Result<Self, BtfError> {
        let first = self.first_id();
        let ranks: FxHashMap<TypeId, TypeId> = { reached.keys().copied() }
            .zip((first.0..).map(TypeId))
            .collect();
        let new_id = |old: TypeId| match ids {
            PartIds::Renumbered => ranks.get(&old).copied().unwrap_or(old),
            PartIds::Kept => old,
        };
        let mut builder = match self.base() {
            Some(base) => Builder::split(base),
            None => Builder::new(),
        };
        for ty in self.own_types() {
            match reached.get(&ty.id()) {
                Some(true) if ty.kind() == Kind::Datasec => {
                    let variables = ty.variables().filter(|at| reached.contains_key(&at.ty));
                    let variables = variables.map(|at| Variable {
                        ty: new_id(at.ty),
                        ..at
                    });
                    let variables: Vec<_> = variables.collect();
                    builder.section(ty.name(), ty.size().unwrap_or(0), &variables);
                }
                Some(true) => {
                    builder.copy(ty, new_id);
                }
                Some(false) => {
                    builder.forward(ty.name(), ty.kind() == Kind::Union);
                }
                None if ids == PartIds::Kept => {
                    builder.constant(TypeId(0));
                }
                None => {}
            }
        }
        builder.build()
    }

    /// The own types among these and all reachable from them, as `inside` says; `false` for
    /// those that are only to be declared.
    fn reached(
        &self,
        from: impl IntoIterator<Item = TypeId>,
        inside: impl Fn((Type<'_>, Via)) -> Via,
    ) -> BTreeMap<TypeId, bool> {
        let mut seen = FxHashSet::default();
        let mut reached = BTreeMap::new();
        let mut waiting: Vec<_> = from.into_iter().map(|id| (id, Via::Kept)).collect();
        while let Some((id, via)) = waiting.pop() {
            if id < self.first_id() || id.0 >= self.count() || !seen.insert((id, via)) {
                continue;
            }
            let ty = self.ty(id);
            let inside = inside((ty, via));
            let kept = inside != Via::Declared;
            *reached.entry(id).or_default() |= kept;
            if kept {
                let references = ty.record().filter(|(_, meaning)| *meaning == Word::Type);
                waiting.extend(references.map(|(word, _)| (TypeId(word), inside)));
            }
        }
        reached
    }
}

/// How a type was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Via {
    /// From a wanted type that is no struct or union.
    Kept,
    /// As a member.
    Member,
    /// Through a pointer in a member.
    Pointer,
    /// Not further than its name.
    Declared,
}

impl Via {
    /// How an [outline](Btf::outline) reaches what a type refers to.
    fn inside((ty, via): (Type<'_>, Self)) -> Self {
        match (ty.kind(), via) {
            (Kind::Struct | Kind::Union, Self::Pointer) if !ty.name().is_empty() => Self::Declared,
            (Kind::Struct | Kind::Union, _) => Self::Member,
            (Kind::Ptr, Self::Member) => Self::Pointer,
            (_, via) => via,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::tests::{vmlinux, zoo};
    use crate::btf::{Encoding, Linkage, Member, Param};

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
    fn an_outline_declares_what_members_point_to() {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let inner = builder.structure("inner", 4, &[member("number", int, 0)]);
        let other = builder.structure("other", 4, &[member("number", int, 0)]);
        let pointer = builder.ptr(other);
        let members = [member("inner", inner, 0), member("other", pointer, 64)];
        let outer = builder.structure("outer", 16, &members);
        let argument = builder.ptr(outer);
        let parameter = Param {
            name: "outer",
            ty: argument,
        };
        let prototype = builder.prototype(int, &[parameter]);
        let function = builder.function("function", prototype, Linkage::Static);
        builder.decl_tag("bpf_kfunc", function, None, false);
        builder.decl_tag("unused", other, None, false);
        let sections = [("kept", int), ("left_out", pointer)].map(|(name, ty)| {
            let ty = builder.variable(name, ty, Linkage::Global);
            let offset = 0;
            Variable {
                ty,
                offset,
                size: 4,
            }
        });
        builder.section(".data", 8, &sections);
        let btf = builder.build().unwrap();

        let names = |btf: &Btf| -> Vec<_> {
            let types = btf.own_types().filter(|ty| !ty.name().is_empty());
            types.map(|ty| (ty.kind(), ty.name().to_owned())).collect()
        };
        let outline = btf.outline([function, sections[0].ty]).unwrap();
        let of = |kind, name: &str| (kind, name.to_owned());
        let expected = [
            of(Kind::Int, "int"),
            of(Kind::Struct, "inner"),
            of(Kind::Fwd, "other"),
            of(Kind::Struct, "outer"),
            of(Kind::Func, "function"),
            of(Kind::DeclTag, "bpf_kfunc"),
            of(Kind::Var, "kept"),
            of(Kind::Datasec, ".data"),
        ];
        assert_eq!(names(&outline), expected);
        let section = outline.find(".data", Kind::Datasec).unwrap();
        let variables: Vec<_> = { section.variables() }
            .map(|variable| outline.ty(variable.ty).name().to_owned())
            .collect();
        assert_eq!(variables, ["kept"]);
        // Wanted itself, the type keeps its members.
        let outline = btf.outline([outer, other]).unwrap();
        assert!(outline.find("other", Kind::Struct).is_some());
        assert_eq!(
            outline.outline(ids(&outline)).unwrap().to_bytes(),
            outline.to_bytes()
        );
    }

    fn ids(btf: &Btf) -> Vec<TypeId> {
        btf.own_types().map(|ty| ty.id()).collect()
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
