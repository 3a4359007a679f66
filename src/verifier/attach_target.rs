//! The attach target of a program: a type in BTF, with the prototype that types the context. Here
//! are those in the kernel's BTF: functions, hooks, tracepoints, iterators
//! (`bpf_check_attach_target`).

use super::reject::{VerifyResult, reject, unmodelled};
use super::structure::is_gpl_compatible;
use crate::btf::{Btf, Kind, Type};
use crate::program::Program;
use crate::spec::limits::MAX_FUNC_ARGS;
use crate::spec::struct_ops::{Operations, REFERENCE};
use crate::spec::{AttachType, ProgType, iterator, lsm};
use crate::util::TypeId;

/// The prefix of a tracepoint's typedef.
const TRACEPOINT: &str = "btf_trace_";
/// The prefix of the function that calls a tracepoint's programs; its template's name
/// follows.
const TEMPLATE: &str = "__bpf_trace_";
/// Functions that tracing programs must not attach to (`btf_id_deny`).
const DENIED: &[&str] = &[
    "___migrate_enable",
    "migrate_disable",
    "migrate_enable",
    "rcu_read_unlock_strict",
    "preempt_count_add",
    "preempt_count_sub",
    "__rcu_read_lock",
    "__rcu_read_unlock",
];
/// Functions that do not return (`noreturn_deny`).
const NO_RETURN: &[&str] = &[
    "__ia32_sys_exit",
    "__ia32_sys_exit_group",
    "__x64_sys_exit",
    "__x64_sys_exit_group",
    "__kunit_abort",
    "kunit_try_catch_throw",
    "__module_put_and_kthread_exit",
    "do_exit",
    "do_group_exit",
    "kthread_complete_and_exit",
    "kthread_exit",
    "make_task_dead",
];
/// Functions whose return value programs may modify, but in which they must not sleep
/// (`btf_non_sleepable_error_inject`, and `bpf_test_modify_return_ids` without `KF_SLEEPABLE`).
const NEVER_SLEEP: &[&str] = &[
    "__filemap_add_folio",
    "bpf_modify_return_test",
    "bpf_modify_return_test2",
    "bpf_modify_return_test_tp",
    "should_fail_alloc_page",
    "should_failslab",
];

/// The attach target of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttachTarget<'p> {
    /// The name of the function, or of the tracepoint.
    pub name: &'p str,
    /// Its prototype.
    pub prototype: Type<'p>,
    /// What it is to the program.
    pub role: Role<'p>,
}

/// The member that a program implements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'p> {
    /// Its structure's rules.
    pub operations: &'static Operations,
    /// The prototype of its stub, whose parameters have names.
    pub stub: Option<Type<'p>>,
}

impl Member<'_> {
    /// Whether the name of a parameter of the stub ends like this.
    pub(super) fn is_marked(&self, argument: usize, suffix: &str) -> bool {
        let param = self.stub.and_then(|stub| stub.params().nth(argument));
        param.is_some_and(|param| param.name.ends_with(suffix))
    }

    /// The arguments that are references, which the program has to release or return.
    pub(super) fn references(&self) -> impl Iterator<Item = usize> {
        let count = self.stub.map_or(0, |stub| stub.params().len());
        (0..count).filter(|argument| self.is_reference(*argument))
    }

    /// Whether an argument is a reference.
    pub(super) fn is_reference(&self, argument: usize) -> bool {
        self.is_marked(argument, REFERENCE)
    }
}

/// What an attach target is to its program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role<'p> {
    /// A function of the kernel.
    Function,
    /// A tracepoint, whose first parameter is not passed to the program.
    Tracepoint,
    /// A member of a structure of operations, which the program implements.
    Member(Member<'p>),
    /// A function of another program, which the program replaces.
    Replaced {
        /// The type of that program.
        of: ProgType,
        /// The function, a type of that program's.
        function: TypeId,
    },
    /// A function of another program, which the program traces.
    Traced {
        /// The type of that program; for an extension, that of the program it extends.
        of: ProgType,
        /// Whether the function's type holds for every call. If not, its arguments are numbers.
        reliable: bool,
    },
}

/// Whether a program attaches to a function by name, but no kernel BTF was given in which
/// to look it up.
pub(crate) fn needs_kernel_btf(program: &Program) -> bool {
    let by_btf = matches!(
        program.prog_type,
        ProgType::Tracing | ProgType::Lsm | ProgType::StructOps
    );
    by_btf
        && match (program.attach_btf_id, &program.attach_target) {
            (Some(_), _) => program.kernel_btf.is_none(),
            (None, Some(_)) => program.kernel_types().is_none(),
            (None, None) => false,
        }
}

