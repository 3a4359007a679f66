//! Programs that attach to a function of another program: extensions replace it, fentry and
//! fexit programs trace it (`bpf_check_attach_target`, `btf_check_type_match`).

use std::borrow::Cow;
use std::sync::Arc;

use super::attach_target::{AttachTarget, Role, kind_name};
use super::call::signature::{self, Signature};
use super::env::Verifier;
use super::reject::{VerifyResult, reject, unmodelled};
use super::structure::SubprogramInfo;
use crate::btf::{Btf, Kind, Linkage, Type};
use crate::program::{AttachProgram, Program, TargetFunction, TargetProgram};
use crate::spec::{AttachType, ProgFlags, ProgType};
use crate::util::TypeId;

/// The program with the type and attach type by whose rules it is explored: those of the program
/// that an extension is for.
pub(super) fn as_target(program: &Arc<Program>) -> Cow<'_, Arc<Program>> {
    let owner = program.owner_of_context();
    if std::ptr::eq(owner, &**program) {
        return Cow::Borrowed(program);
    }
    let mut judged = Program::clone(program);
    judged.prog_type = owner.prog_type;
    judged.expected_attach_type = owner.expected_attach_type;
    // It is a type of the target's.
    judged.attach_btf_id = None;
    Cow::Owned(Arc::new(judged))
}

impl Verifier<'_> {
    /// Whether the program replaces a function of another one: then its arguments are that
    /// function's.
    pub(super) fn is_extension(&self) -> bool {
        self.attach
            .is_some_and(|target| matches!(target.role, Role::Replaced { .. }))
    }

    /// Whether the kernel has no rules for the program's context and helpers: those of a struct_ops
    /// program come from its member, and an extension has none (`bpf_struct_ops_verifier_ops`).
    pub(super) fn lacks_operations(&self) -> bool {
        self.program.prog_type == ProgType::StructOps && self.is_extension()
    }

    /// Checks that an extension with this signature relies on no more than callers of the function
    /// that it replaces pass. The kernel compares the kinds of arguments, and the names of
    /// structures: memory may be larger in the extension's types, or tagged as never null.
    pub(super) fn check_replaced(&self, own: &Signature) -> VerifyResult {
        let replaced = self.attach.map(|target| (target.name, target.role));
        let (Some((name, Role::Replaced { function, .. })), Some(target)) =
            (replaced, self.program.attach_prog.known())
        else {
            return Ok(());
        };
        let passed = signature::of(&target.program, 0, Some(function), true)?;
        let types = (&self.program.kernel_btf, &target.program.kernel_btf);
        let arguments = std::iter::zip(own.arguments(), passed.arguments());
        for (at, (own, passed)) in arguments.enumerate() {
            if !own.admits(*passed, types) {
                let own = &self.program.name;
                reject!(
                    EINVAL,
                    "arg{at} in {own}() relies on more than callers of {name}() pass"
                );
            }
        }
        Ok(())
    }

    /// After exploration: the functions that other programs can attach to. Dead ones are removed
    /// before a program is loaded.
    pub(super) fn target_functions(&mut self) -> Arc<[TargetFunction]> {
        let mut functions = Vec::new();
        for (number, function) in (0..).zip(&self.structure.subprograms) {
            let Some(type_id) = function
                .type_id
                .filter(|_| self.facts.is_seen(function.start))
            else {
                continue;
            };
            functions.push(TargetFunction {
                reliable: Some(self.is_reliable(number)),
                exception_callback: function.is_exception_cb,
                changes_packet: Some(function.changes_pkt_data),
                might_sleep: Some(function.might_sleep),
                type_id,
            });
        }
        functions.into()
    }
}

