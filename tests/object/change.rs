//! Changes between opening an object and building its programs.

use bpflab::Object;
use bpflab::object::Target;
use bpflab::spec::{MapFlags, MapType};

fn open(name: &str) -> Object {
    let path = format!("{}/tests/objects/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    let mut object = Object::open(path).unwrap();
    object.set_target(Target::Own);
    object
}

#[test]
fn type_size_and_entries_of_a_map_are_changed() {
    let mut object = open("map_kinds");
    let mut map = object.map_mut("entries").unwrap();
    map.set_type(MapType::LruHash).set_flags(MapFlags::empty());
    map.set_max_entries(7).unwrap();
    object
        .map_mut("records")
        .unwrap()
        .set_max_entries(5000)
        .unwrap();
    object
        .map_mut("sizes_only")
        .unwrap()
        .set_value_size(24)
        .unwrap();
    object
        .map_mut("entries")
        .unwrap()
        .set_value_size(40)
        .unwrap();
    let program = object.program("use_maps").unwrap();
    let map = |name: &str| program.maps.iter().find(|map| map.name == name).unwrap();
    assert_eq!(map("entries").map_type, MapType::LruHash);
    assert_eq!(map("entries").max_entries, 7);
    assert_eq!(map("entries").value_type, None, "the type has another size");
    assert_eq!(map("records").max_entries, 8192, "a power of two of pages");
    assert_eq!(map("sizes_only").value_size, 24);
}

#[test]
fn the_last_array_of_a_section_grows() {
    let mut object = open("globals");
    let text = object
        .map_mut("globals.bss")
        .unwrap()
        .set_max_entries(2)
        .map(|_| ())
        .unwrap_err();
    assert!(text.to_string().contains("global data has one"), "{text}");
    let before = object.map(".bss").unwrap().value_size;
    let last = object
        .globals()
        .iter()
        .filter(|g| object.maps()[g.map.index()].name == "globals.bss");
    let last = last.max_by_key(|global| global.offset).unwrap().clone();
    object
        .map_mut(".bss")
        .unwrap()
        .set_value_size(before + 16)
        .unwrap();
    let grown = object
        .globals()
        .iter()
        .find(|global| global.name == last.name)
        .unwrap();
    assert_eq!(grown.size, last.size + 16);
    let map = object.map(".bss").unwrap();
    assert_eq!(map.value_size, before + 16);
    if last.name == "by_cpu" {
        object.set_global("by_cpu[7]", 3).unwrap();
        assert!(object.map(".bss").unwrap().value_type.is_some());
    } else {
        assert_eq!(map.value_type, None, "no array that could grow");
    }
    assert!(object.map_mut(".bss").unwrap().set_value_size(1).is_err());
}

#[test]
fn one_map_of_two_objects() {
    let (mut one, mut other) = (open("map_kinds"), open("map_kinds"));
    let mut map = one.map_mut("per_cpu").unwrap();
    map.set_max_entries(9).unwrap();
    let token = map.share();
    let shared = one.map("per_cpu").unwrap().clone();
    other
        .map_mut("per_cpu")
        .unwrap()
        .reuse(&shared, &token)
        .unwrap();
    let reused = other.map("per_cpu").unwrap();
    assert_eq!(reused.shared, shared.shared);
    assert_eq!(reused.max_entries, 9, "the other map's");
    let error = other
        .map_mut("entries")
        .unwrap()
        .reuse(&shared, &token)
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("map 'entries'"), "{error}");
}

#[test]
fn a_map_that_is_not_made_poisons_its_references() {
    let mut object = open("tail_calls");
    object.map_mut("jumps").unwrap().set_autocreate(false);
    let index = object
        .maps()
        .iter()
        .position(|map| map.name == "jumps")
        .unwrap();
    let program = object.program("to_last").unwrap();
    let poison = 2_001_000_000 + i32::try_from(index).unwrap();
    let poisoned = program
        .insns
        .iter()
        .filter(|insn| insn.opcode == 0x85 && insn.imm == poison);
    assert_eq!(poisoned.count(), 2, "both slots");
}

#[test]
fn an_initial_value_is_replaced_whole() {
    let mut object = open("globals");
    let size = object.map(".data.tagged").unwrap().value_size as usize;
    let value: Vec<u8> = (5..).take(size).collect();
    object
        .map_mut(".data.tagged")
        .unwrap()
        .set_initial_value(&value)
        .unwrap();
    assert_eq!(object.global("tagged[1]").unwrap(), 6);
    assert!(
        object
            .map_mut(".data.tagged")
            .unwrap()
            .set_initial_value(&[0])
            .is_err()
    );
    let mut object = open("map_kinds");
    assert!(
        object
            .map_mut("entries")
            .unwrap()
            .set_initial_value(&[0; 32])
            .is_err()
    );
}
