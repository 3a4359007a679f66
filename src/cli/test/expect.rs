//! Compares what a test expects with what was found.

use std::net::Ipv4Addr;

use serde_json::{Map, Value as Json};

use crate::cli::map_values;
use crate::cli::symbols;
use crate::harness::{MapView, Vm};
use crate::report::map_value;
use crate::spec::MapType;
use crate::util::glob;

/// Any value.
const ANY: &str = "*";

/// The differences of a value, each with its place: `hist[12]: expected 2, found 1`.
///
/// Numbers may be written as names (`XDP_DROP`, `-ENOENT`) and as bounds (`>= 5`, `!= 0`). `*` in
/// texts stands for any text, and alone for any value. Members that are not listed are not
/// compared; lists are compared whole.
pub(super) fn differences(vm: &Vm, place: &str, expected: &Json, found: &Json) -> Vec<String> {
    let mut all = Vec::new();
    compare(vm, place, expected, found, &mut all);
    all
}

fn compare(vm: &Vm, place: &str, expected: &Json, found: &Json, all: &mut Vec<String>) {
    match (expected, found) {
        (Json::Object(members), Json::Object(there)) => {
            for (name, expected) in members {
                let place = format!("{place}.{name}");
                match there.get(name) {
                    Some(found) => compare(vm, &place, expected, found, all),
                    None => all.push(format!(
                        "{place}: no such member; there are {}",
                        names(there)
                    )),
                }
            }
        }
        (Json::Array(expected), Json::Array(found)) => {
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(vm, &format!("{place}[{number}]"), expected, found, all);
            }
            let (wanted, there) = (expected.len(), found.len());
            for (number, more) in found.iter().enumerate().skip(wanted) {
                all.push(format!("{place}[{number}]: not expected: {more}"));
            }
            for (number, missing) in expected.iter().enumerate().skip(there) {
                all.push(format!("{place}[{number}]: missing: {missing}"));
            }
        }
        _ if is_equal(vm, expected, found) => {}
        _ => all.push(format!(
            "{place}: expected {}, found {found}",
            in_words(expected)
        )),
    }
}

fn names(members: &Map<String, Json>) -> String {
    let names: Vec<_> = members.keys().map(String::as_str).collect();
    names.join(", ")
}

/// A bound without the quotes that a text has.
fn in_words(expected: &Json) -> String {
    match expected.as_str() {
        Some(text) if bound(text).is_some() => text.to_owned(),
        _ => expected.to_string(),
    }
}

fn is_equal(vm: &Vm, expected: &Json, found: &Json) -> bool {
    let address = |text: &str| {
        let address: Ipv4Addr = text.parse().ok()?;
        Some(i128::from(u32::from_le_bytes(address.octets())))
    };
    let named =
        |text: &str| symbols::value(text, |name| vm.enumerator(name)).or_else(|| address(text));
    let number = |value: &Json| match value {
        Json::String(text) => named(text),
        other => plain(other),
    };
    match (expected, found) {
        (Json::String(text), _) if text == ANY => true,
        (Json::String(text), _) if let Some((holds, limit)) = bound(text) => {
            let limit = named(limit);
            limit
                .zip(number(found))
                .is_some_and(|(limit, found)| holds(found, limit))
        }
        (Json::String(text), Json::String(found)) if glob(text, found) => true,
        (Json::String(_) | Json::Number(_) | Json::Bool(_), _) => {
            let expected = number(expected);
            expected.is_some() && expected == number(found)
        }
        _ => expected == found,
    }
}

/// A whole number; a truth value is 0 or 1.
fn plain(value: &Json) -> Option<i128> {
    match value {
        Json::Bool(value) => Some((*value).into()),
        Json::Number(number) => {
            let signed = number.as_i64().map(i128::from);
            signed.or_else(|| number.as_u64().map(i128::from))
        }
        _ => None,
    }
}

/// Whether a number that was found keeps to a limit.
type Holds = fn(i128, i128) -> bool;

