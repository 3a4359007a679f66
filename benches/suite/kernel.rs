//! The running kernel, through `BPF_PROG_TEST_RUN`.

use std::time::{Duration, Instant};

use bpflab::kernel::{Availability, LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};

use super::engine::{Absent, Engine, Loaded};
use super::programs::Program;

/// The kernel, if it can be asked.
#[derive(Debug)]
pub struct Kernel {
    missing: Option<String>,
}

/// A program in the kernel, with its maps.
struct InKernel {
    program: LoadedProgram,
    _maps: LoadedMaps,
    run: TestRun,
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

impl Engine for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn memory(&self) -> &'static str {
        "before the run: verified"
    }

    fn load(&self, program: &Program) -> Result<Box<dyn Loaded>, Absent> {
        if let Some(missing) = &self.missing {
            return Err(missing.clone());
        }
        let linux = program.linux();
        let maps = LoadedMaps::create(&linux.maps, linux.btf.as_ref());
        let maps = maps.map_err(|none| none.to_string())?;
        let loaded = load(&linux, &maps, &LoadOptions::default());
        let loaded = loaded.map_err(|none| none.to_string())?;
        let program_in = loaded.program.ok_or(loaded.verdict.message)?;
        Ok(Box::new(InKernel {
            program: program_in,
            _maps: maps,
            run: TestRun::packet(&program.packet()),
        }))
    }
}

impl Loaded for InKernel {
    /// The kernel's own figure has whole nanoseconds, too coarse for short runs.
    fn run(&mut self, times: u32) -> (Duration, u32) {
        self.run.repeat = times;
        let start = Instant::now();
        let result = self.program.test_run(&self.run);
        let elapsed = start.elapsed();
        (elapsed, result.expect("it runs").retval)
    }
}