/// Resolves the function that a program with these functions replaces or traces.
pub(super) fn resolve<'p>(
    program: &'p Program,
    subprograms: &[SubprogramInfo],
) -> VerifyResult<AttachTarget<'p>> {
    let target = match &program.attach_prog {
        AttachProgram::Known(target) => target,
        AttachProgram::Unknown => unmodelled!(AttachProgram),
        AttachProgram::None => unmodelled!(Extension),
    };
    let Some(id) = program.attach_btf_id.filter(|id| *id != TypeId(0)) else {
        reject!(EINVAL, "Tracing programs must provide btf_id");
    };
    let Some(btf) = &target.program.btf else {
        reject!(
            EINVAL,
            "Tracing program can only be attached to another program annotated with BTF"
        );
    };
    let Some(ty) = btf.get(id) else {
        reject!(EINVAL, "attach_btf_id {id} is invalid");
    };
    let name = ty.name();
    let Some(function) = target.functions.iter().find(|it| it.type_id == id) else {
        reject!(EINVAL, "Subprog {name} doesn't exist");
    };
    let extends = program.prog_type == ProgType::Ext;
    if function.exception_callback {
        let kind = if extends { "Extension" } else { "Tracing" };
        reject!(
            EINVAL,
            "{kind} programs cannot attach to exception callback"
        );
    }
    if extends {
        check_effects(function, subprograms)?;
        check_extended(target)?;
    } else {
        check_traced(program, target)?;
    }
    if ty.kind() != Kind::Func {
        reject!(EINVAL, "attach_btf_id {id} is not a function");
    }
    if extends {
        check_types(program, ty)?;
    }
    let Some(prototype) = ty.target().filter(|ty| ty.kind() == Kind::FuncProto) else {
        reject!(EINVAL, "");
    };
    let of = owner(target);
    let resolved = AttachTarget {
        name,
        prototype,
        role: if extends {
            Role::Replaced { of, function: id }
        } else {
            let reliable = known(function.reliable)?;
            Role::Traced { of, reliable }
        },
    };
    if !resolved.is_unreliable() {
        resolved.check_prototype(btf)?;
    }
    if program.flags.contains(ProgFlags::SLEEPABLE) {
        reject!(EINVAL, "{name} is not sleepable");
    }
    if program.expected_attach_type == Some(AttachType::ModifyReturn) {
        reject!(EINVAL, "can't modify return codes of BPF programs");
    }
    Ok(resolved)
}

/// A fact about a function that the verdict rests on.
fn known(fact: Option<bool>) -> VerifyResult<bool> {
    match fact {
        Some(fact) => Ok(fact),
        None => unmodelled!(AttachProgram),
    }
}

/// The type whose context the target's functions get.
fn owner(target: &TargetProgram) -> ProgType {
    let program = &target.program;
    match (program.prog_type, program.attach_prog.known()) {
        (ProgType::Ext, Some(extended)) => extended.program.prog_type,
        (prog_type, _) => prog_type,
    }
}

/// Checks that a program of this attach type can trace a function of the target.
fn check_traced(program: &Program, target: &TargetProgram) -> VerifyResult {
    let is_nested = |program: &Program| {
        let outer = program.attach_prog.known();
        program.prog_type == ProgType::Tracing
            && outer.is_some_and(|outer| outer.program.prog_type == ProgType::Tracing)
    };
    if is_nested(&target.program) {
        reject!(EINVAL, "Cannot nest tracing program attach more than once");
    }
    match program.expected_attach_type {
        Some(AttachType::TraceFentry | AttachType::TraceFexit | AttachType::ModifyReturn) => Ok(()),
        Some(AttachType::TraceRawTp) => reject!(
            EINVAL,
            "Only FENTRY/FEXIT progs are attachable to another BPF prog"
        ),
        // An iterator's target is in the kernel.
        _ => reject!(EINVAL, ""),
    }
}

/// Checks that the extension does nothing that callers of the function do not expect.
fn check_effects(function: &TargetFunction, subprograms: &[SubprogramInfo]) -> VerifyResult {
    if !known(function.reliable)? {
        reject!(EINVAL, "Cannot replace static functions");
    }
    let own = subprograms.first();
    if own.is_some_and(|own| own.changes_pkt_data) && !known(function.changes_packet)? {
        reject!(
            EINVAL,
            "Extension program changes packet data, while original does not"
        );
    }
    if own.is_some_and(|own| own.might_sleep) && !known(function.might_sleep)? {
        reject!(
            EINVAL,
            "Extension program may sleep, while original does not"
        );
    }
    Ok(())
}

/// Checks that programs of the target's type can be extended.
fn check_extended(target: &TargetProgram) -> VerifyResult {
    use AttachType::{TraceFentry, TraceFexit};
    match (
        target.program.prog_type,
        target.program.expected_attach_type,
    ) {
        (ProgType::Ext, _) => reject!(EINVAL, "Cannot recursively attach"),
        (ProgType::Tracing, Some(TraceFentry | TraceFexit)) => {
            reject!(EINVAL, "Cannot extend fentry/fexit")
        }
        _ => Ok(()),
    }
}

