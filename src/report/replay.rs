//! What came of a replay, in text and as JSON.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::datum::{Datum, hex};
use super::table::Table;
use crate::compare::replay::{
    Different, FirstDifference, Instruction, MapReport, MapVerdict, OutputReport, OutputVerdict,
    ProgramReport, Report, Verdict,
};
use crate::harness::EngineKind;
use crate::instrument::What;

/// A replay of a recording on one engine. `bpflab replay` prints it; its JSON is one value
/// with everything in it.
#[derive(Debug)]
pub struct ReplayView<'a> {
    /// The recording's file.
    pub recording: &'a str,
    /// The object's.
    pub object: &'a str,
    /// What came of it.
    pub report: &'a Report,
    /// How long it took, reading included, where that was asked for.
    pub elapsed: Option<Duration>,
}

/// What a part of an entry is called.
const fn part(what: What) -> &'static str {
    match what {
        What::Result => "result",
        What::Found => "whether an element was found",
        What::Loaded => "value loaded",
        What::Stored => "value stored",
        What::Operand => "operand",
        What::Expected => "value expected",
        What::Old => "old value",
        What::Argument(_) => "argument",
        What::Given(_) => "memory given",
        What::Filled(_) => "memory filled",
    }
}

/// The number of the argument that a part is of.
const fn argument(what: What) -> Option<u8> {
    match what {
        What::Argument(number) | What::Given(number) | What::Filled(number) => Some(number),
        _ => None,
    }
}

/// Bytes as a number where they can be one, and in hexadecimal.
fn value(bytes: &[u8]) -> String {
    let text = Datum::plain(bytes).to_string();
    let long = bytes.len() > 1 && text != hex(bytes);
    match bytes {
        [] => "no bytes".to_owned(),
        _ if long => format!("{text} ({})", hex(bytes)),
        _ => text,
    }
}

fn value_or_none(bytes: Option<&Vec<u8>>) -> String {
    bytes.map_or_else(|| "nothing".to_owned(), |bytes| value(bytes))
}

fn hex_or_null(bytes: Option<&Vec<u8>>) -> Json {
    bytes.map_or(Json::Null, |bytes| hex(bytes).into())
}

impl ReplayView<'_> {
    /// Nanoseconds a firing, where the time was taken.
    pub(super) fn ns_per_firing(&self) -> Option<f64> {
        let firings = u32::try_from(self.report.firings())
            .ok()
            .filter(|count| *count > 0)?;
        Some(self.elapsed?.as_secs_f64() * 1e9 / f64::from(firings))
    }

    /// All of it as one JSON value.
    #[must_use]
    pub fn json(&self) -> Json {
        let report = self.report;
        let mut all = json!({
            "recording": self.recording,
            "object": self.object,
            "engine": report.engine.name(),
            "verdict": report.word().key(),
            "firings": report.firings(),
            "programs": report.programs.iter().map(program_json).collect::<Vec<_>>(),
            "maps": report.maps.iter().map(map_json).collect::<Vec<_>>(),
            "outputs": report.outputs.iter().map(output_json).collect::<Vec<_>>(),
            "missing": report.missing,
        });
        if let (Some(ns), Some(all)) = (self.ns_per_firing(), all.as_object_mut()) {
            all.insert(
                "ns_per_firing".to_owned(),
                json!((ns * 10.0).round() / 10.0),
            );
        }
        all
    }
}

impl serde::Serialize for ReplayView<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(to)
    }
}

pub(super) fn program_json(program: &ProgramReport) -> Json {
    let (difference, why) = match &program.verdict {
        Verdict::Different(first) => (difference_json(first), None),
        Verdict::OrderUnknown(why) | Verdict::Incomplete(why) | Verdict::OutputsOnly(why) => {
            (Json::Null, Some(why))
        }
        Verdict::Equal | Verdict::Nothing => (Json::Null, None),
    };
    json!({
        "program": program.name,
        "engine": program.engine.map(EngineKind::name),
        "verdict": program.verdict.word().key(),
        "firings": program.firings,
        "raced": program.raced,
        "missed": program.missed,
        "why": why,
        "difference": difference,
    })
}

