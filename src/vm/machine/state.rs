//! The state of a machine. Engines run programs on it; helpers act on it.

use std::fmt;
use std::sync::Arc;

use super::cpu::Cpu;
use super::cpu_claim::{CpuClaim, CpuError};
use super::inject::Injections;
use super::leak::LeakLog;
use super::outcome::Outcome;
use super::run_state::RunState;
use super::shared::Shared;
use crate::program::Program;
use crate::vm::memory::{Pointer, Space};
use crate::vm::world::World;

/// One CPU with its memory, maps and world. One thread uses it at a time.
///
/// [`fork`](Self::fork) makes another CPU of the same machine for another thread.
pub struct Machine {
    /// The address space.
    pub space: Space,
    /// The mocked environment.
    pub world: World,
    /// Injected failures of calls.
    pub injections: Injections,
    /// Whether runs look for uninitialised bytes that leave programs.
    pub(super) finds_uninit: bool,
    /// Where all that is found is kept, too.
    pub(super) leak_log: Option<LeakLog>,
    pub(in crate::vm) shared: Shared,
    pub(in crate::vm) cpu: Cpu,
    pub(in crate::vm) run: RunState,
}

impl Machine {
    /// A machine without maps.
    #[must_use]
    pub fn new(world: World) -> Self {
        let claim = CpuClaim::first(world.cpu(), world.cpus());
        let kernel = world.kernel_memory().clone();
        Self {
            space: Space::over(kernel.blocks().clone()),
            world,
            injections: Injections::default(),
            finds_uninit: false,
            leak_log: None,
            shared: Shared::default(),
            cpu: Cpu::new(claim, kernel),
            run: RunState::default(),
        }
    }

    /// Adds the names of a loaded program to those that outcomes accept.
    pub(crate) fn add_names(&mut self, program: &Program) {
        Arc::make_mut(&mut self.shared.names).add_program(program);
    }

    /// An empty outcome.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            names: Some(self.shared.names.clone()),
            ..Outcome::default()
        }
    }

    /// Another CPU of the same machine. The CPUs share maps, the addresses of maps and
    /// functions, and mocked helpers (a lock allows one call at a time). Each CPU has its own
    /// world, outputs, stack, context, packet, reserved records and whatever the test put
    /// into its memory.
    ///
    /// Random numbers differ from CPU to CPU and are the same in every run.
    ///
    /// # Errors
    /// [`CpuError::Missing`] if the machine does not have this CPU, [`CpuError::Taken`]
    /// if it is in use.
    pub fn fork(&self, cpu: u32) -> Result<Self, CpuError> {
        let claim = self.cpu.claim.claim(cpu)?;
        Ok(Self {
            space: self.space.fork(),
            world: self.world.on_cpu(cpu),
            injections: self.injections.fork(),
            finds_uninit: self.finds_uninit,
            leak_log: self.leak_log.clone(),
            shared: self.shared.clone(),
            cpu: Cpu::new(claim, self.cpu.kernel.clone()),
            run: RunState::default(),
        })
    }

    /// Switches to the world's CPU and kernel memory, if they changed, and refreshes the
    /// current task. Call it before programs run: they rely on maps having values for the
    /// CPU number.
    ///
    /// # Errors
    /// [`CpuError::Taken`]; [`CpuError::Missing`] if the world was replaced by one with more
    /// CPUs.
    #[inline]
    pub fn settle(&mut self) -> Result<(), CpuError> {
        let kernel = self.world.kernel_memory().blocks();
        if self.cpu.claim.number() != self.world.cpu() || !kernel.same(self.space.kernel()) {
            self.move_to_world()?;
        }
        self.world.refresh();
        Ok(())
    }

    /// The world was moved to another CPU, or was replaced.
    #[cold]
    #[inline(never)]
    fn move_to_world(&mut self) -> Result<(), CpuError> {
        let cpu = self.world.cpu();
        if self.cpu.claim.number() != cpu {
            self.cpu.claim = self.cpu.claim.claim(cpu)?;
        }
        let kernel = self.world.kernel_memory();
        if !kernel.blocks().same(self.space.kernel()) {
            // Loaded objects have added their types to the old kernel memory.
            kernel.adopt_types(&self.cpu.kernel);
            self.cpu.kernel = kernel.clone();
            self.space.set_kernel(kernel.blocks().clone());
        }
        Ok(())
    }

    /// Whether no other CPU of the machine is in use.
    pub(in crate::vm) fn is_alone(&self) -> bool {
        self.may_add("").is_ok()
    }

    /// Checks that programs and maps can be added: no other CPU may be in use.
    ///
    /// # Errors
    /// [`CpuError::Shared`] with `what`, the kind of thing to add.
    pub fn may_add(&self, what: &'static str) -> Result<(), CpuError> {
        self.cpu.claim.check_alone(what)
    }

    /// Describes what a register points to.
    #[must_use]
    pub fn pointer(&self, register: u64) -> Pointer {
        self.space.pointer(register)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("maps", &self.shared.maps)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}
