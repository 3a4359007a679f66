//! The environment of a generated program: its type, its context, its functions.

use super::code::Label;
use super::context::Context;
use super::kernel::{Hook, Iterator, Kfunc};
use super::state::{Area, BUFFER, Holds, MemoryKind};
use super::{Options, maps};
use crate::spec::context::{Arch, layout};
use crate::spec::helpers::{Caller, helper_by_name};
use crate::spec::kfuncs::{self, KfuncFlags, ParameterKind, THROW};
use crate::spec::{AttachType, ContextKind, PacketAccess, ProgType, ReturnRule, Traits};
use crate::util::HelperId;

/// The common environment of a program's functions.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    pub prog_type: ProgType,
    pub options: Options<'a>,
    /// Where the program attaches, if its arguments are typed.
    pub hook: Option<&'a Hook>,
    /// Whether the program may sleep.
    pub sleeps: bool,
    /// The kernel's functions and iterators that the program may call, except for those of
    /// the steps in `scopes`.
    pub kfuncs: Vec<Kfunc>,
    pub iterators: Vec<Iterator>,
    /// What throws an exception.
    pub throw: Option<Kfunc>,
    pub context: &'static Context,
    pub functions: Vec<Function>,
}

/// The role of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The main function.
    Main,
    /// Called, and verified at each call.
    Static,
    /// Called, and verified by itself.
    Global,
    /// Called by `bpf_loop`.
    Loop,
    /// Called by `bpf_for_each_map_elem` on this map.
    Element(u32),
}

impl Role {
    /// Whether a helper calls it.
    pub(super) const fn is_callback(self) -> bool {
        matches!(self, Self::Loop | Self::Element(_))
    }
}

/// A function's interface.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub name: String,
    pub role: Role,
    /// The contents of its arguments.
    pub arguments: Vec<Holds>,
    pub label: Label,
}

impl Function {
    /// The arguments of a callback.
    pub(super) fn callback_arguments(role: Role) -> Vec<Holds> {
        let context = Holds::Pointer(Area::new(MemoryKind::Stack, BUFFER));
        match role {
            Role::Loop => vec![Holds::Number, context],
            Role::Element(map) => vec![
                Holds::Nothing,
                Holds::Pointer(Area::new(MemoryKind::Key, maps::key_size(map))),
                Holds::Pointer(Area::new(MemoryKind::Value(map), maps::value_size(map))),
                context,
            ],
            _ => Vec::new(),
        }
    }
}

/// Kfuncs that programs don't call by chance: of the compiler, at ends of programs, of kernels whose
/// BTF alone does not tell whether they have it.
const APART: [&str; 3] = ["__bpf_trap", THROW, "bpf_verify_pkcs7_signature"];

/// Whether a kfunc can be called by itself: not a part of what `scopes` generates. Programs are run
/// in the kernel, so none that could end it.
fn is_plain(row: &kfuncs::Kfunc) -> bool {
    let parts = KfuncFlags::RELEASE
        .union(KfuncFlags::DESTRUCTIVE)
        .union(KfuncFlags::ITER_NEW)
        .union(KfuncFlags::ITER_NEXT)
        .union(KfuncFlags::ITER_DESTROY);
    let sections = ["bpf_rcu_read", "bpf_preempt", "bpf_local_irq"];
    let needs = |kind| {
        row.parameters
            .iter()
            .any(|parameter| parameter.kind == kind)
    };
    let unknown = [
        ParameterKind::Callback,
        ParameterKind::Program,
        ParameterKind::ListHead,
        ParameterKind::ListNode,
        ParameterKind::RbRoot,
        ParameterKind::RbNode,
        ParameterKind::ConstString,
        ParameterKind::Map,
        ParameterKind::IrqFlag,
        ParameterKind::Workqueue,
        ParameterKind::TaskWork,
        ParameterKind::ResSpinLock,
        ParameterKind::Allocated,
        ParameterKind::Refcounted,
        ParameterKind::Iterator,
    ];
    let begins_dynptr = row.parameters.iter().any(|parameter| parameter.uninit);
    !row.flags.intersects(parts)
        && !begins_dynptr
        && !sections.iter().any(|start| row.name.starts_with(start))
        && !unknown.into_iter().any(needs)
        && !APART.contains(&row.name)
        && !row.name.contains("obj_new")
}

