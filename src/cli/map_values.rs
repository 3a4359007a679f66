//! Contents of maps, written as `bpftool map dump` prints them, or as `KEY=VALUE`.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value as Json;

use super::exit::Failure;
use super::files::read_text;
use super::symbols;
use crate::harness::{MapView, Vm};
use crate::object::{Object, plain_number};
use crate::program::{MapDef, MapOrigin};
use crate::spec::UpdateFlags;
use crate::util::TypeId;
use crate::vm::events::FieldValue;

/// Parses a value of the command line: JSON, or a value as for `--set`.
pub(super) fn value(text: &str) -> Result<Json, String> {
    if let Ok(json) = serde_json::from_str(text) {
        return Ok(json);
    }
    let value = FieldValue::parse(text).map_err(|error| format!("{text}: {error}"))?;
    Ok(match value {
        FieldValue::Int(value) => number(value),
        FieldValue::Text(text) => Json::from(text),
        FieldValue::Bytes(bytes) => Json::from(bytes),
        FieldValue::Ints(values) => values.into_iter().map(number).collect(),
    })
}

fn number(number: i128) -> Json {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => Json::from(number),
        (_, Ok(number)) => Json::from(number),
        _ => Json::from(number.to_string()),
    }
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
/// CPUs. Their bytes are taken where there are any, otherwise what is `formatted` by BTF.
pub(super) fn fill(map: &MapView<'_>, dump: &Json) -> Result<(), String> {
    let form = "expected a list of entries such as {\"key\": 1, \"value\": 2}, as `bpftool map \
                dump -j` prints them";
    let entries = dump.as_array().ok_or(form)?;
    for (number, element) in entries.iter().enumerate() {
        let in_entry = |error: String| format!("entry {number}: {error}");
        let element = match element.get("formatted") {
            Some(formatted) if !has_bytes(element) => formatted,
            _ => element,
        };
        // The only entry of global data has no key where it is formatted.
        let first = Json::from(0);
        let key = element.get("key").unwrap_or(match map.def().origin {
            MapOrigin::Section(_) => &first,
            _ => &Json::Null,
        });
        let value = match (element.get("value"), element.get("values")) {
            (Some(value), _) => value.clone(),
            (None, Some(values)) => of_cpus(map, values).map_err(in_entry)?,
            (None, None) => return Err(in_entry(form.to_owned())),
        };
        entry(map, key, &value).map_err(in_entry)?;
    }
    Ok(())
}

/// Whether an entry of a dump has its bytes.
fn has_bytes(element: &Json) -> bool {
    let of_cpu = |values: &Json| hexadecimal(values.get(0)?.get("value")?);
    let value = element.get("value").and_then(hexadecimal);
    value.or_else(|| of_cpu(element.get("values")?)).is_some()
}

/// The values of `[{"cpu": 0, "value": …}, …]` in the order of the CPUs.
fn of_cpus(map: &MapView<'_>, values: &Json) -> Result<Json, String> {
    let cpu = |value: &Json| Some((value.get("cpu")?.as_u64()?, value.get("value")?.clone()));
    let known = values.as_array().map(|all| all.iter().map(cpu).collect());
    let mut known: Vec<_> = known
        .flatten()
        .ok_or("expected values such as {\"cpu\": 0, \"value\": 1}")?;
    known.sort_by_key(|(cpu, _)| *cpu);
    let (given, here) = (known.len(), cpus(map));
    if given != here {
        return Err(format!(
            "values of {given} CPUs: there are {here}; run with --cpus {given}"
        ));
    }
    Ok(known.into_iter().map(|(_, value)| value).collect())
}

/// Room for one CPU's value.
fn stride(map: &MapView<'_>) -> usize {
    (map.def().value_size as usize).next_multiple_of(8).max(8)
}

/// The number of CPUs that a per-CPU map has values of.
fn cpus(map: &MapView<'_>) -> usize {
    map.raw().user_value_size() / stride(map)
}

