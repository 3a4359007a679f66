//! Parses values of options that have a small language of their own.

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::arguments::OutputArguments;
use crate::cli::exit::Failure;
use crate::object::Object;
use crate::report::{Buckets, HistogramRule, RecordTypes};
use crate::vm::events::FieldValue;

/// Splits `NAME=VALUE` of an option.
pub(super) fn assignment<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    text.split_once('=').ok_or_else(|| {
        Failure::bad(format!(
            "{option} {text}: `=` and a value are missing: {option} {text}=…"
        ))
    })
}

/// Parses the value of a global variable: JSON, or a value as for `--set`.
pub(super) fn global_value(name: &str, text: &str) -> Result<Json, Failure> {
    if let Ok(json) = serde_json::from_str(text) {
        return Ok(json);
    }
    let value = FieldValue::parse(text)
        .map_err(|error| Failure::bad(format!("--global {name}={text}: {error}")))?;
    let number = |number: i128| match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => Json::from(number),
        (_, Ok(number)) => Json::from(number),
        _ => Json::from(number.to_string()),
    };
    Ok(match value {
        FieldValue::Int(value) => number(value),
        FieldValue::Text(text) => Json::from(text),
        FieldValue::Bytes(bytes) => Json::from(bytes),
        FieldValue::Ints(values) => values.into_iter().map(number).collect(),
    })
}

/// The `--hist` rules by map name.
pub(super) fn histogram_rules(
    output: &OutputArguments,
    object: &Object,
) -> Result<FxHashMap<String, HistogramRule>, Failure> {
    let rules = output.hist.iter().map(|option| {
        let (map, buckets) = option.split_once('=').unwrap_or((option, "log2"));
        let map = object.map(map)?.name.clone();
        Ok((map, buckets_of(option, buckets)?))
    });
    rules.collect()
}

fn buckets_of(option: &str, text: &str) -> Result<HistogramRule, Failure> {
    let linear = || {
        let (min, step) = text.split_once(':')?;
        let (min, step) = (min.parse().ok()?, step.parse().ok()?);
        (step > 0).then_some(Buckets::Linear { min, step })
    };
    Ok(match text {
        "none" => HistogramRule::Never,
        "log2" => HistogramRule::Always(Buckets::Log2),
        "hist" => HistogramRule::Always(Buckets::Hist),
        _ => HistogramRule::Always(linear().ok_or_else(|| {
            Failure::bad(format!(
                "--hist {option}: '{text}' is not log2, hist, none or MIN:STEP (0:100)"
            ))
        })?),
    })
}

/// The record types of an object, with those of `--record`.
pub(super) fn record_types(
    output: &OutputArguments,
    object: &Object,
) -> Result<RecordTypes, Failure> {
    let mut types = RecordTypes::new(object.btf(), object.maps());
    for option in &output.record {
        let (map, name) = assignment("--record", option)?;
        if !types.set(&object.map(map)?.name, name) {
            return Err(Failure::bad(format!(
                "--record {option}: the object's BTF has no type '{name}'; clang keeps a \
                 struct that a global variable or a map refers to"
            )));
        }
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_named_or_linear() {
        let rule = |text| buckets_of("m", text).ok();
        assert_eq!(rule("none"), Some(HistogramRule::Never));
        assert_eq!(rule("hist"), Some(HistogramRule::Always(Buckets::Hist)));
        let linear = Buckets::Linear { min: -5, step: 10 };
        assert_eq!(rule("-5:10"), Some(HistogramRule::Always(linear)));
        assert_eq!(rule("0:0"), None);
        assert_eq!(rule("log10"), None);
    }

    #[test]
    fn globals_take_json_and_more() {
        let value = |text| global_value("x", text).map(|json| json.to_string()).ok();
        assert_eq!(value("42").as_deref(), Some("42"));
        assert_eq!(value("-0x10").as_deref(), Some("-16"));
        assert_eq!(value("dd").as_deref(), Some("\"dd\""));
        assert_eq!(value("{\"low\": 1}").as_deref(), Some("{\"low\":1}"));
        assert_eq!(value("hex:0102").as_deref(), Some("[1,2]"));
        assert_eq!(value("[0x1, 2]").as_deref(), Some("[1,2]"));
        assert_eq!(value("12zz"), None);
    }
}
