//! Fault injection: calls of helpers and kernel functions that fail because a test wants
//! them to.
//!
//! An [`Injection`] says which calls ([a function](Injection::call), or a
//! [`Cause`]), which of them ([`Schedule`]: the nth, a range, every nth, by chance), and
//! with which errno. A call that is chosen has none of the function's effects; what it
//! would have written is zero, as the kernel leaves it, and the program is told what the
//! kernel's function tells it: a negative errno, or null.
//!
//! All calls of helpers come by one place ([`helpers::call`](super::helpers::call)), before
//! mocks. A run with injections begins on the checked interpreter, since the other engines
//! do some of what helpers do themselves.

mod active;
mod apply;
mod cause;
mod error;
mod fails;
mod injection;
mod schedule;
#[cfg(test)]
mod tests;
mod text;

pub use active::{Injected, InjectionHandle, Injections};
pub(super) use apply::{fail_helper, fail_kfunc};
pub use cause::Cause;
pub use error::InjectError;
pub use injection::{Injection, Target};
pub use schedule::Schedule;
