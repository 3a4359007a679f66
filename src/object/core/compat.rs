//! Type compatibility between two tables, as defined by CO-RE.
//!
//! Three relations, from loose to strict (libbpf, `relo_core.c`). *Fields are compatible*
//! compares the types of members found by name. *Types are compatible* applies to a type
//! whose existence, size or id is relocated. *Types match* requires the same members.
//! Qualifiers and typedefs are ignored.
//!
//! A type that can't be resolved (a loop) is incompatible.

use crate::btf::{Btf, Encoding, Kind, Type, essential_name};
use crate::util::TypeId;

/// Longest chain of pointers and arrays that is followed.
const MAX_CHAIN: usize = 32;
/// Deepest nesting of prototypes and members (`BPF_CORE_SPEC…_MAX_DEPTH`).
const MAX_LEVEL: u32 = 32;
/// Maximum number of comparisons for one pair: nested structs are exponential in hostile
/// BTF.
const MAX_STEPS: u32 = 1 << 20;

/// Whether two types are of one kind; both widths of enum are the same kind.
pub(super) fn same_kind(one: Type<'_>, other: Type<'_>) -> bool {
    one.kind() == other.kind() || (one.kind().is_any_enum() && other.kind().is_any_enum())
}

fn plain_int(ty: Type<'_>) -> bool {
    ty.int().is_some_and(|int| int.offset == 0)
}

/// A pair of types without qualifiers and typedefs.
fn resolve<'a>(
    local: &'a Btf,
    one: TypeId,
    target: &'a Btf,
    other: TypeId,
) -> Option<(Type<'a>, Type<'a>)> {
    Some((local.resolve(one).ok()?, target.resolve(other).ok()?))
}

/// The element type of an array, or the target of a pointer.
fn inner(ty: Type<'_>) -> TypeId {
    ty.array()
        .map(|array| array.element)
        .or(ty.target_id())
        .unwrap_or_default()
}

/// Whether a member of type `one` may be read as the target's member of type `other`: both
/// are structs or unions, pointers, integers of any size, enums of one name, or arrays of
/// such.
pub(super) fn fields_are_compatible(
    local: &Btf,
    mut one: TypeId,
    target: &Btf,
    mut other: TypeId,
) -> bool {
    for _ in 0..MAX_CHAIN {
        let Some((a, b)) = resolve(local, one, target, other) else {
            return false;
        };
        if a.kind().is_composite() && b.kind().is_composite() {
            return true;
        }
        if !same_kind(a, b) {
            return false;
        }
        match a.kind() {
            Kind::Ptr | Kind::Float => return true,
            Kind::Fwd | Kind::Enum | Kind::Enum64 => {
                let (a, b) = (essential_name(a.name()), essential_name(b.name()));
                return a.is_empty() || b.is_empty() || a == b;
            }
            Kind::Int => return plain_int(a) && plain_int(b),
            Kind::Array => (one, other) = (inner(a), inner(b)),
            _ => return false,
        }
    }
    false
}

/// Whether the target has the type: the kinds are equal, recursively for pointer targets,
/// elements and prototypes. The caller has compared the names.
pub(in crate::object) fn types_are_compatible(
    local: &Btf,
    one: TypeId,
    target: &Btf,
    other: TypeId,
) -> bool {
    let mut question = Question {
        local,
        target,
        steps: MAX_STEPS,
    };
    same_kind(local.ty(one), target.ty(other)) && question.compatible(one, other, MAX_LEVEL)
}

/// Whether the target's type matches: it has all members and enumerators of the local one
/// by name, integers have equal size and sign, arrays equal length.
pub(super) fn types_match(local: &Btf, one: TypeId, target: &Btf, other: TypeId) -> bool {
    Question {
        local,
        target,
        steps: MAX_STEPS,
    }
    .matches(one, other, false, MAX_LEVEL)
}

struct Question<'a> {
    local: &'a Btf,
    target: &'a Btf,
    steps: u32,
}

