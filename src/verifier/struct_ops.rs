//! Programs that implement a member of a structure of operations: which member, and its
//! prototype (`check_struct_ops_btf_id`).

use super::attach_target::{AttachTarget, Member, Role};
use super::reject::{VerifyResult, reject, unmodelled};
use super::structure::{SubprogramInfo, is_gpl_compatible};
use crate::btf::{Btf, Kind, Type};
use crate::program::Program;
use crate::spec::struct_ops::{self, Operations, VALUE_PREFIX, stub};
use crate::spec::{AttachType, ProgFlags};
use crate::util::TypeId;

/// The references that a program gets as arguments: the argument's number and the reference.
#[derive(Debug, Default)]
pub(crate) struct ArgumentReferences(Vec<(usize, u32)>);

impl ArgumentReferences {
    /// Those of a program, each with its argument's number.
    pub(super) const fn new(references: Vec<(usize, u32)>) -> Self {
        Self(references)
    }

    /// The reference that this argument is; 0 for none.
    pub(super) fn of(&self, argument: usize) -> u32 {
        let found = self.0.iter().find(|(number, _)| *number == argument);
        found.map_or(0, |(_, id)| *id)
    }
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

/// Resolves the member that a program with these functions implements.
pub(super) fn resolve<'p>(
    program: &'p Program,
    subprograms: &[SubprogramInfo],
) -> VerifyResult<AttachTarget<'p>> {
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
    let implemented = implemented(program, btf, id)?;
    let Implemented {
        structure,
        name,
        operations,
        ..
    } = implemented;
    let may_sleep = operations.sleepable;
    if !operations.members.contains(&name) {
        if operations.is_newer(btf, name) {
            unmodelled!(StructOps);
        }
        reject!(
            ENOTSUPP,
            "attach to unsupported member {name} of struct {structure}"
        );
    }
    let sleeps = program.flags.contains(ProgFlags::SLEEPABLE);
    if sleeps && may_sleep.is_some_and(|members| !members.contains(&name)) {
        reject!(
            EINVAL,
            "attach to unsupported member {name} of struct {structure}"
        );
    }
    let member = Member {
        operations,
        stub: stub(btf, structure, name),
    };
    let calls_tail = subprograms.iter().any(|function| function.has_tail_call);
    // The target of a tail call might not get the references.
    if calls_tail && member.references().next().is_some() {
        reject!(EINVAL, "program with __ref argument cannot tail call");
    }
    Ok(AttachTarget {
        name,
        prototype: implemented.prototype,
        role: Role::Member(member),
    })
}

/// The member that a struct_ops program names, if its structure has one of this number or
/// name.
pub(super) fn member_name(program: &Program) -> Option<&str> {
    let btf = program.kernel_btf.as_ref()?;
    let structure = btf.get(program.attach_btf_id?)?;
    let number = member_number(program, structure)?;
    structure.members().nth(number).map(|member| member.name)
}

/// The number of the member that the program names: by its name in an object, by its number in
/// a call of bpf().
fn member_number(program: &Program, structure: Type<'_>) -> Option<usize> {
    let named = program.attach_target.as_deref();
    match named.and_then(|target| target.split_once('.')) {
        Some((_, name)) => structure.members().position(|member| member.name == name),
        None => {
            let number = program.expected_attach_type.map_or(0, AttachType::number);
            usize::try_from(number).ok()
        }
    }
}

/// The member that the program names, and its structure's rules.
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
    let number = member_number(program, ty);
    let member = number.and_then(|number| ty.members().nth(number));
    let (Some(number), Some(member)) = (number, member) else {
        let number = number.unwrap_or(ty.members().len());
        reject!(
            EINVAL,
            "attach to invalid member idx {number} of struct {structure}"
        );
    };
    let name = member.name;
    let Some(prototype) = struct_ops::prototype(ty, name) else {
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

impl Operations {
    /// Whether a kernel has a stub for a member for which Linux 6.18 has none.
    fn is_newer(&self, btf: &Btf, member: &str) -> bool {
        !self.members.contains(&member) && stub(btf, self.name, member).is_some()
    }
}
