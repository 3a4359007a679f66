//! What one CPU of a machine has besides its memory and world.

use std::sync::Arc;

use super::Fire;
use super::cpu_claim::CpuClaim;
use crate::vm::events::attach::{Guards, Sessions};
use crate::vm::world::kernel::KernelMemory;

/// The state of a CPU that outlasts runs.
pub(in crate::vm) struct Cpu {
    pub(super) claim: CpuClaim,
    /// The world's kernel memory, which the address space uses.
    pub(super) kernel: KernelMemory,
    /// Which attached programs are active.
    pub(super) guards: Guards,
    pub(super) sessions: Sessions,
    /// Fires events in the middle of runs.
    pub(super) firing: Option<Arc<dyn Fire>>,
    /// The deferred callback that runs now.
    pub(in crate::vm) running: Option<u64>,
    /// The last result of `bpf_cpumask_any_distribute`.
    pub(in crate::vm) distributed: u32,
}

impl Cpu {
    /// A CPU on which nothing has run.
    pub(super) fn new(claim: CpuClaim, kernel: KernelMemory) -> Self {
        Self {
            claim,
            kernel,
            guards: Guards::default(),
            sessions: Sessions::default(),
            firing: None,
            running: None,
            distributed: 0,
        }
    }
}
