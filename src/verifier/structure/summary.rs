//! Properties of a call that follow from the callee's prototype alone (`get_call_summary`,
//! `kernel/bpf/verifier.c`).

use super::raw::Callee;
use crate::btf::{Btf, Kind};
use crate::spec::helpers::{self, Attributes, Caller, Prototype, RetKind, id};
use crate::spec::kfuncs::{self, Kfunc};
use crate::util::{HelperId, TypeId};

/// Helpers that an x86-64 kernel inlines, so that registers are preserved
/// (`verifier_inlines_helper_call`).
const INLINED: &[HelperId] = &[id::get_smp_processor_id];

/// Kfuncs that are only casts, so that registers are preserved (`KF_FASTCALL`).
const CASTS: &[&str] = &["bpf_cast_to_kern_ctx", "bpf_rdonly_cast"];

/// The properties of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) struct Summary {
    /// The number of arguments that are read.
    pub arguments: u8,
    /// Whether `r0` is not written.
    pub is_void: bool,
    /// Whether unused caller-saved registers are preserved.
    pub fastcall: bool,
}

/// The functions that a program can call.
#[derive(Debug, Clone, Copy)]
pub(in crate::verifier) struct Callees<'a> {
    /// How the helper tables see the program.
    pub caller: &'a Caller<'a>,
    /// The BTF with the kfuncs.
    pub kernel_btf: Option<&'a Btf>,
}

impl Callees<'_> {
    /// The helper's prototype for this program, if it may call the helper.
    pub(super) fn prototype(&self, helper: HelperId) -> Option<&'static Prototype> {
        helpers::helper(helper)?.prototype(self.caller)
    }

    /// The properties of a call of this helper, if the program may call it.
    pub(in crate::verifier) fn helper(&self, helper: HelperId) -> Option<Summary> {
        let prototype = self.prototype(helper)?;
        let keeps = prototype.attributes.contains(Attributes::FASTCALL);
        Some(Summary {
            arguments: u8::try_from(prototype.args.len()).unwrap_or(u8::MAX),
            is_void: prototype.ret.kind == RetKind::Void,
            fastcall: keeps && INLINED.contains(&helper),
        })
    }

    /// The properties of a call of this kfunc, if the program may call it.
    pub(in crate::verifier) fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Summary> {
        let btf = self.kernel_btf.filter(|_| fd_index == 0)?;
        let function = btf.get(id).filter(|ty| ty.kind() == Kind::Func)?;
        let prototype = function.target()?;
        kfuncs::by_name(function.name()).filter(|kfunc| kfunc.row().allows(self.caller))?;
        Some(Summary {
            arguments: u8::try_from(prototype.params().len()).unwrap_or(u8::MAX),
            is_void: prototype.target_id() == Some(TypeId(0)),
            fastcall: CASTS.contains(&function.name()),
        })
    }

    /// The kfunc's row in the table, if it exists.
    pub(super) fn kfunc_row(&self, id: TypeId, fd_index: i16) -> Option<&'static Kfunc> {
        let btf = self.kernel_btf.filter(|_| fd_index == 0)?;
        let function = btf.get(id).filter(|ty| ty.kind() == Kind::Func)?;
        Some(kfuncs::by_name(function.name())?.row())
    }

    /// The properties of a call; `None` for a subprogram.
    pub(super) fn summary(&self, callee: Callee) -> Option<Summary> {
        match callee {
            Callee::Helper(helper) => self.helper(helper),
            Callee::Kfunc { id, fd_index } => self.kfunc(id, fd_index),
            Callee::Subprogram(_) | Callee::Nothing => None,
        }
    }
}
