//! Fault injection: makes calls of helpers and kfuncs fail.
//!
//! An [`Injection`] has a target ([a function](Injection::call), or a [`Cause`]), a
//! [`Schedule`] that selects calls (the nth, a range, every nth, by chance), and an errno. A
//! selected call has none of the function's effects. Memory that it would have written is
//! zeroed, as in the kernel, and it returns what the kernel's function returns on failure: a
//! negative errno, or null.
//!
//! `calls::helpers::call` applies injections to all helper calls, before
//! mocks. A run with injections uses the checked interpreter, since the other engines perform
//! some helpers' work themselves.

mod active;
mod cause;
mod error;
mod fails;
mod injection;
mod schedule;
mod text;

pub use active::{Injected, InjectionHandle, Injections};
pub use cause::Cause;
pub(in crate::vm) use cause::{usual_errno, writes_records};
pub use error::InjectError;
pub(in crate::vm) use fails::Fails;
pub use injection::{Injection, Target};
pub use schedule::Schedule;
