//! What may still be read: registers before the walk, stack slots during it.
//!
//! A state that differs from an earlier one only in what is never read again is no
//! new state; the verifier prunes by this. Both analyses are the kernel's of 6.18, for
//! the number of instructions that it walks depends on them.

mod chain;
mod instance;
pub(in crate::verifier) mod registers;
mod stack;

pub(crate) use chain::CallChain;
pub(crate) use stack::StackLiveness;
