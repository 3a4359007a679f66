//! Locks and timers in map values: every short sequence of operations, judged by us and by
//! the running kernel.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared::here;

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::btf::{Array, Btf, Builder, Encoding, Member};
use bpflab::isa::{RawInsn, assemble};
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::util::TypeId;
use bpflab::verifier::{Options, Verdict, verify};

/// The offsets of the fields in the value.
const LOCK: i32 = 4;
const TIMER: i32 = 8;

/// The operations: `r6` and `r7` are values of the first map, `r8` is any number below
/// eight. `MAP` with a number loads the address of that map into `r2`.
const STEPS: &[&str] = &[
    "r1 = r6\nr1 += 4\ncall 93",
    "r1 = r6\nr1 += 4\ncall 94",
    "r1 = r7\nr1 += 4\ncall 93",
    "r1 = r7\nr1 += 4\ncall 94",
    "r1 = r6\ncall 93",
    "r1 = r6\nr1 += r8\ncall 93",
    "r1 = r9\nr1 += 4\ncall 93",
    "r1 = r9\nr1 += 4\ncall 94",
    "call 5",
    "r0 = *(u32 *)(r6 +0)",
    "*(u32 *)(r6 +4) = 0",
    "r0 = *(u64 *)(r6 +8)",
    "if r8 != 0 goto +2\nr0 = 1\nexit",
    "MAP0\nr1 = r6\nr1 += 8\nr3 = 0\ncall 169",
    "MAP1\nr1 = r6\nr1 += 8\nr3 = 0\ncall 169",
    "r1 = r6\nr1 += 12\nr2 = 0\nr3 = 0\ncall 171",
    "r1 = r6\nr1 += 8\ncall 172",
    "r1 = r10\nr1 += -16\ncall 172",
    "r1 = r9\nr1 += 8\ncall 172",
];

/// The value's type: a number, a lock, a timer.
fn types() -> (Btf, TypeId, TypeId) {
    let mut builder = Builder::new();
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    let long = builder.int("unsigned long", 8, Encoding::Unsigned);
    let member = |name, ty, bytes: i32| Member {
        name,
        ty,
        bit_offset: bytes.cast_unsigned() * 8,
        bitfield: None,
    };
    let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
    let two = builder.array(Array {
        element: long,
        index: number,
        len: 2,
    });
    let timer = builder.structure("bpf_timer", 16, &[member("__opaque", two, 0)]);
    let members = [
        member("number", number, 0),
        member("lock", lock, LOCK),
        member("timer", timer, TIMER),
    ];
    let value = builder.structure("value", 24, &members);
    (builder.build().unwrap(), number, value)
}

/// The instructions of a text, including map addresses.
fn code(text: &str) -> Vec<RawInsn> {
    let address = |dst: u8, map: i32| {
        [
            RawInsn::new(0x18, dst, 5, 0, map),
            RawInsn::new(0, 0, 0, 0, 0),
        ]
    };
    let mut insns = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("MAP") {
        insns.extend(assemble(&rest[..at]).unwrap());
        let number = rest[at + 3..].chars().next().unwrap();
        insns.extend(address(
            2,
            i32::try_from(number.to_digit(10).unwrap()).unwrap(),
        ));
        rest = &rest[at + 4..];
    }
    insns.extend(assemble(rest.trim_start()).unwrap());
    insns
}

fn program(steps: &[&str], maps: &Arc<[MapDef]>, btf: &Btf) -> Program {
    let lookup = |map: u8, to: &str| {
        format!(
            "MAP{map}\nr1 = r2\nr2 = r10\nr2 += -8\ncall 1\nif r0 != 0 goto +2\nr0 = 1\nexit\n{to} = r0\n"
        )
    };
    let text = [
        "*(u64 *)(r10 -8) = 1\ncall 7\nr8 = r0\nr8 &= 7\n".to_owned(),
        lookup(0, "r6"),
        lookup(0, "r7"),
        lookup(2, "r9"),
        steps.join("\n"),
        "\nr0 = 1\nexit".to_owned(),
    ];
    let mut program = Program::new("locks", ProgType::SchedCls, code(&text.concat()));
    program.license = "GPL".to_owned();
    program.maps = Arc::clone(maps);
    program.btf = Some(btf.clone());
    program
}

fn words(verdict: &Verdict) -> String {
    match verdict.errno {
        Some(errno) => format!("{errno} {}", verdict.message),
        None => format!("accepted {}", verdict.processed()),
    }
}

#[test]
fn every_sequence_of_three_steps() {
    let Some(kernel) = here::kernel() else { return };
    if !kernel.release.starts_with("6.18.") {
        eprintln!(
            "skipped: the rules are those of Linux 6.18, this is {}",
            kernel.release
        );
        return;
    }
    let (btf, key, value) = types();
    let typed = |name| {
        MapDef::new(name, MapType::Hash, 4, 24, 8)
            .with_key_type(key)
            .with_value_type(value)
    };
    let plain = MapDef::new("plain", MapType::Hash, 4, 24, 8);
    let maps: Arc<[MapDef]> = Arc::new([typed("first"), typed("second"), plain]);
    let loaded = match LoadedMaps::create(&maps, Some(&btf)) {
        Ok(loaded) => loaded,
        Err(none) => panic!("{none}"),
    };
    let mut different: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let (mut asked, mut accepted) = (0, 0);
    for first in STEPS {
        for second in STEPS {
            for third in STEPS {
                let steps = [*first, *second, *third];
                let program = Arc::new(program(&steps, &maps, &btf));
                let Ok(judged) = load(&program, &loaded, &LoadOptions::default()) else {
                    continue;
                };
                let ours = verify(&program, &Options::default()).verdict;
                asked += 1;
                accepted += usize::from(judged.verdict.is_accepted());
                let both = (words(&judged.verdict), words(&ours));
                if both.0 != both.1 {
                    different.entry(both).or_default().push(steps.join("; "));
                }
            }
        }
    }
    for ((kernel, ours), texts) in &different {
        eprintln!(
            "{} x\n  kernel {kernel}\n  ours   {ours}\n  {:?}",
            texts.len(),
            texts[0]
        );
    }
    eprintln!(
        "{asked} programs, {accepted} accepted, {} kinds of difference",
        different.len()
    );
    assert!(asked > 5000 && accepted > 100);
    assert!(different.is_empty());
}
