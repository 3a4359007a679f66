//! The pointers in the kernel's structures that inputs have to set.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::btf::{Btf, Kind, Type};
use crate::spec::object::member_trust;
use crate::util::TypeId;

/// A pointer to a structure.
#[derive(Debug)]
pub(super) struct Pointer {
    /// Its offset in the object, in bytes.
    pub offset: usize,
    /// The structure that it points to.
    pub to: TypeId,
}

/// The pointers of structures, and whether all were asked for.
type Known = FxHashMap<(TypeId, bool), Rc<[Pointer]>>;

thread_local! {
    /// What was looked up in the last table: a kernel's types stay the same for a whole campaign.
    static KNOWN: RefCell<Option<(Btf, Known)>> = const { RefCell::new(None) };
}

/// The pointers of an object that programs may take for not null. `all` are those to structures
/// that are members of the type itself; otherwise those that the verifier trusts, with those of
/// structures within it.
pub(super) fn pointers(ty: Type<'_>, all: bool) -> Rc<[Pointer]> {
    KNOWN.with_borrow_mut(|last| {
        if !last.as_ref().is_some_and(|(btf, _)| btf.same(ty.btf())) {
            *last = None;
        }
        let (_, known) = last.get_or_insert_with(|| (ty.btf().clone(), Known::default()));
        let pointers = known.entry((ty.id(), all)).or_insert_with(|| {
            let mut found = Vec::new();
            let part = Part {
                ty,
                offset: 0,
                is_whole: true,
            };
            find(ty, part, all, &mut found);
            found.into()
        });
        Rc::clone(pointers)
    })
}

/// A structure in an object.
struct Part<'a> {
    ty: Type<'a>,
    /// Its offset in the object, in bytes.
    offset: usize,
    /// Whether its members are members of the object.
    is_whole: bool,
}

/// Adds the pointers in a part of `whole`.
fn find<'a>(whole: Type<'a>, part: Part<'a>, all: bool, found: &mut Vec<Pointer>) {
    for member in part.ty.members() {
        let Ok(inner) = part.ty.btf().resolve(member.ty) else {
            continue;
        };
        let offset = part.offset + member.bit_offset as usize / 8;
        let is_anonymous = member.name.is_empty();
        match inner.kind() {
            Kind::Ptr => {
                let to = inner.target_id();
                let Some(to) = to.and_then(|to| part.ty.btf().resolve(to).ok()) else {
                    continue;
                };
                // The verifier goes by the member's name, also in a structure within this one.
                let is_trusted = || member_trust(whole.name(), member.name, to.name()).is_some();
                let is_object = to.kind() == Kind::Struct && !to.name().is_empty();
                if is_object && (all && part.is_whole || is_trusted()) {
                    let to = to.id();
                    found.push(Pointer { offset, to });
                }
            }
            kind if kind == Kind::Struct || kind == Kind::Union && is_anonymous => {
                let part = Part {
                    ty: inner,
                    offset,
                    is_whole: part.is_whole && is_anonymous,
                };
                find(whole, part, all, found);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Member};

    /// A structure with a pointer, one in an anonymous union, and one in another structure. Their
    /// offsets are moved by `by`.
    fn table(by: u8) -> Btf {
        let mut builder = Builder::new();
        let by = u32::from(by);
        let member = |name, ty, offset: u32| Member {
            name,
            ty,
            bit_offset: 8 * offset,
            bitfield: None,
        };
        let other = builder.structure("other", 8, &[]);
        let to = builder.ptr(other);
        let union = builder.union("", 8, &[member("second", to, 0)]);
        let part = builder.structure("part", 8, &[member("third", to, 0)]);
        let members = [
            member("first", to, by),
            member("", union, by + 8),
            member("part", part, by + 16),
        ];
        builder.structure("whole", by + 24, &members);
        builder.build().unwrap()
    }

    /// Another table is not answered from the first one.
    #[test]
    fn each_table_has_its_own_pointers() {
        for by in [0, 8] {
            let btf = table(by);
            let ty = btf.find("whole", Kind::Struct).unwrap();
            let offsets = |all| {
                let found = pointers(ty, all);
                found.iter().map(|it| it.offset).collect::<Vec<_>>()
            };
            let by = usize::from(by);
            assert_eq!(offsets(true), [by, by + 8]);
            assert!(offsets(false).is_empty());
        }
    }
}
