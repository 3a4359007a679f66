//! bpflab's three engines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bpflab::Vm;
use bpflab::harness::EngineKind;
use bpflab::vm::events::Event;
use bpflab::vm::{ProgramHandle, World};

use super::engine::{Absent, Engine, Loaded, low32};
use super::programs::Program;

/// One of them.
#[derive(Debug)]
pub struct Ours(pub EngineKind);

/// A program in a `Vm`.
pub struct Running {
    pub vm: Vm,
    handle: ProgramHandle,
    event: Event,
}

impl Ours {
    /// Loads a program into a `Vm` of its own.
    pub fn running(&self, program: &Program) -> Result<Running, Absent> {
        let linux = Arc::new(program.linux());
        let mut vm = Vm::with_world(World::default());
        vm.set_engine(self.0);
        vm.set_budget(u64::MAX).set_counting(false);
        let loaded = vm.load_programs(&linux.maps.clone(), vec![linux]);
        let handle = loaded.map_err(|error| error.to_string())?[0];
        let verdict = &vm.verification(program.name).expect("it is there").verdict;
        assert!(
            verdict.is_accepted(),
            "{}: {}",
            program.name,
            verdict.message
        );
        if vm.engine_of(handle).expect("it is loaded").engine != self.0 {
            return Err(format!("{} does not run here", self.0));
        }
        let event = Event::packet(program.packet());
        Ok(Running { vm, handle, event })
    }
}

impl Running {
    /// The number of instructions that a run executes.
    pub fn insns(&mut self) -> u64 {
        self.vm.set_counting(true);
        let outcome = self.vm.run(self.handle, &self.event);
        self.vm.set_counting(false);
        let counted = outcome.expect("it runs").runs[0].insns;
        counted.expect("it is counted")
    }

    /// The same program, on the same maps, on another CPU.
    pub fn on_cpu(&self, cpu: u32) -> Self {
        Self {
            vm: self.vm.cpu(cpu).expect("it is free"),
            handle: self.handle,
            event: self.event.clone(),
        }
    }
}

impl Engine for Ours {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        Ok(Box::new(self.running(program)?))
    }
}

impl Loaded for Running {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        let runner = self.vm.runner(self.handle, &self.event);
        let mut runner = runner.expect("it is its event");
        let mut last = 0;
        let start = Instant::now();
        for _ in 0..times {
            last = runner.run().expect("it runs").r0;
        }
        (start.elapsed(), low32(last))
    }
}