impl<'p> AttachTarget<'p> {
    /// Resolves a type in the kernel's BTF.
    pub(super) fn in_kernel(program: &'p Program, sleepable: bool) -> VerifyResult<Self> {
        if needs_kernel_btf(program) {
            unmodelled!(KernelBtf);
        }
        let target = program.attach_btf_id.zip(program.kernel_btf.as_ref());
        let Some((id, btf)) = target else {
            reject!(EINVAL, "Tracing programs must provide btf_id");
        };
        let Some(ty) = btf.get(id).filter(|_| id != TypeId(0)) else {
            reject!(EINVAL, "attach_btf_id {id} is invalid");
        };
        let name = ty.name();
        let attach = program.expected_attach_type;
        match attach {
            Some(AttachType::TraceRawTp) => return Self::tracepoint(btf, ty),
            Some(AttachType::TraceIter) => {
                let target = Self::function(btf, ty)?;
                if iterator::find(name).is_none() {
                    reject!(EINVAL, "");
                }
                return Ok(target);
            }
            Some(
                AttachType::ModifyReturn
                | AttachType::LsmMac
                | AttachType::LsmCgroup
                | AttachType::TraceFentry
                | AttachType::TraceFexit,
            ) => {}
            _ => reject!(EINVAL, ""),
        }
        let target = Self::function(btf, ty)?;
        if sleepable {
            if !may_sleep(program.prog_type, name) {
                reject!(EINVAL, "{name} is not sleepable");
            }
        } else if attach == Some(AttachType::ModifyReturn)
            && !(name.starts_with("security_") || may_fail_on_request(name))
        {
            reject!(EINVAL, "{name}() is not modifiable");
        }
        if program.prog_type == ProgType::Lsm {
            check_hook(program, name, id)?;
        } else if DENIED.contains(&name) {
            reject!(
                EINVAL,
                "Attaching tracing programs to function '{name}' is rejected."
            );
        } else if matches!(
            attach,
            Some(AttachType::TraceFexit | AttachType::ModifyReturn)
        ) && NO_RETURN.contains(&name)
        {
            reject!(
                EINVAL,
                "Attaching fexit/fmod_ret to __noreturn function '{name}' is rejected."
            );
        }
        Ok(target)
    }

    fn tracepoint(btf: &'p Btf, ty: Type<'p>) -> VerifyResult<Self> {
        let id = ty.id();
        if ty.kind() != Kind::Typedef {
            reject!(EINVAL, "attach_btf_id {id} is not a typedef");
        }
        let Some(name) = ty.name().strip_prefix(TRACEPOINT) else {
            let name = ty.name();
            reject!(
                EINVAL,
                "attach_btf_id {id} points to wrong type name {name}"
            );
        };
        // The typedef's prototype has no parameter names. The function's has, if it is the
        // tracepoint's own and not shared by an event class.
        let function = btf.find(&format!("{TEMPLATE}{name}"), Kind::Func);
        let prototype = match function.and_then(|function| function.target()) {
            Some(prototype) => Some(prototype),
            None => ty.target().and_then(|pointer| pointer.target()),
        };
        let Some(prototype) = prototype.filter(|ty| ty.kind() == Kind::FuncProto) else {
            reject!(EINVAL, "");
        };
        Ok(Self {
            name,
            prototype,
            role: Role::Tracepoint,
        })
    }

    fn function(btf: &Btf, ty: Type<'p>) -> VerifyResult<Self> {
        if ty.kind() != Kind::Func {
            reject!(EINVAL, "attach_btf_id {} is not a function", ty.id());
        }
        let Some(prototype) = ty.target().filter(|ty| ty.kind() == Kind::FuncProto) else {
            reject!(EINVAL, "");
        };
        let target = Self {
            name: ty.name(),
            prototype,
            role: Role::Function,
        };
        target.check_prototype(btf)?;
        Ok(target)
    }

    /// Checks that a trampoline can pass the parameters (`btf_distill_func_proto`).
    pub(super) fn check_prototype(&self, btf: &Btf) -> VerifyResult {
        let name = self.name;
        let params = self.prototype.params();
        let count = params.len();
        if count > MAX_FUNC_ARGS {
            reject!(
                EINVAL,
                "The function {name} has {count} arguments. Too many."
            );
        }
        let result = self.prototype.target_id().unwrap_or_default();
        let (size, ty) = carried(btf, result);
        if size.is_none() || ty.kind() == Kind::Struct {
            reject!(
                EINVAL,
                "The function {name} return type {} is unsupported.",
                kind_name(ty.kind())
            );
        }
        for (at, param) in params.enumerate() {
            if at + 1 == count && param.ty == TypeId(0) {
                reject!(
                    EINVAL,
                    "The function {name} with variable args is unsupported."
                );
            }
            match carried(btf, param.ty) {
                (Some(1..=16), _) => {}
                (Some(0), _) => {
                    reject!(EINVAL, "The function {name} has malformed void argument.")
                }
                (_, ty) => reject!(
                    EINVAL,
                    "The function {name} arg{at} type {} is unsupported.",
                    kind_name(ty.kind())
                ),
            }
        }
        Ok(())
    }

