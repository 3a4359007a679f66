//! Threaded code, the fast interpreter of optimised builds: each operation is a cell with a
//! function that executes it and ends in a call of the next cell's function. The four BPF
//! registers that the program uses most are arguments of these functions, and so stay in
//! host registers.
//!
//! | file | what |
//! |---|---|
//! | `compile`, `several` | compile operations to cells, one by one and several at once |
//! | `hot` | which BPF registers are in host registers |
//! | `alu`, `jump`, `access` | the functions of the operations that are executed most |
//! | `fused` | the functions of several operations at once |
//! | `call` | all other operations, by way of `Run::step` |
//! | `tail_calls` | whether this build can execute cells |
//!
//! Rust does not promise that a call in tail position uses no stack. If it does (builds
//! without optimisation, other calling conventions), there are no cells, and the loop over
//! operations runs instead.

// Builds with debug assertions have no threaded code: its handlers are a third of all
// machine code of such a build, and without optimisation calls in tail position use stack.
#![cfg_attr(debug_assertions, allow(dead_code, reason = "release builds use it"))]

mod access;
mod alu;
mod call;
mod compile;
mod fused;
mod hot;
mod jump;
mod several;
mod tail_calls;

use crate::engine::cells::Threaded;
use crate::lower::Lowered;

/// Compiles a lowered program to cells; none if this build can't execute them.
pub(crate) fn compile(lowered: &Lowered) -> Option<Threaded> {
    #[cfg(not(debug_assertions))]
    return tail_calls::use_no_stack().then(|| compile::compile(lowered));
    #[cfg(debug_assertions)]
    {
        let _ = lowered;
        None
    }
}
