//! Pruning: a path ends where a kept state covers it.
//!
//! Before some instructions (`InsnInfo::prune_point`) the current state is compared
//! with those that were kept there. If one of them covers it, all that can follow has
//! been found safe; else it may be kept in its turn. The kernel's own judgement of when
//! a state is worth keeping, and for how long, decides how many instructions are
//! walked, and so whether a program is too complex: it is followed to the letter.
//!
//! | file | its job |
//! |---|---|
//! | `visit` | the story: compare, cut, keep (`is_state_visited`) |
//! | `arena` | the kept states, in lists by instruction |
//! | `cover`, `ids` | whether one state covers another |
//! | `clean` | what is dead is no difference |
//! | `scc` | loops, whose states get their marks late |
//! | `marks` | marks that pass from the covering state to the covered, the end of a path |
//! | `widen` | what a callback changes at each call is any number |

mod arena;
mod clean;
mod cover;
mod ids;
mod marks;
mod scc;
#[cfg(test)]
mod tests;
mod visit;
mod widen;

pub(crate) use arena::Arena;
