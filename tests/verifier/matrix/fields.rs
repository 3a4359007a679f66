//! Special fields of a map's value, and every way to access them.

use std::sync::Arc;

use bpflab::btf::{Array, Builder, Encoding, Linkage, Member};
use bpflab::program::{Initial, MapDef};
use bpflab::spec::{AttachRule, MapFlags, MapType, ProgFlags, ProgType, Traits};
use bpflab::util::TypeId;

use super::Case;
use super::text::{self, map_address, value_address};

/// The offset of the field in the value, after one 8-byte number.
const AT: u32 = 8;

/// A field, and the requirements on its map.
struct Row {
    name: &'static str,
    size: u32,
    /// The map types that may contain it.
    maps: &'static [MapType],
    /// Its type.
    make: fn(&mut Builder) -> TypeId,
    /// The `contains:` tag of a list or tree.
    contains: Option<&'static str>,
}

const PLAIN: &[MapType] = &[MapType::Hash, MapType::Array, MapType::SkStorage];
const ALL: &[MapType] = &[
    MapType::Hash,
    MapType::Array,
    MapType::PercpuHash,
    MapType::PercpuArray,
    MapType::LruHash,
    MapType::SkStorage,
];
const NOT_LOCAL: &[MapType] = &[MapType::Hash, MapType::Array, MapType::LruHash];

