//! A program on one of bpflab's engines.

use std::time::Duration;

use super::contender::{Contender, Stopped};
use crate::harness::{EngineKind, Error, Vm};
use crate::spec::MapType;
use crate::vm::events::Event;
use crate::vm::{Fallback, ProgramHandle};

/// Runs after which their outputs are dropped.
const CHUNK: u32 = 1 << 16;
/// Runs after which outputs are dropped if records fill a ring buffer.
const RECORDS: u32 = 16;

/// A program in a machine of its own.
pub(super) struct Ours {
    vm: Vm,
    engine: EngineKind,
    program: ProgramHandle,
    event: Event,
    chunk: u32,
    /// What the first run executed.
    insns: Option<u64>,
}

impl Ours {
    pub fn new(mut vm: Vm, engine: EngineKind, program: ProgramHandle, event: Event) -> Self {
        vm.set_engine(engine);
        let has_rings = vm.maps().any(|map| map.def().map_type == MapType::Ringbuf);
        Self {
            chunk: if has_rings { RECORDS } else { CHUNK },
            vm,
            engine,
            program,
            event,
            insns: None,
        }
    }

    /// Why the engine does not run the program, if it does not.
    fn missing(&self) -> Option<String> {
        let why = self.vm.engine_of(self.program).ok()?.fallback?;
        Some(self.said_of(why))
    }

    fn said_of(&self, why: Fallback) -> String {
        let verification = self.vm.verification(self.program).ok();
        match verification.filter(|_| why.is_unverified()) {
            Some(known) => format!("{why}: {}", known.verdict.message),
            None => why.to_string(),
        }
    }
}

impl Contender for Ours {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&mut self, times: u32) -> Result<Duration, Stopped> {
        if let Some(why) = self.missing() {
            return Err(Stopped::Unavailable(why));
        }
        if self.insns.is_none() {
            // Machine code is timed without counting.
            self.vm.set_counting(true);
            let counted = self.vm.runner(self.program, &self.event)?.repeat(1)?;
            self.insns = counted.outcome.runs.last().and_then(|run| run.insns);
            self.vm.set_counting(false);
        }
        let mut elapsed = Duration::ZERO;
        let mut left = times;
        while left > 0 {
            let count = left.min(self.chunk);
            left -= count;
            let repeated = self.vm.runner(self.program, &self.event)?.repeat(count)?;
            if let Some(why) = repeated.ran_on.fallback {
                return Err(Stopped::Unavailable(self.said_of(why)));
            }
            if let Some(fault) = repeated.fault {
                return Err(Error::Fault(fault).into());
            }
            elapsed += repeated.elapsed;
            if self.chunk == RECORDS {
                let maps = self.vm.maps();
                for ring in maps.filter(|map| map.def().map_type == MapType::Ringbuf) {
                    ring.take_records()?;
                }
            }
        }
        Ok(elapsed)
    }

    fn insns(&self) -> Option<u64> {
        self.insns
    }
}
