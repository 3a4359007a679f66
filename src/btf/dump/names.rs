//! C names of types.
//!
//! C has two relevant name spaces: tags (`struct x`) and ordinary identifiers (typedefs and
//! enumerators). A second type with the same name in one of them becomes `x___2`, which
//! CO-RE treats as the same type.

use std::borrow::Cow;
use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::super::blob::Btf;
use super::super::kind::Kind;
use super::super::types::Type;
use crate::util::TypeId;

/// Words reserved in C, and keywords of some clang version.
const KEYWORDS: &[&str] = &[
    "_Bool",
    "alignas",
    "alignof",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constexpr",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "nullptr",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "thread_local",
    "true",
    "typedef",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
];

/// Keywords only since C23; the kernel uses them as names (`typedef _Bool bool`,
/// enumerators `false` and `true`).
const FREE_BEFORE_C23: &[&str] = &[
    "alignas",
    "alignof",
    "bool",
    "constexpr",
    "false",
    "nullptr",
    "static_assert",
    "thread_local",
    "true",
    "typeof_unqual",
];

/// The words that C's own types are composed of.
const BASIC: &[&str] = &[
    "_Bool", "__int128", "char", "double", "float", "int", "long", "short", "signed", "unsigned",
    "_Float16", "__bf16",
];

/// Whether this is the name of one of C's own types: `long unsigned int`.
pub(super) fn is_basic(name: &str) -> bool {
    !name.is_empty() && name.split(' ').all(|word| BASIC.contains(&word))
}

/// The name as a C identifier: invalid characters become `_` (Rust's `Option<u32>`), and a
/// keyword gets a trailing `_`.
pub(super) fn identifier(name: &str) -> Cow<'_, str> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_badly = name.starts_with(|c: char| c.is_ascii_digit());
    if KEYWORDS.contains(&name) && !FREE_BEFORE_C23.contains(&name) {
        return Cow::Owned(format!("{name}_"));
    }
    if name.chars().all(is_good) && !starts_badly {
        return Cow::Borrowed(name);
    }
    let body = name.chars().map(|c| if is_good(c) { c } else { '_' });
    Cow::Owned(
        starts_badly
            .then_some('_')
            .into_iter()
            .chain(body)
            .collect(),
    )
}

/// Numbers of duplicate names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Number of a type's name, if it isn't the first of this name.
    types: FxHashMap<TypeId, u32>,
    /// The same for enumerators, by enum and index.
    enumerators: FxHashMap<(TypeId, usize), u32>,
}

impl Names {
    /// Numbers all names of a table.
    pub fn new(btf: &Btf) -> Self {
        let mut names = Self::default();
        let mut tags: HashMap<Cow<'_, str>, u32> = HashMap::new();
        let mut idents: HashMap<Cow<'_, str>, u32> = HashMap::new();
        // The first struct and the first union of each name, for declarations.
        let mut defined: HashMap<(&str, bool), TypeId> = HashMap::new();
        for ty in btf.types() {
            let space = match ty.kind() {
                Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 => &mut tags,
                Kind::Typedef => &mut idents,
                Kind::Int if !is_basic(ty.name()) => &mut idents,
                _ => continue,
            };
            if !ty.name().is_empty() {
                if let Some(number) = count(space, ty.name()) {
                    names.types.insert(ty.id(), number);
                }
                if ty.kind().is_composite() {
                    defined
                        .entry((ty.name(), ty.kind() == Kind::Union))
                        .or_insert(ty.id());
                }
            }
            for (index, value) in ty.enumerators().enumerate() {
                if let Some(number) = count(&mut idents, value.name) {
                    names.enumerators.insert((ty.id(), index), number);
                }
            }
        }
        // A forward declaration shares the name of its definition. It gets a number only if
        // another type has the name.
        for ty in btf.types().filter(|ty| ty.kind() == Kind::Fwd) {
            let key = (ty.name(), ty.kind_flag());
            let number = match defined.get(&key) {
                Some(twin) => names.types.get(twin).copied(),
                None => {
                    defined.insert(key, ty.id());
                    count(&mut tags, ty.name())
                }
            };
            if let Some(number) = number {
                names.types.insert(ty.id(), number);
            }
        }
        names
    }

    /// A type's name in C; empty for an anonymous one.
    pub fn of<'a>(&self, ty: Type<'a>) -> Cow<'a, str> {
        numbered(ty.name(), self.types.get(&ty.id()))
    }

    /// An enumerator's name in C.
    pub fn of_enumerator<'a>(&self, id: TypeId, index: usize, name: &'a str) -> Cow<'a, str> {
        numbered(name, self.enumerators.get(&(id, index)))
    }
}

/// Counts a name; returns its number if it isn't the first.
fn count<'a>(space: &mut HashMap<Cow<'a, str>, u32>, name: &'a str) -> Option<u32> {
    let uses = space.entry(identifier(name)).or_default();
    *uses += 1;
    (*uses > 1).then_some(*uses)
}

fn numbered<'a>(name: &'a str, number: Option<&u32>) -> Cow<'a, str> {
    match number {
        Some(number) => Cow::Owned(format!("{}___{number}", identifier(name))),
        None => identifier(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        for (name, c) in [
            ("task_struct", "task_struct"),
            ("Option<&str>", "Option__str_"),
            ("default", "default_"),
            ("bool", "bool"),
            ("0", "_0"),
            ("", ""),
        ] {
            assert_eq!(identifier(name), c);
        }
        assert!(is_basic("long unsigned int") && is_basic("__int128 unsigned"));
        assert!(!is_basic("u32") && !is_basic(""));
    }
}