const ROWS: &[Row] = &[
    row("spin_lock", 4, PLAIN, |b| opaque(b, "bpf_spin_lock", 4)),
    row("res_spin_lock", 4, PLAIN, |b| {
        opaque(b, "bpf_res_spin_lock", 4)
    }),
    row("timer", 16, NOT_LOCAL, |b| opaque(b, "bpf_timer", 16)),
    row("wq", 16, NOT_LOCAL, |b| opaque(b, "bpf_wq", 16)),
    row("task_work", 8, NOT_LOCAL, |b| opaque(b, "bpf_task_work", 8)),
    row("kptr_untrusted", 8, ALL, |b| {
        tagged(b, "kptr_untrusted", "task_struct")
    }),
    row("kptr", 8, ALL, |b| tagged(b, "kptr", "task_struct")),
    row("percpu_kptr", 8, ALL, |b| tagged(b, "percpu_kptr", "own")),
    row("refcount", 4, ALL, |b| opaque(b, "bpf_refcount", 4)),
    // Only meaningful in allocated objects.
    row("list_node", 24, &[MapType::Hash], |b| {
        opaque(b, "bpf_list_node", 24)
    }),
    row("rb_node", 32, &[MapType::Hash], |b| {
        opaque(b, "bpf_rb_node", 32)
    }),
    // Not special fields: name, tag or layout differ from the kernel's.
    row("lock_typedef", 4, &[MapType::Hash], |b| {
        let lock = opaque(b, "bpf_spin_lock", 4);
        b.typedef("lock_t", lock)
    }),
    row("lock_too_large", 8, &[MapType::Hash], |b| {
        opaque(b, "bpf_spin_lock", 8)
    }),
    row("lock_union", 4, &[MapType::Hash], |b| {
        let inner = opaque(b, "bpf_spin_lock", 4);
        b.union("choice", 4, &[member("lock", inner, 0)])
    }),
    row("lock_inside", 8, &[MapType::Hash], |b| {
        let number = b.int("unsigned int", 4, Encoding::Unsigned);
        let inner = opaque(b, "bpf_spin_lock", 4);
        b.structure(
            "inside",
            8,
            &[member("lock", inner, 0), member("n", number, 4)],
        )
    }),
    row("kptr_volatile", 8, &[MapType::Hash], |b| {
        let pointer = tagged(b, "kptr", "task_struct");
        b.volatile(pointer)
    }),
    row("kptr_const", 8, &[MapType::Hash], |b| {
        let pointer = tagged(b, "kptr", "task_struct");
        b.constant(pointer)
    }),
    row("kptr_typedef", 8, &[MapType::Hash], |b| {
        let pointer = tagged(b, "kptr", "task_struct");
        b.typedef("task_t", pointer)
    }),
    row("kptr_const_before_tag", 8, &[MapType::Hash], |b| {
        let object = b.structure("task_struct", 0, &[]);
        let tag = b.type_tag("kptr", object, false);
        let constant = b.constant(tag);
        b.ptr(constant)
    }),
    row("kptr_const_behind_tag", 8, &[MapType::Hash], |b| {
        let object = b.structure("task_struct", 0, &[]);
        let constant = b.constant(object);
        let tag = b.type_tag("kptr", constant, false);
        b.ptr(tag)
    }),
    row("kptr_attribute", 8, &[MapType::Hash], |b| {
        let object = b.structure("task_struct", 0, &[]);
        let tag = b.type_tag("kptr", object, true);
        b.ptr(tag)
    }),
    row("other_tag", 8, &[MapType::Hash], |b| {
        tagged(b, "user", "task_struct")
    }),
    row("kptr_two", 16, &[MapType::Hash, MapType::Array], |b| {
        let pointer = tagged(b, "kptr", "task_struct");
        let number = b.int("unsigned int", 4, Encoding::Unsigned);
        b.array(Array {
            element: pointer,
            index: number,
            len: 2,
        })
    }),
    row("lock_beside_bitfield", 8, &[MapType::Hash], |b| {
        let number = b.int("unsigned int", 4, Encoding::Unsigned);
        let inner = opaque(b, "bpf_spin_lock", 4);
        let bits = |name, off| Member {
            bitfield: Some(3),
            ..member_bits(name, number, off)
        };
        let members = [member("lock", inner, 0), bits("a", 32), bits("b", 35)];
        b.structure("inside", 8, &members)
    }),
    row("two_locks", 8, &[MapType::Hash], |b| {
        let inner = opaque(b, "bpf_spin_lock", 4);
        b.structure(
            "inside",
            8,
            &[member("one", inner, 0), member("two", inner, 4)],
        )
    }),
    row("locks_of_both_kinds", 8, &[MapType::Hash], |b| {
        let (one, two) = (
            opaque(b, "bpf_spin_lock", 4),
            opaque(b, "bpf_res_spin_lock", 4),
        );
        b.structure("inside", 8, &[member("one", one, 0), member("two", two, 4)])
    }),
    row("timers_in_array", 32, &[MapType::Hash], |b| {
        let timer = opaque(b, "bpf_timer", 16);
        let number = b.int("unsigned int", 4, Encoding::Unsigned);
        b.array(Array {
            element: timer,
            index: number,
            len: 2,
        })
    }),
    row("lock_and_user_pointer", 16, &[MapType::Hash], |b| {
        let lock = opaque(b, "bpf_spin_lock", 4);
        let pointer = tagged(b, "user", "task_struct");
        b.structure(
            "inside",
            16,
            &[member("lock", lock, 0), member("p", pointer, 8)],
        )
    }),
    row("list_head_untagged", 16, &[MapType::Hash], |b| {
        opaque(b, "bpf_list_head", 16)
    }),
    Row {
        contains: Some("contains:node_data:node"),
        ..row("list_head", 16, &[MapType::Hash, MapType::Array], |b| {
            let head = opaque(b, "bpf_list_head", 16);
            let node = opaque(b, "bpf_list_node", 24);
            let number = b.int("unsigned long", 8, Encoding::Unsigned);
            b.structure(
                "node_data",
                32,
                &[member("node", node, 0), member("n", number, 24)],
            );
            head
        })
    },
    Row {
        contains: Some("contains:node_data:node"),
        ..row("rb_root", 16, &[MapType::Hash, MapType::Array], |b| {
            let root = opaque(b, "bpf_rb_root", 16);
            let node = opaque(b, "bpf_rb_node", 32);
            let number = b.int("unsigned long", 8, Encoding::Unsigned);
            b.structure(
                "node_data",
                40,
                &[member("node", node, 0), member("n", number, 32)],
            );
            root
        })
    },
];

const fn row(
    name: &'static str,
    size: u32,
    maps: &'static [MapType],
    make: fn(&mut Builder) -> TypeId,
) -> Row {
    Row {
        name,
        size,
        maps,
        make,
        contains: None,
    }
}

