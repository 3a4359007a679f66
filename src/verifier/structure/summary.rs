//! What can be known of a call from the callee's prototype alone
//! (`get_call_summary`, `kernel/bpf/verifier.c`).

use super::raw::Callee;
use crate::btf::{Btf, Kind};
use crate::spec::helpers::{self, Attributes, Caller, Prototype, RetKind, id};
use crate::util::{HelperId, TypeId};

/// Helpers that an x86-64 kernel calls without a call, so that registers are kept
/// (`verifier_inlines_helper_call`).
const INLINED: &[HelperId] = &[id::get_smp_processor_id];

/// Kernel functions that are only a cast, so that registers are kept (`KF_FASTCALL`).
const CASTS: &[&str] = &["bpf_cast_to_kern_ctx", "bpf_rdonly_cast"];

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) struct Summary {
    /// How many arguments are read.
    pub arguments: u8,
    /// Whether `r0` is left as it was.
    pub is_void: bool,
    /// Whether registers that it has no use for are kept.
    pub fastcall: bool,
}

/// What a program can call.
#[derive(Debug, Clone, Copy)]
pub(in crate::verifier) struct Callees<'a> {
    /// What the program is to helpers.
    pub caller: &'a Caller<'a>,
    /// Where the kernel's functions are described.
    pub kernel_btf: Option<&'a Btf>,
}

impl Callees<'_> {
    /// How the program calls this helper; none if it can't.
    pub(super) fn prototype(&self, helper: HelperId) -> Option<&'static Prototype> {
        helpers::helper(helper)?.prototype(self.caller)
    }

    /// What is known of a call of this helper; nothing if the program can't.
    pub(in crate::verifier) fn helper(&self, helper: HelperId) -> Option<Summary> {
        let prototype = self.prototype(helper)?;
        let keeps = prototype.attributes.contains(Attributes::FASTCALL);
        Some(Summary {
            arguments: u8::try_from(prototype.args.len()).unwrap_or(u8::MAX),
            is_void: prototype.ret.kind == RetKind::Void,
            fastcall: keeps && INLINED.contains(&helper),
        })
    }

    /// What is known of a call of this function of the kernel; nothing if there is no
    /// such function.
    pub(in crate::verifier) fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Summary> {
        let btf = self.kernel_btf.filter(|_| fd_index == 0)?;
        let function = btf.get(id).filter(|ty| ty.kind() == Kind::Func)?;
        let prototype = function.target()?;
        Some(Summary {
            arguments: u8::try_from(prototype.params().len()).unwrap_or(u8::MAX),
            is_void: prototype.target_id() == Some(TypeId(0)),
            fastcall: CASTS.contains(&function.name()),
        })
    }

    /// What is known of a call; nothing of one within the program.
    pub(super) fn summary(&self, callee: Callee) -> Option<Summary> {
        match callee {
            Callee::Helper(helper) => self.helper(helper),
            Callee::Kfunc { id, fd_index } => self.kfunc(id, fd_index),
            Callee::Subprogram(_) | Callee::Nothing => None,
        }
    }
}
