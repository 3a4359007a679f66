//! Contents of maps, written as `bpftool map dump` prints them, or as `KEY=VALUE`.

use std::path::Path;

use serde_json::Value as Json;

use super::exit::Failure;
use super::files::read_text;
use crate::harness::{MapView, Vm};
use crate::object::{Object, plain_number};
use crate::spec::UpdateFlags;
use crate::util::TypeId;
use crate::vm::events::FieldValue;

/// Parses a value of the command line: JSON, or a value as for `--set`.
pub(super) fn value(text: &str) -> Result<Json, String> {
    if let Ok(json) = serde_json::from_str(text) {
        return Ok(json);
    }
    let value = FieldValue::parse(text).map_err(|error| format!("{text}: {error}"))?;
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

/// Sets entries of a map by an option `MAP=FILE.json` or `MAP=KEY=VALUE`.
pub(super) fn set(vm: &Vm, option: &str, given: &str) -> Result<(), Failure> {
    let wrong = |text: String| Failure::bad(format!("{option} {given}: {text}"));
    let (map, contents) = given
        .split_once('=')
        .ok_or_else(|| wrong("expected MAP=FILE.json or MAP=KEY=VALUE".to_owned()))?;
    let map = vm.map(map)?;
    let file = Path::new(contents);
    let is_file = file
        .extension()
        .is_some_and(|extension| extension == "json")
        || file.is_file();
    if is_file {
        let json = serde_json::from_str(&read_text(file)?)
            .map_err(|error| wrong(format!("invalid JSON: {error}")))?;
        return fill(&map, &json).map_err(wrong);
    }
    let (key, contents) = contents
        .split_once('=')
        .ok_or_else(|| wrong(format!("'{contents}' is neither a file nor KEY=VALUE")))?;
    let (key, contents) = (value(key).map_err(wrong)?, value(contents).map_err(wrong)?);
    entry(&map, &key, &contents).map_err(wrong)
}

/// Sets the entries of a dump: a list of objects with `key` and `value`, or with `values` of
/// CPUs. With `formatted` beside them, that is taken.
pub(super) fn fill(map: &MapView<'_>, dump: &Json) -> Result<(), String> {
    let form = "expected a list of entries such as {\"key\": 1, \"value\": 2}, as `bpftool map \
                dump -j` prints them";
    let entries = dump.as_array().ok_or(form)?;
    for (number, element) in entries.iter().enumerate() {
        let element = element.get("formatted").unwrap_or(element);
        let key = element.get("key").unwrap_or(&Json::Null);
        let value = match (element.get("value"), element.get("values")) {
            (Some(value), _) => value.clone(),
            (None, Some(values)) => of_cpus(values).ok_or(form)?,
            (None, None) => return Err(format!("entry {number}: {form}")),
        };
        entry(map, key, &value).map_err(|error| format!("entry {number}: {error}"))?;
    }
    Ok(())
}

/// The values of `[{"cpu": 0, "value": …}, …]` in the order of the CPUs.
fn of_cpus(values: &Json) -> Option<Json> {
    let mut known = Vec::new();
    for value in values.as_array()? {
        known.push((value.get("cpu")?.as_u64()?, value.get("value")?.clone()));
    }
    known.sort_by_key(|(cpu, _)| *cpu);
    Some(known.into_iter().map(|(_, value)| value).collect())
}

/// Sets the constants of an object from a dump of their map: the bytes, or the variables that
/// bpftool prints by BTF (`{"value": {".rodata": [{"name": value}, …]}}`).
pub(super) fn set_rodata(object: &mut Object, dump: &Json) -> Result<(), String> {
    const SECTION: &str = ".rodata";
    let element = dump.get(0).unwrap_or(dump);
    let value = element.get("value");
    if let Some(bytes) = value.and_then(hexadecimal) {
        let set = object.set_data(SECTION, &bytes);
        return set.map_err(|error| error.to_string());
    }
    let variables = value.and_then(|value| value.get(SECTION)?.as_array());
    let variables = variables.ok_or(
        "expected the only entry of the map of .rodata, as `bpftool map dump -j` prints it",
    )?;
    for (name, value) in variables.iter().filter_map(Json::as_object).flatten() {
        let set = object.set_global(name, value.clone());
        set.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Sets an entry. The value of a per-CPU map is a list of all CPUs' values, or one that CPU 0
/// gets while the others get zeros.
pub(super) fn entry(map: &MapView<'_>, key: &Json, value: &Json) -> Result<(), String> {
    let def = map.def();
    let key = match (key, def.key_size) {
        (Json::Null, 0) => Vec::new(),
        (key, size) => bytes(map, def.key_type, size, key).map_err(|why| format!("key: {why}"))?,
    };
    let one = |value: &Json| bytes(map, def.value_type, def.value_size, value);
    let value = if def.map_type.info().per_cpu {
        let room = (def.value_size as usize).next_multiple_of(8).max(8);
        let cpus = map.raw().user_value_size() / room;
        let values = match value {
            Json::Array(values) if values.len() == cpus && hexadecimal(value).is_none() => {
                values.iter().map(one).collect::<Result<Vec<_>, _>>()
            }
            value => one(value).map(|value| vec![value]),
        };
        let mut all = vec![0; cpus * room];
        let values = values.map_err(|why| format!("value: {why}"))?;
        for (to, value) in all.chunks_mut(room).zip(values) {
            to.iter_mut().zip(value).for_each(|(to, from)| *to = from);
        }
        all
    } else {
        one(value).map_err(|why| format!("value: {why}"))?
    };
    map.set_bytes(&key, &value, UpdateFlags::empty())
        .map_err(|error| error.to_string())
}

/// The bytes of a key or a value: by its type, or of `["0x01", …]`.
fn bytes(
    map: &MapView<'_>,
    ty: Option<TypeId>,
    size: u32,
    value: &Json,
) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; size as usize];
    if let Some(given) = hexadecimal(value) {
        if given.len() != bytes.len() {
            return Err(format!("{} bytes; it has {size}", given.len()));
        }
        return Ok(given);
    }
    match (map.btf(), ty) {
        (Some(btf), Some(ty)) => btf
            .encode_into(ty, value, &mut bytes)
            .map_err(|error| error.to_string())?,
        _ => plain_number(value, &mut bytes)?,
    }
    Ok(bytes)
}

/// Bytes as bpftool prints them: `["0x01","0xff"]`.
fn hexadecimal(value: &Json) -> Option<Vec<u8>> {
    let byte = |value: &Json| {
        let digits = value.as_str()?.strip_prefix("0x")?;
        u8::from_str_radix(digits, 16).ok()
    };
    let values = value.as_array().filter(|values| !values.is_empty())?;
    values.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vm(object: &str) -> Vm {
        let object = Object::open(format!("tests/objects/{object}.bpf.o")).unwrap();
        Vm::unverified(object).unwrap()
    }

    #[test]
    fn values_of_the_command_line_are_json_and_more() {
        let text = |text| value(text).map(|json| json.to_string()).ok();
        assert_eq!(text("42").as_deref(), Some("42"));
        assert_eq!(text("-0x10").as_deref(), Some("-16"));
        assert_eq!(text("dd").as_deref(), Some("\"dd\""));
        assert_eq!(text("{\"low\": 1}").as_deref(), Some("{\"low\":1}"));
        assert_eq!(text("hex:0102").as_deref(), Some("[1,2]"));
        assert_eq!(text("[0x1, 2]").as_deref(), Some("[1,2]"));
        assert_eq!(text("12zz"), None);
    }

    #[test]
    fn both_forms_of_bpftool_are_read() {
        let vm = vm("past_the_end");
        let map = vm.map("hist").unwrap();
        let raw = json!([{"key": ["0x02", "0x00", "0x00", "0x00"],
                          "value": ["0x01", "0x01", "0x00", "0x00", "0x00", "0x00", "0x00", "0x00"]}]);
        fill(&map, &raw).unwrap();
        assert_eq!(map.get::<u32, u64>(&2).unwrap(), Some(257));
        let formatted = json!([{"key": ["0xff"], "formatted": {"key": 3, "value": 5}}]);
        fill(&map, &formatted).unwrap();
        assert_eq!(map.get::<u32, u64>(&3).unwrap(), Some(5));
        set(&vm, "--map-set", "hist=4=0x10").unwrap();
        assert_eq!(map.get::<u32, u64>(&4).unwrap(), Some(16));
    }

    #[test]
    fn what_is_no_entry_is_said() {
        let vm = vm("past_the_end");
        let map = vm.map("hist").unwrap();
        let error = |dump| fill(&map, &dump).unwrap_err();
        assert!(error(json!({})).starts_with("expected a list of entries"));
        assert!(error(json!([{"key": 1}])).starts_with("entry 0: expected"));
        assert!(error(json!([{"key": ["0x1"], "value": 1}])).contains("1 bytes; it has 4"));
        assert!(error(json!([{"key": "x", "value": 1}])).starts_with("entry 0: key: "));
        let failed = set(&vm, "--map-set", "hist=4").unwrap_err();
        assert!(format!("{failed:?}").contains("neither a file nor KEY=VALUE"));
    }
}