/// Sets the constants of an object from a dump of their map: the bytes, or the variables that
/// bpftool prints by BTF (`{"value": {".rodata": [{"name": value}, …]}}`).
pub(super) fn set_rodata(object: &mut Object, dump: &Json) -> Result<(), String> {
    const SECTION: &str = ".rodata";
    let element = dump.get(0).unwrap_or(dump);
    let bytes = element.get("value").and_then(hexadecimal);
    let formatted = element.get("formatted").unwrap_or(element);
    if let Some(bytes) = bytes {
        let is_it =
            |map: &&MapDef| matches!(&map.origin, MapOrigin::Section(name) if name == SECTION);
        let size = object.maps().iter().find(is_it).map(|map| map.value_size);
        if let Some(size) = size.filter(|size| *size as usize != bytes.len()) {
            let found = bytes.len();
            return Err(format!(
                "the dump has {found} bytes, {SECTION} of the object has {size}: it is of another \
                 build; variables by their names (bpftool map dump, without -j) fit any"
            ));
        }
        let set = object.set_data(SECTION, &bytes);
        return set.map_err(|error| error.to_string());
    }
    let variables = formatted
        .get("value")
        .and_then(|value| value.get(SECTION)?.as_array());
    let variables = variables.ok_or(
        "expected the only entry of the map of .rodata, as `bpftool map dump -j` prints it",
    )?;
    for (name, value) in variables.iter().filter_map(Json::as_object).flatten() {
        let set = object.set_global(name, value.clone());
        set.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Sets a global variable to a value of the command line.
pub(super) fn set_global(object: &mut Object, name: &str, text: &str) -> Result<(), Failure> {
    let value = value(text).map_err(|error| Failure::bad(format!("--global {name}={error}")))?;
    set_global_json(object, name, value)
}

/// Sets a global variable; a text may be the name of an enumerator.
pub(super) fn set_global_json(object: &mut Object, name: &str, value: Json) -> Result<(), Failure> {
    let Err(refused) = object.set_global(name, value.clone()) else {
        return Ok(());
    };
    let named = |text| symbols::value(text, |name| Some(object.btf()?.enumerator(name)?.1.value()));
    let set = match value.as_str().and_then(named) {
        Some(named) => object.set_global(name, number(named)),
        None => Err(refused),
    };
    Ok(set?)
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
        let (room, cpus) = (stride(map), cpus(map));
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

/// The bytes of a key.
pub(super) fn key_bytes(map: &MapView<'_>, key: &Json) -> Result<Vec<u8>, String> {
    bytes(map, map.def().key_type, map.def().key_size, key)
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
    let encode = |value: &Json, bytes: &mut [u8]| match (map.btf(), ty) {
        (Some(btf), Some(ty)) => btf
            .encode_into(ty, &variables(value), bytes)
            .map_err(|error| error.to_string()),
        _ => plain_number(value, bytes),
    };
    let Err(refused) = encode(value, &mut bytes) else {
        return Ok(bytes);
    };
    let named = |text| symbols::value(text, |name| Some(map.btf()?.enumerator(name)?.1.value()));
    let named = value.as_str().and_then(named).ok_or(refused)?;
    bytes.fill(0);
    encode(&number(named), &mut bytes)?;
    Ok(bytes)
}

/// A section's variables as bpftool prints them, `{".data": [{"name": value}, …]}`, as an object
/// of their names; other values as they are.
fn variables(value: &Json) -> Cow<'_, Json> {
    let section = value.as_object().filter(|section| section.len() == 1);
    let listed = section.and_then(|section| {
        let (name, listed) = section.iter().next()?;
        listed.as_array().filter(|_| name.starts_with('.'))
    });
    match listed {
        Some(listed) => {
            let all = listed.iter().filter_map(Json::as_object).flatten();
            let all = all.map(|(name, value)| (name.clone(), value.clone()));
            Cow::Owned(Json::Object(all.collect()))
        }
        None => Cow::Borrowed(value),
    }
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
    fn bytes_of_a_dump_come_before_what_is_formatted() {
        let vm = vm("past_the_end");
        let map = vm.map("hist").unwrap();
        let both = json!([{"key": ["0x05", "0x00", "0x00", "0x00"],
                           "value": ["0x02", "0x00", "0x00", "0x00", "0x00", "0x00", "0x00", "0x00"],
                           "formatted": {"key": 5, "value": 3}}]);
        fill(&map, &both).unwrap();
        assert_eq!(map.get::<u32, u64>(&5).unwrap(), Some(2));
    }

    #[test]
    fn values_of_cpus_and_of_sections_are_read() {
        let vm = vm("named_states");
        let map = vm.map("by_cpu").unwrap();
        let of = |count: u32| -> Json {
            (0..count)
                .map(|cpu| json!({"cpu": cpu, "value": 10 + cpu}))
                .collect()
        };
        fill(&map, &json!([{"formatted": {"key": 7, "values": of(4)}}])).unwrap();
        let found = map.get_per_cpu::<u32, u32>(&7).unwrap();
        assert_eq!(found, Some(vec![10, 11, 12, 13]));
        let error = fill(&map, &json!([{"key": 7, "values": of(2)}])).unwrap_err();
        assert_eq!(
            error,
            "entry 0: values of 2 CPUs: there are 4; run with --cpus 2"
        );
        let bss = vm.maps().find(|map| map.def().name.ends_with(".bss"));
        let bss = bss.unwrap();
        let dump = json!([{"formatted": {"value": {".bss": [{"others": 9}]}}}]);
        fill(&bss, &dump).unwrap();
        assert_eq!(bss.get::<u32, u64>(&0).unwrap(), Some(9));
    }

    #[test]
    fn names_are_numbers() {
        let mut object = Object::open("tests/objects/named_states.bpf.o").unwrap();
        // `wanted` is an enum, `others` a number.
        set_global(&mut object, "wanted", "STATE_BUSY").unwrap();
        assert_eq!(object.global("wanted").unwrap(), "STATE_BUSY");
        set_global(&mut object, "others", "STATE_IDLE|O_RDWR|0o10").unwrap();
        assert_eq!(object.global("others").unwrap(), 3 | 2 | 8);
        assert!(set_global(&mut object, "others", "STATE_BUZY").is_err());
        let vm = vm("named_states");
        set(&vm, "--map-set", "states=STATE_BUSY=-ENOENT").unwrap_err();
        set(&vm, "--map-set", "states=STATE_BUSY=ENOENT").unwrap();
        let map = vm.map("states").unwrap();
        assert_eq!(map.get::<u32, u64>(&5).unwrap(), Some(2));
    }

    #[test]
    fn constants_of_another_build_are_refused() {
        let mut object = Object::open("tests/objects/named_states.bpf.o").unwrap();
        let mut set = |dump| set_rodata(&mut object, &dump);
        set(json!([{"key": ["0x00"], "value": ["0x05", "0x00", "0x00", "0x00"]}])).unwrap();
        let error = set(json!([{"value": ["0x05", "0x00"]}])).unwrap_err();
        assert!(error.starts_with("the dump has 2 bytes, .rodata of the object has 4"));
        set(json!([{"formatted": {"value": {".rodata": [{"wanted": "STATE_IDLE"}]}}}])).unwrap();
        assert_eq!(object.global("wanted").unwrap(), "STATE_IDLE");
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
