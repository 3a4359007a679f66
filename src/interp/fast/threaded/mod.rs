//! Threaded code, the fast interpreter of optimised builds: each operation is a cell with a
//! function that executes it and ends in a call of the next cell's function. The four BPF
//! registers that the program uses most are arguments of these functions, and so stay in
//! host registers.
//!
//! | file | what |
//! |---|---|
//! | `cell` | cells, host registers, the locations of BPF registers |
//! | `code` | a program of cells |
//! | `compile`, `several` | compile operations to cells, one by one and several at once |
//! | `hot` | which BPF registers are in host registers |
//! | `alu`, `jump`, `access` | the functions of the operations that are executed most |
//! | `fused` | the functions of several operations at once |
//! | `call` | all other operations, by way of `step` |
//! | `drive` | entering, leaving, the budget |
//!
//! Rust does not promise that a call in tail position uses no stack. If it does (builds
//! without optimisation, other calling conventions), [`holds`](drive::holds) returns false
//! and the loop in `step` runs instead.
//!
//! Instructions are counted at jumps: between two jumps, the executed operations are
//! consecutive. `Run::base` + the ordinal of the current operation is the number of
//! instructions executed before it; a jump adjusts the base to keep this true. Only
//! backward jumps check the budget, against the most that can be executed until the next
//! check; if the budget may not last, the loop in `step`, which counts one by one,
//! continues.

mod access;
mod alu;
mod call;
pub(super) mod cell;
pub(in crate::interp) mod code;
pub(super) mod compile;
pub(super) mod drive;
mod fused;
mod hot;
mod jump;
mod several;