impl<'a> Question<'a> {
    fn compatible(&mut self, mut one: TypeId, mut other: TypeId, level: u32) -> bool {
        for _ in 0..MAX_CHAIN {
            let Some((a, b)) = self.next(one, other) else {
                return false;
            };
            if !same_kind(a, b) {
                return false;
            }
            match a.kind() {
                Kind::Int => return plain_int(a) && plain_int(b),
                Kind::Ptr | Kind::Array => (one, other) = (inner(a), inner(b)),
                Kind::FuncProto => {
                    let mut pairs = a.params().zip(b.params());
                    let same = a.vlen() == b.vlen()
                        && pairs.all(|(a, b)| level > 0 && self.compatible(a.ty, b.ty, level - 1));
                    if !same {
                        return false;
                    }
                    (one, other) = (inner(a), inner(b));
                }
                kind => {
                    return kind == Kind::Void
                        || kind == Kind::Fwd
                        || kind.is_composite()
                        || kind.is_any_enum();
                }
            }
        }
        false
    }

    fn matches(
        &mut self,
        mut one: TypeId,
        mut other: TypeId,
        mut behind_ptr: bool,
        level: u32,
    ) -> bool {
        if level == 0 {
            return false;
        }
        for _ in 0..MAX_CHAIN {
            let Some((a, b)) = self.next(one, other) else {
                return false;
            };
            if !names_match(a.name(), b.name()) {
                return false;
            }
            let (kind, same) = (a.kind(), a.kind() == b.kind());
            match kind {
                Kind::Void => return same,
                Kind::Fwd if same => return a.kind_flag() == b.kind_flag(),
                // A declaration matches the definition only where C accepts a declaration.
                Kind::Fwd => {
                    let wanted = if a.kind_flag() {
                        Kind::Union
                    } else {
                        Kind::Struct
                    };
                    return behind_ptr && b.kind() == wanted;
                }
                Kind::Struct | Kind::Union if behind_ptr => {
                    let declared = b.kind() == Kind::Fwd && b.kind_flag() == (kind == Kind::Union);
                    return same || declared;
                }
                Kind::Struct | Kind::Union => return same && self.members_match(a, b, level),
                Kind::Enum | Kind::Enum64 => {
                    return b.kind().is_any_enum() && self.enumerators_match(a, b);
                }
                Kind::Int => {
                    let signed =
                        |ty: Type<'_>| ty.int().map(|int| int.encoding == Encoding::Signed);
                    return same && a.size() == b.size() && signed(a) == signed(b);
                }
                Kind::Ptr if same => behind_ptr = true,
                Kind::Array if same => {
                    if a.array().map(|array| array.len) != b.array().map(|array| array.len) {
                        return false;
                    }
                }
                Kind::FuncProto if same => {
                    let mut pairs = a.params().zip(b.params());
                    let all = a.vlen() == b.vlen()
                        && pairs.all(|(a, b)| self.matches(a.ty, b.ty, behind_ptr, level - 1));
                    if !all {
                        return false;
                    }
                }
                _ => return false,
            }
            (one, other) = (inner(a), inner(b));
        }
        false
    }

    fn members_match(&mut self, a: Type<'a>, b: Type<'a>, level: u32) -> bool {
        a.vlen() <= b.vlen()
            && a.members().all(|wanted| {
                self.steps > 0
                    && b.members().any(|member| {
                        self.spend()
                            && names_match(wanted.name, member.name)
                            && self.matches(wanted.ty, member.ty, false, level - 1)
                    })
            })
    }

    fn enumerators_match(&mut self, a: Type<'a>, b: Type<'a>) -> bool {
        a.size() == b.size()
            && a.vlen() <= b.vlen()
            && a.enumerators().all(|wanted| {
                self.steps > 0
                    && b.enumerators()
                        .any(|value| self.spend() && names_match(wanted.name, value.name))
            })
    }

    /// Spends a step; false if none is left.
    fn spend(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    /// The next pair to compare, while there are steps left.
    fn next(&mut self, one: TypeId, other: TypeId) -> Option<(Type<'a>, Type<'a>)> {
        if !self.spend() {
            return None;
        }
        resolve(self.local, one, self.target, other)
    }
}

/// Whether names are equal, ignoring flavors.
fn names_match(one: &str, other: &str) -> bool {
    essential_name(one) == essential_name(other)
}
