//! `docs/recording-format.md` agrees with the code.

use serde_json::Value;

use super::block::{FILE_HEAD, Kind};
use super::*;
use crate::instrument::{
    AccessedState, Firing, FiringFlags, Flow, Length, LoggedLocation, Moment, SchemaSite, What,
};
use crate::isa::Reg;

const DOCUMENT: &str = include_str!("../../../../docs/recording-format.md");

/// The code blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let after = DOCUMENT.split(&fence).skip(1);
    after.filter_map(|text| text.split("```").next()).collect()
}

#[test]
fn its_example_is_a_recording() {
    let [text] = blocks("hex")[..] else {
        panic!("one example");
    };
    let words = text.lines().flat_map(|line| {
        line.split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
    });
    let file: Vec<_> = words
        .map(|word| u8::from_str_radix(word, 16).expect("a byte"))
        .collect();
    assert_eq!(file[..FILE_HEAD], block::file_head(Version::CURRENT));
    let (steps, ending) = read(&file);
    assert_eq!(steps, [Step::Firing(b"hi".to_vec())]);
    assert!(matches!(ending, Ending::Whole(_)), "{ending:?}");
}

#[test]
fn its_header_and_end_have_every_key_and_no_other() {
    let [header, end] = blocks("json")[..] else {
        panic!("a header and an end");
    };
    // Read and written again, it has every key with the same value.
    let read: Header = serde_json::from_str(header).expect("a header");
    let mut shown: Value = serde_json::from_str(header).expect("JSON");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), shown);
    assert!(read.filter != Filter::Other && read.programs[0].how == How::Instrumented);
    let read: End = serde_json::from_str(end).expect("an end");
    shown = serde_json::from_str(end).expect("JSON");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), shown);
    assert_eq!(read.summary.ended, Ended::Exited { code: 0 });
    // The keys of events: the example has none.
    let event = serde_json::to_value(RecordedEvent::default()).expect("JSON");
    for key in event.as_object().expect("an object").keys() {
        assert!(DOCUMENT.contains(&format!("`{key}`")), "{key}");
    }
}

/// The name of a value in a schema.
fn name(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value).expect("JSON") {
        Value::String(name) => name,
        Value::Object(one) if one.len() == 1 => one.keys().cloned().collect(),
        other => panic!("no name: {other}"),
    }
}

#[test]
fn its_tables_of_the_schema_have_every_name() {
    let text = DOCUMENT.split("### The schema of a log").nth(1);
    let text = text.and_then(|text| text.split("The end:").next());
    let text = text.expect("the section");
    let names = [
        name(Moment::Before),
        name(Moment::After),
        name(AccessedState::Own),
        name(AccessedState::World),
        name(Flow::Input),
        name(Flow::Output),
        name(LoggedLocation::Register(Reg::R0)),
        name(LoggedLocation::Constant(0)),
        name(LoggedLocation::NonNull(Reg::R0)),
        name(LoggedLocation::Memory(Reg::R0)),
        name(Length::Fixed(0)),
        name(Length::Counted {
            count: Reg::R0,
            most: 0,
        }),
    ];
    for name in names {
        assert!(text.contains(&format!("`{name}`")), "{name}");
    }
    // The keys are those of the example, which this version knows.
    let [header, _] = blocks("json")[..] else {
        panic!("a header and an end");
    };
    let header: Header = serde_json::from_str(header).expect("a header");
    let schema = header.programs[0].schema.as_deref().expect("a schema");
    assert!(
        schema
            .iter()
            .all(|site| matches!(site, SchemaSite::Known(_)))
    );
    let site = serde_json::to_value(&schema[0]).expect("JSON");
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    for key in keys(&site) {
        assert!(text.contains(&format!("| `{key}` |")), "{key}");
    }
    for key in keys(&site["fields"][0]) {
        assert!(text.contains(&format!("| `fields[].{key}` |")), "{key}");
    }
}

