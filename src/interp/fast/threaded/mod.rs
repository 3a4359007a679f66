//! The fast interpreter of optimised builds: each operation is a cell with a function
//! that does it and ends in a call of the next cell's function. Four BPF registers, the
//! ones that the program uses most, are arguments of these functions, and so stay in
//! registers of the host.
//!
//! | file | what |
//! |---|---|
//! | `cell` | cells, the registers of the host, where a BPF register is |
//! | `code` | a program of cells |
//! | `compile`, `several` | from operations to cells, one by one and several at once |
//! | `hot` | which registers of the program are in the host's |
//! | `alu`, `jump`, `access` | the functions of the operations that are executed most |
//! | `fused` | those of several operations at once |
//! | `call` | all others, by way of `step` |
//! | `drive` | entering, leaving, the budget |
//!
//! The language does not promise that a call in tail position costs no stack. Where it
//! does cost some (builds without optimisation, other calling conventions), [`holds`](drive::holds)
//! says so and the loop in `step` runs instead.
//!
//! Instructions are counted where the program jumps: from one jump to the next, the
//! operations executed stand one behind the other. `Run::base` + the ordinal of the
//! operation under way is how many were executed before it; a jump adds what keeps this
//! true. Only jumps backwards look at the budget: it is held against the most that can
//! be executed until the next one, and when that is too much, the loop in `step` goes
//! on, which counts one by one.

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