fn member(name: &str, ty: TypeId, bytes: u32) -> Member<'_> {
    member_bits(name, ty, bytes * 8)
}

fn member_bits(name: &str, ty: TypeId, bit_offset: u32) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    }
}

/// A kernel struct by name and size.
fn opaque(builder: &mut Builder, name: &str, size: u32) -> TypeId {
    let number = builder.int("unsigned int", 4, Encoding::Unsigned);
    let words = builder.array(Array {
        element: number,
        index: number,
        len: size / 4,
    });
    builder.structure(name, size, &[member("__opaque", words, 0)])
}

/// A tagged pointer to a kernel object or to one of the program's own.
fn tagged(builder: &mut Builder, tag: &str, to: &str) -> TypeId {
    let number = builder.int("unsigned long", 8, Encoding::Unsigned);
    let members = [member("n", number, 0)];
    let object = match to {
        "own" => builder.structure(to, 8, &members),
        _ => builder.structure(to, 0, &[]),
    };
    let tagged = builder.type_tag(tag, object, false);
    builder.ptr(tagged)
}

/// All types: the key's, and `struct value { u64 before; FIELD; u64 behind; u32 lock; }`.
struct Types {
    all: text::Types,
    key: TypeId,
    value: TypeId,
    size: u32,
}

/// The offset of the number after the field.
fn behind(row: &Row) -> u32 {
    (AT + row.size).next_multiple_of(8)
}

fn types(row: &Row) -> Types {
    let mut builder = Builder::new();
    let number = builder.int("unsigned long", 8, Encoding::Unsigned);
    let key = builder.int("int", 4, Encoding::Signed);
    let word = builder.structure("word", 8, &[member("n", number, 0)]);
    let pointer = builder.ptr(word);
    let field = (row.make)(&mut builder);
    let behind = behind(row);
    let mut members = vec![
        member("before", number, 0),
        member("field", field, AT),
        member("behind", number, behind),
    ];
    let mut size = behind + 8;
    if row.contains.is_some() {
        // Lists and trees need a lock in the same value.
        let lock = opaque(&mut builder, "bpf_spin_lock", 4);
        members.push(member("lock", lock, size));
        size += 8;
    }
    let value = builder.structure("value", size, &members);
    if let Some(text) = row.contains {
        builder.decl_tag(text, value, Some(1), false);
    }
    let functions: [(_, _, &[TypeId]); 2] = [
        ("each", Linkage::Static, &[]),
        ("global", Linkage::Global, &[pointer]),
    ];
    let all = text::Types::new(builder, &functions);
    Types {
        all,
        key,
        value,
        size,
    }
}

/// The maps of the programs of one row: one with the value, one with the value's type as
/// key and value, a ring buffer.
fn maps(types: &Types, map_type: MapType) -> Arc<[MapDef]> {
    let typed = |name: &str, map_type, entries| {
        MapDef::new(name, map_type, 4, types.size, entries)
            .with_key_type(types.key)
            .with_value_type(types.value)
    };
    let mut first = match map_type {
        MapType::SkStorage => typed("first", map_type, 0),
        MapType::Array => typed("first", map_type, 1),
        _ => typed("first", map_type, 4),
    };
    if map_type == MapType::SkStorage {
        first.flags = MapFlags::NO_PREALLOC;
    }
    let plain = MapDef::new("plain", MapType::Hash, 8, 8, 4);
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let mut outer = MapDef::new("outer", MapType::ArrayOfMaps, 4, 4, 1);
    let mut maps = vec![first.clone(), plain, ring];
    if !matches!(map_type, MapType::SkStorage) {
        outer.inner = Some(Box::new(first));
        outer.initial = vec![Initial::Map {
            index: 0,
            map: bpflab::util::MapId(0),
        }];
        maps.push(outer);
    }
    let maps = maps
        .into_iter()
        .map(|map| map.with_special_fields(&types.all.btf));
    maps.collect()
}

/// How a program gets a pointer to a value.
#[derive(Clone, Copy, PartialEq)]
enum Base {
    Lookup,
    Direct,
    Inner,
    Callback,
    Storage,
}

