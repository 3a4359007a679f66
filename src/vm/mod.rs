//! The machine that runs programs: memory, maps, helpers, a mocked world, and the events that
//! fire programs.

mod arenas;
pub mod attach;
mod cpus;
pub mod deferred;
pub mod dynptr;
mod engine;
mod event_storage;
pub mod events;
mod fault;
mod handle;
pub mod helpers;
pub mod inject;
pub mod kernel;
pub mod kfuncs;
mod loaded;
mod lock_wait;
mod machine;
mod map_addresses;
pub mod maps;
pub mod memory;
mod names;
mod nesting;
mod outcome;
mod output_buffer;
mod probed;
mod redirect;
mod sockets;
mod storage_owners;
pub mod world;

pub use cpus::CpuError;
pub use engine::{EngineKind, Fallback, RanOn};
pub use events::{Event, EventError};
pub use fault::{Fault, FaultKind, HelperProblem, SourceLine};
pub use handle::{MapHandle, ProgramHandle};
pub use inject::{Cause, InjectError, Injected, Injection, InjectionHandle, Schedule};
pub use kernel::{KernelError, KernelMemory, KernelObject};
pub use machine::{Current, Fire, Machine};
pub use map_addresses::AddMapError;
pub use nesting::Suspended;
pub use outcome::{Missed, Nested, Outcome, Output, Run};
pub use output_buffer::Emitted;
pub use redirect::{Redirect, RedirectTarget};
pub use world::{BuildId, Clock, Random, Symbol, Symbols, Task, UserMemory, World};
