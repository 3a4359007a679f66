//! A recorded program does what the original does: generated programs over the whole
//! instruction set run in both forms, and return values, maps and outputs must be equal. The
//! firing must be readable entry by entry.

use crate::shared::law;
use crate::shared::sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::compare::{Answer, Engine, Ours, Subject};
use bpflab::r#gen::Options;
use bpflab::harness::EngineKind;
use bpflab::instrument::{
    Begins, Candidate, Firing, FiringFlags, Plan, RecordMaps, RecordOptions, Relays, Segments,
    Unrecordable,
};
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

/// The number of the fired program.
const NUMBER: u32 = 3;

/// Counts for the programs of a type.
#[derive(Debug, Default)]
struct Seen {
    recorded: u32,
    entries: usize,
    overflowed: u32,
    /// Programs that make tail calls, and how often another program continued.
    jumping: u32,
    relayed: u32,
    unrecordable: BTreeMap<String, u32>,
}

impl Seen {
    /// Runs both forms of a program.
    fn compare(&mut self, subject: &Subject) -> Result<(), String> {
        let program = &*subject.program;
        let added = RecordMaps::add(&program.maps, 1 << 16);
        let options = RecordOptions {
            number: NUMBER,
            context_len: u32::try_from(subject.event.record().len()).unwrap_or(0),
            all: true,
        };
        let plans: Vec<_> = subject.programs().map(|it| Plan::new(it)).collect();
        for (program, plan) in subject.programs().zip(&plans) {
            if let Ok(plan) = plan {
                let read = Plan::with_schema(program, &plan.schema());
                let read = read.map_err(|error| error.to_string())?;
                if read.sites() != plan.sites() {
                    return Err(format!("{:?}, {:?}", read.sites(), plan.sites()));
                }
            }
        }
        let candidates = subject
            .programs()
            .zip(&plans)
            .map(|(program, plan)| Candidate {
                program,
                plan: plan.as_ref().map_err(|why| why.reason.to_string()),
                context_len: options.context_len,
            });
        let relays = Relays::new(&candidates.collect::<Vec<_>>());
        let (Ok(_), Some(Ok(plan))) = (relays.get(0), plans.first()) else {
            self.refuse(&relays.get(0).unwrap_err());
            return Ok(());
        };
        let mut forms = Vec::new();
        for (number, (program, plan)) in (0..).zip(subject.programs().zip(&plans)) {
            let options = RecordOptions {
                number: NUMBER + number,
                ..options
            };
            let form = match (relays.get(number as usize), plan) {
                (Ok(relay), Ok(plan)) if number == 0 => {
                    plan.record_opening(&added, &options, &relay)
                }
                (Ok(relay), Ok(plan)) if relay.follows => {
                    plan.record_following(&added, &options, &relay)
                }
                // Unreachable.
                _ => {
                    let mut other = Program::clone(program);
                    other.maps = added.maps.clone();
                    Ok(other)
                }
            };
            let form = match form {
                Ok(form) => Arc::new(form),
                Err(refused) => {
                    self.refuse(&refused.reason.to_string());
                    return Ok(());
                }
            };
            let verdict = verify(&form, &verifier::Options::default()).verdict;
            if !verdict.is_accepted() {
                let original = verify(program, &verifier::Options::default()).verdict;
                if number > 0 && !original.is_accepted() {
                    self.refuse("a program that it jumps to is refused");
                    return Ok(());
                }
                return Err(format!("the recorded form is refused: {}", verdict.message));
            }
            forms.push(form);
        }
        let form = forms.remove(0);
        let run = |subject: &Subject| {
            let answer = Ours::new(EngineKind::Checked).run(subject);
            answer.map_err(|error| error.to_string())
        };
        let original = run(subject)?;
        let recorded = run(&Subject::new(form, subject.event.clone()).with_others(forms))?;
        self.recorded += 1;
        self.jumping += u32::from(!plan.jumps().is_empty());
        same(&original, &recorded)?;
        self.read(&plans, &recorded)
    }

    fn refuse(&mut self, why: &str) {
        *self.unrecordable.entry(why.to_owned()).or_default() += 1;
    }

    /// Reads the firing.
    fn read(
        &mut self,
        plans: &[Result<Plan, Unrecordable>],
        recorded: &Answer,
    ) -> Result<(), String> {
        let outcome = &recorded.details.as_ref().ok_or("no details")?.outcome;
        let mut firings = outcome.outputs.iter().filter_map(firing);
        let firing =
            Firing::parse(firings.next().ok_or("no firing")?).map_err(|e| e.to_string())?;
        if firings.next().is_some() {
            return Err("two firings".to_owned());
        }
        let returned = outcome.runs.last().map(|run| run.r0);
        if Some(firing.returned) != returned || firing.program != NUMBER || firing.sequence != 0 {
            return Err(format!("{firing:?}, returned {returned:?}"));
        }
        self.overflowed += u32::from(firing.flags.contains(FiringFlags::OVERFLOW));
        let plan = |number: u32| {
            let plan = plans.get(number.checked_sub(NUMBER)? as usize)?;
            plan.as_ref().ok()
        };
        for piece in Segments::new(firing.program, firing.log, plan) {
            self.relayed += u32::from(piece.begins != Begins::Fired);
            for entry in plan(piece.program).ok_or("no program")?.entries(piece.log) {
                entry.map_err(|error| error.to_string())?;
                self.entries += 1;
            }
        }
        Ok(())
    }
}

/// Compares the results of both forms.
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
        ..Options::default()
    };
    let mut seen = Seen::default();
    hold(prog_type.name(), count, options, |_, subject| {
        seen.compare(subject)
    });
    eprintln!("{}: {seen:#?}", prog_type.name());
    assert!(seen.recorded * 3 > law::part(count), "{seen:?}");
    assert!(seen.entries > seen.recorded as usize, "{seen:?}");
    let is_relayed = seen.relayed > 0 || !sample::all();
    assert!(seen.jumping > 0 && is_relayed, "{seen:?}");
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
