use proptest::prelude::*;
use serde_json::json;

use super::super::{Array, Btf, Builder, Encoding, Enumerator, Kind, Linkage, Member, Variable};
use super::*;
use crate::util::TypeId;

fn member(name: &str, ty: TypeId, bit_offset: u32) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    }
}

/// A struct with one member of each kind, 64 bytes long.
fn sample() -> (Btf, TypeId) {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let u8_ = b.int("unsigned char", 1, Encoding::Unsigned);
    let u64_ = b.int("unsigned long", 8, Encoding::Unsigned);
    let char = b.int("char", 1, Encoding::Signed);
    let bool_ = b.int("_Bool", 1, Encoding::Bool);
    let double = b.float("double", 8);
    let ptr = b.ptr(TypeId(0));
    let comm = b.array(Array {
        element: char,
        index: int,
        len: 8,
    });
    let pair = b.array(Array {
        element: u8_,
        index: int,
        len: 2,
    });
    let pairs = b.array(Array {
        element: pair,
        index: int,
        len: 2,
    });
    let value = |name, number: i64| Enumerator {
        name,
        bits: number.cast_unsigned(),
        signed: true,
    };
    let color = b.enumeration("color", 4, true, &[value("RED", -1), value("BLUE", 2)]);
    let either = b.union("", 8, &[member("whole", u64_, 0), member("first", u8_, 0)]);
    let bits = |name, bit_offset, width| Member {
        name,
        ty: int,
        bit_offset,
        bitfield: Some(width),
    };
    let flags = b.structure("flags", 4, &[bits("low", 0, 3), bits("high", 3, 29)]);
    let root = b.structure(
        "sample",
        64,
        &[
            member("id", int, 0),
            member("yes", bool_, 32),
            member("letter", char, 40),
            member("comm", comm, 64),
            member("ptr", ptr, 128),
            member("", either, 192),
            member("pairs", pairs, 256),
            member("color", color, 288),
            member("ratio", double, 320),
            member("flags", flags, 384),
            member("tiny", u8_, 416),
        ],
    );
    let var = b.variable("state", root, Linkage::Global);
    b.section(
        ".data",
        72,
        &[Variable {
            ty: var,
            offset: 8,
            size: 64,
        }],
    );
    (b.build().unwrap(), root)
}

fn full() -> Json {
    json!({
        "id": -7, "yes": true, "letter": "x", "comm": "dd", "ptr": 4096, "whole": 511,
        "first": 255, "pairs": [[1, 2], [3, 4]], "color": "BLUE", "ratio": 0.5,
        "flags": {"low": -1, "high": 5}, "tiny": 200,
    })
}

#[test]
fn json_goes_into_bytes_and_comes_out_again() {
    let (btf, root) = sample();
    let bytes = btf.encode(root, &full()).unwrap();
    let value = btf.decode(root, &bytes).unwrap();
    assert_eq!(value.to_json(), full());
    assert_eq!(
        value.to_string(),
        "{id: -7, yes: true, letter: 'x', comm: \"dd\", ptr: 0x1000, {whole: 511, first: 255}, \
         pairs: [[1, 2], [3, 4]], color: BLUE, ratio: 0.5, flags: {low: -1, high: 5}, tiny: 200}"
    );
    assert_eq!(bytes[48..52], (5u32 << 3 | 7).to_le_bytes());
}

#[test]
fn a_section_is_an_object_of_its_variables() {
    let (btf, root) = sample();
    let data = btf.find(".data", Kind::Datasec).unwrap().id();
    let bytes = btf.encode(data, &json!({"state": full()})).unwrap();
    assert_eq!(bytes[8..], btf.encode(root, &full()).unwrap());
    assert_eq!(
        btf.decode(data, &bytes).unwrap().to_json()["state"]["comm"],
        "dd"
    );
}

