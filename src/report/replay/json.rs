//! The parts of a report as JSON.

use std::slice;

use serde_json::{Value as Json, json};

use super::words::{argument, likely_cause, part};
use crate::compare::replay::{
    Different, Finding, FirstDifference, Gap, Instruction, MapReport, MapVerdict, OutputReport,
    OutputVerdict, ProgramReport, Verdict,
};
use crate::harness::{EngineKind, Fallback};
use crate::report::datum::hex;

pub(in crate::report) fn program_json(program: &ProgramReport) -> Json {
    let (difference, why) = match &program.verdict {
        Verdict::Different(first) => (difference_json(first), None),
        Verdict::OrderUnknown(why) | Verdict::Incomplete(why) => (Json::Null, Some(why.clone())),
        Verdict::NotCompared(why) => (Json::Null, Some(why.to_string())),
        Verdict::Equal(_) => (Json::Null, None),
    };
    json!({
        "program": program.name,
        "engine": program.engine.map(EngineKind::name),
        "engine_why": program.engine_why,
        "fallback": program.fallback.map(Fallback::name),
        "verdict": program.verdict.word().key(),
        "firings": program.firings,
        "led_to": program.led_to,
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
            ..
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
        "maps": match &first.what {
            Different::Found { maps, .. } => json!(maps),
            _ => Json::Null,
        },
    })
}

pub(in crate::report) fn map_json(map: &MapReport) -> Json {
    let mut row = json!({ "map": map.name, "verdict": map.verdict.word().key() });
    let more = match &map.verdict {
        MapVerdict::Equal(entries) => json!({ "entries": entries }),
        MapVerdict::Different {
            key,
            expected,
            got,
            entries,
            is_outside,
        } => json!({
            "key": hex(key),
            "expected": hex_or_null(expected.as_ref()),
            "got": hex_or_null(got.as_ref()),
            "differing": entries,
            "cause": is_outside.then(|| likely_cause(slice::from_ref(&map.name))),
        }),
        MapVerdict::OrderUnknown { why, differing } => {
            json!({ "why": why, "differing": differing })
        }
        MapVerdict::NotCompared(why) => json!({ "why": why }),
    };
    extend(&mut row, more);
    row
}

pub(in crate::report) fn output_json(output: &OutputReport) -> Json {
    let mut row = json!({
        "output": output.name,
        "verdict": output.verdict.word().key(),
        "recorded": output.recorded,
        "replayed": output.replayed,
    });
    let more = match &output.verdict {
        OutputVerdict::Equal(_) => json!({}),
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

pub(in crate::report) fn finding_json(finding: &Finding) -> Json {
    let fields = finding
        .fields
        .iter()
        .map(|field| json!({ "name": field.name, "expected": field.expected, "got": field.got }));
    json!({
        "part": finding.part,
        "fields": fields.collect::<Vec<_>>(),
    })
}

pub(in crate::report) fn gap_json(gap: &Gap) -> Json {
    json!({ (gap.kind): gap.name, "why": gap.why })
}

fn extend(row: &mut Json, more: Json) {
    if let (Json::Object(row), Json::Object(more)) = (row, more) {
        row.extend(more);
    }
}

fn hex_or_null(bytes: Option<&Vec<u8>>) -> Json {
    bytes.map_or(Json::Null, |bytes| hex(bytes).into())
}
