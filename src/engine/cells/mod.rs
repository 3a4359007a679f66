//! Threaded code as data: cells, and entering them.
//!
//! | file | what |
//! |---|---|
//! | `cell` | cells, host registers, the locations of BPF registers |
//! | `code` | a program of cells |
//! | `drive` | entering, leaving, the budget |
//!
//! Instructions are counted at jumps: between two jumps, the executed operations are
//! consecutive. The base plus the ordinal of the current operation is the number of
//! instructions executed before it; a jump adjusts the base to keep this true. The highest base
//! with which the budget lasts until the next check is the limit; a run has the difference. Only
//! backward jumps check it; if the budget may not last, the loop in `fast::step`, which counts
//! one by one, continues.

mod cell;
mod code;
mod drive;

pub(crate) use cell::{
    CONSTANT, Cell, Handler, Host, IN_MEMORY, Regs, by_dst, by_dst_src, by_src, handler,
};
pub(crate) use code::{NONE, Threaded};
pub(crate) use drive::slow;
