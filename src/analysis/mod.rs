//! Control flow and dataflow analysis, used by the verifier, the recorder's instrumentation
//! and lowering.
//!
//! | file | what |
//! |---|---|
//! | `graph` | [`Graph`]: nodes, basic blocks, edges, the kernel's postorder |
//! | `cfg` | [`Cfg`]: the graph of an unverified program, or the error why there is none |
//! | `solve` | [`Solver`]: the fixed point of a [`Problem`], forwards or backwards |
//! | `liveness` | [`Liveness`]: registers that may be read before they are written |
//! | `scc` | [`loop_numbers`]: which blocks can reach one another |
//!
//! A *node* is a number: the slot of an instruction (`Pc`), or the index of a lowered
//! operation. A call is not an edge, since it returns; an interprocedural analysis handles
//! calls in [`Problem::step`].
//!
//! A dataflow analysis computes the least fixed point of
//!
//! ```text
//! start(b) = ⊔ state on each edge into b        (⊔ entry state, for a function's first)
//! end(b)   = step(last) ∘ … ∘ step(first) (start(b))
//! ```
//!
//! over a join-semilattice of states: `⊔` is [`Problem::join`], and a block without a state
//! is unreachable. If `step` is monotone, the order of the blocks does not change the
//! result. With widening it does, so the order is fixed: rounds over all changed blocks in
//! program order.
//!
//! Two analyses of the verifier are not here, since verdict and log depend on the order of
//! their steps: the search of `check_cfg` (`verifier/structure/cfg.rs`), which follows
//! calls and stops at the first error, and stack liveness (`verifier/liveness/stack.rs`),
//! which is updated during exploration. Both use the graph or its edges.

mod cfg;
mod graph;
mod liveness;
mod scc;
mod solve;

pub use cfg::CfgError;
pub(crate) use cfg::{Cfg, edges};
pub(crate) use graph::{Edges, Graph, NOWHERE, Postorder};
pub(crate) use liveness::{Effect, Liveness};
pub(crate) use scc::loop_numbers;
pub(crate) use solve::{Meeting, Problem, Solver};
