//! Invalid files: errors with section and offset.

use bpflab::Object;
use bpflab::object::{ErrorLocation, Problem};

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/objects/{name}.bpf.o",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn error(bytes: &[u8]) -> String {
    Object::parse("x.o", bytes).unwrap_err().to_string()
}

fn with(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// The 8-byte number at an offset.
fn word(bytes: &[u8], at: usize) -> usize {
    let number = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    usize::try_from(number).unwrap()
}

/// The file offset of the header of the section of this name.
fn header_of(bytes: &[u8], wanted: &str) -> usize {
    let word = |at: usize| word(bytes, at);
    let half = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (table, count, names) = (word(0x28), half(0x3c), half(0x3e));
    let strings = word(table + names * 64 + 24);
    (0..count)
        .map(|index| table + index * 64)
        .find(|&at| {
            let name = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            bytes[strings + name..].starts_with(format!("{wanted}\0").as_bytes())
        })
        .unwrap()
}

#[test]
fn what_is_no_bpf_object_says_what_it_is() {
    let good = bytes("globals");
    assert!(error(b"").contains("not an ELF file (it is empty)"));
    assert!(error(b"#!/bin/sh").contains("it begins with 23 21 2f 62"));
    assert!(error(&good[..20]).contains("truncated: an ELF header takes 64 bytes"));
    assert!(error(&with(good.clone(), 4, &[1])).contains("a 32-bit ELF file"));
    assert!(error(&with(good.clone(), 4, &[9])).contains("unknown ELF class 9"));
    assert!(
        error(&bytes("build_variants.big_endian"))
            .contains("big-endian object; compile it with -target bpfel")
    );
    assert!(error(&with(good.clone(), 0x12, &[62, 0])).contains("machine 62 (X86_64)"));
    let text = error(&with(good.clone(), 0x10, &[2, 0]));
    assert!(
        text.contains("ELF type EXEC") && text.contains("offset 0x10"),
        "{text}"
    );
    assert!(
        error(&bytes("build_variants.no_btf")).contains("section '.maps', offset 0x0: needs BTF")
    );
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(error(&own).contains("ELF type"));
    let missing = Object::open("/nowhere/x.o").unwrap_err();
    assert!(
        matches!(missing.problem(), Problem::Unreadable(_)),
        "{missing}"
    );
}

#[test]
fn every_beginning_of_a_file_is_an_error() {
    let good = bytes("globals");
    for len in 0..good.len() {
        let error = Object::parse("x", &good[..len]).unwrap_err();
        assert_ne!(*error.place(), ErrorLocation::Object, "{len}: {error}");
    }
}

#[test]
fn broken_tables_name_section_and_offset() {
    let good = bytes("globals");
    let text_of = |section: &str, field: usize, value: u64| {
        let at = header_of(&good, section) + field;
        error(&with(good.clone(), at, &value.to_le_bytes()))
    };
    let text = text_of(".data", 24, 1 << 40);
    assert!(
        text.contains("section '.data'") && text.contains("file offset 0x10000000000"),
        "{text}"
    );
    let text = text_of(".symtab", 56, 23);
    assert!(
        text.contains("section '.symtab'") && text.contains("a symbol takes 24"),
        "{text}"
    );
    let text = text_of(".relraw_tp/sys_enter", 32, 17);
    assert!(
        text.contains("section '.relraw_tp/sys_enter'")
            && text.contains("17 bytes in entries of 16"),
        "{text}"
    );
    let text = text_of("raw_tp/sys_enter", 32, 15);
    assert!(text.contains("'raw_tp/sys_enter'"), "{text}");
    let text = text_of(".data", 8, 0x800 | 3);
    assert!(
        text.contains("section '.data', offset 0x0: compressed"),
        "{text}"
    );
    let text = text_of(".data", 48, 3);
    assert!(text.contains("alignment 3"), "{text}");
    // More section headers than fit in the file.
    assert!(error(&with(good.clone(), 0x3c, &[0xff, 0xfe])).contains("65279 section headers"));
}

#[test]
fn a_broken_program_does_not_hide_the_others() {
    let good = bytes("tail_calls");
    // One instruction refers to the license in place of `jumps`.
    let word = |at: usize| word(&good, at);
    let symbols = word(header_of(&good, ".symtab") + 24);
    let strings = word(header_of(&good, ".strtab") + 24);
    let symbol = |name: &str| {
        let is = |index: &usize| {
            let at = symbols + index * 24;
            let offset = u32::from_le_bytes(good[at..at + 4].try_into().unwrap()) as usize;
            good[strings + offset..].starts_with(format!("{name}\0").as_bytes())
        };
        u32::try_from((1usize..).find(is).unwrap()).unwrap()
    };
    let table = word(header_of(&good, ".relraw_tp/sys_enter") + 24);
    let entry = (table..)
        .step_by(16)
        .find(|&at| good[at + 12..at + 16] == symbol("jumps").to_le_bytes());
    let broken = with(
        good.clone(),
        entry.unwrap() + 12,
        &symbol("LICENSE").to_le_bytes(),
    );
    let object = Object::parse("tail_calls.bpf.o", &broken).unwrap();
    let (fine, bad): (Vec<_>, Vec<_>) = object.programs().partition(Result::is_ok);
    assert_eq!((fine.len(), bad.len()), (3, 1));
    let text = bad[0].as_ref().unwrap_err().to_string();
    for part in [
        "tail_calls.bpf.o: program 'again' (section 'raw_tp/sys_enter', offset 0x",
        "tail_calls.bpf.c:",
        "bpf_tail_call(ctx, &jumps, 2);",
        "refers to 'LICENSE' in section 'license', which is neither code, maps nor data",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn damaged_types_are_an_error_where_they_are_needed_and_a_note_elsewhere() {
    let damage = |name: &str| {
        let good = bytes(name);
        let at = header_of(&good, ".BTF") + 24;
        let start = word(&good, at);
        Object::parse("x.o", &with(good, start, &[0]))
    };
    let text = damage("map_kinds").unwrap_err().to_string();
    assert!(text.contains("section '.BTF', offset 0x0"), "{text}");
    let object = damage("programs_in_section").unwrap();
    assert_eq!(object.notes()[0].section, ".BTF");
    assert_eq!(object.programs().flatten().count(), 3);
}