    /// The type of the other program that the function belongs to.
    pub(super) const fn owner(&self) -> Option<ProgType> {
        match self.role {
            Role::Replaced { of, .. } | Role::Traced { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Whether the prototype says nothing about the arguments, so that they are numbers.
    pub(super) const fn is_unreliable(&self) -> bool {
        matches!(
            self.role,
            Role::Traced {
                reliable: false,
                ..
            }
        )
    }

    /// Whether the first parameter is not passed to the program.
    pub(super) const fn is_tracepoint(&self) -> bool {
        matches!(self.role, Role::Tracepoint)
    }

    /// The member of a structure of operations.
    pub(super) const fn member(&self) -> Option<Member<'p>> {
        match self.role {
            Role::Member(member) => Some(member),
            _ => None,
        }
    }

    /// The structure that a struct_ops program gets for an argument of another type.
    pub(super) fn retyped(&self, argument: usize) -> Option<TypeId> {
        let other = self.member()?.operations.other_type(self.name, argument)?;
        let structure = self.prototype.btf().find(other, Kind::Struct)?;
        Some(structure.id())
    }

    /// The structure that a struct_ops program returns a pointer to, if it does
    /// (`btf_type_resolve_ptr`).
    pub(crate) fn returned_pointer(&self) -> Option<TypeId> {
        self.member()?;
        let btf = self.prototype.btf();
        let result = btf.resolve(self.prototype.target_id()?).ok()?;
        let pointer = (result.kind() == Kind::Ptr).then_some(result)?;
        Some(btf.resolve(pointer.target_id()?).ok()?.id())
    }

    /// Whether the function returns `void`.
    pub(crate) fn returns_nothing(&self) -> bool {
        self.prototype
            .target_id()
            .is_none_or(|result| result == TypeId(0))
    }
}

/// The name of a kind as the verifier prints it (`btf_type_str`).
pub(crate) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Void => "UNKNOWN",
        _ => kind.name(),
    }
}

/// The name of a type as most messages print it (`__btf_name_by_offset`).
pub(crate) fn shown_name(ty: Type<'_>) -> &str {
    match ty.name() {
        "" => "(anon)",
        name => name,
    }
}

/// The size of a type in registers, if it can be passed in them, and the type itself
/// (`__get_type_size`).
fn carried(btf: &Btf, id: TypeId) -> (Option<u32>, Type<'_>) {
    let ty = btf.resolve(id).unwrap_or(btf.ty(TypeId(0)));
    let size = match ty.kind() {
        Kind::Void => (id == TypeId(0)).then_some(0),
        Kind::Ptr => Some(8),
        Kind::Int | Kind::Enum | Kind::Enum64 | Kind::Struct => ty.size(),
        _ => None,
    };
    (size, ty)
}

/// Whether a program may modify the function's return value, and sleep there but for
/// [`NEVER_SLEEP`]: the functions open to error injection, among them the system calls, and those
/// of `bpf_test_modify_return_ids`. Both lists are in the kernel's memory, not in BTF.
fn may_fail_on_request(function: &str) -> bool {
    const ON_REQUEST: &[&str] = &[
        "__filemap_add_folio",
        "bpf_fentry_test1",
        "bpf_modify_return_test",
        "bpf_modify_return_test2",
        "bpf_modify_return_test_tp",
        "should_fail_alloc_page",
        "should_fail_bio",
        "should_failslab",
    ];
    let system_call = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_"];
    system_call
        .iter()
        .any(|prefix| function.starts_with(prefix))
        || ON_REQUEST.contains(&function)
}

fn may_sleep(prog_type: ProgType, function: &str) -> bool {
    if prog_type == ProgType::Lsm {
        lsm::is_sleepable(function)
    } else {
        may_fail_on_request(function) && !NEVER_SLEEP.contains(&function)
    }
}

