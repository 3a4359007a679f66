//! The control-flow graph inside functions.
//!
//! A call is followed by the next instruction; the callee is not entered
//! (`bpf_insn_successors`, `kernel/bpf/liveness.c`).
//!
//! A tail call and an `ABS` or `IND` packet load may also return from the function: they
//! have an additional edge to its exit. Linux added this after 6.18. Without it, Linux 6.18
//! considers a slot of the caller's stack always overwritten if the code after a tail call
//! overwrites it:
//!
//! ```text
//! 4: call tail_call          // to 5 and to 6
//! 5: *(u64 *)(r6 +0) = r7    // r6: the caller's stack, not written if 4 leaves
//! 6: exit
//! ```

use super::functions::SubprogramInfo;
use crate::analysis::{Edges, Graph, edges};
use crate::isa::{CallTarget, Code, Insn};
use crate::spec::helpers::id;
use crate::util::Pc;

/// The graph of `code`, whose jumps stay in these functions.
pub(super) fn graph(code: &Code, subprograms: &[SubprogramInfo]) -> Graph {
    let mut edges = edges(code);
    for sub in subprograms.iter().skip(1) {
        add_early_exits(code, sub, &mut edges);
    }
    Graph::new(edges, subprograms.iter().map(|sub| sub.start.0))
}

/// Adds an edge to the exit from each instruction that may return early from a
/// subprogram.
fn add_early_exits(code: &Code, sub: &SubprogramInfo, edges: &mut [Edges]) {
    if !sub.has_tail_call && !sub.has_ld_abs {
        return;
    }
    let slots = || sub.range().map(Pc::from_index);
    let exit = |pc: &Pc| code.insn(*pc) == Some(Insn::Exit);
    let Some(exit) = slots().rev().find(exit) else {
        return;
    };
    for pc in slots() {
        let leaves = matches!(
            code.insn(pc),
            Some(Insn::LoadPacket { .. } | Insn::Call(CallTarget::Helper(id::tail_call)))
        );
        if leaves && let Some([_, jump]) = edges.get_mut(pc.index()) {
            *jump = exit.0;
        }
    }
}
