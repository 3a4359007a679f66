//! Runs a test on an engine.

use std::collections::BTreeMap;

use clap::{Args, Parser};
use serde_json::{Map, Value as Json};

use super::expect::{differences, of_map, of_return};
use super::suite::{DATA, Expect, PACKET, PASSED, RETURNS, Setup, Suite, Test};
use crate::cli::event_fields::set_field;
use crate::cli::event_lines::EventLine;
use crate::cli::exit::Failure;
use crate::cli::input::skip_untyped;
use crate::cli::map_values;
use crate::cli::run::{
    ScheduledEvent, SetupArguments, Uninit, bytes, choose_engine, machine, open, record_types,
    scheduled_events,
};
use crate::harness::{EngineKind, Error, Vm};
use crate::report::{OutputRow, PacketRow, RecordTypes};
use crate::spec::{MapType, ProgType};
use crate::util::glob;
use crate::vm::events::Event;
use crate::vm::{Fault, Leak, Output, ProgramHandle};

/// The options of a test.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, name = "options", disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    given: Given,
}

/// Options of `bpflab run` that a test may have.
#[derive(Debug, Clone, Args)]
pub(super) struct Given {
    #[command(flatten)]
    pub setup: SetupArguments,
    #[arg(long)]
    pub record: Vec<String>,
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "warn")]
    uninit: Option<Uninit>,
}

/// A test that ran on an engine.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// What differs from the expected; nothing if the test passed.
    pub differences: Vec<String>,
    /// Why the test does not run on this engine.
    pub skipped: Option<String>,
    /// Programs that were left out, uninitialised bytes that left programs.
    pub warnings: Vec<String>,
}

/// Runs a test on an engine.
///
/// # Errors
/// The test can't run: a file, program, map, field or event that is not there, or a program that
/// is not accepted.
pub(super) fn run(
    suite: &Suite,
    test: &Test,
    engine: EngineKind,
    uninit: Uninit,
) -> Result<Ran, Failure> {
    let setup = suite.setup.with(&test.setup);
    let options = options(&setup)?;
    if options.setup.unverified && engine != EngineKind::Checked {
        return Ok(Ran::skipped("--unverified runs on the checked engine"));
    }
    let mut object = open(&suite.object, &test.programs, &options.setup)?;
    let mut wanted = test.programs.clone();
    if let Some(check) = &test.check {
        object.entry_mut(check)?.set_autoload(true);
        wanted.push(check.clone());
    }
    for (name, value) in &setup.globals {
        map_values::set_global_json(&mut object, name, value.clone())?;
    }
    let types = record_types(&options.record, &object)?;
    let warnings = skip_untyped(&mut object, &test.programs)?;
    let mut vm = machine(object, &wanted, &options.setup)?;
    if engine != EngineKind::Checked {
        match choose_engine(&mut vm, engine, &wanted) {
            Err(Failure::Error { text, .. }) => return Ok(Ran::skipped(&text)),
            done => done?,
        }
    } else {
        vm.set_engine(engine);
    }
    let uninit = options.uninit.unwrap_or(uninit);
    vm.find_uninit(uninit != Uninit::Off && engine == EngineKind::Checked);
    prepare(&mut vm, &setup)?;
    let mut running = Running::new(suite, test, &options.setup, types, vm);
    for (number, event) in test.events.iter().enumerate() {
        running.fire(number, event)?;
    }
    if let Some(check) = &test.check {
        running.check_in_c(check)?;
    }
    running.check(&test.expect)?;
    let mut ran = Ran {
        differences: running.differences,
        skipped: None,
        warnings,
    };
    ran.leaked(&running.leaks, uninit);
    Ok(ran)
}

/// The options of a setup.
pub(super) fn options(setup: &Setup) -> Result<Given, Failure> {
    let parsed = Options::try_parse_from(&setup.options);
    let parsed = parsed.map_err(|error| Failure::bad(format!("options: {}", of_clap(&error))))?;
    Ok(parsed.given)
}

/// What a machine after a test differs in from what is expected of maps and globals.
pub(super) fn left(
    suite: &Suite,
    test: &Test,
    setup: &SetupArguments,
    vm: Vm,
) -> Result<Vec<String>, Failure> {
    let mut running = Running::new(suite, test, setup, RecordTypes::default(), vm);
    running.check(&test.expect)?;
    Ok(running.differences)
}

