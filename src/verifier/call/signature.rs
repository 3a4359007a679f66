//! Function signatures from BTF (`btf_prepare_func_args`).
//!
//! A global function is verified for any arguments of these types, and its calls are
//! checked against them. For a static function they are only hints.

use crate::btf::{Btf, Kind, Type};
use crate::program::Program;
use crate::spec::helpers::TypeFlags;
use crate::spec::limits::MAX_REG_ARGS;
use crate::util::TypeId;
use crate::verifier::attach_target::{kind_name, shown_name};
use crate::verifier::context_type;
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

/// The type of a parameter (the part of `enum bpf_arg_type` that functions use).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The program's context.
    Context,
    /// A scalar.
    Scalar,
    /// Memory of this many bytes.
    Memory {
        /// Its size.
        size: u32,
        /// Whether it may be null or is untrusted.
        flags: TypeFlags,
    },
    /// A dynptr.
    Dynptr,
    /// An object of a struct type in the kernel's BTF.
    Object {
        /// The struct type.
        id: TypeId,
        /// Whether it may be null, and whether it is trusted.
        flags: TypeFlags,
    },
    /// A pointer into an arena.
    Arena,
}

impl Argument {
    /// Whether every value that another function takes for its argument is one for this. The
    /// objects of each are types of a kernel.
    pub(crate) fn admits(self, other: Self, types: (&Option<Btf>, &Option<Btf>)) -> bool {
        let covers = |own: TypeFlags, other: TypeFlags| {
            let null = TypeFlags::PTR_MAYBE_NULL;
            own - null == other - null && (own.contains(null) || !other.contains(null))
        };
        match (self, other) {
            (Self::Memory { size, flags }, Self::Memory { size: s, flags: f }) => {
                size <= s && covers(flags, f)
            }
            (Self::Object { id, flags }, Self::Object { id: i, flags: f }) => {
                let name = |btf: &Option<Btf>, id| Some(btf.as_ref()?.get(id)?.name().to_owned());
                covers(flags, f) && name(types.0, id) == name(types.1, i)
            }
            _ => self == other,
        }
    }
}

/// The parameters of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    arguments: [Argument; MAX_REG_ARGS],
    count: usize,
}

impl Signature {
    pub(crate) fn arguments(&self) -> &[Argument] {
        self.arguments.get(..self.count).unwrap_or_default()
    }

    /// Whether this is the signature of a main program: the context only.
    pub(crate) fn is_main(&self) -> bool {
        self.arguments() == [Argument::Context]
    }
}

/// The tags of a parameter (`__arg_nonnull` and its siblings, a declaration tag
/// `arg:nonnull`).
mod tag {
    pub(super) const CTX: u8 = 1;
    pub(super) const NONNULL: u8 = 1 << 1;
    pub(super) const TRUSTED: u8 = 1 << 2;
    pub(super) const UNTRUSTED: u8 = 1 << 3;
    pub(super) const NULLABLE: u8 = 1 << 4;
    pub(super) const ARENA: u8 = 1 << 5;

    /// The tag with this name.
    pub(super) fn named(name: &str) -> Option<u8> {
        Some(match name {
            "ctx" => CTX,
            "nonnull" => NONNULL,
            "trusted" => TRUSTED,
            "untrusted" => UNTRUSTED,
            "nullable" => NULLABLE,
            "arena" => ARENA,
            _ => return None,
        })
    }
}

