//! Whether two declarations of a name in different files are equal (libbpf,
//! `glob_sym_btf_matches`, `map_defs_match`).

use crate::btf::{Btf, Kind, Type};
use crate::program::MapDef;
use crate::util::TypeId;

/// Maximum number of type pairs to compare for one symbol: nested structs are exponential
/// in hostile BTF.
const MAX_STEPS: u32 = 1 << 16;
/// Deepest nesting of members and parameters.
const MAX_DEPTH: u32 = 64;

type Outcome = Result<(), String>;

/// Compares two types of different tables: kinds, names, sizes and members must be equal;
/// behind a pointer, only kinds and names.
pub(super) fn types(a: &Btf, one: TypeId, b: &Btf, other: TypeId) -> Outcome {
    Comparison { steps: MAX_STEPS }.types(a.ty(one), b.ty(other), true, 0)
}

struct Comparison {
    steps: u32,
}

impl Comparison {
    fn types(&mut self, one: Type<'_>, other: Type<'_>, mut exact: bool, depth: u32) -> Outcome {
        let (mut one, mut other) = (one, other);
        loop {
            let resolve = |ty: Type<'_>| ty.btf().resolve(ty.id()).map(|ty| ty.id());
            let (Ok(a), Ok(b)) = (resolve(one), resolve(other)) else {
                return Err("types that refer to themselves".to_owned());
            };
            (one, other) = (one.btf().ty(a), other.btf().ty(b));
            let left = self.steps.checked_sub(1).filter(|_| depth < MAX_DEPTH);
            let Some(left) = left else { return Ok(()) };
            self.steps = left;

            let names = || (one.name().to_owned(), other.name().to_owned());
            if !exact && (one.kind() == Kind::Fwd) != (other.kind() == Kind::Fwd) {
                return same("name", names());
            }
            same("kind", (one.kind().to_string(), other.kind().to_string()))?;
            let kind = one.kind();
            let is_named = kind.is_composite()
                || kind.is_any_enum()
                || matches!(kind, Kind::Fwd | Kind::Func | Kind::Var);
            if is_named {
                same("name", names())?;
            }
            match kind {
                Kind::Int | Kind::Float | Kind::Enum | Kind::Enum64 => {
                    return same("size", (text(one.size()), text(other.size())));
                }
                Kind::Struct | Kind::Union if exact => return self.members(one, other, depth),
                Kind::FuncProto => {
                    same(
                        "number of parameters",
                        (one.vlen().to_string(), other.vlen().to_string()),
                    )?;
                    for (a, b) in one.params().zip(other.params()) {
                        self.types(one.btf().ty(a.ty), other.btf().ty(b.ty), exact, depth + 1)?;
                    }
                }
                Kind::Ptr => exact = false,
                Kind::Array | Kind::Func | Kind::Var => {}
                _ => return Ok(()),
            }
            let inner = |ty: Type<'_>| match ty.array() {
                Some(array) => array.element,
                None => ty.target_id().unwrap_or_default(),
            };
            (one, other) = (one.btf().ty(inner(one)), other.btf().ty(inner(other)));
        }
    }

    fn members(&mut self, one: Type<'_>, other: Type<'_>, depth: u32) -> Outcome {
        same(
            "number of members",
            (one.vlen().to_string(), other.vlen().to_string()),
        )?;
        for (a, b) in one.members().zip(other.members()) {
            same("member", (a.name.to_owned(), b.name.to_owned()))?;
            same(
                "offset of a member",
                (a.bit_offset.to_string(), b.bit_offset.to_string()),
            )?;
            self.types(one.btf().ty(a.ty), other.btf().ty(b.ty), true, depth + 1)?;
        }
        Ok(())
    }
}

fn text(size: Option<u32>) -> String {
    size.map_or_else(|| "none".to_owned(), |size| size.to_string())
}

fn same(what: &str, (one, other): (String, String)) -> Outcome {
    if one == other {
        return Ok(());
    }
    Err(format!("{what} '{other}' instead of '{one}'"))
}

/// Compares two declarations of a map.
pub(super) fn maps(one: &MapDef, other: &MapDef) -> Outcome {
    let shape = |map: &MapDef| {
        [
            ("map type", map.map_type.name().to_owned()),
            ("key size", map.key_size.to_string()),
            ("value size", map.value_size.to_string()),
            ("max_entries", map.max_entries.to_string()),
            ("map_flags", format!("{:#x}", map.flags.bits())),
            ("map_extra", map.extra.to_string()),
            ("numa_node", map.numa_node.to_string()),
            ("pinning", format!("{:?}", map.pinning)),
        ]
    };
    for ((what, one), (_, other)) in shape(one).into_iter().zip(shape(other)) {
        same(what, (one, other))?;
    }
    match (&one.inner, &other.inner) {
        (Some(one), Some(other)) => maps(one, other),
        (None, None) => Ok(()),
        _ => Err("one of them has no inner map".to_owned()),
    }
}
