use std::fmt::Write as _;

use super::super::clang::Scratch;
use super::super::{Array, Builder, Enumerator, Linkage, Member, Param};
use super::*;

fn member(name: &str, ty: TypeId, bit_offset: u32) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    }
}

fn dump(btf: &Btf) -> String {
    let mut text = String::new();
    btf.write_c(&mut text).unwrap();
    text
}

/// The text between the frame's first and last lines.
fn inside(text: &str) -> &str {
    let (_, text) = text.split_once("#endif\n\n").unwrap();
    text.rsplit_once("#ifndef BPF_NO_PRESERVE_ACCESS_INDEX")
        .unwrap()
        .0
        .trim_end()
}

#[test]
fn declarations_come_in_an_order_that_c_takes() {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    // struct node { struct node *next; list_t *list; int (*cmp)(struct node *, ...); int a[2][3]; }
    let node = b.next_id();
    let ids = |n: u32| TypeId(node.0 + n);
    b.structure(
        "node",
        48,
        &[
            member("next", ids(1), 0),
            member("list", ids(3), 64),
            member("cmp", ids(5), 128),
            member("a", ids(7), 192),
        ],
    );
    b.ptr(node);
    b.typedef("list_t", ids(8));
    b.ptr(ids(2));
    b.prototype(
        int,
        &[
            Param {
                name: "n",
                ty: ids(1),
            },
            Param {
                name: "",
                ty: TypeId(0),
            },
        ],
    );
    b.ptr(ids(4));
    b.array(Array {
        element: int,
        index: int,
        len: 3,
    });
    b.array(Array {
        element: ids(6),
        index: int,
        len: 2,
    });
    b.structure("list", 8, &[member("head", ids(1), 0)]);
    // const char *const *names[4], int (*table)[2]
    let char = b.int("char", 1, Encoding::Signed);
    let constant = b.constant(char);
    let ptr = b.ptr(constant);
    let ptr = b.constant(ptr);
    let ptr = b.ptr(ptr);
    let names = b.array(Array {
        element: ptr,
        index: int,
        len: 4,
    });
    b.typedef("names_t", names);
    let two = b.array(Array {
        element: int,
        index: int,
        len: 2,
    });
    let table = b.ptr(two);
    b.typedef("table_t", table);
    let proto = b.prototype(table, &[]);
    let returning = b.ptr(proto);
    b.typedef("getter_t", returning);
    let text = dump(&b.build().unwrap());
    assert_eq!(
        inside(&text),
        "\
struct list;

typedef struct list list_t;

struct node {
	struct node *next;
	list_t *list;
	int (*cmp)(struct node *n, ...);
	int a[2][3];
};

struct list {
	struct node *head;
};

typedef const char * const *names_t[4];

typedef int (*table_t)[2];

typedef int (*(*getter_t)(void))[2];"
    );
}

#[test]
fn layouts_are_kept_by_padding_and_packing() {
    let mut b = Builder::new();
    let int = b.int("unsigned int", 4, Encoding::Unsigned);
    let long = b.int("long", 8, Encoding::Signed);
    let bits = |name, bit_offset, bits| Member {
        name,
        ty: int,
        bit_offset,
        bitfield: Some(bits),
    };
    b.structure(
        "gaps",
        32,
        &[bits("a", 0, 3), bits("b", 8, 2), member("c", long, 128)],
    );
    b.structure("packed", 12, &[member("a", int, 0), member("b", long, 32)]);
    b.union("wide", 16, &[member("a", int, 0)]);
    let inner = b.structure("", 8, &[member("x", int, 0), member("y", int, 32)]);
    b.structure("outer", 8, &[member("", inner, 0)]);
    b.structure("empty", 0, &[]);
    let text = dump(&b.build().unwrap());
    assert_eq!(
        inside(&text),
        "\
struct gaps {
	unsigned int a: 3;
	long: 5;
	unsigned int b: 2;
	long: 54;
	long: 64;
	long c;
	long: 64;
};

struct packed {
	unsigned int a;
	long b;
} __attribute__((packed));

union wide {
	unsigned int a;
	unsigned char __size[16];
};

struct outer {
	struct {
		unsigned int x;
		unsigned int y;
	};
};

struct empty {};"
    );
}