/// The setup of tests that have no options.
pub(super) fn no_options() -> Result<SetupArguments, Failure> {
    let none: [&str; 0] = [];
    let options = Options::try_parse_from(none);
    Ok(options
        .map_err(|error| Failure::bad(of_clap(&error)))?
        .given
        .setup)
}

/// The message of an option that is wrong, without the usage of a program that is not there.
fn of_clap(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.split("\n\nUsage").next().unwrap_or(&text);
    text.strip_prefix("error: ")
        .unwrap_or(text)
        .trim_end()
        .to_owned()
}

impl Ran {
    /// A test that failed.
    pub fn failed(why: String) -> Self {
        Self {
            differences: vec![why],
            ..Self::default()
        }
    }

    /// Adds uninitialised bytes that left programs, each once.
    pub fn leaked(&mut self, leaks: &[Leak], uninit: Uninit) {
        for (at, leak) in leaks.iter().enumerate() {
            let before = leaks.get(..at).unwrap_or_default();
            if before.iter().any(|known| known.is_again(leak)) {
                continue;
            }
            match uninit {
                Uninit::Off => {}
                Uninit::Warn => self.warnings.push(leak.to_string()),
                Uninit::Fail => self.differences.push(leak.to_string()),
            }
        }
    }

    pub fn skipped(why: &str) -> Self {
        Self {
            skipped: Some(why.to_owned()),
            ..Self::default()
        }
    }
}

/// Sets the world and the contents of maps.
fn prepare(vm: &mut Vm, setup: &Setup) -> Result<(), Failure> {
    let keys = setup.world.iter();
    let keys = keys.map(|(key, value)| (format!("@{key}"), value.clone()));
    let wrong = |error| Failure::bad(format!("world: {error}"));
    let line = EventLine::from_json(Json::Object(keys.collect())).map_err(wrong)?;
    line.change(vm.world()).map_err(wrong)?;
    for (name, contents) in &setup.maps {
        let map = vm.map(name)?;
        let wrong = |error| Failure::bad(format!("maps: {name}: {error}"));
        match contents {
            Json::Object(entries) => {
                for (key, value) in entries {
                    let key = map_values::value(key).map_err(wrong)?;
                    map_values::entry(&map, &key, value).map_err(wrong)?;
                }
            }
            list => map_values::fill(&map, list).map_err(wrong)?,
        }
    }
    Ok(())
}

struct Running<'a> {
    suite: &'a Suite,
    test: &'a Test,
    setup: &'a SetupArguments,
    types: RecordTypes,
    vm: Vm,
    /// The programs that ran, with what they returned.
    runs: Vec<(String, u32)>,
    outputs: Vec<OutputRow>,
    faults: Vec<String>,
    leaks: Vec<Leak>,
    differences: Vec<String>,
}

impl<'a> Running<'a> {
    const fn new(
        suite: &'a Suite,
        test: &'a Test,
        setup: &'a SetupArguments,
        types: RecordTypes,
        vm: Vm,
    ) -> Self {
        Self {
            suite,
            test,
            setup,
            types,
            vm,
            runs: Vec::new(),
            outputs: Vec::new(),
            faults: Vec::new(),
            leaks: Vec::new(),
            differences: Vec::new(),
        }
    }
}

