//! The running kernel, through `BPF_PROG_TEST_RUN`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bpflab::kernel::{Availability, LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};

use super::engine::{Absent, Engine, Loaded};
use super::programs::{Group, PROGRAMS, Program};

/// The running kernel, if it is usable.
#[derive(Debug)]
pub struct Kernel {
    missing: Option<String>,
}

impl Kernel {
    pub fn new() -> Self {
        let kernel = Availability::probe();
        let missing = match (kernel.usable(), kernel.jit) {
            (false, _) => Some(kernel.missing().join("; ")),
            (true, Some(false)) => Some("its JIT is off (net.core.bpf_jit_enable)".to_owned()),
            (true, _) => None,
        };
        Self { missing }
    }
}

/// A program in the kernel.
#[derive(Debug)]
pub struct InKernel {
    program: LoadedProgram,
    /// Dropping this value closes the maps.
    _maps: LoadedMaps,
    run: TestRun,
    empty: Option<Box<InKernel>>,
}

impl InKernel {
    /// Loads a program.
    pub fn new(program: &Program) -> Result<Self, Absent> {
        let linux = program.linux();
        let maps = LoadedMaps::create(&linux.maps, linux.btf.as_ref());
        let maps = maps.map_err(|none| none.to_string())?;
        let loaded = load(&linux, &maps, &LoadOptions::default());
        let loaded = loaded.map_err(|none| none.to_string())?;
        Ok(Self {
            program: loaded.program.ok_or(loaded.verdict.message)?,
            _maps: maps,
            run: TestRun::packet(&program.packet()),
            empty: None,
        })
    }

    /// Measures the system call: the kernel's own figure has whole nanoseconds, which is too
    /// coarse for short runs.
    fn test_run(&self, times: u32) -> (Duration, u32) {
        let run = self.run.clone().with_repeat(times);
        let start = Instant::now();
        let result = self.program.test_run(&run);
        let elapsed = start.elapsed();
        (elapsed, result.expect("it runs").retval)
    }
}

impl Engine for Kernel {
    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        if let Some(missing) = &self.missing {
            return Err(missing.clone());
        }
        let mut loaded = InKernel::new(program)?;
        if program.group != Group::Empty {
            let mut empty = PROGRAMS.iter().filter(|other| other.group == Group::Empty);
            loaded.empty = match empty.next() {
                Some(empty) => Some(Box::new(InKernel::new(empty)?)),
                None => None,
            };
        }
        Ok(Box::new(loaded))
    }
}

/// Several threads may run one program.
impl Loaded for Arc<InKernel> {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        self.test_run(times)
    }
}

impl Loaded for InKernel {
    fn run(&mut self, times: u32) -> (Duration, u32) {
        self.test_run(times)
    }

    fn baseline(&mut self) -> Option<&mut dyn Loaded> {
        self.empty
            .as_deref_mut()
            .map(|empty| empty as &mut dyn Loaded)
    }
}
