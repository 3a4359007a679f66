//! The arguments of a kernel function in a program's context: an array of `u64`, typed by
//! BTF (`btf_ctx_access`, `kernel/bpf/btf.c`).

use super::attach_target::{AttachTarget, Member, kind_name, shown_name};
use super::context_type;
use super::reject::{VerifyResult, reject, unmodelled};
use crate::btf::{Kind, Type};
use crate::program::Program;
use crate::spec::helpers::TypeFlags;
use crate::spec::iterator::{self, Element};
use crate::spec::limits::MAX_REG_ARGS;
use crate::spec::struct_ops::NULLABLE;
use crate::spec::{AttachType, ProgType, lsm, tracepoint_argument};
use crate::util::TypeId;

/// The result of a load from the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// A scalar, or a pointer that is treated as one.
    Scalar,
    /// The return value of the hook so far.
    Result,
    /// A buffer of an iterator.
    Buffer(TypeFlags),
    /// A kernel object.
    Object {
        /// Its structure.
        id: TypeId,
        /// Flags of the pointer's type.
        flags: TypeFlags,
        /// The argument's number, if the log mentions it.
        number: Option<u32>,
    },
}

/// The argument that a load of `size` bytes at `off` reads.
///
/// # Errors
/// The kernel's error, without the line about the context that follows it.
pub(super) fn at(
    target: &AttachTarget<'_>,
    program: &Program,
    off: u32,
    size: u32,
) -> VerifyResult<Argument> {
    let name = target.name;
    if !off.is_multiple_of(8) {
        reject!(EACCES, "func '{name}' offset {off} is not multiple of 8");
    }
    let attach = program.expected_attach_type;
    if target.is_unreliable() {
        return untyped(name, attach, off);
    }
    let number = number_at(target.prototype, off);
    let mut params = target.prototype.params();
    if target.is_tracepoint() {
        params.next();
    }
    let param = params.nth(number);
    let count = target
        .prototype
        .params()
        .len()
        .saturating_sub(target.is_tracepoint().into());
    let btf = target.prototype.btf();
    let result = target.prototype.target_id().unwrap_or_default();
    let ty = match (param, attach) {
        (Some(param), _) => param.ty,
        (None, Some(AttachType::LsmMac | AttachType::LsmCgroup | AttachType::TraceFexit))
            if number == count =>
        {
            result
        }
        (None, Some(AttachType::ModifyReturn)) if number == count => {
            let (ty, _) = skip_modifiers(btf.ty(result), result);
            if !is_small_int(ty) {
                reject!(
                    EACCES,
                    "ret type {} not allowed for fmod_ret",
                    kind_name(ty.kind())
                );
            }
            result
        }
        _ => reject!(
            EACCES,
            "func '{name}' doesn't have {}-th argument",
            number + 1
        ),
    };
    let (ty, _) = skip_modifiers(btf.ty(ty), ty);
    if is_small_int(ty) || ty.kind().is_any_enum() || ty.kind().is_composite() {
        let is_result = param.is_none() && attach == Some(AttachType::LsmMac);
        return Ok(if is_result {
            Argument::Result
        } else {
            Argument::Scalar
        });
    }
    let argument = number;
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    if ty.kind() != Kind::Ptr {
        reject!(
            EACCES,
            "func '{name}' arg{number} '{}' has type {}. Only pointer access is allowed",
            shown_name(ty),
            kind_name(ty.kind())
        );
    }
    if size != 8 {
        reject!(EACCES, "func '{name}' size {size} must be 8");
    }
    let element = (attach == Some(AttachType::TraceIter))
        .then(|| iterator::find(name)?.element(number))
        .flatten();
    if let Some(Element::Buffer(flags)) = element {
        return Ok(Argument::Buffer(flags));
    }
    if let Some(id) = target.retyped(argument) {
        let (flags, number) = (TypeFlags::PTR_TRUSTED, None);
        return Ok(Argument::Object { id, flags, number });
    }
    let pointed = ty.target_id().unwrap_or_default();
    let (object, id) = skip_modifiers(btf.ty(pointed), pointed);
    if matches!(object.kind(), Kind::Void | Kind::Int) {
        return Ok(Argument::Scalar);
    }
    if let Some(Element::Object(flags)) = element {
        let number = None;
        return Ok(Argument::Object { id, flags, number });
    }
    if let Some(flags) = target.member().and_then(|member| marked(&member, argument)) {
        let number = None;
        return Ok(Argument::Object { id, flags, number });
    }
    if !object.kind().is_composite() {
        reject!(
            EACCES,
            "func '{name}' arg{number} type {} is not a struct",
            kind_name(object.kind())
        );
    }
    let mut flags = tags(btf.ty(pointed));
    if is_trusted(program, name) {
        flags |= TypeFlags::PTR_TRUSTED;
    }
    let is_tagged = param.is_some_and(|param| param.name.ends_with(NULLABLE));
    if is_tagged || target.is_tracepoint() && tracepoint_argument::may_be_null(name, number) {
        flags |= TypeFlags::PTR_MAYBE_NULL;
    }
    if target.is_tracepoint() && tracepoint_argument::may_be_error(name, number) {
        return Ok(Argument::Scalar);
    }
    if let Some(owner) = target.owner() {
        // The only pointer that two programs both know is the context.
        if !context_type::is_context(btf, pointed, owner) {
            reject!(EACCES, "");
        }
        let kernel = program.kernel_btf.as_ref();
        let Some(ty) = kernel.and_then(|kernel| context_type::in_kernel(kernel, owner)) else {
            unmodelled!(KernelBtf);
        };
        let (id, number) = (ty.id(), None);
        return Ok(Argument::Object { id, flags, number });
    }
    let number = Some(number);
    Ok(Argument::Object { id, flags, number })
}

