//! BTF that this library reads but the kernel refuses (`btf_check_all_metas` and a part of
//! `btf_check_all_types`, `kernel/bpf/btf.c`, Linux 6.18): names, linkages, sections.
//! libbpf then loads an object's programs without BTF.

use std::fmt;

use super::blob::Btf;
use super::kind::Kind;
use super::special::SpecialFields;
use super::types::{Linkage, Param, Type};
use crate::util::TypeId;

/// The longest name, NUL included (`KSYM_NAME_LEN`).
const NAME_LEN: usize = 512;

/// A type for which the kernel refuses the whole BTF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type.
    pub id: TypeId,
    /// Its kind.
    kind: Kind,
    name: String,
    /// The reason, in the kernel's words.
    pub reason: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            kind,
            name,
            reason,
        } = self;
        write!(f, "[{id}] {} {name}: {reason}", kind.name())
    }
}

impl Btf {
    /// The first type for which Linux 6.18 refuses this BTF as a whole. Checked are names
    /// of types, members, values and parameters, linkages, sections and their variables,
    /// special fields of structs.
    /// `None` does not guarantee that the kernel accepts the BTF.
    ///
    /// ```
    /// use bpflab::btf::{Builder, Linkage};
    /// use bpflab::util::TypeId;
    ///
    /// let mut builder = Builder::new();
    /// let prototype = builder.prototype(TypeId(0), &[]);
    /// builder.function("elsewhere", prototype, Linkage::Extern);
    /// let btf = builder.build().unwrap();
    /// assert_eq!(btf.refusal().unwrap().reason, "Invalid func linkage");
    /// ```
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let first = |check: fn(Type<'_>) -> Option<&'static str>| {
            self.own_types().find_map(|ty| {
                check(ty).map(|reason| Refusal {
                    id: ty.id(),
                    kind: ty.kind(),
                    name: ty.name().to_owned(),
                    reason,
                })
            })
        };
        // The kernel checks every type on its own before it resolves references, and looks
        // for special fields last.
        first(alone)
            .or_else(|| first(resolved))
            .or_else(|| first(special))
    }
}

