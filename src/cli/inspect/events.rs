//! `bpflab inspect --events`: the firings and events of a recording, as a list or as an events
//! file for `bpflab run --events`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::compare::replay::{RecordedFiring, RecordingSource};
use crate::report::Timeline;
use crate::vm::events::FieldValue;

/// Numbers from here on are addresses or bit masks more often than counts.
const HEXADECIMAL: i128 = 1 << 40;

/// A recording that is listed.
pub(super) struct Listed<'a> {
    /// Its file.
    pub file: &'a str,
    pub source: RecordingSource,
}

impl Listed<'_> {
    fn each(
        &self,
        mut show: impl FnMut(RecordedFiring) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failed = None;
        let read = self.source.each_firing(None, |firing| match show(firing) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        });
        read.map_err(|error| Failure::of_replay(self.file, error))?;
        failed.map_or(Ok(()), Err)
    }

    /// Lists every firing.
    pub fn list(&self, printer: &mut Printer) -> Result<Exit, Failure> {
        let mut first = None;
        self.each(|firing| {
            if printer.is_json() {
                return printer.row(&row(&firing));
            }
            let since = firing
                .time
                .saturating_sub(*first.get_or_insert(firing.time));
            printer.text(line(&firing, since))
        })?;
        Ok(Exit::Fine)
    }

    /// The firings as a timeline.
    pub fn timeline(&self) -> Result<Timeline, Failure> {
        let mut timeline = Timeline::default();
        self.each(|firing| {
            timeline.add(&firing, fields_text(&firing).trim_start());
            Ok(())
        })?;
        Ok(timeline)
    }

    /// Writes an events file. An event on which several programs ran is written once.
    pub fn write(&self, file: &Path, printer: &mut Printer) -> Result<Exit, Failure> {
        let name = file.display().to_string();
        let failed =
            |error: std::io::Error| Failure::bad(format!("{name}: can't be written: {error}"));
        let mut to = BufWriter::new(File::create(file).map_err(failed)?);
        // The program whose firings stand for the event.
        let mut writers = BTreeMap::<String, Option<String>>::new();
        let mut written = 0u64;
        let mut undecoded = BTreeMap::<String, u64>::new();
        let mut cpus = 0;
        self.each(|firing| {
            let writer = writers.entry(firing.event.clone());
            if *writer.or_insert_with(|| firing.program.clone()) != firing.program {
                return Ok(());
            }
            if !firing.decoded {
                *undecoded.entry(firing.event).or_insert(0) += 1;
                return Ok(());
            }
            let mut keys = Map::new();
            keys.insert("@event".to_owned(), Json::from(firing.event.as_str()));
            keys.insert("@cpu".to_owned(), Json::from(firing.cpu));
            keys.insert("@pid".to_owned(), Json::from(firing.pid));
            keys.insert("@tid".to_owned(), Json::from(firing.tid));
            keys.insert("@ns".to_owned(), Json::from(firing.time));
            keys.extend(fields(&firing));
            cpus = cpus.max(firing.cpu + 1);
            written += 1;
            writeln!(to, "{}", Json::Object(keys)).map_err(failed)
        })?;
        to.flush().map_err(failed)?;
        if printer.is_json() {
            printer.row(&json!({ "file": name, "events": written, "cpus": cpus }))?;
        } else {
            printer.text(format_args!(
                "{name}: {written} events, for bpflab run --cpus {cpus} --events {name}\n"
            ))?;
        }
        for (event, count) in &undecoded {
            printer.warn(&format!(
                "{count} firings of {event} are not written: the layout of their context is not \
                 known, or is registers or a packet"
            ))?;
        }
        Ok(match undecoded.is_empty() {
            true => Exit::Fine,
            false => Exit::No,
        })
    }
}

/// The fields of a firing, two blanks before each.
fn fields_text(firing: &RecordedFiring) -> String {
    let mut text = String::new();
    for (name, value) in &firing.fields {
        // Writing to a String can't fail.
        let _ = match value {
            FieldValue::Int(number) if *number >= HEXADECIMAL => {
                write!(text, "  {name}={number:#x}")
            }
            FieldValue::Ints(numbers) => write!(text, "  {name}={numbers:?}"),
            value => write!(text, "  {name}={value}"),
        };
    }
    if !firing.decoded {
        text.push_str("  (the layout of its context is not known)");
    }
    text
}

fn line(firing: &RecordedFiring, since: u64) -> String {
    let mut text = format!(
        "{:>4}.{:09}  cpu {}  {}/{}  {}",
        since / 1_000_000_000,
        since % 1_000_000_000,
        firing.cpu,
        firing.pid,
        firing.tid,
        firing.event,
    );
    // Writing to a String can't fail.
    if let (Some(program), Some(returned)) = (&firing.program, firing.returned) {
        let _ = write!(text, "  {program} returned {returned}");
    }
    text.push_str(&fields_text(firing));
    text.push('\n');
    text
}

fn row(firing: &RecordedFiring) -> Json {
    json!({
        "program": firing.program,
        "event": firing.event,
        "ns": firing.time,
        "cpu": firing.cpu,
        "pid": firing.pid,
        "tid": firing.tid,
        "returned": firing.returned,
        "fields": firing.decoded.then(|| fields(firing)),
    })
}

fn fields(firing: &RecordedFiring) -> Map<String, Json> {
    let fields = firing.fields.iter();
    fields
        .map(|(name, value)| (name.clone(), json_of(value)))
        .collect()
}

/// A value as a line of an events file has it.
fn json_of(value: &FieldValue) -> Json {
    let number = |number: i128| {
        let signed = i64::try_from(number).map(Json::from);
        signed
            .or_else(|_| u64::try_from(number).map(Json::from))
            .unwrap_or(Json::Null)
    };
    match value {
        FieldValue::Int(value) => number(*value),
        FieldValue::Text(text) => Json::from(text.as_str()),
        FieldValue::Bytes(bytes) => Json::from(bytes.as_slice()),
        FieldValue::Ints(numbers) => numbers.iter().copied().map(number).collect(),
    }
}
