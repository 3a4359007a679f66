//! What the kernel's text puts before a value: `.member = (struct type *[])[`.

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// The most pointers, arrays and typedefs around one another.
const MAX_NESTING: usize = 10;
/// Bytes of the text, exclusive of its NUL.
const MAX_LEN: usize = 79;

/// What a declaration is around the type at its end.
#[derive(Default)]
struct Around<'a> {
    /// The first typedef.
    typedef: Option<&'a str>,
    pointers: usize,
    arrays: usize,
}

/// The text before a value of type `id`, which is a member of this name or has none;
/// without names only the bracket that is opened.
pub(super) fn of(btf: &Btf, id: TypeId, member: &str, names: bool) -> String {
    let Some((around, ty)) = walk(btf, id) else {
        return String::new();
    };
    let name = around.typedef.unwrap_or_else(|| ty.name());
    let (prefix, bracket) = match ty.kind() {
        Kind::Struct => ("struct", "{"),
        Kind::Union => ("union", "{"),
        Kind::Enum | Kind::Enum64 => ("enum", ""),
        _ => ("", ""),
    };
    let bracket = match (around.pointers, around.arrays) {
        (1.., _) => "",
        (0, 1..) => "[",
        (0, 0) => bracket,
    };
    if !names {
        return bracket.to_owned();
    }
    let prefix = match around.typedef {
        Some(_) => "",
        None => prefix,
    };
    let space = |wanted| if wanted { " " } else { "" };
    let mut text = String::new();
    if !member.is_empty() {
        text = format!(".{member} = ");
    }
    text.push('(');
    text.push_str(prefix);
    text.push_str(space(!prefix.is_empty() && !name.is_empty()));
    text.push_str(name);
    text.push_str(space(around.pointers > 0));
    text.push_str(&"*".repeat(around.pointers));
    text.push_str(&"[]".repeat(around.arrays));
    text.push(')');
    text.push_str(bracket);
    while text.len() > MAX_LEN {
        text.pop();
    }
    text
}

/// Goes from a declaration to the type at its end; `None` where it is too far.
fn walk(btf: &Btf, id: TypeId) -> Option<(Around<'_>, Type<'_>)> {
    let mut around = Around::default();
    let mut ty = btf.get(id)?;
    for _ in 0..MAX_NESTING {
        let next = match ty.kind() {
            Kind::Typedef => {
                around.typedef.get_or_insert(ty.name());
                ty.target_id()
            }
            Kind::Array => {
                around.arrays += 1;
                ty.array().map(|array| array.element)
            }
            Kind::Ptr => {
                around.pointers += 1;
                ty.target_id()
            }
            _ => None,
        };
        match next.filter(|next| next.0 != 0) {
            Some(next) => ty = unqualified(btf, next)?,
            None => return Some((around, ty)),
        }
    }
    None
}

/// The type without what qualifies it; typedefs stay.
fn unqualified(btf: &Btf, id: TypeId) -> Option<Type<'_>> {
    btf.unqualified(id).ok()
}