/// The error in a type on its own (the `check_meta` of its kind).
fn alone(ty: Type<'_>) -> Option<&'static str> {
    let name = ty.name();
    let named = |wanted: bool| (!wanted).then_some("Invalid name");
    match ty.kind() {
        Kind::Func => named(is_identifier(name))
            .or_else(|| (ty.linkage() == Some(Linkage::Extern)).then_some("Invalid func linkage")),
        Kind::Var => named(is_identifier(name))
            .or_else(|| (ty.target_id() == Some(TypeId(0))).then_some("Invalid type_id"))
            .or_else(|| (ty.linkage() == Some(Linkage::Extern)).then_some("Linkage not supported")),
        Kind::Datasec => section(ty),
        Kind::Typedef | Kind::Fwd => named(is_identifier(name)),
        Kind::Ptr
        | Kind::Const
        | Kind::Volatile
        | Kind::Restrict
        | Kind::Array
        | Kind::FuncProto => named(name.is_empty()),
        Kind::TypeTag => named(!name.is_empty()),
        Kind::DeclTag => name.is_empty().then_some("Invalid value"),
        Kind::Struct | Kind::Union => named(is_optional(name)).or_else(|| {
            let members = ty.members();
            let mut names = members.map(|member| member.name);
            named(names.all(is_optional))
        }),
        Kind::Enum | Kind::Enum64 => match ty.size() {
            Some(1 | 2 | 4 | 8) => named(is_optional(name)).or_else(|| {
                let mut names = ty.enumerators().map(|value| value.name);
                named(names.all(is_identifier))
            }),
            _ => Some("Unexpected size"),
        },
        _ => None,
    }
}

/// `btf_datasec_check_meta`.
fn section(ty: Type<'_>) -> Option<&'static str> {
    let size = u64::from(ty.size().unwrap_or_default());
    let name = ty.name();
    if size == 0 {
        return Some("size == 0");
    }
    if name.is_empty()
        || name.len() >= NAME_LEN
        || !name.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
    {
        return Some("Invalid name");
    }
    let mut end = 0u64;
    for variable in ty.variables() {
        let (offset, bytes) = (u64::from(variable.offset), u64::from(variable.size));
        if variable.ty == TypeId(0) {
            return Some("Invalid type_id");
        }
        if offset < end || offset >= size {
            return Some("Invalid offset");
        }
        if bytes == 0 || bytes > size {
            return Some("Invalid size");
        }
        end = offset + bytes;
        if end > size {
            return Some("Invalid offset+size");
        }
    }
    None
}

/// The error in a type's references (the `resolve` of its kind).
fn resolved(ty: Type<'_>) -> Option<&'static str> {
    let btf = ty.btf();
    match ty.kind() {
        Kind::Datasec => ty.variables().find_map(|variable| {
            let target = btf.ty(variable.ty);
            if target.kind() != Kind::Var {
                return Some("Not a VAR kind member");
            }
            let size = target.target_id().and_then(|of| btf.size_of(of).ok());
            match size {
                None => Some("Invalid type"),
                Some(size) => (variable.size < size).then_some("Invalid size"),
            }
        }),
        Kind::Func => {
            let prototype = ty.target_id().map(|id| btf.ty(id));
            let Some(prototype) = prototype.filter(|of| of.kind() == Kind::FuncProto) else {
                return Some("Invalid type_id");
            };
            // The `...` of a variadic prototype has neither name nor type.
            let unnamed = |param: Param<'_>| param.name.is_empty() && param.ty != TypeId(0);
            prototype.params().any(unnamed).then_some("Invalid arg")
        }
        _ => None,
    }
}

/// The error in a struct's special fields (`btf_parse_struct_metas`,
/// `btf_check_and_fixup_fields`).
fn special(ty: Type<'_>) -> Option<&'static str> {
    if ty.kind() != Kind::Struct {
        return None;
    }
    let btf = ty.btf();
    if SpecialFields::are_refused(btf, ty.id()) {
        return Some("Invalid special fields");
    }
    let fields = SpecialFields::of(btf, ty.id());
    let mut roots = fields.iter().filter(|field| field.kind.is_root());
    roots
        .any(|root| {
            let elements = SpecialFields::of(btf, root.target);
            let owns = |fields: &SpecialFields| fields.iter().any(|field| field.kind.is_root());
            let is_owned = fields.iter().any(|field| field.kind.is_node());
            elements.is_empty() || is_owned && owns(&elements)
        })
        .then_some("Special fields own each other")
}

/// Whether the name is empty or a C identifier.
fn is_optional(name: &str) -> bool {
    name.is_empty() || is_identifier(name)
}

/// `btf_name_valid_identifier`: a C identifier, with dots.
fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let special = |byte: u8| byte == b'_' || byte == b'.';
    let first = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || special(byte));
    first
        && name.len() < NAME_LEN
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding};

    fn refused(make: impl FnOnce(&mut Builder)) -> Option<String> {
        let mut builder = Builder::new();
        make(&mut builder);
        builder
            .build()
            .unwrap()
            .refusal()
            .map(|refusal| refusal.to_string())
    }

    #[test]
    fn linkages_and_names_are_the_kernels() {
        let extern_function = refused(|builder| {
            let prototype = builder.prototype(TypeId(0), &[]);
            builder.function("f", prototype, Linkage::Extern);
        });
        assert_eq!(
            extern_function.as_deref(),
            Some("[2] FUNC f: Invalid func linkage")
        );
        let fine = refused(|builder| {
            let prototype = builder.prototype(TypeId(0), &[]);
            builder.function("f.part.0", prototype, Linkage::Static);
        });
        assert_eq!(fine, None);
        for name in ["", "core::f", "1f", "f<u8>"] {
            let refusal = refused(|builder| {
                let prototype = builder.prototype(TypeId(0), &[]);
                builder.function(name, prototype, Linkage::Global);
            });
            let wanted = format!("[2] FUNC {name}: Invalid name");
            assert_eq!(refusal, Some(wanted), "{name}");
        }
        let extern_variable = refused(|builder| {
            let int = builder.int("int", 4, Encoding::Signed);
            builder.variable("v", int, Linkage::Extern);
        });
        assert_eq!(
            extern_variable.as_deref(),
            Some("[2] VAR v: Linkage not supported")
        );
    }
}