/// `>= 5`: the comparison and the number's text.
fn bound(text: &str) -> Option<(Holds, &str)> {
    let rules: [(&str, Holds); 5] = [
        (">=", |found, limit| found >= limit),
        ("<=", |found, limit| found <= limit),
        ("!=", |found, limit| found != limit),
        (">", |found, limit| found > limit),
        ("<", |found, limit| found < limit),
    ];
    rules.into_iter().find_map(|(sign, holds)| {
        let limit = text.strip_prefix(sign)?.trim();
        (!limit.is_empty()).then_some((holds, limit))
    })
}

/// The differences of a return value: as 32 bits, with or without sign.
pub(super) fn of_return(vm: &Vm, place: &str, expected: &Json, returned: u32) -> Vec<String> {
    let signed = Json::from(returned.cast_signed());
    let as_signed = differences(vm, place, expected, &signed);
    match differences(vm, place, expected, &Json::from(returned)) {
        unsigned if as_signed.is_empty() || unsigned.is_empty() => Vec::new(),
        _ if returned.cast_signed() < 0 && returned.cast_signed() > -4096 => as_signed,
        unsigned => unsigned,
    }
}

/// The differences of a map's entries: an object of keys and values, or a list of entries with
/// `key` and `value`. Other entries may not be there, unless the key `*` says so; those of arrays
/// are zero. A number stands for the sum of a per-CPU value.
pub(super) fn of_map(vm: &Vm, map: &MapView<'_>, expected: &Json) -> Result<Vec<String>, String> {
    let def = map.def();
    let wanted = entries(expected)?;
    let is_open = wanted.iter().any(|(key, _)| key == ANY);
    let mut left = map.entries_bytes().map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for (key, expected) in wanted.iter().filter(|(key, _)| key != ANY) {
        let bytes = map_values::key_bytes(map, key).map_err(|why| format!("key {key}: {why}"))?;
        let place = format!("[{key}]");
        let Some(at) = left.iter().position(|(known, _)| *known == bytes) else {
            all.push(format!("{place}: missing: {}", in_words(expected)));
            continue;
        };
        let (_, value) = left.swap_remove(at);
        let mut value = map_value(def, map.btf(), &value).json().clone();
        if def.map_type.info().per_cpu
            && !expected.is_array()
            && let Some(sum) = sum(&value)
        {
            value = sum;
        }
        all.extend(differences(vm, &place, expected, &value));
    }
    let is_array = matches!(def.map_type, MapType::Array | MapType::PercpuArray);
    let is_zero = |value: &[u8]| is_array && value.iter().all(|byte| *byte == 0);
    for (key, value) in left.iter().filter(|(_, value)| !is_open && !is_zero(value)) {
        let key = crate::report::Datum::new(map.btf(), def.key_type, key);
        let value = map_value(def, map.btf(), value);
        all.push(format!("[{key}]: not expected: {value}"));
    }
    Ok(all)
}

fn sum(values: &Json) -> Option<Json> {
    let values = values.as_array()?.iter().map(plain);
    let sum = values.sum::<Option<i128>>()?;
    let unsigned = u64::try_from(sum).map(Json::from);
    unsigned
        .or_else(|_| i64::try_from(sum).map(Json::from))
        .ok()
}

