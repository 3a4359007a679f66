//! What came of running programs on events, in figures.

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
    /// The event that it last ran on.
    pub event: String,
    /// How many runs came to their end.
    pub runs: u64,
    /// What the last one returned: the low 32 bits of r0.
    pub retval: Option<u32>,
    /// What the runs returned, and how often.
    pub returned: Returned,
    /// The engine that the last run was on; none before the first.
    pub engine: Option<&'static str>,
    /// Why a run was on another engine than was asked for; none if none was.
    pub engine_why: Option<String>,
    /// Instructions that the last run executed.
    pub insns: u64,
    /// Nanoseconds that a run took on average, where runs were repeated.
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
            insns: 0,
            ns_per_run: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Says which engine runs were on. What is known of a reason already stays.
    pub fn ran_on(&mut self, ran_on: RanOn) {
        self.engine = Some(ran_on.engine.name());
        if let Some(why) = ran_on.fallback {
            self.engine_why.get_or_insert_with(|| why.to_string());
        }
    }

    /// Adds runs on an event: what they returned, how many instructions the last one
    /// executed, and the time that all took.
    pub fn add(&mut self, event: &str, returned: &[(u32, u64)], insns: u64, elapsed: Duration) {
        event.clone_into(&mut self.event);
        for (value, runs) in returned {
            *self.returned.0.entry(*value).or_insert(0) += runs;
            self.runs += runs;
            self.retval = Some(*value);
        }
        self.insns = insns;
        self.elapsed += elapsed;
    }

    /// Works out the time per run.
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

/// A return value, also as a signed number where it is a negative one.
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
            0 => f.write_str("no run came to its end")?,
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
        if self.runs > 0 {
            write!(f, "; {} instructions", self.insns)?;
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

/// How often a tracepoint fired, and whether its events went on to perf's buffer.
#[derive(Debug, Clone, Serialize)]
pub struct EventTally {
    /// `event`.
    kind: &'static str,
    /// The event.
    pub event: String,
    /// How often it fired.
    pub fired: u64,
    /// How many were passed on: 1 and all that the programs returned, ANDed bitwise, is not
    /// 0.
    pub passed: u64,
    /// How many were dropped.
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

    /// Adds firings of which so many were passed on.
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
        writeln!(
            f,
            "{event}: fired {fired}, passed on {passed}, dropped {dropped}"
        )
    }
}

/// A program that stopped before its end.
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
    /// `file.c:12:5`, where it is known.
    pub source: Option<String>,
    /// The line of C.
    pub line: Option<String>,
}

impl FaultRow {
    /// What is shown of a fault.
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
        assert_eq!(tally.to_string(), "p: no run came to its end\n");
        tally.add("packet", &[(2, 1)], 5, Duration::from_nanos(300));
        assert_eq!(tally.to_string(), "p: returned 2; 5 instructions\n");
        tally.add(
            "packet",
            &[(2, 2), (u32::MAX, 1)],
            7,
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
        let mut tally = EventTally::new("a/b");
        tally.add(3, 1);
        assert_eq!(tally.to_string(), "a/b: fired 3, passed on 1, dropped 2\n");
    }
}
