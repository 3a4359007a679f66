//! The test API: a [`Vm`] that loads objects, attaches programs and fires events.
//!
//! [`vm`](crate::vm) has the mocked world, events, outcomes and faults.

mod advance;
mod attach;
mod attach_point;
mod attach_program;
mod compile_time;
mod cpu;
mod dispatcher;
mod engine_kind;
mod entry;
mod error;
mod fire;
mod fire_report;
mod inject;
mod input;
mod interrupt;
mod iterate;
mod kernel;
mod layouts;
mod load;
mod map;
mod map_objects;
mod net;
mod oracle;
#[cfg(feature = "jit")]
mod perf_map;
mod pinned;
mod placed_event;
mod probes;
mod programs;
mod raw;
mod repeat;
mod runner;
mod runners;
mod runs;
mod sched_ext;
mod stacks;
mod struct_ops;
mod testing;
mod unverified;
mod usdt;
mod vm;

#[doc(inline)]
pub use crate::engine::{Finished, Step, Watch, WatchedFrame};
#[doc(inline)]
pub use crate::vm::{EngineKind, Fallback, RanOn};
pub use attach_point::AttachPoint;
pub use compile_time::CompileTime;
pub use entry::Entry;
pub(crate) use error::converts;
pub use error::{Error, Result};
pub use fire_report::FireReport;
pub use interrupt::Interrupt;
pub(crate) use load::Judged;
pub use map::MapView;
pub use oracle::{Oracle, OracleReport};
pub use pinned::PinnedMemory;
pub use programs::WhichProgram;
pub use raw::{RawProgram, RawVm};
pub use repeat::Repeated;
pub use runner::Runner;
pub(crate) use runners::Runners;
pub use sched_ext::{MemberCall, SchedExt};
#[doc(hidden)]
pub use testing::{LeakWarnings, TestObject, is_here, passed, vm_on};
pub use testing::{TestFailure, TestResult};
pub use unverified::UnverifiedProgram;
#[cfg(feature = "cli")]
pub(crate) use unverified::describe_unverified;
pub use vm::Vm;
pub use zerocopy;