/// The expected entries. Keys of an object are texts, which are read as on the command line.
fn entries(expected: &Json) -> Result<Vec<(Json, Json)>, String> {
    match expected {
        Json::Object(entries) => {
            let read = |(key, value): (&String, &Json)| {
                let key = match key.as_str() {
                    ANY => Json::from(ANY),
                    key => map_values::value(key)?,
                };
                Ok((key, value.clone()))
            };
            entries.iter().map(read).collect()
        }
        Json::Array(entries) => {
            let read =
                |entry: &Json| Some((entry.get("key")?.clone(), entry.get("value")?.clone()));
            let entries = entries.iter().map(read).collect::<Option<_>>();
            entries.ok_or_else(|| "expected entries with key and value".to_owned())
        }
        _ => Err("expected {KEY: VALUE}, or a list of entries with key and value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Object;

    fn vm() -> Vm {
        Vm::unverified(Object::open("tests/objects/named_states.bpf.o").unwrap()).unwrap()
    }

    #[test]
    fn equal_values_have_no_differences() {
        let vm = vm();
        for (expected, found) in [
            (json!(5), json!(5)),
            (json!(5), json!("STATE_BUSY")),
            (json!("STATE_BUSY"), json!(5)),
            (json!("-ENOENT"), json!(-2)),
            (json!(true), json!(1)),
            (json!(">= 5"), json!(5)),
            (json!("!= 0"), json!(7)),
            (json!("*"), json!({"a": 1})),
            (json!("bpf*"), json!("bpflab")),
            (json!({"a": 1}), json!({"a": 1, "ns": 100})),
            (json!([1, "*"]), json!([1, 2])),
        ] {
            assert_eq!(
                differences(&vm, "x", &expected, &found),
                [""; 0],
                "{expected}"
            );
        }
    }

    #[test]
    fn each_difference_has_its_place() {
        let vm = vm();
        let text = |expected, found| differences(&vm, "x", &expected, &found).join("; ");
        assert_eq!(text(json!(5), json!(6)), "x: expected 5, found 6");
        assert_eq!(text(json!("> 5"), json!(5)), "x: expected > 5, found 5");
        assert_eq!(
            text(json!("dd"), json!("cat")),
            r#"x: expected "dd", found "cat""#
        );
        assert_eq!(text(json!([1, 2]), json!([1])), "x[1]: missing: 2");
        assert_eq!(
            text(json!([]), json!([{"a": 1}])),
            r#"x[0]: not expected: {"a":1}"#
        );
        let nested = text(json!({"a": {"b": 1}}), json!({"a": {"b": 2, "c": 1}}));
        assert_eq!(nested, "x.a.b: expected 1, found 2");
        let member = text(json!({"pidd": 1}), json!({"pid": 1, "ns": 2}));
        assert_eq!(member, "x.pidd: no such member; there are pid, ns");
    }

    #[test]
    fn return_values_have_both_signs() {
        let vm = vm();
        let differ = |expected, returned| of_return(&vm, "p", &expected, returned);
        assert_eq!(differ(json!(-1), u32::MAX), [""; 0]);
        assert_eq!(differ(json!(u32::MAX), u32::MAX), [""; 0]);
        assert_eq!(differ(json!(0), u32::MAX), ["p: expected 0, found -1"]);
        assert_eq!(differ(json!(1), 2), ["p: expected 1, found 2"]);
    }

    #[test]
    fn entries_of_maps_are_compared_whole() {
        let vm = vm();
        map_values::set(&vm, "", "states=5=1").unwrap();
        map_values::set(&vm, "", "states=3=7").unwrap();
        let map = vm.map("states").unwrap();
        let differ = |expected| of_map(&vm, &map, &expected).unwrap();
        assert_eq!(differ(json!({"STATE_BUSY": 1, "3": "> 2"})), [""; 0]);
        assert_eq!(
            differ(json!([{"key": 5, "value": 1}, {"key": 3, "value": 7}])),
            [""; 0]
        );
        assert_eq!(differ(json!({"5": 1, "*": "*"})), [""; 0]);
        let texts = differ(json!({"5": 2, "4": 1}));
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert_eq!(texts[0], "[5]: expected 2, found 1");
        assert_eq!(texts[1], "[4]: missing: 1");
        assert!(texts[2].ends_with("not expected: 7"), "{texts:?}");
        assert!(of_map(&vm, &map, &json!(3)).is_err());
        let by_cpu = vm.map("by_cpu").unwrap();
        map_values::entry(&by_cpu, &json!(7), &json!([1, 2, 3, 4])).unwrap();
        assert_eq!(of_map(&vm, &by_cpu, &json!({"7": 10})).unwrap(), [""; 0]);
        assert_eq!(
            of_map(&vm, &by_cpu, &json!({"7": [1, 2, 3, 4]})).unwrap(),
            [""; 0]
        );
    }
}
