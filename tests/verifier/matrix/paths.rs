//! Two paths that leave different things in a register or slot, and what is done with it where they
//! meet. There is a checkpoint at every place that may have one, so verdict and count say which
//! state subsumes which, and what is precise.

use std::sync::Arc;

use bpflab::program::MapDef;
use bpflab::spec::{MapType, ProgFlags};

use super::Case;
use super::pointers::types;
use super::text::{map_address, value_address};

/// What a path leaves, by name, and the code.
type Thing = (&'static str, String);

fn maps() -> Arc<[MapDef]> {
    Arc::new([
        MapDef::new("array", MapType::Array, 4, 32, 4),
        MapDef::new("bytes", MapType::Array, 4, 32, 1),
    ])
}

/// What is left in r6. r8 is a number of 32 bits.
fn in_register() -> Vec<Thing> {
    let thing = |name, code: &str| (name, format!("{code}\n"));
    let value = value_address(6, 1);
    let look_up = format!("{}r2 = r10\nr2 += -64\ncall 1\n", map_address(1, 0));
    let packet = |len: u32| {
        format!(
            "r6 = *(u32 *)(r9 +76)\nr1 = *(u32 *)(r9 +80)\nr2 = r6\nr2 += {len}\n\
             if r2 > r1 goto out\n"
        )
    };
    vec![
        thing("nothing", ""),
        thing("0", "r6 = 0"),
        thing("5", "r6 = 5"),
        thing("-1", "r6 = -1"),
        thing("2^32", "r6 = 4294967296 ll"),
        thing("a number", "r6 = r8"),
        thing("its low half", "w6 = w8"),
        thing("the number after it", "r6 = r8\nr6 += 1"),
        thing("the number after it, by 32 bits", "r6 = r8\nw6 += 1"),
        thing("another number", "r6 = *(u64 *)(r10 -56)"),
        thing("up to 7", "r6 = r8\nr6 &= 7"),
        thing("up to 31", "r6 = r8\nr6 &= 31"),
        thing("8 to 15", "r6 = r8\nr6 &= 7\nr6 += 8"),
        thing("odd, up to 15", "r6 = r8\nr6 &= 15\nr6 |= 1"),
        thing("-4 to 3", "r6 = r8\nr6 <<= 61\nr6 s>>= 61"),
        thing("context", "r6 = r9"),
        thing("stack", "r6 = r10\nr6 += -56"),
        thing("stack, 8 before", "r6 = r10\nr6 += -64"),
        thing("value", &value),
        thing("value, 24 behind", &format!("{value}r6 += 24")),
        thing(
            "value, up to 7 behind",
            &format!("{value}r1 = r8\nr1 &= 7\nr6 += r1"),
        ),
        thing("value or null", &format!("{look_up}r6 = r0")),
        thing(
            "value that was looked up",
            &format!("{look_up}if r0 == 0 goto out\nr6 = r0"),
        ),
        thing(
            "null instead of a value",
            &format!("{look_up}r6 = 0\nif r0 != 0 goto out\nr6 = r0"),
        ),
        thing("packet of 8", &packet(8)),
        thing("packet of 24", &packet(24)),
    ]
}

/// What is done with r6.
fn uses_of_register() -> Vec<Thing> {
    let use_of = |name, code: &str| (name, format!("{code}\n"));
    let index = format!("{}r1 += r6\nr0 = *(u8 *)(r1 +0)", value_address(1, 1));
    vec![
        use_of("ignore it", "r6 = 0"),
        use_of("return it", "r0 = r6\nif r8 != 5 goto end"),
        use_of("offset", &index),
        use_of("offset up to 31", &format!("if r6 > 31 goto out\n{index}")),
        use_of(
            "offset, the number up to 31",
            &format!("if r8 > 31 goto out\n{index}"),
        ),
        use_of("load", "r0 = *(u8 *)(r6 +7)"),
        use_of(
            "load unless null",
            "if r6 == 0 goto out\nr0 = *(u64 *)(r6 +0)",
        ),
        use_of("store", "*(u64 *)(r6 +0) = r8"),
        use_of(
            "decide",
            &format!(
                "if r6 == 0 goto out\nif r6 == 5 goto out\n{}r0 = *(u8 *)(r1 +32)",
                value_address(1, 1)
            ),
        ),
        use_of(
            "remainder as an offset",
            &format!("r6 %= 3\nif r6 > 31 goto out\n{index}"),
        ),
        use_of(
            "offset after a slot",
            &format!("*(u64 *)(r10 -8) = r6\nr6 = 0\nr6 = *(u64 *)(r10 -8)\n{index}"),
        ),
        use_of(
            "size of memory",
            "r1 = r10\nr1 += -64\nr2 = r6\nr3 = 0\ncall 113",
        ),
        use_of(
            "offset after a loop",
            &format!("r7 = 3\nagain:\nr7 += -1\nif r7 != 0 goto again\n{index}"),
        ),
    ]
}

/// What is left in the slot at -8.
fn in_slot() -> Vec<Thing> {
    let thing = |name, code: &str| (name, format!("{code}\n"));
    let store = |size: u32, at: i32, what: &str| format!("*(u{size} *)(r10 {at}) = {what}\n");
    let bytes = |what: &str| -> String { (-8..0).map(|at| store(8, at, what)).collect() };
    vec![
        thing("nothing", ""),
        thing("0", &store(64, -8, "0")),
        thing("5", &store(64, -8, "5")),
        thing("zeros, one by one", &bytes("0")),
        thing("bytes", &bytes("r8")),
        thing("a number", &store(64, -8, "r8")),
        thing("its low half", &store(32, -8, "r8")),
        thing(
            "up to 7",
            &format!("r1 = r8\nr1 &= 7\n{}", store(64, -8, "r1")),
        ),
        thing(
            "low half and zeros",
            &format!("{}{}", store(32, -4, "0"), store(32, -8, "r8")),
        ),
        thing(
            "a number, one byte of it 0",
            &format!("{}{}", store(64, -8, "r8"), store(8, -1, "0")),
        ),
        thing("32 bits of zeros", &store(32, -8, "0")),
        thing("32 bits of zeros at the end", &store(32, -4, "0")),
        thing("stack", &store(64, -8, "r10")),
        thing(
            "value",
            &format!("{}{}", value_address(1, 1), store(64, -8, "r1")),
        ),
    ]
}

/// What is done with the slot.
fn uses_of_slot() -> Vec<Thing> {
    let index = format!("{}r1 += r6\nr0 = *(u8 *)(r1 +0)\n", value_address(1, 1));
    let mut all = vec![("ignore it", String::new())];
    for (name, load) in [
        ("u64", "r6 = *(u64 *)(r10 -8)\n"),
        ("u32", "r6 = *(u32 *)(r10 -8)\n"),
        ("u32 at 4", "r6 = *(u32 *)(r10 -4)\n"),
        ("u8", "r6 = *(u8 *)(r10 -8)\n"),
        ("u8 at 7", "r6 = *(u8 *)(r10 -1)\n"),
        ("s32", "r6 = *(s32 *)(r10 -8)\n"),
    ] {
        all.push((name, format!("{load}{index}")));
    }
    let helper = |call: &str| format!("{}r2 = r10\nr2 += -8\n{call}", map_address(1, 0));
    let moved = "r1 = r8\nr1 &= 4\nr1 += r10\n";
    all.extend([
        (
            "load through it",
            "r6 = *(u64 *)(r10 -8)\nr0 = *(u64 *)(r6 +0)\n".into(),
        ),
        ("key", helper("call 1\n")),
        (
            "load by a number",
            format!("{moved}r6 = *(u32 *)(r1 -8)\n{index}"),
        ),
        (
            "store by a number, then load",
            format!("{moved}*(u32 *)(r1 -8) = 0\nr6 = *(u64 *)(r10 -8)\n{index}"),
        ),
        (
            "fill by a helper, then load",
            format!("r1 = r10\nr1 += -8\nr2 = 8\nr3 = 0\ncall 113\nr6 = *(u64 *)(r10 -8)\n{index}"),
        ),
    ]);
    all
}

/// r9 is the context, r8 a number of 32 bits, r7 another one.
const BEGIN: &str = "r9 = r1\n*(u64 *)(r10 -64) = 0\ncall 7\nr8 = r0\ncall 7\nr7 = r0\n\
    r1 = *(u64 *)(r9 +152)\n*(u64 *)(r10 -56) = r1\nif r7 == 3 goto second\n";
const END: &str = "out:\nr0 = 0\nend:\nexit\n";

pub fn cases() -> Vec<Case> {
    let (types, maps) = (types(), maps());
    let mut cases = Vec::new();
    for (place, things, uses) in [
        ("register", in_register(), uses_of_register()),
        ("slot", in_slot(), uses_of_slot()),
    ] {
        for (one, first) in &things {
            for (other, second) in &things {
                for (what, code) in &uses {
                    let name = format!("{place}: {one} or {other}: {what}");
                    let text =
                        format!("{BEGIN}{first}goto both\nsecond:\n{second}both:\n{code}{END}");
                    let mut program = types.program(&name, &text, &maps);
                    program.flags |= ProgFlags::TEST_STATE_FREQ;
                    cases.push(Case { name, program });
                }
            }
        }
    }
    cases
}
