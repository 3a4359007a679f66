//! Texts of Linux 6.18 for such types (`tests/library/formatting.rs` compares with a running kernel).

use super::*;
use crate::btf::{Array, Builder, Enumerator};

/// Memory with one object.
struct Object {
    at: u64,
    bytes: Vec<u8>,
}

impl Memory for Object {
    fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let from = at.checked_sub(self.at).ok_or(Errno::EFAULT)?;
        let from = usize::try_from(from).map_err(|_| Errno::EFAULT)?;
        let bytes = self.bytes.get(from..).and_then(|rest| rest.get(..len));
        bytes.map(<[u8]>::to_vec).ok_or(Errno::EFAULT)
    }

    fn hashed(&self, _: u64) -> String {
        "hash".into()
    }
}

fn member(name: &'static str, ty: TypeId, bit_offset: u32) -> Member<'static> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    }
}

/// A struct with all kinds of members, 64 bytes long.
fn everything() -> (Btf, TypeId) {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let byte = b.int("unsigned char", 1, Encoding::Unsigned);
    let u32_ = b.typedef("u32", int);
    let pair = b.structure("pair", 8, &[member("a", int, 0), member("b", u32_, 32)]);
    let pairs = b.array(Array {
        element: pair,
        index: int,
        len: 2,
    });
    let either = b.union("", 4, &[member("number", int, 0), member("byte", byte, 0)]);
    let pointer = b.ptr(pair);
    let pointers = b.array(Array {
        element: pointer,
        index: int,
        len: 2,
    });
    let named = |name, bits| Enumerator {
        name,
        bits,
        signed: false,
    };
    let colors = [named("RED", 0), named("BLUE", 2)];
    let color = b.enumeration("color", 4, false, &colors);
    let bits = Member {
        bitfield: Some(3),
        ..member("bits", int, 322)
    };
    let all = b.structure(
        "all",
        64,
        &[
            member("first", pair, 0),
            member("pairs", pairs, 64),
            member("", either, 192),
            member("pointer", pointer, 256),
            bits,
            member("color", color, 352),
            member("pointers", pointers, 384),
        ],
    );
    (b.build().unwrap(), all)
}

fn shown(bytes: &[(usize, u8)], flags: ShowFlags) -> Shown {
    let (btf, all) = everything();
    let mut object = Object {
        at: 0x1000,
        bytes: vec![0; 64],
    };
    for (at, byte) in bytes {
        object.bytes[*at] = *byte;
    }
    show(&btf, all, 0x1000, flags, &mut object)
}

fn text(bytes: &[(usize, u8)], flags: ShowFlags) -> String {
    let shown = shown(bytes, flags);
    assert_eq!(shown.status, Ok(()));
    String::from_utf8(shown.text).unwrap()
}

#[test]
fn only_what_is_not_zero_is_shown() {
    let compact = ShowFlags::COMPACT;
    // A zero enumerator is shown by its name.
    assert_eq!(
        text(&[], compact),
        "(struct all){.color = (enum color)RED,}"
    );
    assert_eq!(
        text(&[(4, 7), (44, 2)], compact),
        "(struct all){.first = (struct pair){.b = (u32)7,},.color = (enum color)BLUE,}"
    );
    assert_eq!(
        text(&[(40, 0x14), (44, 9)], compact),
        "(struct all){.bits = (int)0x5,.color = (enum color)9,}"
    );
    assert_eq!(
        text(&[(24, 1)], compact | ShowFlags::NONAME),
        "{{1,1,},RED,}"
    );
}

#[test]
fn elements_have_no_names_and_pointers_repeat() {
    let compact = ShowFlags::COMPACT;
    assert_eq!(
        text(&[(16, 5)], compact),
        "(struct all){.pairs = (struct pair[])[5,},],.color = (enum color)RED,}"
    );
    assert_eq!(
        text(&[(48, 5), (56, 6)], compact | ShowFlags::PTR_RAW),
        "(struct all){.color = (enum color)RED,\
         .pointers = (struct pair *[])0x0000000000000005,0x0000000000000005,],}"
    );
    assert_eq!(
        text(&[(32, 5)], compact),
        "(struct all){.pointer = (struct pair *)0xhash,.color = (enum color)RED,}"
    );
}

#[test]
fn lines_are_indented() {
    assert_eq!(
        text(&[(0, 1)], ShowFlags::empty()),
        "(struct all){\n .first = (struct pair){\n  .a = (int)1,\n },\n \
         .color = (enum color)RED,\n}\n"
    );
}

#[test]
fn what_can_not_be_read_is_told() {
    let (btf, all) = everything();
    let mut object = Object {
        at: 0x1000,
        bytes: vec![1; 40],
    };
    let flags = ShowFlags::COMPACT;
    let nowhere = show(&btf, all, 0, flags, &mut object);
    assert_eq!(
        (nowhere.text, nowhere.status),
        (Vec::new(), Err(Errno::EFAULT))
    );
    // The first 32 bytes are readable, the rest only partly.
    let partly = show(&btf, all, 0x1000, flags, &mut object);
    assert_eq!(partly.status, Err(Errno::EFAULT));
    assert!(
        partly
            .text
            .starts_with(b"(struct all){.first = (struct pair){.a = (int)16843009,")
    );
}
