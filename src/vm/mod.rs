//! The machine that runs programs: memory, maps, helpers, a mocked world, and the events that
//! fire programs.
//!
//! Imports between its modules go one way only; `docs/architecture.md` has the order.

mod calls;
pub mod events;
mod fields;
mod machine;
pub mod maps;
pub mod memory;
pub mod world;

pub use calls::{dynptr, helpers, kfuncs};
pub use events::attach;
pub use events::{Event, EventError};
pub use machine::inject::{Cause, InjectError, Injected, Injection, InjectionHandle, Schedule};
pub use machine::{
    AddMapError, CpuError, Current, Emitted, EngineKind, Fallback, Fault, FaultKind, Fire,
    HelperProblem, Machine, Missed, Nested, Outcome, Output, RanOn, Redirect, RedirectTarget, Run,
    SourceLine, Suspended, deferred, inject,
};
pub use maps::{MapHandle, ProgramHandle};
pub use world::kernel;
pub use world::kernel::{KernelError, KernelMemory, KernelObject};
pub use world::{BuildId, Clock, Random, Symbol, Symbols, Task, UserMemory, World};
