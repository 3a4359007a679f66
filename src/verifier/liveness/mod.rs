//! Liveness: which registers and stack slots may still be read.
//!
//! Pruning ignores dead registers and slots. Registers are analysed before exploration, the
//! stack during it. Both analyses are those of Linux 6.18, as the number of processed
//! instructions depends on them.

mod chain;
mod instance;
mod order;
pub(in crate::verifier) mod registers;
mod stack;

pub(crate) use chain::CallChain;
pub(crate) use stack::StackLiveness;
