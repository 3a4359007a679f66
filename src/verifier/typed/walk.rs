//! What an access to an object of a BTF type reaches (`btf_struct_walk`,
//! `btf_struct_ids_match`, `kernel/bpf/btf.c`).

use crate::btf::{Btf, Kind, Type};
use crate::spec::helpers::TypeFlags;
use crate::util::TypeId;
use crate::verifier::reject::{VerifyResult, reject};

/// The maximum nesting of structures. The kernel has no limit: its BTF has no loops.
const MAX_DEPTH: u32 = 256;
/// The maximum number of types that a member's size depends on (`MAX_RESOLVE_DEPTH`).
const MAX_RESOLVE: u32 = 32;

/// What an access reaches (`enum bpf_struct_walk_result`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached<'b> {
    /// A part of a number.
    Scalar,
    /// A pointer to a structure of this type. The flags come from a type tag on the
    /// structure, and `PTR_UNTRUSTED` from a union on the way.
    Pointer {
        id: TypeId,
        flags: TypeFlags,
        member: &'b str,
    },
    /// A pointer to anything else.
    Untyped,
    /// The start of a nested structure.
    Structure(TypeId),
}

/// An access, relative to a structure. The kernel computes in 32 bits.
#[derive(Clone, Copy)]
struct Span {
    off: u32,
    size: u32,
}

impl Span {
    const fn end(self) -> u32 {
        self.off.wrapping_add(self.size)
    }
}

/// A member's type, of an array that of its elements (`__btf_resolve_size`).
struct Resolved<'b> {
    ty: Type<'b>,
    /// The type as a pointer to it would name it.
    id: TypeId,
    /// The size of all elements together.
    size: u32,
    /// The number of elements, if it is an array.
    count: Option<u32>,
}

/// What an access of `size` bytes at `off` of a structure reaches. `flags` are those found on
/// the way so far; `flexible` allows the elements of a flexible array.
///
/// # Errors
/// The kernel's: the access is outside, or covers a pointer in part.
fn step<'b>(
    btf: &'b Btf,
    id: TypeId,
    (off, size): (u32, u32),
    flags: &mut TypeFlags,
    flexible: bool,
) -> VerifyResult<Reached<'b>> {
    let mut ty = btf.ty(id);
    let mut span = Span { off, size };
    for _ in 0..MAX_DEPTH {
        if ty.kind().is_modifier() {
            ty = resolve(btf, ty);
        }
        let name = shown(ty.name());
        if !ty.kind().is_composite() {
            reject!(EINVAL, "Type '{name}' is not a struct");
        }
        if ty.kind() == Kind::Union && ty.vlen() != 1 {
            *flags |= TypeFlags::PTR_UNTRUSTED;
        }
        if span.end() > ty.size().unwrap_or(0) {
            match flexible.then(|| flexible_element(btf, ty, span)).flatten() {
                Some((element, _)) if element.kind() == Kind::Int => return Ok(Reached::Scalar),
                Some((element, off)) => {
                    ty = element;
                    span.off = off;
                    continue;
                }
                None => reject!(
                    EACCES,
                    "access beyond struct {name} at off {} size {size}",
                    span.off
                ),
            }
        }
        match member_at(btf, ty, span, *flags)? {
            Found::Is(reached) => {
                if let Reached::Pointer { flags: tags, .. } = reached {
                    *flags |= tags;
                }
                return Ok(reached);
            }
            Found::Inside(inner, off) => {
                ty = inner;
                span.off = off;
            }
        }
    }
    reject!(EINVAL, "")
}

/// The element of the flexible array at a structure's end that a byte belongs to, and the
/// offset in it.
fn flexible_element<'b>(btf: &'b Btf, ty: Type<'b>, span: Span) -> Option<(Type<'b>, u32)> {
    let last = ty.members().next_back()?;
    let array = resolve(btf, btf.ty(last.ty)).array()?;
    let start = last.bit_offset / 8;
    if array.len != 0 || span.off < start {
        return None;
    }
    let element = resolve(btf, btf.ty(array.element));
    if element.kind() == Kind::Int {
        return Some((element, 0));
    }
    let size = element.size().filter(|_| element.kind().is_composite())?;
    Some((element, (span.off - start).checked_rem(size)?))
}

