//! The machine that a program lives in: memory, maps, helpers, a mocked world, and
//! the events that fire programs.

mod arenas;
pub mod attach;
mod cpus;
pub mod deferred;
pub mod dynptr;
mod engine;
pub mod events;
mod fault;
mod given;
mod handle;
pub mod helpers;
pub mod inject;
pub mod kernel;
pub mod kfuncs;
mod loaded;
mod machine;
mod map_places;
pub mod maps;
pub mod memory;
mod names;
mod nesting;
mod outcome;
mod owners;
mod passing;
mod patience;
mod probed;
mod redirect;
mod sockets;
pub mod world;

pub use cpus::CpuError;
pub use engine::{EngineKind, Fallback, RanOn};
pub use events::{Event, EventError};
pub use fault::{Fault, FaultKind, HelperProblem, Source};
pub use given::Emitted;
pub use handle::{MapHandle, ProgramHandle};
pub use inject::{Cause, InjectError, Injected, Injection, InjectionHandle, Schedule};
pub use kernel::{KernelError, KernelMemory, KernelObject};
pub use machine::{Current, Fire, Machine};
pub use map_places::AddMapError;
pub use nesting::Suspended;
pub use outcome::{Missed, Nested, Outcome, Output, Run};
pub use redirect::{Redirect, RedirectTarget};
pub use world::{BuildId, Clock, Random, Symbol, Symbols, Task, UserMemory, World};
