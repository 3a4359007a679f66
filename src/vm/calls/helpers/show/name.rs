//! The text in front of a value: `.member = (struct type *[])[`.

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// Maximum nesting of pointers, arrays and typedefs.
const MAX_NESTING: usize = 10;
/// Maximum length of the text, without its NUL.
const MAX_LEN: usize = 79;

/// The declarators around a type.
#[derive(Default)]
struct Around<'a> {
    /// The first typedef.
    typedef: Option<&'a str>,
    pointers: usize,
    arrays: usize,
}

/// The text in front of a value of type `id`, with the member's name if any. Without names
/// only the opening bracket.
pub(super) fn of(btf: &Btf, id: TypeId, member: &str, names: bool) -> String {
    let Some((around, ty)) = resolve(btf, id) else {
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

/// Strips the declarators of a type; `None` if they are nested too deeply.
fn resolve(btf: &Btf, id: TypeId) -> Option<(Around<'_>, Type<'_>)> {
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

/// The type without qualifiers; typedefs remain.
fn unqualified(btf: &Btf, id: TypeId) -> Option<Type<'_>> {
    btf.unqualified(id).ok()
}