impl Base {
    const fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Direct => "direct",
            Self::Inner => "inner",
            Self::Callback => "callback",
            Self::Storage => "storage",
        }
    }
}

/// `r7` is 0 to 7, `r8` any number.
const NUMBERS: &str = "call 7\nr8 = r0\nr7 = r0\nr7 &= 7\n";
const OUT: &str = "if r0 != 0 goto +2\nr0 = 0\nexit\n";

/// The text of a program: `r6` points to the value, `r9` to the context.
fn text(base: Base, touch: &str) -> String {
    let body = format!("{NUMBERS}*(u64 *)(r10 -8) = 0\n*(u64 *)(r10 -16) = 0\n");
    let lookup = |map: &str| format!("{map}r2 = r10\nr2 += -8\ncall 1\n{OUT}");
    let first = map_address(1, 0);
    match base {
        Base::Lookup => {
            format!(
                "r9 = r1\n{body}{}r6 = r0\n{touch}r0 = 0\nexit\n",
                lookup(&first)
            )
        }
        Base::Direct => {
            format!(
                "r9 = r1\n{body}{}{touch}r0 = 0\nexit\n",
                value_address(6, 0)
            )
        }
        Base::Inner => format!(
            "r9 = r1\n{body}{}{}r6 = r0\n{touch}r0 = 0\nexit\n",
            lookup(&map_address(1, 3)),
            lookup("r1 = r0\n")
        ),
        Base::Callback => format!(
            "{first}r2 = each ll\nr3 = r10\nr4 = 0\ncall 164\nr0 = 0\nexit\n\
             each:\nr6 = r3\nr9 = r4\n{body}{touch}r0 = 0\nexit\n"
        ),
        Base::Storage => format!(
            "r9 = r1\n{body}r2 = *(u64 *)(r9 +168)\nif r2 != 0 goto +2\nr0 = 0\nexit\n\
             {first}r3 = 0\nr4 = 1\ncall 107\n{OUT}r6 = r0\n{touch}r0 = 0\nexit\n"
        ),
    }
}

/// A way to access memory.
struct Touch {
    name: String,
    text: String,
    /// Whether it calls a global function that takes memory.
    global: bool,
}

fn touch(name: impl Into<String>, text: impl Into<String>) -> Touch {
    Touch {
        name: name.into(),
        text: text.into() + "\n",
        global: false,
    }
}

