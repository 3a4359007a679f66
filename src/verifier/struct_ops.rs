//! Programs that implement a member of a structure of operations: which member, and its
//! prototype (`check_struct_ops_btf_id`).

use super::reject::{VerifyResult, reject, unmodelled};
use super::structure::is_gpl_compatible;
use crate::btf::{Btf, Kind, Type};
use crate::program::Program;
use crate::spec::struct_ops::{self, Operations, VALUE_PREFIX};
use crate::spec::{AttachType, ProgFlags};
use crate::util::TypeId;

/// The member that a program implements, as its attach target.
pub(super) struct Member<'p> {
    /// Its name.
    pub name: &'p str,
    /// Its prototype.
    pub prototype: Type<'p>,
    /// The prototype of its stub, whose parameters have names.
    pub stub: Option<Type<'p>>,
}

/// A member of a structure of operations.
struct Implemented<'p> {
    /// The structure's name.
    structure: &'p str,
    /// The member's name.
    name: &'p str,
    prototype: Type<'p>,
    operations: &'static Operations,
}

/// Resolves the member that a program implements.
pub(super) fn resolve(program: &Program) -> VerifyResult<Member<'_>> {
    if !is_gpl_compatible(&program.license) {
        reject!(
            EINVAL,
            "struct ops programs must have a GPL compatible license"
        );
    }
    let Some(btf) = program.kernel_types() else {
        unmodelled!(KernelBtf);
    };
    let Some(id) = program.attach_btf_id else {
        reject!(ENOTSUPP, "");
    };
    let member = implemented(program, btf, id)?;
    let sleeps = program.flags.contains(ProgFlags::SLEEPABLE);
    let may_sleep = member.operations.sleepable;
    let Implemented {
        structure, name, ..
    } = member;
    if !member.operations.members.contains(&name) {
        reject!(
            ENOTSUPP,
            "attach to unsupported member {name} of struct {structure}"
        );
    }
    if sleeps && may_sleep.is_some_and(|members| !members.contains(&name)) {
        reject!(
            EINVAL,
            "attach to unsupported member {name} of struct {structure}"
        );
    }
    Ok(Member {
        name,
        prototype: member.prototype,
        stub: stub(btf, structure, name),
    })
}

/// The member that the program names: by its name in an object, by its number in a call of
/// bpf().
fn implemented<'p>(
    program: &'p Program,
    btf: &'p Btf,
    id: TypeId,
) -> VerifyResult<Implemented<'p>> {
    let ty = btf.get(id).filter(|ty| ty.kind() == Kind::Struct);
    let registered = |ty: &Type<'_>| {
        let value = format!("{VALUE_PREFIX}{}", ty.name());
        btf.find(&value, Kind::Struct).is_some()
    };
    let Some(ty) = ty.filter(registered) else {
        reject!(ENOTSUPP, "attach_btf_id {id} is not a supported struct");
    };
    let structure = ty.name();
    let Some(operations) = struct_ops::find(structure) else {
        unmodelled!(StructOps);
    };
    let named = program.attach_target.as_deref();
    let named = named.and_then(|target| target.split_once('.'));
    let number = match named {
        Some((_, name)) => ty.members().position(|member| member.name == name),
        None => {
            let number = program.expected_attach_type.map_or(0, AttachType::number);
            usize::try_from(number).ok()
        }
    };
    let member = number.and_then(|number| ty.members().nth(number));
    let (Some(number), Some(member)) = (number, member) else {
        let number = number.unwrap_or(ty.members().len());
        reject!(
            EINVAL,
            "attach to invalid member idx {number} of struct {structure}"
        );
    };
    let name = member.name;
    let pointer = btf.resolve(member.ty).ok();
    let pointer = pointer.filter(|ty| ty.kind() == Kind::Ptr);
    let function = pointer.and_then(|ty| btf.resolve(ty.target_id()?).ok());
    let Some(prototype) = function.filter(|ty| ty.kind() == Kind::FuncProto) else {
        reject!(
            EINVAL,
            "attach to invalid member {name}(@idx {number}) of struct {structure}"
        );
    };
    Ok(Implemented {
        structure,
        name,
        prototype,
        operations,
    })
}

/// The prototype of the stub for a member, whose parameters' names have suffixes
/// (`prepare_arg_info`).
fn stub<'p>(btf: &'p Btf, structure: &str, member: &str) -> Option<Type<'p>> {
    let function = btf.find(&format!("{structure}__{member}"), Kind::Func)?;
    function.target().filter(|ty| ty.kind() == Kind::FuncProto)
}