/// A member that an access touches.
enum Found<'b> {
    Is(Reached<'b>),
    /// The access is inside this structure, at this offset.
    Inside(Type<'b>, u32),
}

/// The member that an access touches.
fn member_at<'b>(
    btf: &'b Btf,
    ty: Type<'b>,
    span: Span,
    flags: TypeFlags,
) -> VerifyResult<Found<'b>> {
    let Span { off, size } = span;
    for member in ty.members() {
        let mut start = member.bit_offset / 8;
        if span.end() <= start {
            break;
        }
        if let Some(bits) = member.bitfield {
            let end = (member.bit_offset + u32::from(bits)).div_ceil(8);
            if off <= start && end <= span.end() {
                return Ok(Found::Is(Reached::Scalar));
            }
            continue;
        }
        if off < start {
            break;
        }
        let Some(mut found) = resolve_size(btf, member.ty) else {
            reject!(EFAULT, "field {} doesn't have size", shown(member.name));
        };
        let end = start.wrapping_add(found.size);
        if off >= end {
            continue;
        }
        if let Some(count) = found.count {
            found.size = found.size.checked_div(count).unwrap_or(0);
            let number = (off - start).checked_div(found.size).unwrap_or(0);
            start += number * found.size;
        }
        if found.ty.kind().is_composite() {
            return Ok(if off == start {
                Found::Is(Reached::Structure(found.id))
            } else {
                Found::Inside(found.ty, off - start)
            });
        }
        if found.ty.kind() == Kind::Ptr {
            if found.size != size || off != start {
                reject!(
                    EACCES,
                    "cannot access ptr member {} with moff {start} in struct {} with off {off} \
                     size {size}",
                    shown(member.name),
                    shown(ty.name())
                );
            }
            let pointed = found.ty.target_id().unwrap_or_default();
            let object = resolve(btf, btf.ty(pointed));
            return Ok(Found::Is(if object.kind().is_composite() {
                Reached::Pointer {
                    id: object.id(),
                    flags: tag_flags(btf.ty(pointed)),
                    member: member.name,
                }
            } else {
                Reached::Untyped
            }));
        }
        if span.end() > end && !flags.contains(TypeFlags::PTR_UNTRUSTED) {
            reject!(
                EACCES,
                "access beyond the end of member {} (mend:{end}) in struct {} with off {off} \
                 size {size}",
                shown(member.name),
                shown(ty.name())
            );
        }
        return Ok(Found::Is(Reached::Scalar));
    }
    reject!(
        EINVAL,
        "struct {} doesn't have field at offset {}",
        shown(ty.name()),
        off.cast_signed()
    )
}

/// A name in a message (`__btf_name_by_offset`).
const fn shown(name: &str) -> &str {
    if name.is_empty() { "(anon)" } else { name }
}

/// The flags of a type tag that a pointer's target begins with.
fn tag_flags(target: Type<'_>) -> TypeFlags {
    if target.kind() != Kind::TypeTag || target.kind_flag() {
        return TypeFlags::empty();
    }
    match target.name() {
        "user" => TypeFlags::MEM_USER,
        "percpu" => TypeFlags::MEM_PERCPU,
        "rcu" => TypeFlags::MEM_RCU,
        _ => TypeFlags::empty(),
    }
}

/// The type without qualifiers, tags and typedefs.
fn resolve<'b>(btf: &'b Btf, ty: Type<'b>) -> Type<'b> {
    btf.resolve(ty.id()).unwrap_or(ty)
}

/// A member's type with its size; `None` if it has no size.
fn resolve_size(btf: &Btf, member: TypeId) -> Option<Resolved<'_>> {
    let mut ty = btf.get(member)?;
    let mut id = member;
    let mut element = None;
    let mut count = 1u32;
    for _ in 0..MAX_RESOLVE {
        let size = match ty.kind() {
            Kind::Ptr => 8,
            Kind::Array => {
                let array = ty.array()?;
                count = count.checked_mul(array.len)?;
                element = Some(array.element);
                ty = btf.get(array.element)?;
                continue;
            }
            kind if kind.is_modifier() => {
                id = ty.target_id()?;
                ty = btf.get(id)?;
                continue;
            }
            _ => ty.size()?,
        };
        return Some(Resolved {
            ty,
            id: element.unwrap_or(id),
            size: size.checked_mul(count)?,
            count: element.map(|_| count),
        });
    }
    None
}