impl Running<'_> {
    /// Fires one of the test's events.
    fn fire(&mut self, number: usize, event: &Map<String, Json>) -> Result<(), Failure> {
        let place = format!("event {}", number + 1);
        let wrong = |error: String| Failure::bad(format!("{place}: {error}"));
        let mut fields = event.clone();
        // In the order of the file: world and fields apply as they are written.
        let [returns, passed, packet, data] =
            [RETURNS, PASSED, PACKET, DATA].map(|key| fields.shift_remove(key));
        let mut setup = self.setup.clone();
        if let Some(data) = data {
            let data = data
                .as_str()
                .ok_or_else(|| wrong(format!("{DATA}: expected a text")))?;
            setup.event.data = Some(self.suite.data(data));
        }
        let line = EventLine::from_json(Json::Object(fields)).map_err(wrong)?;
        line.change(self.vm.world()).map_err(wrong)?;
        let name = line.event.as_deref().or(self.setup.event.event.as_deref());
        // A test in C names no programs: an event that it names fires those on it.
        let programs: &[String] = match (&self.test.check, name) {
            (Some(_), Some(_)) => &[],
            _ => &self.test.programs,
        };
        let (scheduled, failures) = scheduled_events(&mut self.vm, programs, &setup, name)?;
        if let Some(failure) = failures.into_iter().next() {
            return Err(failure);
        }
        let first = self.runs.len();
        for next in scheduled {
            let after = self.fire_one(next, &line)?;
            if let Some(expected) = &passed {
                let place = format!("{place}: passed");
                let found = Json::from(after.passed);
                let differ = differences(&self.vm, &place, expected, &found);
                self.differences.extend(differ);
            }
            if let Some(expected) = &packet {
                let expected = expected.as_str();
                let expected = expected.ok_or_else(|| {
                    wrong(format!("{PACKET}: expected hexadecimal digits or a file"))
                })?;
                let expected = bytes(&self.suite.data(expected))?;
                self.differences
                    .extend(of_packet(&place, &expected, after.packet.as_deref()));
            }
        }
        if let Some(expected) = returns {
            let runs = self.runs.get(first..).unwrap_or_default();
            let differ = of_returns(&self.vm, &format!("{place}: "), &expected, runs);
            self.differences.extend(differ);
        }
        Ok(())
    }

    fn fire_one(&mut self, next: ScheduledEvent, line: &EventLine) -> Result<After, Failure> {
        let ScheduledEvent {
            wait,
            mut event,
            programs,
        } = next;
        self.vm.world().clock().advance(wait);
        for (field, value) in &line.fields {
            set_field(&self.vm, &mut event, field, value)?;
        }
        let mut fired = self.vm.fire_for(&programs, event)?;
        self.leaks.append(&mut fired.outcome.leaks);
        for ((program, _), run) in fired.runs.iter().zip(&fired.outcome.runs) {
            let name = self.name(*program);
            self.runs.push((name, run.returned()));
        }
        let rows = fired.outcome.outputs.iter();
        self.outputs
            .extend(rows.map(|output| OutputRow::new(output, &self.types)));
        if let Some((program, fault)) = fired.fault {
            self.faulted(program, &fault);
        }
        self.read_rings()?;
        Ok(After {
            passed: fired.outcome.passed,
            packet: fired.outcome.packet,
        })
    }

    /// Makes room in ring buffers, whose records are outputs already.
    fn read_rings(&self) -> Result<(), Error> {
        let is_ring = |map: &crate::harness::MapView<'_>| map.def().map_type == MapType::Ringbuf;
        for ring in self.vm.maps().filter(is_ring) {
            ring.take_records()?;
        }
        Ok(())
    }

    fn name(&self, program: ProgramHandle) -> String {
        let known = self.vm.program(program);
        known
            .map(|program| program.name.clone())
            .unwrap_or_default()
    }

    /// Keeps a fault, which is a difference unless it is expected.
    fn faulted(&mut self, program: ProgramHandle, fault: &Fault) {
        let text = fault.to_string();
        let is_expected = |pattern: &String| {
            text.contains(pattern.as_str()) || text.lines().any(|line| glob(pattern, line))
        };
        if !self.test.expect.fault.as_ref().is_some_and(is_expected) {
            let name = self.name(program);
            self.differences
                .push(format!("program '{name}' faulted: {text}"));
        }
        self.faults.push(text);
    }

    /// Runs the body of a test in C, which returns the line that failed.
    fn check_in_c(&mut self, program: &str) -> Result<(), Failure> {
        let event = Event::input(ProgType::Syscall, Vec::new());
        let outcome = match self.vm.run(program, &event) {
            Err(Error::Fault(fault)) => {
                self.differences.push(fault.to_string());
                return Ok(());
            }
            done => done?,
        };
        let failed = outcome.runs.last().map_or(0, |run| run.returned());
        if failed != 0 {
            let said = outcome.outputs.iter().filter_map(|output| match output {
                Output::Printk(text) => Some(text.trim_end().to_owned()),
                _ => None,
            });
            let said: Vec<_> = said.collect();
            self.differences.push(match said.is_empty() {
                true => format!("{program} returned {failed}"),
                false => said.join("\n"),
            });
        }
        Ok(())
    }

    /// Checks what is expected after all events.
    fn check(&mut self, expect: &Expect) -> Result<(), Failure> {
        let mut differ = Vec::new();
        if let Some(expected) = &expect.returns {
            differ.extend(of_returns(&self.vm, "", expected, &self.runs));
        }
        for (name, expected) in &expect.globals {
            let found = self.vm.global(name)?;
            differ.extend(differences(&self.vm, name, expected, &found));
        }
        for (name, expected) in &expect.maps {
            let map = self.vm.map(name)?;
            let wrong = |error| Failure::bad(format!("expect: maps: {name}: {error}"));
            let of_map = of_map(&self.vm, &map, expected).map_err(wrong)?;
            differ.extend(of_map.into_iter().map(|text| format!("{name}{text}")));
        }
        for (name, expected) in &expect.records {
            // A misspelt map has no records, which may be what is expected.
            self.vm.map(name)?;
            differ.extend(differences(&self.vm, name, expected, &self.records(name)));
        }
        if let Some(expected) = &expect.printk {
            let lines = self.outputs.iter().filter_map(|output| match output {
                OutputRow::Printk { text } => Some(Json::from(text.trim_end())),
                _ => None,
            });
            let expected = expected.iter().cloned().map(Json::from).collect();
            differ.extend(differences(&self.vm, "printk", &expected, &lines.collect()));
        }
        if let Some(expected) = expect.fault.as_ref().filter(|_| self.faults.is_empty()) {
            differ.push(format!("no program faulted; expected: {expected}"));
        }
        self.differences.extend(differ);
        Ok(())
    }

    /// The records of a buffer: decoded, or in hexadecimal.
    fn records(&self, name: &str) -> Json {
        let records = self.outputs.iter().filter_map(|output| match output {
            OutputRow::Record {
                map, value, bytes, ..
            } if map == name => Some(match value {
                Some(value) => value.json().clone(),
                None => Json::from(bytes.as_str()),
            }),
            _ => None,
        });
        records.collect()
    }
}