#[test]
fn double_names_tags_enums_and_functions() {
    let mut b = Builder::new();
    let int = b.int("u32", 4, Encoding::Unsigned);
    b.structure("s", 4, &[member("a", int, 0)]);
    b.structure("s", 8, &[member("a", int, 0), member("b", int, 32)]);
    let value = |name, number: i64| Enumerator {
        name,
        bits: number.cast_unsigned(),
        signed: number < 0,
    };
    b.enumeration("e", 4, true, &[value("LOW", -1), value("SAME", 1)]);
    b.enumeration("", 1, false, &[value("SAME", 2)]);
    b.enumeration64("big", 8, false, &[value("HUGE", 1 << 40)]);
    b.enumeration64("small", 8, true, &[value("MIN", i64::MIN)]);
    let forward = b.forward("s", false);
    let user = b.type_tag("user", forward, false);
    let ptr = b.ptr(user);
    let proto = b.prototype(
        TypeId(0),
        &[Param {
            name: "default",
            ty: ptr,
        }],
    );
    let func = b.function("do_it", proto, Linkage::Global);
    b.decl_tag("bpf_kfunc", func, None, false);
    let text = dump(&b.build().unwrap());
    for line in [
        "typedef unsigned int u32;",
        "struct s {\n\tu32 a;\n};",
        "struct s___2 {\n\tu32 a;\n\tu32 b;\n};",
        "enum e {\n\tLOW = -1,\n\tSAME = 1,\n};",
        "enum {\n\tSAME___2 = 2,\n} __attribute__((mode(byte)));",
        "enum big {\n\tHUGE = 1099511627776ULL,\n};",
        "\tMIN = (-9223372036854775807LL - 1),",
        "extern void do_it(struct s __attribute__((btf_type_tag(\"user\"))) *default_) __weak __ksym;",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    if let Some(dir) = Scratch::new() {
        dir.compile("names", &text).unwrap();
    }
}

#[test]
fn hostile_tables_end_in_an_error() {
    let mut b = Builder::new();
    let me = b.next_id();
    b.structure("me", 8, &[member("me", me, 0)]);
    assert!(matches!(
        b.build().unwrap().write_c(&mut String::new()),
        Err(DumpError::TooDeep(_) | DumpError::Layout(_))
    ));

    let mut b = Builder::new();
    let mut inner = b.int("char", 1, Encoding::Char);
    for _ in 0..60 {
        inner = b.union("", 1, &[member("a", inner, 0), member("b", inner, 0)]);
    }
    b.structure("all", 1, &[member("x", inner, 0)]);
    assert!(matches!(
        b.build().unwrap().write_c(&mut String::new()),
        Err(DumpError::TooLong(_))
    ));

    let mut b = Builder::new();
    let mut chain = b.int("char", 1, Encoding::Char);
    for _ in 0..100_000 {
        chain = b.ptr(chain);
    }
    b.typedef("long_chain", chain);
    assert!(matches!(
        b.build().unwrap().write_c(&mut String::new()),
        Err(DumpError::TooDeep(_))
    ));
}

/// Static assertions for clang: sizes and member offsets of all unambiguously named
/// structs, unions and enums.
fn assertions(btf: &Btf) -> (String, usize) {
    let (mut text, mut count) = (String::new(), 0);
    let names = Names::new(btf);
    let mut assert = |what: String, value: u64| {
        count += 1;
        let _ = writeln!(text, "_Static_assert({what} == {value}, \"\");");
    };
    for ty in btf
        .types()
        .filter(|ty| ty.kind().is_composite() || ty.kind().is_any_enum())
    {
        if ty.name().is_empty() || ty.is_forward() {
            continue;
        }
        let tag = match ty.kind() {
            Kind::Struct => "struct",
            Kind::Union => "union",
            _ => "enum",
        };
        let name = names.of(ty);
        assert(
            format!("sizeof({tag} {name})"),
            u64::from(ty.size().unwrap()),
        );
        for member in ty
            .members()
            .filter(|m| !m.name.is_empty() && m.bitfield.is_none())
        {
            let offset = u64::from(member.bit_offset / 8);
            assert(
                format!(
                    "__builtin_offsetof({tag} {name}, {})",
                    identifier(member.name)
                ),
                offset,
            );
        }
    }
    (text, count)
}

#[test]
fn the_kernels_types_keep_their_layout() {
    let (Some(bytes), Some(dir)) = (super::super::tests::vmlinux(), Scratch::new()) else {
        return;
    };
    let btf = Btf::parse(&bytes).unwrap();
    let (asserts, count) = assertions(&btf);
    assert!(count > 10_000, "{count}");
    dir.compile("vmlinux", &(dump(&btf) + &asserts)).unwrap();
}

/// Types whose layout is hard to express in C.
const TRICKY: &str = "
struct bits { int a : 3; unsigned long b : 40; char c : 2; int : 0; short d; _Bool e : 1, f : 1; };
struct packed_bits { char a; int b : 30; long c : 35; } __attribute__((packed));
struct aligned { int a; struct { char c; } __attribute__((aligned(32))) in; } __attribute__((aligned(64)));
union odd { char a[3]; short b; } __attribute__((packed));
union big { char a; } __attribute__((aligned(16)));
struct flexible { int count; struct { short s; char c[0]; } items[]; };
struct holder { struct aligned *p; union odd odd; struct packed_bits pb; union big big; __int128 wide; };
struct nested { struct { union { int x; long y; }; struct { char z; } *deep; }; int (*(*fn)(int, void *))[3]; };
enum tiny { T1 = 1, T2 = 255 } __attribute__((mode(byte)));
enum large { L1 = -1, L2 = 1LL << 40 };
struct enums { enum tiny t; enum large l; enum { INLINE_ONE, INLINE_TWO } in; volatile const int *volatile vp; };
struct keep { struct bits a; struct packed_bits b; struct aligned c; union odd d; struct flexible *e;
  struct holder f; struct nested g; struct enums h; union big i; };
struct keep global;
";

#[test]
fn tricky_layouts_survive_a_round_through_c() {
    let Some(dir) = Scratch::new() else { return };
    let first = dir.btf_of(&dir.compile("tricky", TRICKY).unwrap());
    let (asserts, count) = assertions(&first);
    assert!(count > 30, "{count}");
    // The text compiles to the original layouts, and dumping that BTF gives the text again.
    let text = dump(&first);
    let again = dir.compile("again", &format!("{text}{asserts}struct keep global;\n"));
    let second = dir.btf_of(&again.unwrap_or_else(|error| panic!("{error}\n{text}")));
    let layout = |btf: &Btf, name: &str, kind| {
        let members = btf.find(name, kind).unwrap().members();
        let named = members.filter(|m| !m.name.is_empty() && m.name != "__size");
        named
            .map(|m| (m.name.to_owned(), m.bit_offset, m.bitfield))
            .collect::<Vec<_>>()
    };
    for ty in first
        .types()
        .filter(|ty| ty.kind().is_composite() && !ty.name().is_empty())
    {
        let (name, kind) = (ty.name(), ty.kind());
        assert_eq!(
            layout(&second, name, kind),
            layout(&first, name, kind),
            "{name}"
        );
    }
}