fn difference_json(first: &FirstDifference) -> Json {
    let (kind, part_of, expected, got) = match &first.what {
        Different::Returned { expected, got } => ("returned", None, json!(expected), json!(got)),
        Different::Given {
            what,
            expected,
            got,
        } => ("given", Some(*what), json!(hex(expected)), json!(hex(got))),
        Different::Found {
            what,
            expected,
            got,
        } => ("found", Some(*what), json!(hex(expected)), json!(hex(got))),
        Different::Path { expected, got } => {
            let place = |place: &Option<Instruction>| place.as_ref().map(|place| place.pc.0);
            ("path", None, json!(place(expected)), json!(place(got)))
        }
        Different::Fault(fault) => ("fault", None, Json::Null, json!(fault)),
        Different::Damaged(damage) => ("damaged", None, json!(damage), Json::Null),
    };
    let registers = first.registers.iter();
    let registers: serde_json::Map<_, _> = registers
        .map(|(reg, value)| (reg.to_string(), json!(format!("{value:#x}"))))
        .collect();
    json!({
        "kind": kind,
        "part": part_of.map(part),
        "argument": part_of.and_then(argument),
        "expected": expected,
        "got": got,
        "firing": first.firing,
        "cpu": first.cpu,
        "sequence": first.sequence,
        "time_ns": first.time,
        "pid": first.tgid,
        "tid": first.pid,
        "insn": first.place.as_ref().map(|place| place.pc.0),
        "text": first.place.as_ref().map(|place| place.text.as_str()),
        "source": first.place.as_ref().and_then(|place| {
            let source = place.source.as_ref()?;
            Some(json!({
                "file": source.file,
                "line": source.line,
                "column": source.column,
                "text": source.text,
            }))
        }),
        "registers": registers,
    })
}

pub(super) fn map_json(map: &MapReport) -> Json {
    let mut row = json!({ "map": map.name, "verdict": map.verdict.word().key() });
    let more = match &map.verdict {
        MapVerdict::Equal(entries) => json!({ "entries": entries }),
        MapVerdict::Different {
            key,
            expected,
            got,
            entries,
        } => json!({
            "key": hex(key),
            "expected": hex_or_null(expected.as_ref()),
            "got": hex_or_null(got.as_ref()),
            "differing": entries,
        }),
        MapVerdict::OrderUnknown { why, differing } => {
            json!({ "why": why, "differing": differing })
        }
        MapVerdict::NotCompared(why) => json!({ "why": why }),
    };
    extend(&mut row, more);
    row
}

pub(super) fn output_json(output: &OutputReport) -> Json {
    let mut row = json!({
        "output": output.name,
        "verdict": output.verdict.word().key(),
        "recorded": output.recorded,
        "replayed": output.replayed,
    });
    let more = match &output.verdict {
        OutputVerdict::Equal => json!({}),
        OutputVerdict::Different {
            at,
            cpu,
            expected,
            got,
        } => json!({
            "at": at,
            "cpu": cpu,
            "expected": hex_or_null(expected.as_ref()),
            "got": hex_or_null(got.as_ref()),
        }),
        OutputVerdict::NotCompared(why) => json!({ "why": why }),
    };
    extend(&mut row, more);
    row
}

fn extend(row: &mut Json, more: Json) {
    if let (Json::Object(row), Json::Object(more)) = (row, more) {
        row.extend(more);
    }
}

impl fmt::Display for ReplayView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let firings = report.firings();
        write!(
            f,
            "{}: {firings} firings on {}",
            self.recording, report.engine
        )?;
        match self.ns_per_firing() {
            Some(ns) => writeln!(f, ", {ns:.1} ns each, reading included")?,
            None => writeln!(f)?,
        }
        let mut table = Table::default().numbers(&[1]);
        for program in &report.programs {
            table.row([
                program.name.clone(),
                program.firings.to_string(),
                "firings".to_owned(),
                said_of_program(program, report.engine),
            ]);
        }
        for map in &report.maps {
            let (entries, unit) = match map.verdict {
                MapVerdict::Equal(entries) => (entries.to_string(), "entries"),
                _ => (String::new(), "map"),
            };
            table.row([map.name.clone(), entries, unit.to_owned(), said_of_map(map)]);
        }
        for output in &report.outputs {
            let said = said_of_output(output);
            let recorded = output.recorded.to_string();
            table.row([output.name.clone(), recorded, "outputs".to_owned(), said]);
        }
        write!(f, "{table}")?;
        for missing in &report.missing {
            writeln!(f, "missing: {missing}")?;
        }
        for program in &report.programs {
            if let Verdict::Different(first) = &program.verdict {
                write!(f, "\n{}", Explained(&program.name, first))?;
            }
        }
        writeln!(f, "verdict: {}", report.word())
    }
}

/// The verdict on a program in a line.
pub(super) fn said_of_program(program: &ProgramReport, asked: EngineKind) -> String {
    let mut said = program.verdict.word().to_string();
    match &program.verdict {
        Verdict::Different(first) => {
            let _ = write!(said, " at firing {}", first.firing);
        }
        Verdict::OrderUnknown(why) | Verdict::Incomplete(why) | Verdict::OutputsOnly(why) => {
            let _ = write!(said, ": {why}");
        }
        Verdict::Equal | Verdict::Nothing => {}
    }
    if program.raced > 0 {
        let _ = write!(said, ", {} with memory that others changed", program.raced);
    }
    if program.missed > 0 {
        let _ = write!(said, ", {} missed by the kernel", program.missed);
    }
    if let Some(engine) = program.engine.filter(|engine| *engine != asked) {
        let _ = write!(said, " (on the {engine} engine)");
    }
    said
}