/// What an event left.
struct After {
    passed: bool,
    packet: Option<Vec<u8>>,
}

/// The differences of return values: one for all runs, or by program one for all its runs, or a
/// list of them.
fn of_returns(vm: &Vm, place: &str, expected: &Json, runs: &[(String, u32)]) -> Vec<String> {
    let mut by_program: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (name, returned) in runs {
        by_program.entry(name).or_default().push(*returned);
    }
    let Json::Object(programs) = expected else {
        if runs.is_empty() {
            return vec![format!(
                "{place}no program ran; expected to return {expected}"
            )];
        }
        let differ = by_program.iter().flat_map(|(name, returned)| {
            of_program(vm, &format!("{place}{name} returns"), expected, returned)
        });
        return differ.collect();
    };
    let differ = programs
        .iter()
        .flat_map(|(name, expected)| match by_program.get(name.as_str()) {
            Some(returned) => of_program(vm, &format!("{place}{name} returns"), expected, returned),
            None => vec![format!(
                "{place}{name} did not run; expected to return {expected}"
            )],
        });
    differ.collect()
}

fn of_program(vm: &Vm, place: &str, expected: &Json, returned: &[u32]) -> Vec<String> {
    if let Json::Array(each) = expected {
        if each.len() != returned.len() {
            let (wanted, runs) = (each.len(), returned.len());
            return vec![format!(
                "{place}: expected {wanted} runs, found {runs}: {returned:?}"
            )];
        }
        let numbered = each.iter().zip(returned).enumerate();
        let differ = numbered.flat_map(|(number, (expected, returned))| {
            of_return(
                vm,
                &format!("{place} (run {})", number + 1),
                expected,
                *returned,
            )
        });
        return differ.collect();
    }
    let mut differ: Vec<_> = returned
        .iter()
        .flat_map(|returned| of_return(vm, place, expected, *returned))
        .collect();
    differ.dedup();
    differ
}

fn of_packet(place: &str, expected: &[u8], found: Option<&[u8]>) -> Option<String> {
    let Some(found) = found else {
        return Some(format!("{place}: the program has no packet"));
    };
    let row = PacketRow::new(expected, found)?;
    Some(format!(
        "{place}: another packet than expected (-), found (+)\n{row}"
    ))
}

impl Suite {
    /// A file beside the suite, or what is no file.
    fn data(&self, given: &str) -> String {
        match self.folder.join(given) {
            file if file.is_file() => file.display().to_string(),
            _ => given.to_owned(),
        }
    }
}
