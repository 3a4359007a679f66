//! Loads, stores and atomic operations through pointers of all kinds, with and without strict
//! alignment; and instructions that use pointers of two kinds on two paths.

use std::sync::Arc;

use bpflab::btf::{Builder, Encoding, Linkage};
use bpflab::program::MapDef;
use bpflab::spec::{MapType, ProgFlags, ProgType};

use super::Case;
use super::text::{Types, function_address, map_address, value_address};

/// A way to get a pointer into r6.
pub struct Pointer {
    pub name: &'static str,
    pub prog_type: ProgType,
    /// The code. r9 is the context; `out` is the label of the end.
    pub code: String,
    /// The code that releases it; the pointer is in r8, too.
    pub release: &'static str,
    /// Whether the rest of the program is the callback.
    in_callback: bool,
}

pub fn maps() -> Arc<[MapDef]> {
    Arc::new([
        MapDef::new("array", MapType::Array, 4, 32, 4),
        MapDef::new("hash", MapType::Hash, 16, 32, 4),
        MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
        MapDef::new("sockets", MapType::Xskmap, 4, 4, 4),
        MapDef::new("single", MapType::Array, 4, 32, 1),
    ])
}

pub fn types() -> Types {
    let mut builder = Builder::new();
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    Types::new(builder, &[("callback", Linkage::Static, &[number])])
}

pub fn pointers() -> Vec<Pointer> {
    let tc = |name, code: &str| Pointer {
        name,
        prog_type: ProgType::SchedCls,
        code: code.to_owned(),
        release: "",
        in_callback: false,
    };
    let look_up = |map| format!("{}r2 = r10\nr2 += -8\ncall 1\n", map_address(1, map));
    let not_null = "if r0 == 0 goto out\nr6 = r0\n";
    // Offsets in `struct __sk_buff`: data 76, data_end 80, data_meta 140, flow_keys 144, sk 168.
    let packet = |begin: u32, end: u32| {
        format!(
            "r6 = *(u32 *)(r9 +{begin})\nr2 = *(u32 *)(r9 +{end})\nr3 = r6\nr3 += 24\n\
             if r3 > r2 goto out\n"
        )
    };
    let socket = "r0 = *(u64 *)(r9 +168)\nif r0 == 0 goto out\n";
    let mut all = vec![
        tc("number", "r6 = 4096\n"),
        tc("null", "r6 = 0\n"),
        tc("context", "r6 = r9\n"),
        tc("stack", "r6 = r10\nr6 += -64\n"),
        tc("array value", &value_address(6, 4)),
        tc("map value", &format!("{}{not_null}", look_up(0))),
        tc("map value or null", &format!("{}r6 = r0\n", look_up(0))),
        tc("packet", &packet(76, 80)),
        tc("packet metadata", &packet(140, 76)),
        tc("packet end", "r6 = *(u32 *)(r9 +80)\n"),
        tc("common socket", &format!("{socket}r6 = r0\n")),
        tc("socket", &format!("{socket}r1 = r0\ncall 95\n{not_null}")),
        tc(
            "TCP socket",
            &format!("{socket}r1 = r0\ncall 96\n{not_null}"),
        ),
    ];
    let memory = format!(
        "{}r2 = 32\nr3 = 0\nr4 = r10\nr4 += -16\ncall 197\n\
         r1 = r10\nr1 += -16\nr2 = 0\nr3 = 16\ncall 203\n{not_null}",
        value_address(1, 4)
    );
    all.push(tc("memory of a dynptr", &memory));
    all.push(Pointer {
        release: "r1 = r8\nr2 = 0\ncall 133\n",
        ..tc(
            "record",
            &format!("{}r2 = 16\nr3 = 0\ncall 131\n{not_null}", map_address(1, 2)),
        )
    });
    all.push(Pointer {
        release: "r1 = r8\ncall 86\n",
        ..tc(
            "acquired socket",
            &format!("r1 = r9\nr2 = r10\nr2 += -16\nr3 = 12\nr4 = -1\nr5 = 0\ncall 84\n{not_null}"),
        )
    });
    all.push(Pointer {
        prog_type: ProgType::Xdp,
        ..tc("XDP socket", &format!("{}{not_null}", look_up(3)))
    });
    all.push(Pointer {
        prog_type: ProgType::FlowDissector,
        ..tc("flow keys", "r6 = *(u64 *)(r9 +144)\n")
    });
    all.push(Pointer {
        prog_type: ProgType::RawTracepointWritable,
        ..tc("buffer of a tracepoint", "r6 = *(u64 *)(r9 +0)\n")
    });
    for (name, reg) in [("map key", 2), ("map value in a callback", 3)] {
        let code = format!(
            "{}{}r3 = 0\nr4 = 0\ncall 164\nr0 = 0\nexit\ncallback:\nr6 = r{reg}\n",
            map_address(1, 1),
            function_address(2, "callback"),
        );
        all.push(Pointer {
            in_callback: true,
            ..tc(name, &code)
        });
    }
    all
}

