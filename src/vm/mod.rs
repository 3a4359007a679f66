//! What tests see of the machine that runs programs: the mocked world, events, outcomes and
//! faults, injections, and the calls that mocked helpers get.

// Imports between the modules go one way only: `docs/architecture.md` has the order. The hidden
// modules and items are for this project's tests and benchmarks: they may change in any version.

mod calls;
pub mod events;
mod fields;
mod machine;
#[doc(hidden)]
pub mod maps;
pub mod memory;
#[doc(hidden)]
pub mod world;

#[doc(inline)]
pub use events::attach;
pub use machine::deferred::{DeferredKind, Pending, TimerClock};
pub use machine::inject::{Cause, InjectError, Injected, Injection, InjectionHandle, Schedule};
pub use machine::{
    Bytes, Call, CpuError, Fault, FaultKind, HelperProblem, Leak, LeakTarget, LeakedBytes, Missed,
    Nested, Outcome, Output, Redirect, RedirectTarget, Run, SourceLine,
};
#[doc(inline)]
pub use maps::{Function, MapError, MapHandle, ProgramHandle};
#[doc(inline)]
pub use world::kernel::{KernelError, KernelObject, PathProblem};
#[doc(inline)]
pub use world::{
    Clock, Device, Net, NetError, QueueId, Random, Route, RouteKind, Socket, SocketId, SocketState,
    Symbol, Symbols, Task, UserMemory, World,
};

#[doc(hidden)]
pub use calls::{dynptr, helpers, kfuncs};
#[doc(hidden)]
pub use events::{Event, EventError};
#[doc(hidden)]
pub use machine::{
    AddMapError, Current, Emitted, EngineKind, Fallback, Fire, LeakLog, Machine, RanOn, Suspended,
    deferred, inject,
};
#[doc(hidden)]
pub use world::{BuildId, kernel, kernel::KernelMemory};
