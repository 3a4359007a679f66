//! Pruning: a path ends where an explored state subsumes the current state.
//!
//! At some instructions (`InsnInfo::prune_point`) the current state is compared with the
//! checkpoints there. If one of them subsumes it, everything that can follow is known to be
//! safe. Otherwise the state may become a checkpoint itself. When the kernel creates and
//! drops checkpoints decides how many instructions it processes, and so whether a program
//! is too complex: these heuristics are reproduced exactly.
//!
//! | file | its job |
//! |---|---|
//! | `visit` | compares, prunes, creates checkpoints (`is_state_visited`) |
//! | `arena` | the checkpoints, in lists by instruction |
//! | `subsume`, `ids` | whether one state subsumes another |
//! | `clean` | removes dead registers and slots from checkpoints |
//! | `scc` | loops, whose checkpoints get their precision marks late |
//! | `marks` | propagates precision to the pruned state; the end of a path |
//! | `widen` | makes scalars unknown that a callback changes at each call |

mod arena;
mod clean;
mod ids;
mod marks;
mod scc;
mod subsume;
#[cfg(test)]
mod tests;
mod visit;
mod widen;

pub(crate) use arena::Arena;
