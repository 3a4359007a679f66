//! Parses values of options that have a small language of their own.

use rustc_hash::FxHashMap;

use super::arguments::OutputArguments;
use crate::cli::exit::Failure;
use crate::cli::input::assignment;
use crate::object::Object;
use crate::report::{Buckets, HistogramRule, RecordTypes};

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
pub(in crate::cli) fn record_types(
    options: &[String],
    object: &Object,
) -> Result<RecordTypes, Failure> {
    let mut types = RecordTypes::new(object.btf(), object.maps());
    for option in options {
        let (map, name) = assignment("--record", option)?;
        if !types.set(&object.map(map)?.name, name) {
            return Err(Failure::bad(format!(
                "--record {option}: the object's BTF has no type '{name}'; clang keeps a \
                 struct that a global variable refers to: add `struct {name} *{name}_type \
                 __attribute__((unused));` to the C source"
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
}
