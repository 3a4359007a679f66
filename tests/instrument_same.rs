//! A recorded program does what the original does: programs made up over the whole
//! instruction set run in both forms, and return values, maps and outputs are the same. The
//! firing that comes out besides can be read, entry by entry.

#[path = "equality/law.rs"]
mod law;
#[path = "equality/tally.rs"]
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject};
use bpflab::r#gen::Options;
use bpflab::harness::EngineKind;
use bpflab::instrument::{Firing, FiringFlags, Plan, RecordMaps, RecordOptions};
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::verifier::{self, verify};
use bpflab::vm::Output;

use law::hold;

/// The firing in an output, if it is one.
fn firing(output: &Output) -> Option<&[u8]> {
    match output {
        Output::RingBuf { map, data } if &**map == "rec_ring" => Some(data),
        _ => None,
    }
}

/// What was seen of the programs of a type.
#[derive(Debug, Default)]
struct Seen {
    recorded: u32,
    entries: usize,
    overflowed: u32,
    unrecordable: BTreeMap<String, u32>,
}

impl Seen {
    /// Runs both forms of a program.
    fn compare(&mut self, subject: &Subject) -> Result<(), String> {
        let program = &*subject.program;
        let added = RecordMaps::add(&program.maps, 1 << 16);
        let options = RecordOptions {
            number: 3,
            context_len: u32::try_from(subject.event.record().len()).unwrap_or(0),
            all: true,
        };
        let plan = match Plan::new(program) {
            Ok(plan) => plan,
            Err(refused) => {
                self.refuse(&refused.reason.to_string());
                return Ok(());
            }
        };
        let form = match plan.record(&added, &options) {
            Ok(form) => Arc::new(form),
            Err(refused) => {
                self.refuse(&refused.reason.to_string());
                return Ok(());
            }
        };
        let verdict = verify(&form, &verifier::Options::default()).verdict;
        if !verdict.accepted {
            return Err(format!("the recorded form is refused: {}", verdict.message));
        }
        let run = |subject: &Subject| {
            let answer = Ours::new(EngineKind::Checked).run(subject);
            answer.map_err(|error| error.to_string())
        };
        let original = run(subject)?;
        let others = subject.others.iter().map(|other| {
            let mut other = Program::clone(other);
            other.maps = added.maps.clone();
            Arc::new(other)
        });
        let others = others.collect();
        let recorded = run(&Subject::new(form, subject.event.clone()).with_others(others))?;
        self.recorded += 1;
        same(&original, &recorded)?;
        self.read(&plan, &recorded)
    }

    fn refuse(&mut self, why: &str) {
        *self.unrecordable.entry(why.to_owned()).or_default() += 1;
    }

    /// The firing.
    fn read(&mut self, plan: &Plan, recorded: &Answer) -> Result<(), String> {
        let outcome = &recorded.details.as_ref().ok_or("no details")?.outcome;
        let mut firings = outcome.outputs.iter().filter_map(firing);
        let firing =
            Firing::parse(firings.next().ok_or("no firing")?).map_err(|e| e.to_string())?;
        if firings.next().is_some() {
            return Err("two firings".to_owned());
        }
        let returned = outcome.runs.last().map(|run| run.r0);
        if Some(firing.returned) != returned || firing.program != 3 || firing.sequence != 0 {
            return Err(format!("{firing:?}, returned {returned:?}"));
        }
        self.overflowed += u32::from(firing.flags.contains(FiringFlags::OVERFLOW));
        for entry in plan.entries(firing.log) {
            entry.map_err(|error| error.to_string())?;
            self.entries += 1;
        }
        Ok(())
    }
}

/// Whether both did the same.
fn same(original: &Answer, recorded: &Answer) -> Result<(), String> {
    let outcome = |answer: &Answer| answer.details.clone().map(|details| details.outcome);
    let (Some(one), Some(other)) = (outcome(original), outcome(recorded)) else {
        return Err("no outcome".to_owned());
    };
    let faults = [original, recorded].map(|answer| answer.details.clone().and_then(|it| it.fault));
    if faults.iter().any(Option::is_some) {
        return Err(format!("stopped: {faults:?}"));
    }
    let r0 = |outcome: &bpflab::vm::Outcome| outcome.runs.last().map(|run| run.r0);
    if r0(&one) != r0(&other) {
        return Err(format!("r0: {:?}, {:?}", r0(&one), r0(&other)));
    }
    let own = other.outputs.iter().filter(|it| firing(it).is_none());
    if !one.outputs.iter().eq(own) {
        return Err(format!("outputs: {:?}, {:?}", one.outputs, other.outputs));
    }
    for (one, other) in original.maps.iter().zip(&recorded.maps) {
        if one != other {
            return Err(format!("map: {one:?}, {other:?}"));
        }
    }
    Ok(())
}

fn of_type(prog_type: ProgType, count: u32) {
    let options = Options {
        prog_type: Some(prog_type),
        defined: true,
        recorded: false,
    };
    let mut seen = Seen::default();
    hold(prog_type.name(), count, options, |_, subject| {
        seen.compare(subject)
    });
    eprintln!("{}: {seen:#?}", prog_type.name());
    assert!(seen.recorded * 3 > count, "{seen:?}");
    assert!(seen.entries > seen.recorded as usize, "{seen:?}");
}

#[test]
fn tracepoints_do_the_same_when_they_are_recorded() {
    of_type(ProgType::Tracepoint, 300);
}

#[test]
fn raw_tracepoints_do_the_same_when_they_are_recorded() {
    of_type(ProgType::RawTracepoint, 300);
}

#[test]
fn kprobes_do_the_same_when_they_are_recorded() {
    of_type(ProgType::Kprobe, 200);
}

#[test]
fn perf_events_do_the_same_when_they_are_recorded() {
    of_type(ProgType::PerfEvent, 200);
}