/// All accesses.
fn touches(row: &Row) -> Vec<Touch> {
    let mut all = Vec::new();
    let at = AT;
    let end = at + row.size;
    let mut offs = vec![at - 8, at - 1, at, at + 1, at + 4, end - 1, end];
    offs.dedup();
    for off in offs {
        for bits in [8, 16, 32, 64] {
            if off + bits / 8 > behind(row) + 8 {
                continue;
            }
            let place = format!("*(u{bits} *)(r6 +{off})");
            let name = |what: &str| format!("{what} u{bits} at {off}");
            all.push(touch(name("load"), format!("r0 = {place}")));
            all.push(touch(name("store 0"), format!("{place} = 0")));
            all.push(touch(name("store 1"), format!("{place} = 1")));
            all.push(touch(name("store number"), format!("{place} = r8")));
        }
    }
    for (what, register) in [("value", 6), ("stack", 10), ("context", 9), ("zero", 0)] {
        let text = format!("r0 = 0\n*(u64 *)(r6 +{at}) = r{register}");
        all.push(touch(format!("store {what}"), text));
    }
    let place = format!("(u64 *)(r6 +{at})");
    let half = format!("(u32 *)(r6 +{at})");
    for (what, text) in [
        ("load s32", format!("r0 = *(s32 *)(r6 +{at})")),
        ("load s8", format!("r0 = *(s8 *)(r6 +{at})")),
        ("add", format!("lock *{place} += r8")),
        ("add u32", format!("lock *{half} += r8")),
        ("and zero", format!("r0 = 0\nlock *{place} &= r0")),
        ("fetch add", format!("r8 = atomic64_fetch_add({place}, r8)")),
        ("exchange", format!("r8 = atomic64_xchg({place}, r8)")),
        (
            "compare and exchange",
            format!("r0 = 0\nr0 = atomic64_cmpxchg({place}, r0, r8)"),
        ),
        ("load acquire", format!("r0 = load_acquire({place})")),
        ("load acquire u32", format!("r0 = load_acquire({half})")),
        ("store release", format!("store_release({place}, r8)")),
        (
            "variable load",
            format!("r6 += r7\nr0 = *(u64 *)(r6 +{at})"),
        ),
        (
            "variable store",
            format!("r6 += r7\n*(u64 *)(r6 +{at}) = 0"),
        ),
        (
            "variable load u8",
            format!("r6 += r7\nr0 = *(u8 *)(r6 +{at})"),
        ),
        (
            "variable load before",
            "r6 += r7\nr0 = *(u8 *)(r6 +0)".to_owned(),
        ),
        (
            "variable load across",
            format!("r6 += r7\nr0 = *(u16 *)(r6 +{})", at - 8),
        ),
        (
            "constant variable",
            format!("r7 = {at}\nr6 += r7\nr0 = *(u64 *)(r6 +0)"),
        ),
        (
            "two constants",
            format!("if r8 > 5 goto +2\nr7 = {at}\ngoto +1\nr7 = 0\nr6 += r7\n*(u64 *)(r6 +0) = 0"),
        ),
        (
            "negative",
            format!("r6 += {}\n*(u64 *)(r6 -{at}) = 0", at + at),
        ),
        (
            "spilled",
            format!("*(u64 *)(r10 -24) = r6\nr1 = *(u64 *)(r10 -24)\n*(u64 *)(r1 +{at}) = 0"),
        ),
    ] {
        all.push(touch(what, text));
    }
    for (off, where_) in [(0, "before"), (at, "at"), (behind(row), "behind")] {
        let arg = |reg: u8| format!("r{reg} = r6\nr{reg} += {off}\n");
        let plain = map_address(1, 1);
        let ring = map_address(1, 2);
        let helpers = [
            ("key of lookup", format!("{}{plain}call 1", arg(2))),
            (
                "key of update",
                format!("{}{plain}r3 = r10\nr3 += -8\nr4 = 0\ncall 2", arg(2)),
            ),
            ("key of delete", format!("{}{plain}call 3", arg(2))),
            (
                "value of update",
                format!("{}{plain}r2 = r10\nr2 += -8\nr4 = 0\ncall 2", arg(3)),
            ),
            (
                "read by csum_diff",
                format!("{}r2 = 8\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28", arg(1)),
            ),
            (
                "read by ringbuf_output",
                format!("{}{ring}r3 = 8\nr4 = 0\ncall 130", arg(2)),
            ),
            (
                "read variable size",
                format!("{}{ring}r3 = r7\nr4 = 0\ncall 130", arg(2)),
            ),
            (
                "read nothing",
                format!("{}r2 = 0\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28", arg(1)),
            ),
            ("read by trace_printk", format!("{}r2 = 8\ncall 6", arg(1))),
            (
                "written by skb_load_bytes",
                format!("{}r1 = r9\nr2 = 0\nr4 = 8\ncall 26", arg(3)),
            ),
            (
                "written by probe_read_kernel",
                format!("{}r2 = 8\nr3 = r8\ncall 113", arg(1)),
            ),
            (
                "written by check_mtu",
                format!("{}r1 = r9\nr2 = 0\nr4 = 0\nr5 = 0\ncall 163", arg(3)),
            ),
            (
                "written by fib_lookup",
                format!("{}r1 = r9\nr3 = 8\nr4 = 0\ncall 69", arg(2)),
            ),
            ("spin_lock", format!("{}call 93", arg(1))),
            ("spin_unlock", format!("{}call 94", arg(1))),
            (
                "timer_init",
                format!("{}{}r3 = 0\ncall 169", arg(1), map_address(2, 0)),
            ),
            ("timer_start", format!("{}r2 = 0\nr3 = 0\ncall 171", arg(1))),
            ("timer_cancel", format!("{}call 172", arg(1))),
            ("kptr_xchg null", format!("{}r2 = 0\ncall 194", arg(1))),
            (
                "dynptr_from_mem",
                format!("{}r2 = 8\nr3 = 0\nr4 = r10\nr4 += -32\ncall 197", arg(1)),
            ),
            ("strncmp", format!("{}r2 = 8\nr3 = r6\ncall 182", arg(1))),
            (
                "string of snprintf",
                format!(
                    "{}r1 = r10\nr1 += -16\nr2 = 8\nr4 = 0\nr5 = 0\ncall 165",
                    arg(3)
                ),
            ),
        ];
        for (what, text) in helpers {
            all.push(touch(format!("{what} {where_}"), text));
        }
        let mut global = touch(
            format!("global function {where_}"),
            format!("{}call global", arg(1)),
        );
        global.global = true;
        all.push(global);
    }
    let whole = [(
        "value to itself",
        format!(
            "{}r2 = r10\nr2 += -8\nr3 = r6\nr4 = 0\ncall 2",
            map_address(1, 0)
        ),
    )];
    all.extend(whole.map(|(what, text)| touch(what, text)));
    all
}

