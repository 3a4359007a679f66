//! Running a program repeatedly on one event, and measuring the time.

use std::time::{Duration, Instant};

use super::error::{Error, Result};
use super::runner::Runner;
use crate::engine::Finished;
use crate::isa::low32;
use crate::vm::{Fault, Outcome, RanOn};

/// The result of [`Runner::repeat`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Repeated {
    /// The outcome of the last run, with the outputs of all.
    pub outcome: Outcome,
    /// The time of all runs, without placing the event in memory.
    pub elapsed: Duration,
    /// Return values, and how many runs in a row returned each.
    pub returned: Vec<(u32, u64)>,
    /// The engine of the runs, and why it is not the chosen one.
    pub ran_on: RanOn,
    /// The fault that ended the runs early. The faulting run is in none of the other
    /// fields.
    pub fault: Option<Box<Fault>>,
}

impl Repeated {
    /// The number of completed runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.returned.iter().map(|(_, runs)| runs).sum()
    }
}

impl Runner<'_> {
    /// Runs the program `count` times, at least once, as `BPF_PROG_TEST_RUN` repeats: each
    /// run sees context and packet as the previous run left them. The clock is read before
    /// the first and after the last run. A fault ends the runs; the result has the outputs
    /// of the runs before.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// let event = vm.tracepoint("syscalls/sys_enter_write")?.set("args[2]", 4096)?;
    /// let repeated = vm.runner("count_write", &event)?.repeat(1000)?;
    /// assert_eq!(repeated.returned, [(0, 1000)]);
    /// println!("{:?} a run on {}", repeated.elapsed / 1000, repeated.ran_on.engine);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`run`](Self::run), except faults, which the result has.
    pub fn repeat(mut self, count: u32) -> Result<Repeated> {
        let start = Instant::now();
        let (returned, fault) = Returned::of(count, || self.run())?;
        let elapsed = start.elapsed();
        let ran_on = self.ran_on();
        let mut outcome = self.finish();
        if fault.is_some() {
            // The outcome is that of a completed run.
            (outcome.runs, outcome.passed) = (Vec::new(), false);
        }
        Ok(Repeated {
            outcome,
            elapsed,
            returned: returned.counts,
            ran_on,
            fault,
        })
    }
}

/// What repeated runs returned.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// Return values, and how many runs in a row returned each.
    pub counts: Vec<(u32, u64)>,
    /// The last completed run.
    pub last: Option<Finished>,
}

impl Returned {
    /// Runs a program `count` times, at least once, until it faults.
    #[inline]
    pub fn of(
        count: u32,
        mut run: impl FnMut() -> Result<Finished>,
    ) -> Result<(Self, Option<Box<Fault>>)> {
        let mut returned = Self::default();
        for _ in 0..count.max(1) {
            match run() {
                Ok(finished) => returned.add(finished),
                Err(Error::Fault(fault)) => return Ok((returned, Some(fault))),
                Err(error) => return Err(error),
            }
        }
        Ok((returned, None))
    }

    /// Adds a run.
    #[inline]
    fn add(&mut self, finished: Finished) {
        let value = low32(finished.r0);
        match self.counts.last_mut() {
            Some((last, runs)) if *last == value => *runs += 1,
            _ => self.counts.push((value, 1)),
        }
        self.last = Some(finished);
    }
}
