//! What calls take and give: the one place that both forms ask. The kinds of arguments and
//! results come from the tables of helpers and kernel functions; what those can't say
//! stands here.

mod helpers;
mod kfuncs;

use smallvec::SmallVec;

use super::error::Reason;
use crate::isa::{CallTarget, Reg};
use crate::program::Program;
use crate::spec::helpers::Caller;

/// What happens to a call in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It is left out: all that it gives is on the tape.
    World,
    /// The same, but it did something to the world, so its arguments are logged.
    Effect,
    /// It is made, and what it gives is overridden by the tape.
    Own,
    /// It is made, and what it gives needs no tape: it follows from what the program has.
    Plain,
}

/// What an argument is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing: a context, a size, a kernel object.
    Silent,
    /// The map.
    Map,
    /// A number, given away.
    Number,
    /// Memory that the callee reads.
    Given(Extent),
    /// Memory that the callee fills.
    Filled(Extent),
    /// A ring-buffer record that goes out now.
    Submitted,
}

/// How much memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// A key of the map in the arguments.
    Key,
    /// A value of that map.
    Value,
    /// So many bytes.
    Fixed(u32),
    /// As many as the next argument says.
    Next,
}

/// What `r0` is when a call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returns {
    /// Nothing that may be read.
    Nothing,
    /// A number.
    Number,
    /// A value of the map, or the map that it holds.
    Value,
    /// A ring-buffer record, of as many bytes as the second argument says.
    Record,
    /// Other memory that is not the world's.
    Memory,
    /// Memory of the run's own, which needs no log.
    Private,
    /// A kernel object or memory of the kernel.
    Kernel,
}

/// A function of the program that is called before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Callback {
    /// The argument that has its address.
    pub(super) function: Reg,
    /// What it gets, in `r1` and following.
    pub(super) passes: &'static [Passed],
}

/// What a callback gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// A number.
    Number,
    /// The map.
    Map,
    /// A key of the map.
    Key,
    /// A value of the map.
    Value,
    /// This argument of the call.
    Argument(Reg),
}

/// What a call takes and gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) class: Class,
    /// Of `r1` and following.
    pub(super) roles: SmallVec<[Role; 5]>,
    pub(super) returns: Returns,
    pub(super) callback: Option<Callback>,
}

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
                prog_type: program.prog_type,
                attach_type: program.prog_type.attach_type(program.expected_attach_type),
                target: program.attach_target.as_deref(),
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