/// The signature of function `number`, whose type is `type_id`.
///
/// # Errors
/// The kernel's error; without a message for a static function, whose types are optional.
pub(crate) fn of(
    program: &Program,
    number: u32,
    type_id: Option<TypeId>,
    global: bool,
) -> VerifyResult<Signature> {
    let (Some(btf), Some(id)) = (&program.btf, type_id) else {
        reject!(EFAULT, "Global functions need valid BTF");
    };
    let ty = btf.ty(id);
    if ty.kind() != Kind::Func {
        reject!(EFAULT, "BTF of func#{number} doesn't point to KIND_FUNC");
    }
    let name = ty.name();
    let Some(prototype) = ty.target().filter(|ty| ty.kind() == Kind::FuncProto) else {
        reject!(EFAULT, "Invalid type of function {name}()");
    };
    let count = prototype.params().len();
    if count > MAX_REG_ARGS {
        silent_unless(global)?;
        reject!(
            EINVAL,
            "Global function {name}() with {count} > {MAX_REG_ARGS} args. Buggy compiler."
        );
    }
    let result = resolve(btf, prototype.target_id().unwrap_or_default());
    if !is_number(result) {
        silent_unless(global)?;
        reject!(
            EINVAL,
            "Global function {name}() doesn't return scalar. Only those are supported."
        );
    }
    let mut signature = Signature {
        arguments: [Argument::Scalar; MAX_REG_ARGS],
        count,
    };
    let tags = tags(btf, id, global);
    for (at, param) in prototype.params().enumerate() {
        let tags = tags.get(at).copied().unwrap_or(Ok(0));
        let param = Parameter {
            program,
            btf,
            ty: resolve(btf, param.ty),
            number: at,
            tags: tags.or_else(|fault| fault.reject(at))?,
            global,
        };
        if let Some(entry) = signature.arguments.get_mut(at) {
            *entry = param.argument(name)?;
        }
    }
    Ok(signature)
}

/// The reject for an unreliable parameter type; without a message for static functions.
fn silent_unless(global: bool) -> VerifyResult {
    if !global {
        reject!(EINVAL, "");
    }
    Ok(())
}

/// An error in the tags of a parameter.
#[derive(Debug, Clone, Copy)]
enum TagFault {
    Static,
    Unknown,
}

impl TagFault {
    fn reject<T>(self, number: usize) -> VerifyResult<T> {
        match self {
            Self::Static => reject!(
                EOPNOTSUPP,
                "arg#{number} type tag is not supported in static functions"
            ),
            Self::Unknown => reject!(EOPNOTSUPP, "arg#{number} has unsupported set of tags"),
        }
    }
}

/// The tags of each parameter.
fn tags(btf: &Btf, function: TypeId, global: bool) -> [Result<u8, TagFault>; MAX_REG_ARGS] {
    let mut all = [Ok(0); MAX_REG_ARGS];
    for ty in btf.decl_tags(function) {
        let (Some(number), Some(name)) = (ty.component(), ty.name().strip_prefix("arg:")) else {
            continue;
        };
        if let Some(tags @ Ok(_)) = all.get_mut(number as usize) {
            *tags = match (global, tag::named(name)) {
                (false, _) => Err(TagFault::Static),
                (true, None) => Err(TagFault::Unknown),
                (true, Some(tag)) => tags.map(|tags| tags | tag),
            };
        }
    }
    all
}

/// The type under qualifiers and typedefs; `void` if there is none.
fn resolve(btf: &Btf, id: TypeId) -> Type<'_> {
    btf.resolve(id).unwrap_or(btf.ty(TypeId(0)))
}

fn is_number(ty: Type<'_>) -> bool {
    ty.kind() == Kind::Int || ty.kind().is_any_enum()
}

/// A parameter that is being checked.
struct Parameter<'a> {
    program: &'a Program,
    btf: &'a Btf,
    ty: Type<'a>,
    number: usize,
    tags: u8,
    global: bool,
}