/// A function whose type is compared.
#[derive(Clone, Copy)]
struct Function<'a> {
    btf: &'a Btf,
    ty: Type<'a>,
}

impl<'a> Function<'a> {
    fn name(self) -> &'a str {
        self.ty.name()
    }

    fn prototype(self) -> VerifyResult<Type<'a>> {
        match self.ty.target().filter(|ty| ty.kind() == Kind::FuncProto) {
            Some(prototype) => Ok(prototype),
            None => reject!(EINVAL, ""),
        }
    }

    /// The type under qualifiers and typedefs; `void` if there is none.
    fn resolve(self, id: TypeId) -> Type<'a> {
        self.btf.resolve(id).unwrap_or(self.btf.ty(TypeId(0)))
    }

    fn pointed(self, pointer: Type<'a>) -> Type<'a> {
        self.resolve(pointer.target_id().unwrap_or_default())
    }
}

/// Checks that the extension has the type of the function (`btf_check_func_type_match`).
fn check_types(program: &Program, ty: Type<'_>) -> VerifyResult {
    let (Some(btf), Some(info)) = (&program.btf, program.func_info.first()) else {
        reject!(EINVAL, "Program extension requires BTF");
    };
    let Some(own) = btf.get(info.ty).filter(|ty| ty.kind() == Kind::Func) else {
        reject!(EINVAL, "");
    };
    let own = Function { btf, ty: own };
    let other = Function { btf: ty.btf(), ty };
    for function in [own, other] {
        if function.ty.linkage() != Some(Linkage::Global) {
            reject!(EINVAL, "{}() is not a global function", function.name());
        }
    }
    let (f1, f2) = (own.name(), other.name());
    let (own_type, other_type) = (own.prototype()?, other.prototype()?);
    let (n1, n2) = (own_type.params().len(), other_type.params().len());
    if n1 != n2 {
        reject!(EINVAL, "{f1}() has {n1} args while {f2}() has {n2} args");
    }
    let t1 = own.resolve(own_type.target_id().unwrap_or_default());
    let t2 = other.resolve(other_type.target_id().unwrap_or_default());
    if !same_info(t1, t2) {
        reject!(
            EINVAL,
            "Return type {} of {f1}() doesn't match type {} of {f2}()",
            kind_name(t1.kind()),
            kind_name(t2.kind())
        );
    }
    for (at, (p1, p2)) in std::iter::zip(own_type.params(), other_type.params()).enumerate() {
        let types = (own.resolve(p1.ty), other.resolve(p2.ty));
        check_argument((own, other), at, types)?;
    }
    Ok(())
}

/// Checks that an argument has the same type in both functions.
fn check_argument(
    (own, other): (Function<'_>, Function<'_>),
    at: usize,
    (t1, t2): (Type<'_>, Type<'_>),
) -> VerifyResult {
    let (f1, f2) = (own.name(), other.name());
    if !same_info(t1, t2) {
        reject!(
            EINVAL,
            "arg{at} in {f1}() is {} while {f2}() has {}",
            kind_name(t1.kind()),
            kind_name(t2.kind())
        );
    }
    if let (Some(s1), Some(s2)) = (t1.size(), t2.size())
        && s1 != s2
    {
        reject!(
            EINVAL,
            "arg{at} in {f1}() has size {s1} while {f2}() has {s2}"
        );
    }
    if t1.kind() == Kind::Int || t1.kind().is_any_enum() {
        return Ok(());
    }
    if t1.kind() != Kind::Ptr {
        reject!(EINVAL, "arg{at} in {f1}() has unrecognized type");
    }
    let (t1, t2) = (own.pointed(t1), other.pointed(t2));
    for (function, ty) in [(f1, t1), (f2, t2)] {
        if !ty.kind().is_composite() {
            reject!(
                EINVAL,
                "arg{at} in {function}() is not a pointer to context"
            );
        }
    }
    let (s1, s2) = (t1.name(), t2.name());
    if s1 != s2 {
        reject!(
            EINVAL,
            "arg{at} {f1}(struct {s1} *) doesn't match {f2}(struct {s2} *)"
        );
    }
    Ok(())
}

/// Whether both types are of one kind, with as many members (`struct btf_type`, `info`).
fn same_info(t1: Type<'_>, t2: Type<'_>) -> bool {
    let count = |ty: Type<'_>| (ty.kind(), ty.kind_flag(), ty.vlen());
    count(t1) == count(t2)
}
