//! Counts of runs, return values, events and faults.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::program::Program;
use crate::vm::{Fault, RanOn};

/// The runs of one program. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramTally {
    /// `program`.
    kind: &'static str,
    /// The object's file.
    pub object: String,
    /// Name of the C function.
    pub program: String,
    /// Section.
    pub section: String,
    /// Program type.
    pub prog_type: &'static str,
    /// The last event that it ran on.
    pub event: String,
    /// How many runs ended without a fault.
    pub runs: u64,
    /// The last return value: the low 32 bits of r0.
    pub retval: Option<u32>,
    /// The return values, and how many runs returned each.
    pub returned: Returned,
    /// The engine of the last run; none before the first.
    pub engine: Option<&'static str>,
    /// Why a run used another engine than was asked for; none if none did.
    pub engine_why: Option<String>,
    /// Instructions that the last run executed.
    pub insns: Option<u64>,
    /// Mean nanoseconds of a run, if runs were repeated.
    pub ns_per_run: Option<f64>,
    #[serde(skip)]
    elapsed: Duration,
}

/// Return values, and how many runs returned each.
#[derive(Debug, Clone, Default)]
pub struct Returned(BTreeMap<u32, u64>);

impl ProgramTally {
    /// A program that has not run.
    #[must_use]
    pub fn new(object: &str, program: &Program) -> Self {
        Self {
            kind: "program",
            object: object.to_owned(),
            program: program.name.clone(),
            section: program.section.clone(),
            prog_type: program.prog_type.name(),
            event: String::new(),
            runs: 0,
            retval: None,
            returned: Returned::default(),
            engine: None,
            engine_why: None,
            insns: None,
            ns_per_run: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Sets the engine of the runs. The first reason for another engine is kept.
    pub fn ran_on(&mut self, ran_on: RanOn) {
        self.engine = Some(ran_on.engine.name());
        if let Some(why) = ran_on.fallback {
            self.engine_why.get_or_insert_with(|| why.to_string());
        }
    }

    /// Adds runs on an event: their return values, the instructions of the last one, and the time
    /// of all.
    pub fn add(
        &mut self,
        event: &str,
        returned: &[(u32, u64)],
        insns: Option<u64>,
        elapsed: Duration,
    ) {
        event.clone_into(&mut self.event);
        for (value, runs) in returned {
            *self.returned.0.entry(*value).or_insert(0) += runs;
            self.runs += runs;
            self.retval = Some(*value);
        }
        self.insns = insns;
        self.elapsed += elapsed;
    }

    /// Computes the time per run.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean in tenths needs no 64 bits"
    )]
    pub fn time(&mut self) {
        if self.runs == 0 {
            return;
        }
        let tenths = self.elapsed.as_nanos() as f64 * 10.0 / self.runs as f64;
        self.ns_per_run = Some(tenths.round() / 10.0);
    }
}

/// A list of objects, the smallest value first.
impl Serialize for Returned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for (retval, runs) in &self.0 {
            list.serialize_element(&serde_json::json!({ "retval": retval, "runs": runs }))?;
        }
        list.end()
    }
}

/// A return value; also as a signed number if it is negative.
struct Shown(u32);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cast_signed() {
            signed if signed < 0 => write!(f, "{} ({signed})", self.0),
            signed => write!(f, "{signed}"),
        }
    }
}

impl fmt::Display for ProgramTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Different values that are listed.
        const LISTED: usize = 5;
        let returned = &self.returned.0;
        write!(f, "{}: ", self.program)?;
        match self.runs {
            0 => f.write_str("every run faulted")?,
            1 => write!(f, "returned {}", Shown(self.retval.unwrap_or_default()))?,
            runs => {
                write!(f, "{runs} runs returned ")?;
                for (index, (value, times)) in returned.iter().take(LISTED).enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", Shown(*value))?;
                    if returned.len() > 1 {
                        write!(f, " ({times}x)")?;
                    }
                }
                if returned.len() > LISTED {
                    write!(f, " and {} other values", returned.len() - LISTED)?;
                }
            }
        }
        if let Some(insns) = self.insns.filter(|_| self.runs > 0) {
            write!(f, "; {insns} instructions")?;
        }
        if let Some(ns) = self.ns_per_run {
            write!(f, ", {ns} ns a run")?;
        }
        if let (Some(engine), Some(why)) = (self.engine, &self.engine_why) {
            write!(f, "; on engine {engine}: {why}")?;
        }
        writeln!(f)
    }
}