impl Parameter<'_> {
    fn has(&self, tag: u8) -> bool {
        self.tags & tag != 0
    }

    fn has_others_than(&self, tags: u8) -> bool {
        self.tags & !tags != 0
    }

    fn argument(&self, function: &str) -> VerifyResult<Argument> {
        let number = self.number;
        if self.ty.kind() == Kind::Ptr
            && let Some(argument) = self.pointer()?
        {
            return Ok(argument);
        }
        if self.tags != 0 {
            reject!(
                EINVAL,
                "arg#{number} has pointer tag, but is not a pointer type"
            );
        }
        if is_number(self.ty) {
            return Ok(Argument::Scalar);
        }
        silent_unless(self.global)?;
        reject!(
            EINVAL,
            "Arg#{number} type {} in {function}() is not supported yet.",
            kind_name(self.ty.kind())
        );
    }

    /// The type of a pointer; `None` if a static function's type doesn't determine it.
    fn pointer(&self) -> VerifyResult<Option<Argument>> {
        let number = self.number;
        let pointed = self.ty.target_id().unwrap_or_default();
        let prog_type = self.program.prog_type;
        if self.has(tag::CTX) || context_type::is_context(self.btf, pointed, prog_type) {
            if self.has_others_than(tag::CTX) {
                return self.contradiction();
            }
            if self.has(tag::CTX) {
                context_type::check_tagged(self.program, pointed, number)?;
            }
            return Ok(Some(Argument::Context));
        }
        let target = resolve(self.btf, pointed);
        // `btf_is_dynptr_ptr`
        if target.kind().is_composite() && target.name() == "bpf_dynptr" {
            if self.tags != 0 {
                return self.contradiction();
            }
            return Ok(Some(Argument::Dynptr));
        }
        if self.has(tag::TRUSTED) {
            if self.has(tag::NONNULL) {
                return self.contradiction();
            }
            let mut flags = TypeFlags::PTR_TRUSTED;
            flags.set(TypeFlags::PTR_MAYBE_NULL, self.has(tag::NULLABLE));
            let id = self.kernel_type(target)?;
            return Ok(Some(Argument::Object { id, flags }));
        }
        if self.has(tag::UNTRUSTED) {
            return self.untrusted(target).map(Some);
        }
        if self.has(tag::ARENA) {
            if self.has_others_than(tag::ARENA) {
                reject!(
                    EINVAL,
                    "arg#{number} arena cannot be combined with any other tags"
                );
            }
            return Ok(Some(Argument::Arena));
        }
        if !self.global {
            return Ok(None);
        }
        if self.has(tag::NULLABLE) {
            return self.contradiction();
        }
        let Ok(size) = self.btf.size_of(target.id()) else {
            reject!(
                EINVAL,
                "arg#{number} reference type('{} {}') size cannot be determined: -22",
                kind_name(target.kind()),
                target.name()
            );
        };
        let mut flags = TypeFlags::empty();
        flags.set(TypeFlags::PTR_MAYBE_NULL, !self.has(tag::NONNULL));
        Ok(Some(Argument::Memory { size, flags }))
    }

    fn contradiction<T>(&self) -> VerifyResult<T> {
        reject!(
            EINVAL,
            "arg#{} has invalid combination of tags",
            self.number
        );
    }

    /// Untrusted memory: loads past its end are handled at run time.
    fn untrusted(&self, target: Type<'_>) -> VerifyResult<Argument> {
        let number = self.number;
        if self.has_others_than(tag::UNTRUSTED) {
            reject!(
                EINVAL,
                "arg#{number} untrusted cannot be combined with any other tags"
            );
        }
        if target.kind() == Kind::Void || is_number(target) {
            let flags = TypeFlags::MEM_RDONLY | TypeFlags::PTR_UNTRUSTED;
            return Ok(Argument::Memory { size: 0, flags });
        }
        let id = self.kernel_type(target)?;
        let kind = self
            .program
            .kernel_btf
            .as_ref()
            .map(|btf| btf.ty(id).kind());
        if !kind.is_some_and(Kind::is_composite) {
            reject!(
                EINVAL,
                "arg#{number} has type {} '{}', but only struct or primitive types are allowed",
                kind_name(target.kind()),
                shown_name(target)
            );
        }
        let flags = TypeFlags::PTR_UNTRUSTED;
        Ok(Argument::Object { id, flags })
    }

    /// The kernel's type with this name and kind, ignoring the flavor
    /// (`btf_get_ptr_to_btf_id`).
    fn kernel_type(&self, target: Type<'_>) -> VerifyResult<TypeId> {
        let number = self.number;
        let (kind, name) = (kind_name(target.kind()), target.name());
        let said = shown_name(target);
        let fault = |what: &str| format!("arg#{number} reference type('{kind} {said}') {what}");
        if name.is_empty() {
            reject!(EINVAL, "{}", fault("candidate matching error: -22"));
        }
        let Some(kernel) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        let mut found = kernel
            .flavors(name)
            .filter(|found| found.kind() == target.kind());
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only.id()),
            (None, _) => reject!(ENOENT, "{}", fault("has no matches")),
            (Some(_), Some(_)) => reject!(ESRCH, "{}", fault("is ambiguous")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_may_be_smaller_and_null() {
        let memory = |size, is_null| {
            let mut flags = TypeFlags::empty();
            flags.set(TypeFlags::PTR_MAYBE_NULL, is_null);
            Argument::Memory { size, flags }
        };
        let admits = |one: Argument, other| one.admits(other, (&None, &None));
        let passed = memory(8, false);
        assert!(admits(memory(8, false), passed) && admits(memory(4, true), passed));
        assert!(!admits(memory(12, false), passed));
        assert!(!admits(memory(8, false), memory(8, true)));
        assert!(admits(Argument::Context, Argument::Context));
        assert!(!admits(Argument::Context, passed) && !admits(passed, Argument::Context));
    }

    use crate::btf::{Builder, Encoding, Linkage, Param};
    use crate::spec::ProgType;

    /// The signature of `int f(T x)`, with T made by `make`, with tags.
    fn one(
        make: impl FnOnce(&mut Builder, TypeId) -> TypeId,
        tags: &[&str],
        global: bool,
    ) -> Result<Argument, String> {
        let mut types = Builder::new();
        let int = types.int("int", 4, Encoding::Signed);
        let ty = make(&mut types, int);
        let prototype = types.prototype(int, &[Param { name: "x", ty }]);
        let linkage = if global {
            Linkage::Global
        } else {
            Linkage::Static
        };
        let id = types.function("f", prototype, linkage);
        for tag in tags {
            types.decl_tag(tag, id, Some(0), false);
        }
        let mut program = Program::new("p", ProgType::SchedCls, Vec::new());
        program.btf = Some(types.build().unwrap());
        let signature = of(&program, 1, Some(id), global);
        signature
            .map(|signature| signature.arguments()[0])
            .map_err(|reject| reject.message().to_owned())
    }

    #[test]
    fn numbers_memory_and_contexts_are_known() {
        let pointer = |types: &mut Builder, int| types.ptr(int);
        let memory = |flags| Ok(Argument::Memory { size: 4, flags });
        assert_eq!(one(|_, int| int, &[], true), Ok(Argument::Scalar));
        assert_eq!(one(pointer, &[], true), memory(TypeFlags::PTR_MAYBE_NULL));
        assert_eq!(
            one(pointer, &["arg:nonnull"], true),
            memory(TypeFlags::empty())
        );
        let context = |types: &mut Builder, _| {
            let context = types.structure("__sk_buff", 0, &[]);
            types.ptr(context)
        };
        assert_eq!(one(context, &[], true), Ok(Argument::Context));
        assert_eq!(one(context, &[], false), Ok(Argument::Context));
        let void = |types: &mut Builder, _| types.ptr(TypeId(0));
        assert_eq!(one(void, &["arg:ctx"], true), Ok(Argument::Context));
        assert_eq!(one(void, &["arg:arena"], true), Ok(Argument::Arena));
    }

    #[test]
    fn what_cannot_be_passed_is_said() {
        let fault = |text: &str| Err(text.to_owned());
        let void = |types: &mut Builder, _| types.ptr(TypeId(0));
        assert_eq!(
            one(void, &[], true),
            fault("arg#0 reference type('UNKNOWN ') size cannot be determined: -22")
        );
        assert_eq!(
            one(|_, int| int, &["arg:nonnull"], true),
            fault("arg#0 has pointer tag, but is not a pointer type")
        );
        assert_eq!(
            one(void, &["arg:nonnull"], false),
            fault("arg#0 type tag is not supported in static functions")
        );
        assert_eq!(
            one(void, &["arg:what"], true),
            fault("arg#0 has unsupported set of tags")
        );
        assert_eq!(
            one(void, &["arg:ctx", "arg:nonnull"], true),
            fault("arg#0 has invalid combination of tags")
        );
        let structure = |types: &mut Builder, _| types.structure("s", 8, &[]);
        assert_eq!(
            one(structure, &[], true),
            fault("Arg#0 type STRUCT in f() is not supported yet.")
        );
        assert_eq!(one(structure, &[], false), fault(""));
    }
}
