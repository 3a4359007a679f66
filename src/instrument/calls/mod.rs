//! Signatures of calls, used for both forms: the tables of helpers and kfuncs give the kinds of
//! arguments and results, the rules here the rest.

mod helpers;
mod kfuncs;
mod signature;

pub(super) use signature::{Callback, Extent, Passed, Returns, Role, Signature};

use super::error::Reason;
use crate::isa::CallTarget;
use crate::program::Program;
use crate::spec::helpers::Caller;

/// The target of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is matched where it is made, and never stored"
)]
pub(super) enum Callee {
    /// A function of the program.
    Function,
    /// A helper or kfunc.
    Outside(Signature),
    /// Nothing that this program may call. The verifier accepted the program, so the call is
    /// unreachable: CO-RE leaves such calls where a kernel lacks the accessed type or field.
    Nobody,
}

/// The target of a call, with its signature.
///
/// # Errors
/// Why the call can't be recorded.
pub(super) fn callee(program: &Program, target: CallTarget) -> Result<Callee, Reason> {
    match target {
        CallTarget::Helper(id) => {
            let caller = Caller {
                attach_type: program.prog_type.attach_type(program.expected_attach_type),
                target: program.attach_target.as_deref(),
                ..Caller::of(program.prog_type)
            };
            let signature = helpers::signature(id, &caller)?;
            Ok(signature.map_or(Callee::Nobody, Callee::Outside))
        }
        CallTarget::Kfunc { id, fd_index } => {
            let btf = program.kernel_btf.as_ref().filter(|_| fd_index == 0);
            let name = btf.and_then(|btf| Some(btf.get(id)?.name().to_owned()));
            let name = name.unwrap_or_else(|| format!("kfunc {id}"));
            kfuncs::signature(&name).map(Callee::Outside)
        }
        CallTarget::Subprogram { .. } => Ok(Callee::Function),
    }
}