/// How often a tracepoint fired, and for how many events perf gets a sample.
#[derive(Debug, Clone, Serialize)]
pub struct EventTally {
    /// `event`.
    kind: &'static str,
    /// The event.
    pub event: String,
    /// How often it fired.
    pub fired: u64,
    /// For how many perf gets a sample: 1 and all return values, ANDed bitwise, is not 0.
    pub passed: u64,
    /// For how many it gets none.
    pub dropped: u64,
}

impl EventTally {
    /// An event that has not fired.
    #[must_use]
    pub fn new(event: &str) -> Self {
        Self {
            kind: "event",
            event: event.to_owned(),
            fired: 0,
            passed: 0,
            dropped: 0,
        }
    }

    /// Adds firings, of which perf gets `passed` as samples.
    pub fn add(&mut self, fired: u64, passed: u64) {
        self.fired += fired;
        self.passed += passed;
        self.dropped += fired.saturating_sub(passed);
    }
}

impl fmt::Display for EventTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            event,
            fired,
            passed,
            dropped,
            ..
        } = self;
        write!(f, "{event}: fired {fired}")?;
        match (*fired, *passed, *dropped) {
            (0, ..) => writeln!(f),
            (1, 0, _) => writeln!(f, ", returned 0: perf gets no sample"),
            (_, 0, _) => writeln!(f, ", returned 0 for all: perf gets no sample"),
            (_, _, 0) => writeln!(f, ", returned non-zero: perf gets every sample"),
            (_, 1, dropped) => writeln!(f, ", returned 0 for {dropped}: perf gets 1 sample"),
            (_, passed, dropped) => {
                writeln!(f, ", returned 0 for {dropped}: perf gets {passed} samples")
            }
        }
    }
}

/// A fault of a program.
#[derive(Debug, Clone, Serialize)]
pub struct FaultRow {
    /// `fault`.
    kind: &'static str,
    /// The program.
    pub program: String,
    /// Its function.
    pub function: Option<String>,
    /// The instruction.
    pub insn: u32,
    /// The instruction's text.
    pub text: String,
    /// What happened.
    pub message: String,
    /// `file.c:12:5`, if known.
    pub source: Option<String>,
    /// The line of C.
    pub line: Option<String>,
}

impl FaultRow {
    /// The row of a fault.
    #[must_use]
    pub fn new(fault: &Fault) -> Self {
        let source = fault.source.as_ref();
        Self {
            kind: "fault",
            program: fault.program.clone(),
            function: fault.function.clone(),
            insn: fault.pc.0,
            text: fault.insn.clone(),
            message: fault.kind.to_string(),
            source: source.map(|at| format!("{}:{}:{}", at.file, at.line, at.column)),
            line: source.map(|at| at.text.trim().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgType;

    #[test]
    fn runs_add_up() {
        let mut tally = ProgramTally::new("x.o", &Program::new("p", ProgType::Xdp, Vec::new()));
        assert_eq!(tally.to_string(), "p: every run faulted\n");
        tally.add("packet", &[(2, 1)], Some(5), Duration::from_nanos(300));
        assert_eq!(tally.to_string(), "p: returned 2; 5 instructions\n");
        tally.add(
            "packet",
            &[(2, 2), (u32::MAX, 1)],
            Some(7),
            Duration::from_nanos(300),
        );
        tally.time();
        assert_eq!(
            tally.to_string(),
            "p: 4 runs returned 2 (3x), 4294967295 (-1) (1x); 7 instructions, 150 ns a run\n"
        );
        let json = serde_json::to_value(&tally).unwrap();
        assert_eq!(json["retval"], u32::MAX);
        assert_eq!(json["returned"][0]["runs"], 3);
        assert_eq!(json["ns_per_run"], 150.0);
    }

    #[test]
    fn what_is_not_passed_on_is_dropped() {
        for (fired, passed, text) in [
            (0, 0, ""),
            (1, 0, ", returned 0: perf gets no sample"),
            (3, 0, ", returned 0 for all: perf gets no sample"),
            (3, 1, ", returned 0 for 2: perf gets 1 sample"),
            (3, 2, ", returned 0 for 1: perf gets 2 samples"),
            (3, 3, ", returned non-zero: perf gets every sample"),
        ] {
            let mut tally = EventTally::new("a/b");
            tally.add(fired, passed);
            assert_eq!(tally.to_string(), format!("a/b: fired {fired}{text}\n"));
        }
    }
}