#[test]
fn its_table_of_meanings_is_whole() {
    let mut found = Vec::new();
    for row in DOCUMENT.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let Ok(what) = serde_json::from_str::<What>(cells[1].trim_matches('`')) else {
            continue;
        };
        assert_eq!(cells[2], name(what.flow()), "{row}");
        found.push(what);
    }
    // A new meaning needs a row.
    let order = |what: &What| match what {
        What::Result => 0,
        What::Found => 1,
        What::Loaded => 2,
        What::Stored => 3,
        What::Operand => 4,
        What::Expected => 5,
        What::Old => 6,
        What::Argument(_) => 7,
        What::Given(_) => 8,
        What::Filled(_) => 9,
    };
    assert!(found.iter().map(order).eq(0..10), "{found:?}");
}

#[test]
fn its_tables_have_every_number() {
    for cause in Cause::ALL {
        let row = format!("| {} | {cause} |", *cause as u8);
        assert!(DOCUMENT.contains(&row), "{row}");
    }
    for source in OutputSource::ALL {
        let entry = format!("{} {source}", *source as u8);
        assert!(DOCUMENT.contains(&entry), "{entry}");
    }
    for contents in Contents::ALL {
        let entry = format!("{} {contents}", *contents as u8);
        assert!(DOCUMENT.contains(&entry), "{entry}");
    }
    for when in When::ALL {
        let entry = format!("{} {when}", *when as u8);
        assert!(DOCUMENT.contains(&entry), "{entry}");
    }
    let kinds = [
        (Kind::Header, "header"),
        (Kind::Firings, "firings"),
        (Kind::Entries, "map entries"),
        (Kind::MapReads, "maps that were read"),
        (Kind::Outputs, "outputs"),
        (Kind::Samples, "samples"),
        (Kind::Losses, "losses"),
        (Kind::Resources, "resources"),
        (Kind::End, "end"),
    ];
    for (kind, name) in kinds {
        let row = format!("| {} | {name} |", kind.number());
        assert!(DOCUMENT.contains(&row), "{row}");
    }
}

#[test]
fn its_table_of_a_firing_is_what_is_read() {
    let firing = Firing {
        program: 0x0101_0101,
        cpu: 0x0202_0202,
        depth: 0x0303,
        flags: FiringFlags::CAPPED,
        sequence: 0x0404_0404_0404_0404,
        time: 0x0505_0505_0505_0505,
        produced: 0x0606_0606_0606_0606,
        pid_tgid: 0x0707_0707_0707_0707,
        returned: 0x0808_0808_0808_0808,
        context: &[9; 5],
        log: &[10; 11],
    };
    let mut record = Vec::new();
    firing.write(&mut record);
    let text = DOCUMENT
        .split("### 2: a firing")
        .nth(1)
        .expect("the section");
    let text = text.split("The log is").next().expect("its head's table");
    let mut numbers = 0;
    for row in text.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (Ok(at), Ok(len)) = (cells[1].parse::<usize>(), cells[2].parse::<usize>()) else {
            continue;
        };
        let mut word = [0; 8];
        word[..len].copy_from_slice(&record[at..at + len]);
        let wanted = match cells[3] {
            "`program`" => firing.program.into(),
            "`cpu`" => firing.cpu.into(),
            "`depth`" => firing.depth.into(),
            "`flags`" => firing.flags.bits().into(),
            "`context_len`" => 5,
            "`log_len`" => 11,
            "`sequence`" => firing.sequence,
            "`time`" => firing.time,
            "`produced`" => firing.produced,
            "`pid_tgid`" => firing.pid_tgid,
            "`returned`" => firing.returned,
            other => panic!("no field of a firing: {other}"),
        };
        assert_eq!(u64::from_le_bytes(word), wanted, "{row}");
        numbers += 1;
    }
    assert_eq!(numbers, 11);
    assert_eq!(record[64..69], [9; 5]);
    assert_eq!(record[69..72], [0; 3]);
    assert_eq!(record[72..], [10; 11]);
    let flags = format!("{}: the log was too long", FiringFlags::OVERFLOW.bits());
    assert!(DOCUMENT.contains(&flags), "{flags}");
}
