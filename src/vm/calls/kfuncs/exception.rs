//! Exceptions (`bpf_throw`, `kernel/bpf/helpers.c`).

use crate::vm::machine::{Call, HelperProblem};

type Result = std::result::Result<u64, HelperProblem>;

/// `bpf_throw(cookie)`: ends the program; the engine unwinds to its main function.
pub(super) fn throw(call: &mut Call<'_>) -> Result {
    Err(HelperProblem::Thrown(call.arg(1)))
}

/// `__bpf_trap()`: the compiler inserts it at code that it considers unreachable.
pub(super) fn trap(_call: &mut Call<'_>) -> Result {
    let problem = "the compiler found that the program's behaviour is undefined here";
    Err(HelperProblem::Other(problem.to_owned()))
}