/// Checks that the function is a hook that programs may attach to (`bpf_lsm_verify_prog`).
fn check_hook(program: &Program, name: &str, id: TypeId) -> VerifyResult {
    if !is_gpl_compatible(&program.license) {
        reject!(EINVAL, "LSM programs must have a GPL compatible license");
    }
    if lsm::is_disabled(name) {
        reject!(EINVAL, "attach_btf_id {id} points to disabled hook {name}");
    }
    if !lsm::is_hook(name) {
        reject!(
            EINVAL,
            "attach_btf_id {id} points to wrong type name {name}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Linkage, Param};
    use crate::spec::ProgFlags;

    /// A kernel with these functions, a tracepoint `t` and a typedef `u`.
    fn kernel(functions: &[&str]) -> Btf {
        let mut types = Builder::new();
        let long = types.int("long", 8, Encoding::Signed);
        let param = Param {
            name: "x",
            ty: long,
        };
        let prototype = types.prototype(long, &[param]);
        for name in functions {
            types.function(name, prototype, Linkage::Static);
        }
        let pointer = types.ptr(prototype);
        types.typedef("btf_trace_t", pointer);
        types.typedef("u", long);
        types.build().unwrap()
    }

    fn target(
        prog_type: ProgType,
        attach: AttachType,
        name: &str,
        change: impl FnOnce(&mut Program),
    ) -> Result<String, String> {
        let mut program = Program::new("p", prog_type, Vec::new());
        let btf = kernel(&[
            "f",
            "do_exit",
            "migrate_disable",
            "bpf_fentry_test1",
            "bpf_modify_return_test",
            "bpf_lsm_file_open",
            "bpf_lsm_getselfattr",
        ]);
        program.expected_attach_type = Some(attach);
        program.license = "GPL".to_owned();
        program.attach_btf_id = btf.named(name).next().map(|ty| ty.id());
        program.kernel_btf = Some(btf);
        change(&mut program);
        match crate::verifier::attach::resolve(&program, &[]) {
            Ok(target) => Ok(target.map_or("", |target| target.name).to_owned()),
            Err(reject) => Err(reject.message().to_owned()),
        }
    }

    #[test]
    fn functions_and_tracepoints_are_found() {
        let plain = |_: &mut Program| {};
        let tracing = |attach, name| target(ProgType::Tracing, attach, name, plain);
        assert_eq!(tracing(AttachType::TraceFentry, "f"), Ok("f".to_owned()));
        assert_eq!(
            tracing(AttachType::TraceRawTp, "btf_trace_t"),
            Ok("t".to_owned())
        );
        let ends = |attach, name, words: &str| {
            let fault = tracing(attach, name).unwrap_err();
            assert!(fault.ends_with(words), "{fault}");
        };
        ends(AttachType::TraceRawTp, "u", "points to wrong type name u");
        ends(AttachType::TraceRawTp, "f", "is not a typedef");
        ends(AttachType::TraceFexit, "u", "is not a function");
        ends(AttachType::ModifyReturn, "f", "f() is not modifiable");
        ends(
            AttachType::TraceFentry,
            "migrate_disable",
            "Attaching tracing programs to function 'migrate_disable' is rejected.",
        );
        ends(
            AttachType::TraceFexit,
            "do_exit",
            "__noreturn function 'do_exit' is rejected.",
        );
        ends(
            AttachType::TraceFentry,
            "nothing",
            "Tracing programs must provide btf_id",
        );
    }

    #[test]
    fn hooks_and_sleep_have_their_rules() {
        let hook = |name, change: fn(&mut Program)| {
            target(ProgType::Lsm, AttachType::LsmMac, name, change)
        };
        let sleep: fn(&mut Program) = |program| program.flags = ProgFlags::SLEEPABLE;
        assert!(hook("bpf_lsm_file_open", |_| {}).is_ok());
        assert!(hook("bpf_lsm_file_open", sleep).is_ok());
        let closed = hook("bpf_lsm_getselfattr", |_| {}).unwrap_err();
        assert!(closed.ends_with("points to disabled hook bpf_lsm_getselfattr"));
        assert_eq!(
            hook("bpf_lsm_file_open", |program| program.license.clear()),
            Err("LSM programs must have a GPL compatible license".to_owned())
        );
        let tracing = target(ProgType::Tracing, AttachType::TraceFentry, "f", sleep);
        assert_eq!(tracing, Err("f is not sleepable".to_owned()));
        let modifies = |name, change: fn(&mut Program)| {
            target(ProgType::Tracing, AttachType::ModifyReturn, name, change)
        };
        assert!(modifies("bpf_fentry_test1", sleep).is_ok());
        assert!(modifies("bpf_modify_return_test", |_| {}).is_ok());
        // Linux 6.18.15 says the same.
        assert_eq!(
            modifies("bpf_modify_return_test", sleep),
            Err("bpf_modify_return_test is not sleepable".to_owned())
        );
    }
}