/// The accesses that are tried with every base; with a looked-up value, all are.
const EVERYWHERE: &[&str] = &[
    "load u64 at 8",
    "load u32 at 8",
    "load u64 at 0",
    "load u8 at 9",
    "store 0 u64 at 8",
    "store 1 u64 at 8",
    "store number u64 at 8",
    "store 0 u32 at 8",
    "add",
    "variable store",
    "value of update at",
    "written by skb_load_bytes at",
    "spin_lock at",
    "timer_init at",
    "kptr_xchg null at",
    "global function at",
    "global function before",
    "value to itself",
];

fn bases(map_type: MapType) -> &'static [Base] {
    match map_type {
        MapType::SkStorage => &[Base::Storage],
        MapType::Hash => &[Base::Lookup, Base::Inner, Base::Callback],
        MapType::Array => &[Base::Lookup, Base::Direct, Base::Inner],
        MapType::PercpuArray | MapType::PercpuHash => &[Base::Lookup, Base::Callback],
        _ => &[Base::Lookup],
    }
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for row in ROWS {
        let types = types(row);
        for map_type in row.maps {
            let maps = maps(&types, *map_type);
            for base in bases(*map_type) {
                // All accesses with a looked-up value; only a few for fields that aren't
                // special.
                let plain = (*map_type, *base) == (MapType::Hash, Base::Lookup);
                let all = plain && row.maps.len() > 1;
                for touch in touches(row) {
                    if !all && !EVERYWHERE.contains(&touch.name.as_str()) {
                        continue;
                    }
                    let mut text = text(*base, &touch.text);
                    if touch.global {
                        text += "global:\nr0 = 0\nif r1 == 0 goto +1\nr0 = *(u32 *)(r1 +0)\nexit\n";
                    }
                    let name = format!(
                        "{} in {map_type} by {}: {}",
                        row.name,
                        base.name(),
                        touch.name
                    );
                    let program = types.all.program(&name, &text, &maps);
                    cases.push(Case { name, program });
                }
            }
        }
        cases.extend(used_by_each_type(row, &types));
    }
    cases
}

/// A program of each type that only references the map.
fn used_by_each_type(row: &Row, types: &Types) -> Vec<Case> {
    let maps = maps(types, MapType::Hash);
    let text = format!("{}r0 = 1\nexit\n", map_address(1, 0));
    let hooked = |ty: &&ProgType| ty.info().traits.contains(Traits::ATTACH_BTF);
    let types = ProgType::ALL
        .iter()
        .filter(|ty| !hooked(ty))
        .map(|prog_type| {
            let name = format!("{}: named by {prog_type}", row.name);
            let mut program = types.all.program(&name, &text, &maps);
            program.prog_type = *prog_type;
            if let AttachRule::OneOf([first, ..]) = prog_type.info().attach {
                program.expected_attach_type = Some(*first);
            }
            if *prog_type == ProgType::Syscall {
                program.flags = ProgFlags::SLEEPABLE;
            }
            Case { name, program }
        });
    types.collect()
}
