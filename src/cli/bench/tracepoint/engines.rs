//! The traced program on bpflab's engines.

use std::fs;
use std::sync::Arc;

use super::programs::NAME;
use crate::btf::{Btf, Kind};
use crate::cli::bench::contender::{Contender, Stopped};
use crate::cli::bench::ours::Ours;
use crate::cli::exit::Failure;
use crate::harness::{EngineKind, Vm};
use crate::kernel::Availability;
use crate::program::Program;
use crate::spec::context::Arch;
use crate::util::Bursts;
use crate::vm::World;
use crate::vm::events::{Event, Layout};

/// The program on an engine, with the same event as in the kernel.
pub(super) struct OnEngine {
    ours: Ours,
    times: Option<u32>,
}

impl OnEngine {
    /// Creates it for writes of `size` bytes by this process.
    pub fn new(
        engine: EngineKind,
        program: &Program,
        pid: u32,
        size: u16,
    ) -> Result<Self, Failure> {
        let mut vm = Vm::with_world(World::default());
        vm.world().task().set_pid(pid);
        let handles = vm.load_programs(&program.maps, vec![Arc::new(program.clone())])?;
        let Some(handle) = handles.first() else {
            return Err(Failure::bad("no program"));
        };
        let layout = Layout::of_syscall(NAME, Arch::HOST)?;
        let event = Event::tracepoint(layout).set("args[2]", u64::from(size))?;
        Ok(Self {
            ours: Ours::new(vm, engine, *handle, event),
            times: None,
        })
    }

    /// Nanoseconds per run.
    pub fn turn(&mut self, bursts: Bursts) -> Result<f64, Stopped> {
        let times = match self.times {
            Some(times) => times,
            None => *self
                .times
                .insert(bursts.calibrate(|times| self.ours.run(times))?),
        };
        bursts.shortest(times, |times| self.ours.run(times))
    }
}

/// Why programs can't be measured in the kernel's interpreter.
pub(super) fn no_interpreter() -> String {
    /// The function that replaces the interpreter (`kernel/bpf/core.c`).
    const INSTEAD: &str = "__bpf_prog_ret0_warn";
    let btf = fs::read("/sys/kernel/btf/vmlinux");
    let btf = btf.ok().and_then(|bytes| Btf::parse(&bytes).ok());
    let jit_only = btf.is_some_and(|btf| btf.find(INSTEAD, Kind::Func).is_some());
    match (jit_only, Availability::probe().jit) {
        (true, _) => "the kernel is built JIT-only (CONFIG_BPF_JIT_ALWAYS_ON)",
        (false, Some(false)) => "the rows above are without JIT (net.core.bpf_jit_enable=0)",
        (false, _) => "needs net.core.bpf_jit_enable=0, which bpflab does not set",
    }
    .to_owned()
}
