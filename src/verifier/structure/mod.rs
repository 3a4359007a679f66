//! What the kernel checks and computes before it walks a program: `bpf_check` up to
//! `do_check_main`, in its order, for the order decides which error is the first.
//!
//! | file | what |
//! |---|---|
//! | `attributes` | what the system call says of its attributes |
//! | `subprograms`, `kfuncs` | which functions there are; no jump leaves its own |
//! | `info` | `func_info` and `line_info` |
//! | `immediates`, `maps` | 64-bit immediates, opcodes, which maps may be used |
//! | `cfg` | that each instruction can be reached; where states are kept |
//! | `functions`, `model` | what all this is about |
//! | `graph`, `scc` | who follows whom, loops |
//! | `fastcall` | spills around calls that keep registers |
//! | `reserved` | what the walk says of a slot that is no instruction |
//! | `usage`, `stack_depth` | after the walk: how deep the stack gets |
//!
//! What decoding finds wrong with a slot is an error here only where it is one for the
//! kernel ([`DecodeError::is_structural`](crate::isa::DecodeError::is_structural)):
//! other slots harm only a path that gets there.

mod attributes;
mod cfg;
mod fastcall;
pub(in crate::verifier) mod functions;
pub(in crate::verifier) mod graph;
mod immediates;
mod info;
mod kfuncs;
mod license;
mod maps;
pub(in crate::verifier) mod model;
mod raw;
mod reserved;
mod scc;
mod stack_depth;
mod subprograms;
pub(in crate::verifier) mod summary;
mod usage;

pub(crate) use functions::SubprogramInfo;
pub(crate) use license::is_gpl_compatible;
pub(crate) use model::{InsnInfo, Structure};
pub(crate) use reserved::{Asks, asks_first, constant_operand, read_before, reserved};
pub(crate) use stack_depth::check_max_stack_depth;
pub(crate) use usage::Usage;

use self::graph::Graph;
use self::summary::Callees;
use super::liveness::registers;
use super::log::Log;
use super::reject::Checked;
use std::sync::Arc;

use crate::isa::Code;
use crate::program::Program;
use crate::spec::helpers::Caller;

/// Checks a program's structure. `caller` is what the program is to helpers; `attach`
/// looks at what it attaches to, which the kernel does between two of the checks here.
///
/// # Errors
/// The kernel's error, in its words; none where it refuses in silence.
pub(crate) fn check<T>(
    program: &Program,
    caller: &Caller<'_>,
    attach: impl FnOnce() -> Checked<T>,
    log: &mut Log,
) -> Checked<(Structure, T)> {
    attributes::check(program)?;
    info::check_functions_early(program)?;
    let (mut subprograms, exception_callback) = subprograms::find(program)?;
    subprograms::log(log, &subprograms);
    subprograms::check(&program.insns, &mut subprograms)?;
    info::check(program, &mut subprograms)?;
    let code = Code::new(&program.insns);
    let callees = Callees {
        caller,
        kernel_btf: program.kernel_btf.as_ref(),
    };
    immediates::check(program, &code)?;
    let mut insns = cfg::check(program, &callees, &mut subprograms, exception_callback)?;
    let graph = Graph::new(&code, &subprograms);
    let attached = attach()?;
    scc::number_loops(&graph, &mut insns);
    for (info, live) in insns
        .iter_mut()
        .zip(registers::live(&code, &graph, &callees))
    {
        info.live = live;
    }
    fastcall::mark(program, &callees, &mut subprograms, &mut insns);
    let structure = Structure {
        code: Arc::new(code),
        subprograms,
        insns,
        graph,
        exception_callback,
    };
    Ok((structure, attached))
}

#[cfg(test)]
mod tests;
