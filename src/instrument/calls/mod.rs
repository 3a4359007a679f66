//! What calls take and give: the one place that both forms ask. The kinds of arguments and
//! results come from the tables of helpers and kernel functions; what those can't say
//! stands here.

mod helpers;
mod kfuncs;
mod signature;

pub(super) use signature::{Callback, Class, Extent, Passed, Returns, Role, Signature};

use super::error::Reason;
use crate::isa::CallTarget;
use crate::program::Program;
use crate::spec::helpers::Caller;

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// A function of the program.
    Function,
    /// Something outside.
    Outside(Signature),
    /// Nothing that this program may call. Some verifier accepts the program, so no path
    /// leads here: CO-RE leaves such calls where a kernel lacks what is accessed.
    Nobody,
}

/// What a call takes and gives.
///
/// # Errors
/// Why it can't be recorded.
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
            let name = name.unwrap_or_else(|| format!("kernel function {id}"));
            kfuncs::signature(&name).map(Callee::Outside)
        }
        CallTarget::Subprogram { .. } => Ok(Callee::Function),
    }
}