/// The argument of a function without a reliable type: one of five numbers, or for fexit its result.
fn untyped(name: &str, attach: Option<AttachType>, off: u32) -> VerifyResult<Argument> {
    let number = (off / 8) as usize;
    let results = usize::from(attach == Some(AttachType::TraceFexit));
    if number >= MAX_REG_ARGS + results {
        reject!(
            EACCES,
            "func '{name}' doesn't have {}-th argument",
            number + 1
        );
    }
    Ok(Argument::Scalar)
}

/// The flags of an argument that the name of the stub's parameter marks.
fn marked(member: &Member<'_>, argument: usize) -> Option<TypeFlags> {
    if member.is_marked(argument, NULLABLE) {
        return Some(TypeFlags::PTR_TRUSTED | TypeFlags::PTR_MAYBE_NULL);
    }
    member
        .is_reference(argument)
        .then_some(TypeFlags::PTR_TRUSTED)
}

/// The number of the argument at this offset; the result counts as one argument more, an
/// offset past it as two more (`btf_ctx_arg_idx`).
pub(super) fn number_at(prototype: Type<'_>, off: u32) -> usize {
    let btf = prototype.btf();
    let params = prototype.params().map(|param| param.ty);
    let all = params.chain(prototype.target_id());
    let mut end = 0u32;
    for (number, id) in all.enumerate() {
        let (ty, _) = skip_modifiers(btf.ty(id), id);
        let size = match ty.kind() {
            Kind::Ptr => 8,
            _ => ty.size().unwrap_or(0),
        };
        end = end.saturating_add(size.next_multiple_of(8));
        if off < end {
            return number;
        }
    }
    prototype.params().len() + 1
}

/// The type under qualifiers and typedefs, and its id.
fn skip_modifiers(ty: Type<'_>, id: TypeId) -> (Type<'_>, TypeId) {
    let found = ty.btf().resolve(id).unwrap_or(ty);
    (found, found.id())
}

fn is_small_int(ty: Type<'_>) -> bool {
    ty.kind() == Kind::Int && ty.size().is_some_and(|size| size <= 8)
}

/// The pointer flags from a type tag on the structure.
fn tags(pointed: Type<'_>) -> TypeFlags {
    match pointed.name() {
        _ if pointed.kind() != Kind::TypeTag || pointed.kind_flag() => TypeFlags::empty(),
        "user" => TypeFlags::MEM_USER,
        "percpu" => TypeFlags::MEM_PERCPU,
        _ => TypeFlags::empty(),
    }
}

/// Whether the kernel guarantees that the arguments are valid (`prog_args_trusted`).
fn is_trusted(program: &Program, target: &str) -> bool {
    match program.prog_type {
        ProgType::Tracing => matches!(
            program.expected_attach_type,
            Some(AttachType::TraceRawTp | AttachType::TraceIter)
        ),
        ProgType::Lsm => lsm::is_trusted(target),
        ProgType::StructOps => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Btf, Builder, Encoding, Linkage, Member, Param};

    /// `int f(struct object *object__nullable, unsigned int n, const void *data)`.
    fn kernel() -> Btf {
        let mut types = Builder::new();
        let int = types.int("int", 4, Encoding::Signed);
        let member = Member {
            name: "n",
            ty: int,
            bit_offset: 0,
            bitfield: None,
        };
        let object = types.structure("object", 4, &[member]);
        let object = types.ptr(object);
        let void = types.constant(TypeId(0));
        let data = types.ptr(void);
        let param = |name, ty| Param { name, ty };
        let params = [
            param("object__nullable", object),
            param("n", int),
            param("data", data),
        ];
        let prototype = types.prototype(int, &params);
        types.function("f", prototype, Linkage::Static);
        types.build().unwrap()
    }

    fn read(attach: AttachType, off: u32, size: u32) -> Result<Argument, String> {
        let mut program = Program::new("p", ProgType::Tracing, Vec::new());
        let btf = kernel();
        program.expected_attach_type = Some(attach);
        program.attach_btf_id = btf.find("f", Kind::Func).map(|ty| ty.id());
        program.kernel_btf = Some(btf);
        let target = crate::verifier::attach::resolve(&program, &[])
            .unwrap()
            .unwrap();
        at(&target, &program, off, size).map_err(|reject| reject.message().to_owned())
    }

    #[test]
    fn arguments_are_what_btf_says() {
        use AttachType::{TraceFentry, TraceFexit};
        let Argument::Object { flags, number, .. } = read(TraceFentry, 0, 8).unwrap() else {
            panic!("not an object");
        };
        assert_eq!((flags, number), (TypeFlags::PTR_MAYBE_NULL, Some(0)));
        assert_eq!(read(TraceFentry, 8, 4), Ok(Argument::Scalar));
        assert_eq!(read(TraceFentry, 16, 8), Ok(Argument::Scalar));
        assert_eq!(
            read(TraceFentry, 0, 4),
            Err("func 'f' size 4 must be 8".to_owned())
        );
        let missing = |number| Err(format!("func 'f' doesn't have {number}-th argument"));
        assert_eq!(read(TraceFentry, 24, 8), missing(4));
        assert_eq!(read(TraceFexit, 24, 8), Ok(Argument::Scalar));
        assert_eq!(read(TraceFexit, 32, 8), missing(5));
    }
}
