//! The machine: its memory, maps and world, the state of its CPUs and runs, and what comes out
//! of a run.

mod arenas;
mod call;
mod cpu;
mod cpu_claim;
pub mod deferred;
mod engine;
mod event_storage;
mod fault;
pub mod inject;
mod leak;
mod leaks;
mod loaded;
mod map_addresses;
mod map_objects;
mod mocks;
mod names;
mod nesting;
pub(super) mod objects;
mod outcome;
mod output_buffer;
mod outputs;
mod probed;
mod records;
mod redirect;
mod run_state;
mod runs;
mod shared;
pub(super) mod sockets;
mod state;
mod storage_owners;

use crate::vm::events::Event;
use crate::vm::events::attach::Hook;

pub use call::{Bytes, Call, Callbacks};
pub(super) use call::{Returned, unfit};
pub use cpu_claim::CpuError;
pub use engine::{EngineKind, Fallback, RanOn};
pub use fault::{Fault, FaultKind, HelperProblem, SourceLine};
pub use leak::{Leak, LeakLog, LeakTarget, LeakedBytes};
pub use map_addresses::AddMapError;
pub use nesting::Suspended;
pub use outcome::{Missed, Nested, Outcome, Output, Run};
pub use output_buffer::Emitted;
pub(super) use output_buffer::{Destination, OutputBuffer};
pub use redirect::{Redirect, RedirectTarget};
pub use run_state::Current;
pub use state::Machine;

/// A helper or kfunc mocked by a test.
pub type Mock = Box<dyn FnMut(&mut Call<'_>) -> Result<u64, HelperProblem> + Send>;

/// Fires an event on a machine in the middle of a run.
pub trait Fire: Send + Sync {
    /// Runs the programs that are attached to the event's hook, or only those of one hook.
    ///
    /// # Errors
    /// [`HelperProblem::Callback`] with the fault of a program that stopped,
    /// [`HelperProblem::Other`] if the event can't fire.
    fn fire(
        &self,
        machine: &mut Machine,
        event: &Event,
        only: Option<Hook>,
    ) -> Result<Outcome, HelperProblem>;
}
