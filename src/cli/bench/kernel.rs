//! A program on the running kernel.

use std::time::{Duration, Instant};

use super::contender::{Contender, Stopped};
use crate::cli::exit::{Exit, Failure};
use crate::cli::run::{SetupArguments, bytes};
use crate::isa::assemble_with;
use crate::kernel::{
    Availability, LoadOptions, LoadedMaps, LoadedProgram, NoVerdict, TestRun, load,
};
use crate::program::Program;
use crate::spec::ProgType;
use crate::vm::events::{Event, EventKind};

/// Bytes of the default packet.
const PACKET: usize = 64;

/// Fails if no program can be loaded.
pub(super) fn check() -> Result<(), Failure> {
    let kernel = Availability::probe();
    if kernel.usable() {
        return Ok(());
    }
    Err(Failure::with(
        Exit::Unavailable,
        kernel.missing().join("; "),
    ))
}

/// A program in the kernel, or why it can't be timed.
pub(super) struct InKernel(Result<Loaded, String>);

struct Loaded {
    program: LoadedProgram,
    /// An empty program, run in the same way.
    empty: LoadedProgram,
    _maps: LoadedMaps,
    load_time: Duration,
    run: TestRun,
}

impl InKernel {
    /// Loads a program for the given input.
    pub fn new(
        program: &Program,
        event: &Event,
        arguments: &SetupArguments,
    ) -> Result<Self, Failure> {
        // `repeat` works for packets only: other types run once per call, or not at all.
        if event.kind() != EventKind::Packet {
            return Ok(Self::absent(format!(
                "BPF_PROG_TEST_RUN does not repeat programs of type {}",
                program.prog_type.name()
            )));
        }
        if !arguments.event.set.is_empty() {
            return Ok(Self::absent(
                "BPF_PROG_TEST_RUN can't set the fields of --set",
            ));
        }
        let packet = match &arguments.event.data {
            Some(data) => bytes(data)?,
            None => vec![0; PACKET],
        };
        Ok(Self(Loaded::new(program, &packet)))
    }

    fn absent(why: impl Into<String>) -> Self {
        Self(Err(why.into()))
    }

    fn timed(
        &self,
        times: u32,
        of: impl FnOnce(&Loaded) -> &LoadedProgram,
    ) -> Result<Duration, Stopped> {
        let loaded = self
            .0
            .as_ref()
            .map_err(|why| Stopped::Unavailable(why.clone()))?;
        let run = TestRun {
            repeat: times,
            ..loaded.run.clone()
        };
        let start = Instant::now();
        let result = of(loaded).test_run(&run);
        let elapsed = start.elapsed();
        match result {
            Ok(_) => Ok(elapsed),
            Err(error) => Err(Stopped::Unavailable(error.to_string())),
        }
    }
}

impl Loaded {
    fn new(program: &Program, packet: &[u8]) -> Result<Self, String> {
        let said = |none: NoVerdict| none.to_string();
        let start = Instant::now();
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).map_err(said)?;
        let in_kernel = in_kernel(program, &maps)?;
        let load_time = start.elapsed();
        let set = maps.set_program(&program.maps, &in_kernel);
        set.map_err(|error| error.to_string())?;
        Ok(Self {
            program: in_kernel,
            empty: in_kernel_empty(program.prog_type)?,
            _maps: maps,
            load_time,
            run: TestRun::packet(packet),
        })
    }
}

fn in_kernel(program: &Program, maps: &LoadedMaps) -> Result<LoadedProgram, String> {
    let loaded = load(program, maps, &LoadOptions::default());
    let loaded = loaded.map_err(|none| none.to_string())?;
    loaded.program.ok_or(loaded.verdict.message)
}

/// The smallest program of a type.
fn in_kernel_empty(prog_type: ProgType) -> Result<LoadedProgram, String> {
    let mut empty = Program::new("empty", prog_type, Vec::new());
    empty.license = "GPL".into();
    let assembled = assemble_with("r0 = 0\nexit", &empty);
    empty.insns = assembled.map_err(|error| error.to_string())?.slots;
    let maps = LoadedMaps::create(&[], None).map_err(|none| none.to_string())?;
    in_kernel(&empty, &maps)
}

impl Contender for InKernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn run(&mut self, times: u32) -> Result<Duration, Stopped> {
        self.timed(times, |loaded| &loaded.program)
    }

    fn run_nothing(&mut self, times: u32) -> Result<Duration, Stopped> {
        self.timed(times, |loaded| &loaded.empty)
    }

    fn load_time(&self) -> Option<Duration> {
        Some(self.0.as_ref().ok()?.load_time)
    }
}