#[test]
fn single_fields_are_set_by_path() {
    let (btf, root) = sample();
    let mut bytes = vec![0; 64];
    btf.set(root, "pairs[1][0]", &json!("0x2a"), &mut bytes)
        .unwrap();
    btf.set(root, "flags.high", &json!(1), &mut bytes).unwrap();
    btf.set(root, "color", &json!("-1"), &mut bytes).unwrap();
    btf.set(root, "letter", &json!("'a'"), &mut bytes).unwrap();
    let value = btf.decode(root, &bytes).unwrap().to_json();
    assert_eq!(value["pairs"], json!([[0, 0], [42, 0]]));
    assert_eq!(
        (&value["flags"]["high"], &value["color"]),
        (&json!(1), &json!("RED"))
    );
    assert_eq!(value["letter"], "a");
    let error = |path, value| {
        btf.set(root, path, &value, &mut [0; 64])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("flags.low", json!(4)),
        "flags.low: 4 doesn't fit int (-4 to 3)"
    );
    assert!(error("nothing", json!(4)).contains("has no member `nothing`"));
}

#[test]
fn errors_name_the_place() {
    let (btf, root) = sample();
    let error = |value| btf.encode(root, &value).unwrap_err().to_string();
    assert_eq!(
        error(json!({"pairs": [[1, 300]]})),
        "pairs[0][1]: 300 doesn't fit unsigned char (0 to 255)"
    );
    assert_eq!(
        error(json!({"comm": "123456789"})),
        "comm: 9 elements don't fit an array of 8"
    );
    assert_eq!(
        error(json!({"color": "PINK"})),
        "color: enum color has no value `PINK`; it has RED, BLUE"
    );
    assert_eq!(
        error(json!({"flags": {"x": 1}})),
        "flags: struct flags has no member `x`"
    );
    assert_eq!(
        error(json!({"flags": 3})),
        "flags: 3 can't be a value of type struct flags; an object of member names expected"
    );
    let short = btf.decode(root, &[0; 5]).unwrap_err();
    assert_eq!(short.to_string(), "letter: 6 bytes wanted, 5 given");
}

#[test]
fn text_without_an_end_is_an_array() {
    let (btf, root) = sample();
    let bytes = btf.encode(root, &json!({"comm": "12345678"})).unwrap();
    let value = btf.decode(root, &bytes).unwrap().to_json();
    assert_eq!(
        value["comm"],
        json!(["1", "2", "3", "4", "5", "6", "7", "8"])
    );
    let bytes = btf.encode(root, &json!({"comm": "a\u{1}"})).unwrap();
    assert_eq!(
        btf.decode(root, &bytes).unwrap().to_json()["comm"][1],
        "\\x01"
    );
}

#[test]
fn endless_types_end() {
    let mut b = Builder::new();
    let empty = b.structure("empty", 0, &[]);
    let many = b.array(Array {
        element: empty,
        index: empty,
        len: u32::MAX,
    });
    let mut twice = empty;
    for _ in 0..60 {
        twice = b.union("u", 0, &[member("a", twice, 0), member("b", twice, 0)]);
    }
    let btf = b.build().unwrap();
    assert_eq!(btf.decode(many, &[]).unwrap(), Value::Array(Vec::new()));
    assert!(matches!(
        btf.decode(twice, &[]),
        Err(ValueError {
            problem: ValueProblem::TooLarge,
            ..
        })
    ));
}

proptest! {
    #[test]
    fn bytes_decode_and_encode_to_themselves(bytes in prop::collection::vec(any::<u8>(), 64)) {
        let (btf, root) = sample();
        let value = btf.decode(root, &bytes).unwrap();
        let mut json = value.to_json();
        // JSON has no NaN, and a boolean only two values.
        let object = json.as_object_mut().unwrap();
        for name in ["ratio", "yes", "letter", "comm"] {
            object.remove(name);
        }
        let again = btf.encode(root, &json).unwrap();
        let rest = |bytes: &[u8]| [&bytes[..4], &bytes[16..40], &bytes[48..53]].concat();
        prop_assert_eq!(rest(&again), rest(&bytes));
    }
}

#[test]
fn addresses_are_in_network_order() {
    let mut types = Builder::new();
    let word = types.int("unsigned int", 4, Encoding::Unsigned);
    let number = types.int("int", 4, Encoding::Signed);
    let btf = types.build().unwrap();
    let address = json!("10.0.0.1");
    assert_eq!(btf.encode(word, &address).unwrap(), [10, 0, 0, 1]);
    assert!(btf.encode(word, &json!("10.0.0")).is_err());
    // Of a signed number nobody would say so.
    assert!(btf.encode(number, &json!("200.0.0.200")).is_err());
}