impl<'a> Setting<'a> {
    /// Of programs of a type, at an attach point if their arguments are typed. `sleeps` says whether
    /// they may sleep; syscall programs always may.
    pub(super) fn new(
        prog_type: ProgType,
        options: Options<'a>,
        hook: Option<&'a Hook>,
        sleeps: bool,
    ) -> Self {
        let mut setting = Self {
            prog_type,
            options,
            hook,
            sleeps: sleeps || prog_type == ProgType::Syscall,
            kfuncs: Vec::new(),
            iterators: Vec::new(),
            throw: None,
            context: Context::of(prog_type, &options),
            functions: Vec::new(),
        };
        if let Some(kernel) = options.kernel {
            // A program that throws can't be recorded.
            let mut throw = kernel.functions.iter().copied();
            let throw = throw.find(|it| it.row.name == THROW && !options.recorded);
            setting.throw = throw.filter(|it| setting.allows(it.row));
            let functions = kernel.functions.iter().copied();
            let may_call = |it: &Kfunc| {
                let compares = !options.defined || it.row.name.starts_with("bpf_dynptr_");
                setting.allows(it.row) && is_plain(it.row) && compares
            };
            setting.kfuncs = functions.filter(may_call).collect();
            let iterators = kernel.iterators.iter().copied();
            // The kernel's objects differ from ours.
            let may_use = |it: &Iterator| {
                let own = ["bpf_iter_num_new", "bpf_iter_bits_new"];
                let compares = !options.defined || own.contains(&it.new.row.name);
                setting.allows(it.new.row) && compares
            };
            setting.iterators = iterators.filter(may_use).collect();
        }
        setting
    }

    /// The attach type, if the program's type does not imply one.
    fn attach_type(&self) -> Option<AttachType> {
        let hook = self.hook.and_then(|hook| hook.attach_type);
        self.prog_type.attach_type(hook)
    }

    /// How the tables of helpers and kfuncs see the program.
    fn caller(&self) -> Caller<'a> {
        let caller = Caller::of(self.prog_type).with_attach_type(self.attach_type());
        match self.hook.and_then(Hook::member) {
            Some((structure, member)) => caller.with_target(structure).with_member(member),
            None => caller,
        }
    }

    /// Whether the program may call a kfunc.
    pub(super) fn allows(&self, row: &kfuncs::Kfunc) -> bool {
        row.allows(&self.caller())
    }

    /// The helper of this name, if programs of the type may call it.
    pub(super) fn helper(&self, name: &str) -> Option<HelperId> {
        let helper = helper_by_name(name)?;
        helper.prototype(&self.caller())?;
        Some(helper.id)
    }

    /// The bits that the program's result may have; `None` for any (`check_return_code`).
    pub(super) fn returnable(&self) -> Option<i32> {
        match self.prog_type.return_rule(self.attach_type()) {
            ReturnRule::Any => None,
            // A pointer or null, or any number.
            ReturnRule::Hook if self.prog_type == ProgType::StructOps => {
                self.hook.filter(|hook| hook.returns_pointer).map(|_| 0)
            }
            _ => Some(1),
        }
    }

    /// The kernel's name of the context's structure in the types of global functions
    /// (`btf_is_prog_ctx_type`, `kernel/bpf/btf.c`).
    pub(super) fn context_name(&self) -> Option<&'static str> {
        match self.prog_type.info().context {
            ContextKind::RawTracepoint => Some("bpf_raw_tracepoint_args"),
            kind => layout(kind, Arch::HOST).map(|layout| layout.name),
        }
    }

    /// Whether programs of the type may write to the packet.
    pub(super) fn writes_packets(&self) -> bool {
        self.prog_type.info().packet == PacketAccess::Write
    }

    /// Whether programs of the type may use `LD_ABS` and `LD_IND`.
    pub(super) fn loads_packets(&self) -> bool {
        let traits = self.prog_type.info().traits;
        traits.contains(Traits::LEGACY_LOADS)
    }

    /// Whether a map may be used: programs that may sleep have fewer.
    pub(super) fn has_map(&self, map: u32) -> bool {
        // Programs with mistakes share maps, and a prog array keeps the type of its first
        // user.
        let has_jumps = self.options.kernel.is_none() || map != maps::JUMPS;
        has_jumps && (!self.sleeps || ![maps::JUMPS, maps::PERF].contains(&map))
    }
}
