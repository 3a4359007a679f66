//! The checks before exploration: `bpf_check` up to `do_check_main`, in the kernel's order,
//! which decides the first error.
//!
//! | file | what |
//! |---|---|
//! | `attributes` | the attributes of the system call |
//! | `subprograms`, `kfuncs` | the functions; jumps stay in their function |
//! | `info` | `func_info` and `line_info` |
//! | `immediates`, `maps` | 64-bit immediates, opcodes, the maps that may be used |
//! | `cfg` | unreachable instructions; prune points |
//! | `functions`, `model` | the results |
//! | `graph` | the control-flow graph |
//! | `fastcall` | spills around `bpf_fastcall` calls |
//! | `reserved` | errors of invalid slots, reported during exploration |
//! | `usage`, `stack_depth` | after exploration: the stack depth |
//!
//! A decoding error is an error here only if it is one for the kernel
//! ([`DecodeError::is_structural`](crate::isa::DecodeError::is_structural)): other invalid
//! slots are errors only on a path that reaches them.

mod attributes;
mod cfg;
mod fastcall;
pub(in crate::verifier) mod functions;
mod graph;
mod immediates;
mod info;
mod kfuncs;
mod license;
mod maps;
pub(in crate::verifier) mod model;
mod raw;
mod reserved;
mod stack_depth;
mod subprograms;
pub(in crate::verifier) mod summary;
mod usage;

pub(in crate::verifier) use attributes::required;
pub(crate) use functions::SubprogramInfo;
pub(crate) use license::is_gpl_compatible;
pub(crate) use model::{InsnInfo, Structure};
pub(crate) use reserved::{PriorCheck, constant_operand, prior_check, read_before, reserved};
pub(crate) use stack_depth::check_max_stack_depth;
pub(crate) use usage::Usage;

use self::graph::graph;
use self::summary::Callees;
use super::Options;
use super::liveness::registers;
use super::log::Log;
use super::precision::affected::Affected;
use super::reject::VerifyResult;
use std::sync::Arc;

use crate::analysis::loop_numbers;
use crate::isa::{Code, Insn, Pseudo};
use crate::program::Program;
use crate::spec::MapType;
use crate::spec::helpers::Caller;
use crate::util::{MapId, Pc};

/// Checks a program's structure. `caller` is how the helper tables see the program;
/// `attach` resolves the attach target of these functions, which the kernel does between two of
/// the checks here.
///
/// # Errors
/// The kernel's error and message; an empty message where the kernel prints none.
pub(crate) fn check<T>(
    program: &Program,
    caller: &Caller<'_>,
    options: &Options,
    attach: impl FnOnce(&[SubprogramInfo]) -> VerifyResult<T>,
    log: &mut Log,
) -> VerifyResult<(Structure, T)> {
    let loader = caller.capabilities;
    attributes::check(program, options, loader)?;
    info::check_functions_early(program)?;
    let (mut subprograms, exception_callback) = subprograms::find(program, loader)?;
    subprograms::log(log, &subprograms);
    subprograms::check(&program.insns, &mut subprograms)?;
    info::check(program, &mut subprograms)?;
    let code = Code::new(&program.insns);
    let kernel_btf = program.kernel_btf.as_ref();
    immediates::check(program, caller, &code)?;
    // Before its target is resolved, an extension has no rules but its own.
    let own = Caller {
        prog_type: program.prog_type,
        ..*caller
    };
    let callees = Callees {
        caller: &own,
        kernel_btf,
    };
    let mut insns = cfg::check(program, &callees, &mut subprograms, exception_callback)?;
    let graph = graph(&code, &subprograms);
    let attached = attach(&subprograms)?;
    let callees = Callees { caller, kernel_btf };
    let loops = loop_numbers(&graph);
    for (block, number) in graph.blocks().iter().zip(loops) {
        let slots = block.start as usize..block.end as usize;
        for info in insns.get_mut(slots).unwrap_or_default() {
            info.scc = number;
        }
    }
    let live = registers::live(&code, &graph, &callees);
    for (info, pc) in insns.iter_mut().zip(0..) {
        info.live = live.before(pc).bits();
        if let Some(insn) = code.insn(Pc(pc)) {
            info.affected = Affected::by(&insn);
        }
    }
    let postorder = graph.postorder(subprograms.iter().map(|sub| sub.start.0));
    fastcall::mark(program, &callees, &mut subprograms, &mut insns);
    let has_arena = code
        .iter()
        .any(|(_, insn)| refers_to_arena(program, insn.ok()));
    let structure = Structure {
        code: Arc::new(code),
        subprograms,
        insns,
        graph,
        postorder,
        exception_callback,
        has_arena,
    };
    Ok((structure, attached))
}

/// Whether an instruction loads the address of an arena.
fn refers_to_arena(program: &Program, insn: Option<Insn>) -> bool {
    let Some(Insn::LoadPseudo { source, .. }) = insn else {
        return false;
    };
    let (Pseudo::MapIdx { index } | Pseudo::MapIdxValue { index, .. }) = source else {
        return false;
    };
    let map = program.map(MapId(index));
    map.is_some_and(|map| map.map_type == MapType::Arena)
}

#[cfg(test)]
pub(in crate::verifier) mod tests;