/// Instructions with an address in r6; r7 is a number, mostly unknown and at most 255.
fn accesses() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: String, code: String| all.push((name, code));
    for size in [8, 16, 32, 64] {
        for at in [0, 1, 2, 4, 8, 15] {
            let place = format!("(r6 +{at})");
            add(
                format!("load u{size} at {at}"),
                format!("r0 = *(u{size} *){place}\n"),
            );
            if at < 8 {
                let store = format!("*(u{size} *){place} = r7\n");
                add(format!("store u{size} at {at}"), store);
            }
            if size < 64 && at < 4 {
                add(
                    format!("load s{size} at {at}"),
                    format!("r0 = *(s{size} *){place}\n"),
                );
            }
        }
        add(
            format!("store a constant, u{size}"),
            format!("*(u{size} *)(r6 +0) = 5\n"),
        );
    }
    add("load u32 at -4".into(), "r0 = *(u32 *)(r6 -4)\n".into());
    add("load u64 at 60".into(), "r0 = *(u64 *)(r6 +60)\n".into());
    for (name, masked) in [("by 8", 8), ("by 4", 4), ("by 2", 2), ("up to 7", 7)] {
        for size in [16, 32, 64] {
            let moved = format!("r7 &= {masked}\nr6 += r7\n");
            add(
                format!("moved {name}, load u{size}"),
                format!("{moved}r0 = *(u{size} *)(r6 +0)\n"),
            );
        }
    }
    for at in [0, 2, 4] {
        for (bits, op) in [(32, "atomic_fetch_add"), (64, "atomic64_fetch_add")] {
            let place = format!("(u{bits} *)(r6 +{at})");
            add(
                format!("atomic add, u{bits} at {at}"),
                format!("lock *{place} += r7\n"),
            );
            add(
                format!("atomic fetch and add, u{bits} at {at}"),
                format!("r7 = {op}({place}, r7)\n"),
            );
        }
    }
    add(
        "atomic exchange".into(),
        "r7 = atomic64_xchg((u64 *)(r6 +0), r7)\n".into(),
    );
    add(
        "atomic compare and exchange".into(),
        "r0 = 1\nr0 = atomic64_cmpxchg((u64 *)(r6 +0), r0, r7)\n".into(),
    );
    for at in [0, 1] {
        add(
            format!("load-acquire at {at}"),
            format!("r0 = load_acquire((u64 *)(r6 +{at}))\n"),
        );
        add(
            format!("store-release at {at}"),
            format!("store_release((u64 *)(r6 +{at}), r7)\n"),
        );
    }
    all
}

/// Everything before the pointer: zeros on the stack, and a number in r7.
pub const BEGIN: &str = "r9 = r1\nr1 = 0\n*(u64 *)(r10 -8) = r1\n*(u64 *)(r10 -16) = r1\n\
    *(u64 *)(r10 -24) = r1\n*(u64 *)(r10 -32) = r1\n*(u64 *)(r10 -40) = r1\n\
    *(u64 *)(r10 -48) = r1\n*(u64 *)(r10 -56) = r1\n*(u64 *)(r10 -64) = r1\n";
pub const NUMBER: &str = "r8 = r6\ncall 7\nr7 = r0\nr7 &= 255\n";
pub const END: &str = "out:\nr0 = 0\nexit\n";

pub fn cases() -> Vec<Case> {
    let (types, maps, pointers) = (types(), maps(), pointers());
    let mut cases = Vec::new();
    let mut add = |name: String, text: &str, prog_type, flags| {
        let mut program = types.program(&name, text, &maps);
        program.prog_type = prog_type;
        program.flags |= flags;
        cases.push(Case { name, program });
    };
    let any = ProgFlags::ANY_ALIGNMENT;
    for pointer in &pointers {
        // Flow dissectors have no helper that gives a number.
        let number = match pointer.prog_type {
            ProgType::FlowDissector => "r8 = r6\nr7 = 100\n",
            _ => NUMBER,
        };
        for (access, code) in accesses() {
            let Pointer {
                code: get, release, ..
            } = pointer;
            let text = format!("{BEGIN}{get}{number}{code}{release}{END}");
            for (what, flags) in [
                ("", ProgFlags::empty()),
                (", strict", ProgFlags::STRICT_ALIGNMENT),
                (", strict and not", ProgFlags::STRICT_ALIGNMENT | any),
            ] {
                let name = format!("{}: {access}{what}", pointer.name);
                add(name, &text, pointer.prog_type, flags);
            }
        }
    }
    // Two kinds at one instruction.
    let joined = pointers.iter().filter(|it| {
        it.prog_type == ProgType::SchedCls && it.release.is_empty() && !it.in_callback
    });
    let joined: Vec<_> = joined.collect();
    for one in &joined {
        for other in &joined {
            for (access, code) in [
                ("load u32", "r0 = *(u32 *)(r6 +0)\n"),
                ("load s16", "r0 = *(s16 *)(r6 +0)\n"),
                ("store u32", "*(u32 *)(r6 +8) = r7\n"),
                ("atomic add", "lock *(u64 *)(r6 +0) += r7\n"),
            ] {
                let [first, second] = [&one.code, &other.code];
                let text = format!(
                    "{BEGIN}call 7\nr7 = r0\nr7 &= 255\nif r7 == 3 goto second\n{first}goto both\n\
                     second:\n{second}both:\n{code}{END}"
                );
                let name = format!("{} or {}: {access}", one.name, other.name);
                add(name, &text, ProgType::SchedCls, ProgFlags::empty());
            }
        }
    }
    cases
}
