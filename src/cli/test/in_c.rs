//! Tests in C, beside the programs: `include/bpflab/test.h`.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::suite::{DATA, Expect, PACKET, Setup, Suite, Test};
use crate::btf::{Btf, Kind, Type};
use crate::cli::exit::Failure;
use crate::cli::map_values;
use crate::object::Object;

/// The header.
pub(super) const HEADER: &str = include_str!("../../../include/bpflab/test.h");

/// The declaration tags of tests and of their events, which have a number: `1:args[2]=7`.
const TEST: &str = "bpflab:test";
const EVENT: &str = "bpflab:event:";

/// The tests of an object; none if it has no such programs.
pub(super) fn suite(file: &Path, object: &Object) -> Result<Option<Suite>, Failure> {
    let Some(btf) = object.btf() else {
        return Ok(None);
    };
    let functions = btf.own_types().filter(|ty| ty.kind() == Kind::Func);
    let is_test = |function: &Type<'_>| btf.decl_tags(function.id()).any(|tag| tag.name() == TEST);
    let tests: Vec<_> = functions.filter(is_test).collect();
    if tests.is_empty() {
        return Ok(None);
    }
    let programs = object.entries().iter().filter(|entry| {
        let is_test = tests.iter().any(|test| test.name() == entry.name());
        entry.autoload() && !is_test
    });
    let programs: Vec<_> = programs.map(|entry| entry.name().to_owned()).collect();
    let tests = tests.iter().map(|function| {
        let events = events(btf, function)
            .map_err(|error| Failure::bad(format!("test '{}': {error}", function.name())))?;
        Ok(Test {
            name: function.name().to_owned(),
            programs: programs.clone(),
            setup: Setup::default(),
            events,
            expect: Expect::default(),
            recording: None,
            check: Some(function.name().to_owned()),
        })
    });
    Ok(Some(Suite {
        object: file.to_owned(),
        setup: Setup::default(),
        tests: tests.collect::<Result<_, Failure>>()?,
        folder: file.parent().map(Path::to_owned).unwrap_or_default(),
    }))
}

fn events(btf: &Btf, function: &Type<'_>) -> Result<Vec<Map<String, Json>>, String> {
    let numbered = |tag: Type<'_>| {
        let (number, event) = tag.name().strip_prefix(EVENT)?.split_once(':')?;
        Some((number.parse::<u32>().ok()?, event.to_owned()))
    };
    let mut events: Vec<_> = btf.decl_tags(function.id()).filter_map(numbered).collect();
    events.sort_unstable();
    let read = |(number, text): &(u32, String)| {
        fields(text).map_err(|error| format!("event {number}: {error}"))
    };
    events.iter().map(read).collect()
}

/// The fields of `args[2]=7, @comm="a, b"`.
fn fields(text: &str) -> Result<Map<String, Json>, String> {
    let mut fields = Map::new();
    for given in split(text) {
        let (name, value) = given
            .split_once('=')
            .ok_or_else(|| format!("'{given}' is no FIELD=VALUE"))?;
        let (name, value) = (name.trim(), value.trim());
        // Bytes that happen to be digits are no number.
        let value = match name == DATA || name == PACKET || value.starts_with("hex:") {
            true => Json::from(value),
            false => map_values::value(value)?,
        };
        fields.insert(name.to_owned(), value);
    }
    Ok(fields)
}

/// The parts between commas, which may stand in quotes and brackets, too.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut in_quotes, mut first) = (0_u32, false, 0);
    let mut parts = Vec::new();
    for (at, sign) in text.char_indices() {
        match sign {
            '"' => in_quotes = !in_quotes,
            '[' | '{' if !in_quotes => depth += 1,
            ']' | '}' if !in_quotes => depth = depth.saturating_sub(1),
            ',' if !in_quotes && depth == 0 => {
                parts.push(&text[first..at]);
                first = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[first..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separated_by_commas() {
        let json = |text| Json::Object(fields(text).unwrap()).to_string();
        assert_eq!(
            json(r#"args[2]=0x10, @comm="a, b", list=[1, 2], file=/bin/ls"#),
            r#"{"args[2]":16,"@comm":"a, b","list":[1,2],"file":"/bin/ls"}"#
        );
        assert_eq!(
            json("@data=0102, x=hex:01"),
            r#"{"@data":"0102","x":"hex:01"}"#
        );
        assert_eq!(json(""), "{}");
        assert_eq!(fields("size").unwrap_err(), "'size' is no FIELD=VALUE");
    }

    #[test]
    fn tests_are_functions_with_a_tag() {
        let file = Path::new("tests/objects/tests_in_c.bpf.o");
        let object = Object::open(file).unwrap();
        let suite = suite(file, &object).unwrap().unwrap();
        let names: Vec<_> = suite.tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        let test = &suite.tests[0];
        assert_eq!(test.programs, ["on_write"]);
        assert_eq!(test.events.len(), 3);
        assert_eq!(test.events[1]["args[2]"], 16);
        let without = Object::open("examples/bpf/write_hist.bpf.o").unwrap();
        assert!(super::suite(file, &without).unwrap().is_none());
    }
}
