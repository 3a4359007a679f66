//! Declarators: a type around a name, as C writes it, inside out.

use std::fmt::Write as _;

use super::super::kind::Kind;
use super::super::types::Type;
use super::names::{identifier, is_basic};
use super::{DumpError, Dumper, PUNCTUATION, is_builtin};
use crate::util::TypeId;

/// Longest chain of pointers, arrays, functions and qualifiers of one declaration.
const MAX_CHAIN: usize = 128;

/// Qualifiers collected before the type they apply to.
#[derive(Default)]
struct Qualifiers {
    constant: bool,
    volatile: bool,
    restrict: bool,
    /// Attributes of type tags, each preceded by a space.
    attributes: String,
}

impl Qualifiers {
    /// Adds the qualifier `ty`.
    fn note(&mut self, ty: Type<'_>) {
        match ty.kind() {
            Kind::Const => self.constant = true,
            Kind::Volatile => self.volatile = true,
            Kind::Restrict => self.restrict = true,
            _ => {
                let text = ty.name();
                // Compilers don't emit text that could terminate the string literal.
                let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
                if ty.kind_flag() && text.chars().all(|c| is_plain(c) || c == ' ') {
                    self.attributes
                        .push_str(&format!(" __attribute__(({text}))"));
                } else if text.chars().all(|c| is_plain(c) && c != '"') {
                    self.attributes
                        .push_str(&format!(" __attribute__((btf_type_tag(\"{text}\")))"));
                }
            }
        }
    }

    /// The qualifiers in the order in which C writes them before a type's name.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.constant, "const"),
            (self.volatile, "volatile"),
            (self.restrict, "restrict"),
        ]
        .into_iter()
        .filter_map(|(there, word)| there.then_some(word))
    }
}

impl Dumper<'_> {
    /// The declaration of `name` (may be empty) with this type. The lines of an anonymous
    /// struct in it are indented by `level`.
    pub(super) fn declaration(
        &mut self,
        id: TypeId,
        name: &str,
        level: usize,
    ) -> Result<String, DumpError> {
        let mut declarator = name.to_owned();
        let mut ty = self.btf.ty(id);
        let mut qualifiers = Qualifiers::default();
        // Whether the declarator so far starts with a pointer's `*`.
        let mut pointer = false;
        for _ in 0..MAX_CHAIN {
            self.charge(ty.id(), PUNCTUATION + ty.name().len())?;
            match ty.kind() {
                Kind::Volatile | Kind::Const | Kind::Restrict | Kind::TypeTag => {
                    qualifiers.note(ty)
                }
                Kind::Ptr => {
                    let Qualifiers { attributes, .. } = &qualifiers;
                    let mut star = format!("*{attributes}");
                    for word in qualifiers.words() {
                        star.push(' ');
                        star.push_str(word);
                    }
                    if star.len() > 1 && !declarator.is_empty() {
                        star.push(' ');
                    }
                    declarator.insert_str(0, &star);
                    qualifiers = Qualifiers::default();
                    pointer = true;
                }
                Kind::Array => {
                    let len = ty.array().map_or(0, |array| array.len);
                    parenthesise(&mut declarator, &mut pointer);
                    let _ = write!(declarator, "[{len}]");
                    // Qualifiers of an array are its elements'.
                    ty = self
                        .btf
                        .ty(ty.array().map_or(TypeId(0), |array| array.element));
                    continue;
                }
                Kind::FuncProto => {
                    parenthesise(&mut declarator, &mut pointer);
                    let params = self.parameters(ty, level)?;
                    declarator.push_str(&params);
                    // GCC marks pointers to functions that don't return as volatile.
                    qualifiers = Qualifiers::default();
                }
                Kind::Typedef if is_builtin(ty) && ty.target_id() != Some(TypeId(0)) => {}
                _ => return self.base(ty, &qualifiers, &declarator, level),
            }
            ty = ty.target().unwrap_or(self.btf.ty(TypeId(0)));
        }
        Err(DumpError::TooDeep(id))
    }

    /// The innermost type, before its declarator.
    fn base(
        &mut self,
        ty: Type<'_>,
        qualifiers: &Qualifiers,
        declarator: &str,
        level: usize,
    ) -> Result<String, DumpError> {
        let mut text: String = qualifiers.words().flat_map(|word| [word, " "]).collect();
        match ty.kind() {
            Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::Fwd => {
                if ty.name().is_empty() {
                    text.push_str(&self.body(ty, level)?);
                } else {
                    text.push_str(&self.tag(ty));
                }
            }
            Kind::Int | Kind::Float if is_basic(ty.name()) => text.push_str(ty.name()),
            Kind::Int | Kind::Typedef => text.push_str(&self.names.of(ty)),
            Kind::Float => text.push_str(match ty.size() {
                Some(4) => "float",
                Some(2) => "_Float16",
                Some(8) => "double",
                _ => "long double",
            }),
            // Void, and kinds that can't be declared.
            _ => text.push_str("void"),
        }
        text.push_str(&qualifiers.attributes);
        if !declarator.is_empty() {
            text.push(' ');
            text.push_str(declarator);
        }
        Ok(text)
    }

    /// `struct name`, with the keyword of its kind.
    pub(super) fn tag(&self, ty: Type<'_>) -> String {
        let keyword = match ty.kind() {
            Kind::Union => "union",
            Kind::Fwd if ty.kind_flag() => "union",
            Kind::Enum | Kind::Enum64 => "enum",
            _ => "struct",
        };
        let name = self.names.of(ty);
        if name.is_empty() {
            keyword.to_owned()
        } else {
            format!("{keyword} {name}")
        }
    }

    /// A prototype's parameters, in parentheses.
    fn parameters(&mut self, proto: Type<'_>, level: usize) -> Result<String, DumpError> {
        let count = proto.params().len();
        let mut list = Vec::with_capacity(count);
        for (index, param) in proto.params().enumerate() {
            self.charge(proto.id(), PUNCTUATION + param.name.len())?;
            if param.ty == TypeId(0) {
                // The last one is `...`; a lone one is `(void)`.
                if index + 1 == count && count > 1 {
                    list.push("...".to_owned());
                }
                continue;
            }
            list.push(
                self.nested(|dumper| dumper.declaration(param.ty, &identifier(param.name), level))?,
            );
        }
        let list = if list.is_empty() {
            "void".to_owned()
        } else {
            list.join(", ")
        };
        Ok(format!("({list})"))
    }
}

/// An array of pointers needs no parentheses, a pointer to an array does.
fn parenthesise(declarator: &mut String, pointer: &mut bool) {
    if std::mem::take(pointer) {
        declarator.insert(0, '(');
        declarator.push(')');
    }
}
