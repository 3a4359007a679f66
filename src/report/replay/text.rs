//! The parts of a report as text.

use std::fmt;
use std::fmt::Write as _;
use std::slice;

use super::words::{argument, likely_cause, part, value, value_or_none};
use crate::compare::replay::{
    Different, FirstDifference, Instruction, MapReport, MapVerdict, OutputReport, OutputVerdict,
    ProgramReport, Report, Verdict, Word,
};
use crate::harness::EngineKind;
use crate::instrument::What;
use crate::report::counted::counted;
use crate::report::datum::Datum;

/// The verdict on a program, as one line.
pub(in crate::report) fn said_of_program(program: &ProgramReport, asked: EngineKind) -> String {
    let mut said = match &program.verdict {
        Verdict::Different(first) => format!("different at firing {}", first.firing),
        Verdict::OrderUnknown(why) | Verdict::Incomplete(why) => {
            format!("{}: {why}", program.verdict.word())
        }
        Verdict::NotCompared(why) => not_compared(why),
        Verdict::Equal(_) => Word::Equal.to_string(),
    };
    if program.raced > 0 {
        let _ = write!(
            said,
            ", {} with a map value from the recording",
            program.raced
        );
    }
    if program.missed > 0 {
        let _ = write!(said, ", {} missed by the kernel", program.missed);
    }
    if let Some(engine) = program.stood_in(asked) {
        let why = program.engine_why.iter().map(|why| format!(": {why}"));
        let why = String::from_iter(why);
        said = format!("not run on {asked}, {said} on {engine}{why}");
    }
    said
}

/// The text about a part that was not compared.
fn not_compared(why: impl fmt::Display) -> String {
    format!("not compared: {why}")
}

/// The verdict on the whole, with the parts that were not compared.
pub(in crate::report) fn said_of_all(report: &Report) -> String {
    let word = report.word();
    match word {
        Word::NothingCompared if report.firings() == 0 => format!("{word}: no event came"),
        Word::PartlyCompared => {
            let gaps = report.gaps().into_iter();
            let gaps: Vec<_> = gaps
                .map(|gap| format!("{} {}", gap.kind, gap.name))
                .collect();
            format!("{word}, without {}", gaps.join(", "))
        }
        word => word.to_string(),
    }
}

/// The verdict on a map, as one line.
pub(in crate::report) fn said_of_map(map: &MapReport) -> String {
    let word = map.verdict.word();
    match &map.verdict {
        MapVerdict::Equal(_) => word.to_string(),
        MapVerdict::Different {
            key,
            expected,
            got,
            entries,
            is_outside,
        } => {
            let mut said = format!(
                "{word} in {}, first [{}]: {} in the kernel, {} in the replay",
                counted(*entries as u64, "entry"),
                Datum::plain(key),
                value_or_none(expected.as_ref()),
                value_or_none(got.as_ref()),
            );
            if *is_outside {
                let cause = likely_cause(slice::from_ref(&map.name));
                let _ = write!(said, "; {cause}");
            }
            said
        }
        MapVerdict::OrderUnknown { why, differing: 0 } => {
            format!("{word}: {why}; its entries are the same")
        }
        MapVerdict::OrderUnknown { why, differing } => {
            let differ = if *differing == 1 { "differs" } else { "differ" };
            let entries = counted(*differing as u64, "entry");
            format!("{word}: {why}; {entries} {differ}")
        }
        MapVerdict::NotCompared(why) => not_compared(why),
    }
}

/// The verdict on a stream of outputs, as one line.
pub(in crate::report) fn said_of_output(output: &OutputReport) -> String {
    match &output.verdict {
        OutputVerdict::Equal(_) => output.verdict.word().to_string(),
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
        OutputVerdict::NotCompared(why) => not_compared(why),
    }
}

/// A program's first difference, with the instruction.
pub(in crate::report) struct Explained<'a>(pub &'a str, pub &'a FirstDifference);

impl Explained<'_> {
    /// The firing that differs.
    pub fn headline(&self) -> String {
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
        format!(
            "{program} differs at firing {firing}: number {sequence} on CPU {cpu}, process {tgid}, \
             thread {pid}, {}.{:09} s after boot",
            time / 1_000_000_000,
            time % 1_000_000_000,
        )
    }

    /// What differs, in the kernel and in the replay; `None` if there is only one side.
    pub fn sides(&self) -> Option<(String, String, String)> {
        let went = |place: &Option<Instruction>| match place {
            Some(place) => format!("{}: {}", place.pc, place.text),
            None => "the end".to_owned(),
        };
        Some(match &self.1.what {
            Different::Returned { expected, got } => {
                ("returned".to_owned(), returned(*expected), returned(*got))
            }
            Different::Given {
                what,
                expected,
                got,
            }
            | Different::Found {
                what,
                expected,
                got,
                ..
            } => (named(*what), value(expected), value(got)),
            Different::Path { expected, got } => ("went to".to_owned(), went(expected), went(got)),
            Different::Fault(fault) => {
                let fault = format!("faulted: {fault}");
                ("ended".to_owned(), "without a fault".to_owned(), fault)
            }
            Different::Damaged(_) => return None,
        })
    }
}

fn returned(r0: u64) -> String {
    format!("{} ({r0:#x})", r0.cast_signed())
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.1;
        writeln!(f, "{}", self.headline())?;
        if let Some(place) = &first.place {
            instruction(f, "at", place)?;
        }
        match &first.what {
            Different::Returned { expected, got } => {
                both(f, "returned", &returned(*expected), &returned(*got))?;
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
                maps,
            } => {
                both(f, &named(*what), &value(expected), &value(got))?;
                writeln!(f, "  {}", likely_cause(maps))?;
            }
            Different::Path { expected, got } => {
                for (who, place) in [
                    ("the kernel went to", expected),
                    ("the replay went to", got),
                ] {
                    match place {
                        Some(place) => instruction(f, who, place)?,
                        None => writeln!(f, "  {who} the end")?,
                    }
                }
            }
            Different::Fault(fault) => writeln!(f, "  the replay faulted: {fault}")?,
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