/// The verdict on a map in a line.
pub(super) fn said_of_map(map: &MapReport) -> String {
    let word = map.verdict.word();
    match &map.verdict {
        MapVerdict::Equal(_) => word.to_string(),
        MapVerdict::Different {
            key,
            expected,
            got,
            entries,
        } => format!(
            "{word} in {entries} entries, first [{}]: {} in the kernel, {} in the replay",
            Datum::plain(key),
            value_or_none(expected.as_ref()),
            value_or_none(got.as_ref()),
        ),
        MapVerdict::OrderUnknown { why, differing: 0 } => {
            format!("{word}: {why}; its entries are the same")
        }
        MapVerdict::OrderUnknown { why, differing } => {
            format!("{word}: {why}; {differing} entries differ")
        }
        MapVerdict::NotCompared(why) => format!("not compared: {why}"),
    }
}

/// The verdict on a stream of outputs in a line.
pub(super) fn said_of_output(output: &OutputReport) -> String {
    match &output.verdict {
        OutputVerdict::Equal => output.verdict.word().to_string(),
        OutputVerdict::Different {
            at,
            cpu,
            expected,
            got,
        } => {
            let cpu = cpu.map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
            format!(
                "different at number {at}{cpu}: {} in the kernel, {} in the replay",
                value_or_none(expected.as_ref()),
                value_or_none(got.as_ref()),
            )
        }
        OutputVerdict::NotCompared(why) => format!("not compared: {why}"),
    }
}

/// A program's first difference, with its place.
pub(super) struct Explained<'a>(pub &'a str, pub &'a FirstDifference);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(program, first) = self;
        let FirstDifference {
            firing,
            cpu,
            sequence,
            time,
            tgid,
            pid,
            ..
        } = first;
        writeln!(
            f,
            "{program} differs at firing {firing}: number {sequence} on CPU {cpu}, process {tgid}, \
             thread {pid}, {}.{:09} s after boot",
            time / 1_000_000_000,
            time % 1_000_000_000,
        )?;
        if let Some(place) = &first.place {
            instruction(f, "at", place)?;
        }
        match &first.what {
            Different::Returned { expected, got } => {
                let text = |r0: u64| format!("{} ({r0:#x})", r0.cast_signed());
                both(f, "returned", &text(*expected), &text(*got))?;
            }
            Different::Given {
                what,
                expected,
                got,
            } => {
                both(f, &named(*what), &value(expected), &value(got))?;
            }
            Different::Found {
                what,
                expected,
                got,
            } => {
                both(f, &named(*what), &value(expected), &value(got))?;
                writeln!(f, "  nobody else wrote to this map meanwhile")?;
            }
            Different::Path { expected, got } => {
                for (who, place) in [("the kernel went to", expected), ("the replay to", got)] {
                    match place {
                        Some(place) => instruction(f, who, place)?,
                        None => writeln!(f, "  {who} the end")?,
                    }
                }
            }
            Different::Fault(fault) => writeln!(f, "  the replay stopped: {fault}")?,
            Different::Damaged(damage) => writeln!(f, "  the recorded log is damaged: {damage}")?,
        }
        if !first.registers.is_empty() {
            writeln!(f, "  registers of the replay before that instruction:")?;
        }
        for row in first.registers.chunks(4) {
            let cells = row.iter().map(|(reg, value)| format!("{reg}={value:#x}"));
            writeln!(f, "    {}", cells.collect::<Vec<_>>().join("  "))?;
        }
        Ok(())
    }
}

fn named(what: What) -> String {
    match argument(what) {
        Some(number) => format!("{} by argument {number}", part(what)),
        None => part(what).to_owned(),
    }
}

fn both(f: &mut fmt::Formatter<'_>, what: &str, expected: &str, got: &str) -> fmt::Result {
    writeln!(f, "  {what}: {expected} in the kernel, {got} in the replay")
}

