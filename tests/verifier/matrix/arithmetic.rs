//! Arithmetic and comparisons with pointers of all kinds, each followed by a load.

use bpflab::spec::ProgType;
use bpflab::spec::limits::MAX_VAR_OFFSET;

use super::Case;
use super::pointers::{BEGIN, END, NUMBER, Pointer, maps, pointers, types};
use super::text::value_address;

/// What is done with the pointer in r6, before one byte at it is loaded. r7 is a number of at most
/// 255, r8 the same pointer.
fn operations() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, code: &str| all.push((name.to_owned(), format!("{code}\n")));
    let limit = MAX_VAR_OFFSET;
    for (name, by) in [
        ("the limit - 1", limit - 1),
        ("the limit", limit),
        ("-(the limit - 1)", 1 - limit),
        ("-limit", -limit),
        ("2^31", 1 << 31),
        ("2^32", 1 << 32),
        ("i64::MIN", i64::MIN),
    ] {
        // In a register, since some have more than 32 bits.
        let constant = format!("r1 = {by} ll\n");
        add(
            &format!("add {name}"),
            &format!("{constant}r6 += r1\nr6 -= r1"),
        );
        add(&format!("subtract {name}"), &format!("{constant}r6 -= r1"));
        let sum = format!("{constant}r7 += r1\nr6 += r7");
        add(&format!("add a number and {name}"), &sum);
    }
    let below = limit - 1;
    add(
        "add the limit - 1 twice",
        &format!("r6 += {below}\nr6 += {below}\nr6 -= {below}\nr6 -= {below}"),
    );
    add(
        "add a number of up to 2^29 - 1, twice",
        "r7 <<= 21\nr6 += r7\nr6 += r7\nr6 -= r7",
    );
    for (name, code) in [
        ("nothing", ""),
        ("up to 7", "r7 &= 7\n"),
        ("1 to 7", "r7 &= 7\nr7 |= 1\n"),
        ("0 or 8", "r7 &= 8\n"),
        ("0 or 16", "r7 &= 16\n"),
        ("-8 to 7", "r7 <<= 56\nr7 s>>= 60\n"),
        ("-8 to -1", "r7 <<= 56\nr7 s>>= 60\nif r7 s>= 0 goto out\n"),
        ("without bounds", "r7 *= r7\nr7 <<= 50\nr7 ^= r9\n"),
        ("without a minimum", "r7 <<= 56\n"),
    ] {
        add(&format!("add {name}"), &format!("{code}r6 += r7"));
        add(&format!("subtract {name}"), &format!("{code}r6 -= r7"));
        add(
            &format!("go back by {name}"),
            &format!("{code}r6 += 8\nr6 -= r7"),
        );
        add(
            &format!("add to {name}"),
            &format!("{code}r7 += r6\nr6 = r7"),
        );
    }
    add("subtract from a number", "r7 -= r6\nr6 = r7");
    add("subtract from zero", "r7 = 0\nr7 -= r6\nr6 = r7");
    for op in [
        "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "s>>=",
    ] {
        add(&format!("{op} 1"), &format!("r6 {op} 1"));
        add(&format!("{op} a number"), &format!("r6 {op} r7"));
        add(&format!("{op} itself"), &format!("r6 {op} r8"));
        add(&format!("32 bits {op} 1"), &format!("w6 {op} 1"));
        add(&format!("32 bits {op} a number"), &format!("w6 {op} w7"));
        add(
            &format!("32 bits, a number {op} it"),
            &format!("w7 {op} w6\nr6 = r7"),
        );
        add(&format!("{op} the stack"), &format!("r6 {op} r10"));
    }
    for code in [
        "r6 = -r6",
        "w6 = w6",
        "r6 = (s8)r6",
        "r6 = (s32)r6",
        "w6 = (s16)w6",
        "r6 = be64 r6",
        "r6 = bswap32 r6",
    ] {
        add(code, code);
    }
    for op in [
        "==", "!=", ">", ">=", "<", "<=", "s>", "s>=", "s<", "s<=", "&",
    ] {
        for (name, right) in [
            ("0", "0"),
            ("1", "1"),
            ("a number", "r7"),
            ("itself", "r8"),
            ("the stack", "r10"),
        ] {
            // The pointer is used on both ways, or on one.
            add(
                &format!("compare {op} {name}"),
                &format!("if r6 {op} {right} goto out\nr1 = *(u8 *)(r6 +0)"),
            );
            add(
                &format!("compare {op} {name}, go there"),
                &format!("if r6 {op} {right} goto use\ngoto out\nuse:"),
            );
        }
        // One may be null, the other is not.
        let value = value_address(1, 4);
        add(
            &format!("compare {op} a value, go there"),
            &format!("{value}if r6 {op} r1 goto use\ngoto out\nuse:"),
        );
        add(
            &format!("compare a value {op} it"),
            &format!("{value}if r1 {op} r6 goto out"),
        );
        add(
            &format!("compare a number {op} it"),
            &format!("if r7 {op} r6 goto out"),
        );
        // Not with 0: docs/findings.md says what Linux makes of that.
        add(
            &format!("compare 32 bits {op} 1"),
            &format!("if w6 {op} 1 goto out"),
        );
    }
    all
}

pub fn cases() -> Vec<Case> {
    let (types, maps) = (types(), maps());
    let mut cases = Vec::new();
    for Pointer {
        name,
        prog_type,
        code,
        release,
        ..
    } in &pointers()
    {
        let number = match prog_type {
            ProgType::FlowDissector => "r8 = r6\nr7 = *(u64 *)(r9 +144)\nr7 = *(u8 *)(r7 +0)\n",
            _ => NUMBER,
        };
        for (operation, text) in operations() {
            let text = format!("{BEGIN}{code}{number}{text}r0 = *(u8 *)(r6 +0)\n{release}{END}");
            let name = format!("{name}: {operation}");
            let mut program = types.program(&name, &text, &maps);
            program.prog_type = *prog_type;
            cases.push(Case { name, program });
        }
    }
    cases
}