/// What an access finally reaches: never a structure, since the access continues at its
/// first member (`btf_struct_access`).
///
/// # Errors
/// As [`step`].
pub(crate) fn access(
    btf: &Btf,
    mut id: TypeId,
    mut off: u32,
    size: u32,
    flexible: bool,
) -> VerifyResult<Reached<'_>> {
    let mut flags = TypeFlags::empty();
    for _ in 0..MAX_DEPTH {
        match step(btf, id, (off, size), &mut flags, flexible)? {
            Reached::Structure(inner) => (id, off) = (inner, 0),
            Reached::Pointer { id, member, .. } => {
                return Ok(Reached::Pointer { id, flags, member });
            }
            other => return Ok(other),
        }
    }
    reject!(EINVAL, "")
}

/// Whether an object has one of type `wanted` at `off`: itself, a member or a nested member.
/// With `strict`, only itself.
///
/// # Errors
/// It has not. The text is what the kernel logs about the search, which may be nothing.
pub(crate) fn holds(
    btf: &Btf,
    mut id: TypeId,
    mut off: u32,
    wanted: TypeId,
    strict: bool,
    flexible: bool,
) -> VerifyResult {
    if off == 0 && id == wanted {
        return Ok(());
    }
    if strict {
        reject!(EINVAL, "");
    }
    let mut flags = TypeFlags::empty();
    for _ in 0..MAX_DEPTH {
        match step(btf, id, (off, 1), &mut flags, flexible)? {
            Reached::Structure(inner) if inner == wanted => return Ok(()),
            Reached::Structure(inner) => (id, off) = (inner, 0),
            _ => break,
        }
    }
    reject!(EINVAL, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Array, Builder, Encoding, Member};

    /// `struct inner { int a; void *data; }`, `struct outer { int n; struct inner in[2]; union
    /// { long x; struct inner *p; } choice; struct inner *p; struct inner last[]; }`.
    fn types() -> (Btf, TypeId, TypeId) {
        let mut types = Builder::new();
        let int = types.int("int", 4, Encoding::Signed);
        let long = types.int("long", 8, Encoding::Signed);
        let member = |name, ty, bit_offset| Member {
            name,
            ty,
            bit_offset,
            bitfield: None,
        };
        let void = types.ptr(TypeId(0));
        let inner = types.structure(
            "inner",
            16,
            &[member("a", int, 0), member("data", void, 64)],
        );
        let pointer = types.ptr(inner);
        let mut array = |len| {
            types.array(Array {
                element: inner,
                index: int,
                len,
            })
        };
        let (flexible, array) = (array(0), array(2));
        let choice = types.union(
            "choice",
            8,
            &[member("x", long, 0), member("p", pointer, 0)],
        );
        let outer = types.structure(
            "outer",
            56,
            &[
                member("n", int, 0),
                member("in", array, 64),
                member("choice", choice, 320),
                member("p", pointer, 384),
                member("last", flexible, 448),
            ],
        );
        (types.build().unwrap(), inner, outer)
    }

    #[test]
    fn an_access_reaches_numbers_and_pointers() {
        let (btf, inner, outer) = types();
        let at = |off, size| access(&btf, outer, off, size, true);
        let text = |off, size| at(off, size).unwrap_err().message().to_owned();
        assert_eq!(at(0, 4), Ok(Reached::Scalar));
        assert_eq!(at(8, 4), Ok(Reached::Scalar));
        assert_eq!(at(32, 8), Ok(Reached::Untyped));
        let pointer = |flags| Reached::Pointer {
            id: inner,
            flags,
            member: "p",
        };
        assert_eq!(at(48, 8), Ok(pointer(TypeFlags::empty())));
        assert_eq!(at(40, 8), Ok(Reached::Scalar), "the union's first member");
        assert_eq!(at(56 + 16, 4), Ok(Reached::Scalar), "a flexible array");
        assert_eq!(
            access(&btf, outer, 72, 4, false).unwrap_err().message(),
            "access beyond struct outer at off 72 size 4"
        );
        assert_eq!(text(4, 4), "struct outer doesn't have field at offset 4");
        assert_eq!(
            text(0, 8),
            "access beyond the end of member n (mend:4) in struct outer with off 0 size 8"
        );
        assert_eq!(
            text(48, 4),
            "cannot access ptr member p with moff 48 in struct outer with off 48 size 4"
        );
    }

    #[test]
    fn an_object_is_found_in_another() {
        let (btf, inner, outer) = types();
        let has = |off, strict| holds(&btf, outer, off, inner, strict, true).is_ok();
        assert!(has(8, false) && has(24, false));
        // The search goes into an element of a flexible array, past the element itself.
        assert!(!has(56, false));
        assert!(!has(0, false) && !has(12, false) && !has(8, true));
        assert!(holds(&btf, outer, 0, outer, true, true).is_ok());
    }
}