fn instruction(f: &mut fmt::Formatter<'_>, who: &str, place: &Instruction) -> fmt::Result {
    writeln!(f, "  {who} {}: {}", place.pc, place.text)?;
    if let Some(source) = &place.source {
        writeln!(f, "    {}:{}  {}", source.file, source.line, source.text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::replay::SourceLine;
    use crate::isa::Reg;
    use crate::util::Pc;

    fn program(name: &str, verdict: Verdict) -> ProgramReport {
        ProgramReport {
            name: name.to_owned(),
            engine: Some(EngineKind::Jit),
            firings: 12,
            raced: 0,
            missed: 0,
            verdict,
        }
    }

    fn difference() -> FirstDifference {
        FirstDifference {
            firing: 7,
            cpu: 1,
            sequence: 3,
            time: 5_000_000_042,
            tgid: 42,
            pid: 43,
            what: Different::Given {
                what: What::Operand,
                expected: vec![9, 0, 0, 0, 0, 0, 0, 0],
                got: vec![1, 0, 0, 0, 0, 0, 0, 0],
            },
            place: Some(Instruction {
                pc: Pc(65),
                text: "(db) lock *(u64 *)(r0 +0) += r1".to_owned(),
                source: Some(SourceLine {
                    file: "a.c".to_owned(),
                    line: 52,
                    column: 3,
                    text: "__sync_fetch_and_add(count, 1);".to_owned(),
                }),
            }),
            registers: vec![(Reg::R0, 0x10), (Reg::R1, 1)],
        }
    }

    fn report() -> Report {
        Report {
            engine: EngineKind::Jit,
            programs: vec![
                program("count", Verdict::Different(Box::new(difference()))),
                ProgramReport {
                    engine: Some(EngineKind::Checked),
                    raced: 2,
                    missed: 1,
                    ..program("other", Verdict::Equal)
                },
            ],
            maps: vec![
                MapReport {
                    name: "hist".to_owned(),
                    verdict: MapVerdict::Equal(64),
                },
                MapReport {
                    name: "waiting".to_owned(),
                    verdict: MapVerdict::OrderUnknown {
                        why: "CPU 0 and CPU 1 stored to it".to_owned(),
                        differing: 2,
                    },
                },
            ],
            outputs: vec![OutputReport {
                name: "events".to_owned(),
                recorded: 3,
                replayed: 2,
                verdict: OutputVerdict::Different {
                    at: 2,
                    cpu: None,
                    expected: Some(vec![0xab; 3]),
                    got: None,
                },
            }],
            missing: vec!["2 lost of count: ring buffer full".to_owned()],
        }
    }

    fn view(report: &Report) -> ReplayView<'_> {
        ReplayView {
            recording: "a.rec",
            object: "a.bpf.o",
            report,
            elapsed: Some(Duration::from_nanos(2400)),
        }
    }

    #[test]
    fn a_difference_is_told_with_its_place() {
        let report = report();
        let text = view(&report).to_string();
        let expected = "\
a.rec: 24 firings on jit, 100.0 ns each, reading included
  count    12  firings  different at firing 7
  other    12  firings  equal, 2 with memory that others changed, 1 missed by the kernel (on the checked engine)
  hist     64  entries  equal
  waiting      map      order unknown: CPU 0 and CPU 1 stored to it; 2 entries differ
  events    3  outputs  different at number 2: ababab in the kernel, nothing in the replay
missing: 2 lost of count: ring buffer full

count differs at firing 7: number 3 on CPU 1, process 42, thread 43, 5.000000042 s after boot
  at 65: (db) lock *(u64 *)(r0 +0) += r1
    a.c:52  __sync_fetch_and_add(count, 1);
  operand: 9 (0900000000000000) in the kernel, 1 (0100000000000000) in the replay
  registers of the replay before that instruction:
    r0=0x10  r1=0x1
verdict: different
";
        assert_eq!(text, expected);
    }

    #[test]
    fn everything_is_in_the_json() {
        let report = report();
        let json = view(&report).json();
        assert_eq!(json["verdict"], "different");
        assert_eq!(json["firings"], 24);
        assert_eq!(json["ns_per_firing"], 100.0);
        let first = &json["programs"][0]["difference"];
        assert_eq!(
            (&first["insn"], &first["kind"]),
            (&json!(65), &json!("given"))
        );
        assert_eq!(first["registers"]["r1"], "0x1");
        assert_eq!(first["source"]["line"], 52);
        assert_eq!(json["programs"][1]["difference"], Json::Null);
        assert_eq!(json["maps"][1]["verdict"], "order_unknown");
        assert_eq!(json["outputs"][0]["expected"], "ababab");
        assert_eq!(json["missing"][0], "2 lost of count: ring buffer full");
    }

    #[test]
    fn the_worst_verdict_is_that_of_the_whole() {
        use crate::compare::replay::Word;
        let mut report = report();
        report.programs.remove(0);
        report.outputs.clear();
        assert_eq!(report.word(), Word::Incomplete);
        report.missing.clear();
        assert_eq!(report.word(), Word::OrderUnknown);
        assert!(report.is_fine());
        report.maps.clear();
        assert_eq!(report.word(), Word::Equal);
    }
}
