//! Tests of opening, looking up and rebuilding whole tables.

use proptest::prelude::*;

use super::*;
use crate::sample;
use crate::shared::{Need, skip};
use crate::util::TypeId;

/// The running kernel's BTF; without it, the test says so and passes.
pub(crate) fn vmlinux() -> Option<Vec<u8>> {
    let bytes = std::fs::read("/sys/kernel/btf/vmlinux");
    bytes
        .inspect_err(|error| {
            skip(
                Need::Kernel,
                format_args!("/sys/kernel/btf/vmlinux: {error}"),
            )
        })
        .ok()
}

/// A table with every kind in it.
pub(super) fn zoo() -> Builder {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let long = b.int("unsigned long", 8, Encoding::Unsigned);
    let ptr = b.ptr(TypeId(0));
    let array = b.array(Array {
        element: int,
        index: long,
        len: 3,
    });
    let member = |name, ty, bit_offset| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    let plain = b.structure(
        "plain",
        24,
        &[
            member("a", int, 0),
            member("p", ptr, 64),
            member("l", long, 128),
        ],
    );
    let bits = |name, bit_offset, bits| Member {
        name,
        ty: int,
        bit_offset,
        bitfield: Some(bits),
    };
    b.structure("flags", 4, &[bits("low", 0, 3), bits("high", 3, 29)]);
    b.union(
        "either",
        12,
        &[member("list", array, 0), member("one", int, 0)],
    );
    let value = |name, number: i64, signed| Enumerator {
        name,
        bits: number.cast_unsigned(),
        signed,
    };
    b.enumeration(
        "color",
        4,
        true,
        &[value("RED", -1, true), value("GREEN", 7, true)],
    );
    b.enumeration64("wide", 8, false, &[value("BIG", -2, false)]);
    b.forward("later", false);
    let typedef = b.typedef("plain_t", plain);
    let constant = b.constant(typedef);
    let volatile = b.volatile(constant);
    b.restrict(ptr);
    let tag = b.type_tag("user", volatile, false);
    b.ptr(tag);
    let proto = b.prototype(
        int,
        &[
            Param {
                name: "x",
                ty: long,
            },
            Param {
                name: "",
                ty: TypeId(0),
            },
        ],
    );
    let func = b.function("f", proto, Linkage::Global);
    b.decl_tag("kfunc", func, Some(0), false);
    let var = b.variable("counter", long, Linkage::Static);
    b.section(
        ".bss",
        8,
        &[Variable {
            ty: var,
            offset: 0,
            size: 8,
        }],
    );
    b.float("double", 8);
    b
}

#[test]
fn every_kind_comes_back_as_it_was_built() {
    let btf = zoo().build().unwrap();
    let kinds: std::collections::BTreeSet<_> = btf.types().map(|ty| ty.kind()).collect();
    assert_eq!(kinds.len(), Kind::ALL.len() - 1, "all kinds but void");

    let plain = btf.find("plain", Kind::Struct).unwrap();
    let members: Vec<_> = plain.members().map(|m| (m.name, m.bit_offset)).collect();
    assert_eq!(members, [("a", 0), ("p", 64), ("l", 128)]);
    assert_eq!((plain.size(), plain.kind_flag()), (Some(24), false));

    let flags = btf.find("flags", Kind::Struct).unwrap();
    let widths: Vec<_> = flags
        .members()
        .map(|m| (m.bit_offset, m.bitfield))
        .collect();
    assert_eq!(widths, [(0, Some(3)), (3, Some(29))]);

    let color = btf.find("color", Kind::Enum).unwrap();
    let values: Vec<_> = color.enumerators().map(|v| (v.name, v.value())).collect();
    assert_eq!(values, [("RED", -1), ("GREEN", 7)]);
    let wide = btf.find("wide", Kind::Enum64).unwrap();
    assert_eq!(
        wide.enumerators().next().unwrap().value(),
        i128::from(u64::MAX - 1)
    );

    let f = btf.find("f", Kind::Func).unwrap();
    assert_eq!(f.linkage(), Some(Linkage::Global));
    let params: Vec<_> = f.target().unwrap().params().map(|p| p.name).collect();
    assert_eq!(params, ["x", ""]);
    let tag = btf.find("kfunc", Kind::DeclTag).unwrap();
    assert_eq!((tag.component(), tag.target_id()), (Some(0), Some(f.id())));
    let var = btf.find("counter", Kind::Var).unwrap();
    assert_eq!(
        (var.linkage(), var.target().unwrap().name()),
        (Some(Linkage::Static), "unsigned long")
    );
    let bss = btf.find(".bss", Kind::Datasec).unwrap();
    assert_eq!(bss.variables().next().unwrap().ty, var.id());
    assert_eq!(
        btf.find("int", Kind::Int).unwrap().int().unwrap().encoding,
        Encoding::Signed
    );
}

#[test]
fn bytes_come_back_as_they_were_read() {
    let btf = zoo().build().unwrap();
    let bytes = btf.to_bytes();
    assert_eq!(Btf::parse(&bytes).unwrap().to_bytes(), bytes);
    let copy = |btf: &Btf| {
        let mut copy = Builder::new();
        copy.append(btf);
        copy.build().unwrap()
    };
    let once = copy(&btf);
    assert_eq!(
        copy(&once).to_bytes(),
        once.to_bytes(),
        "strings are in order of use by then"
    );
}

#[test]
fn an_appended_table_keeps_its_meaning() {
    let zoo_btf = zoo().build().unwrap();
    let mut two = zoo();
    let map = two.append(&zoo_btf);
    let two = two.build().unwrap();
    assert_eq!(two.string_end(), zoo_btf.string_end(), "strings are shared");
    for ty in zoo_btf.types() {
        let moved = two.ty(map.get(ty.id()));
        assert_eq!((moved.kind(), moved.name()), (ty.kind(), ty.name()));
        let target = ty.target_id().map(|id| map.get(id));
        assert_eq!(moved.target_id(), target);
    }
    assert_eq!(map.get(TypeId(0)), TypeId(0), "void stays");
}

#[test]
fn a_split_table_sees_its_base() {
    let base = zoo().build().unwrap();
    let mut split = Builder::split(&base);
    let plain = base.find("plain", Kind::Struct).unwrap().id();
    let name = split.typedef("module_t", plain);
    split.structure("plain___v2", 0, &[]);
    let split = split.build().unwrap();
    assert_eq!(name.0, base.count());
    assert_eq!(split.ty(name).target().unwrap().name(), "plain");
    let flavors: Vec<_> = split.flavors("plain").map(|ty| ty.name()).collect();
    assert_eq!(flavors, ["plain", "plain___v2"]);
    assert_eq!(split.own_types().len(), 2);
    let again = Btf::parse_split(&split.to_bytes(), &base).unwrap();
    assert_eq!(again.find("module_t", Kind::Typedef).unwrap().id(), name);
    assert!(
        Btf::parse(&split.to_bytes()).is_err(),
        "without its base it makes no sense"
    );
}

#[test]
fn faults_are_named_with_their_offset() {
    let error = |bytes: &[u8]| Btf::parse(bytes).unwrap_err().to_string();
    let good = zoo().build().unwrap().to_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(
        error(&good[..10]),
        ".BTF offset 0x8: section ends inside the header: 4 bytes wanted, 2 left"
    );
    let mut big = good.clone();
    big[..2].reverse();
    assert!(error(&big).contains("big-endian"), "{}", error(&big));
    assert!(error(&with(0, 1)).contains("this is not BTF"));
    assert!(error(&with(2, 2)).contains("version 2"));
    assert!(error(&with(4, 20)).contains("header length 20"));
    // The first record starts at 0x18: name, info, size, integer.
    assert_eq!(
        error(&with(0x1f, 0x1f)),
        ".BTF offset 0x18: type 1: unknown kind 31"
    );
    assert!(error(&with(0x1e, 1)).contains("reserved bits"));
    assert!(error(&with(0x1c, 1)).contains("INT has vlen 1"));
    assert!(error(&with(0x24, 33)).contains("integer of 33 bits at bit 0 in 4 bytes"));
    assert!(error(&with(0x1a, 0xff)).contains("string offset"));
    let mut cut = good.clone();
    cut.pop();
    assert!(error(&cut).contains("string table"), "{}", error(&cut));

    let mut bad = Builder::new();
    bad.ptr(TypeId(9));
    assert_eq!(
        bad.build().unwrap_err().to_string(),
        ".BTF offset 0x18: type 1: refers to type 9, but there are only 2 types"
    );
    let mut bad = Builder::new();
    let far = Member {
        name: "m",
        ty: TypeId(0),
        bit_offset: 64,
        bitfield: None,
    };
    bad.structure("s", 4, &[far]);
    assert!(
        bad.build()
            .unwrap_err()
            .to_string()
            .contains("member 0 at bit 64")
    );
    let mut bad = Builder::new();
    bad.typedef(&"x".repeat(4097), TypeId(0));
    assert!(
        bad.build()
            .unwrap_err()
            .to_string()
            .contains("more than 4096 bytes")
    );
    let mut good = Builder::new();
    good.typedef(&"x".repeat(4096), TypeId(0));
    good.string(&"x".repeat(10_000));
    assert!(good.build().is_ok(), "a source line may be long");
    let mut bad = Builder::new();
    bad.prototype(
        TypeId(0),
        &vec![
            Param {
                name: "",
                ty: TypeId(0)
            };
            70_000
        ],
    );
    assert!(
        bad.build()
            .unwrap_err()
            .to_string()
            .contains("too many items")
    );
}

#[test]
fn broken_utf8_is_replaced_in_place() {
    let mut b = Builder::new();
    b.typedef("caf__", TypeId(0));
    let mut bytes = b.build().unwrap().to_bytes();
    let at = bytes.len() - 2;
    bytes[at] = 0xe9;
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.ty(TypeId(1)).name(), "caf_?");
}

#[test]
fn the_kernels_own_table_opens() {
    let Some(bytes) = vmlinux() else { return };
    let btf = Btf::parse(&bytes).unwrap();
    assert!(btf.count() > 10_000);
    let task = btf.find("task_struct", Kind::Struct).unwrap();
    assert!(task.members().any(|member| member.name == "pid"));
    assert_eq!(
        btf.named("task_struct")
            .filter(|ty| ty.kind() == Kind::Struct)
            .count(),
        1
    );
    assert_eq!(btf.to_bytes(), bytes);
    for ty in btf.types().filter(|ty| !ty.name().is_empty()).step_by(97) {
        assert!(
            btf.named(ty.name()).any(|found| found.id() == ty.id()),
            "{ty:?}"
        );
    }
}

/// A type to build: a number that selects its kind, names, and numbers for the rest.
type Recipe = (u8, String, u32, Vec<(String, u32)>);

/// Builds a table from recipes; references go to any of the types, also to later ones.
fn cook(recipes: &[Recipe]) -> Builder {
    let mut b = Builder::new();
    let count = u32::try_from(recipes.len()).unwrap() + 1;
    for (choice, name, number, items) in recipes {
        let to = |number: u32| TypeId(number % count);
        let target = to(*number);
        let members = |bits: bool| -> Vec<Member<'_>> {
            items
                .iter()
                .map(|(name, number)| Member {
                    name,
                    ty: to(*number),
                    bit_offset: number % 512,
                    bitfield: (bits && number % 3 == 0).then_some(7),
                })
                .collect()
        };
        let values = |signed: bool| -> Vec<Enumerator<'_>> {
            let wide = |number: u32| i64::from(number.cast_signed()).cast_unsigned();
            items
                .iter()
                .map(|(name, n)| Enumerator {
                    name,
                    bits: if signed { wide(*n) } else { u64::from(*n) },
                    signed,
                })
                .collect()
        };
        match choice % 19 {
            0 => b.int(name, 4, Encoding::from_bits(choice % 5)),
            1 => b.ptr(target),
            2 => b.array(Array {
                element: target,
                index: to(number / 3),
                len: *number,
            }),
            3 => b.structure(name, 64, &members(false)),
            4 => b.union(name, 64, &members(true)),
            5 => b.enumeration(name, 4, number % 2 == 0, &values(number % 2 == 0)),
            6 => b.enumeration64(name, 8, number % 2 == 0, &values(number % 2 == 0)),
            7 => b.forward(name, number % 2 == 0),
            8 => b.typedef(name, target),
            9 => b.constant(target),
            10 => b.volatile(target),
            11 => b.restrict(target),
            12 => b.type_tag(name, target, number % 2 == 0),
            13 => b.decl_tag(name, target, (number % 2 == 0).then_some(number / 2), false),
            14 => {
                let params: Vec<_> = items
                    .iter()
                    .map(|(name, n)| Param { name, ty: to(*n) })
                    .collect();
                b.prototype(target, &params)
            }
            15 => b.function(name, target, Linkage::from_number(number % 3).unwrap()),
            16 => b.variable(name, target, Linkage::from_number(number % 3).unwrap()),
            17 => {
                let places: Vec<_> = items
                    .iter()
                    .map(|(_, n)| Variable {
                        ty: to(*n),
                        offset: *n,
                        size: n / 2,
                    })
                    .collect();
                b.section(name, *number, &places)
            }
            _ => b.float(name, 8),
        };
    }
    b
}

/// All properties of a type as text.
fn seen(ty: Type<'_>) -> String {
    let items = (
        ty.members().collect::<Vec<_>>(),
        ty.enumerators().collect::<Vec<_>>(),
        ty.params().collect::<Vec<_>>(),
        ty.variables().collect::<Vec<_>>(),
    );
    let details = (
        ty.size(),
        ty.target_id(),
        ty.int(),
        ty.array(),
        ty.linkage(),
        ty.component(),
    );
    format!("{ty:?} {} {details:?} {items:?}", ty.kind_flag())
}

fn recipes() -> impl Strategy<Value = Vec<Recipe>> {
    let name = "[a-c_]{0,5}";
    let items = prop::collection::vec((name, any::<u32>()), 0..4);
    prop::collection::vec((any::<u8>(), name, any::<u32>(), items), 1..24)
}

proptest! {
    #[test]
    fn what_is_built_is_what_is_read(recipes in recipes()) {
        let btf = cook(&recipes).build().unwrap();
        prop_assert_eq!(btf.types().len(), recipes.len());
        for (ty, (_, name, number, items)) in btf.types().zip(&recipes) {
            let count = ty.members().len().max(ty.params().len()).max(ty.variables().len());
            prop_assert!(count == 0 || count == items.len());
            let named = !ty.name().is_empty();
            prop_assert!(!named || ty.name() == name);
            if let Some(target) = ty.target_id() {
                prop_assert_eq!(target.0, number % btf.count());
            }
            prop_assert!(!named || btf.named(name).any(|found| found.id() == ty.id()));
        }
        // Serialized and parsed again, or copied one by one, types look the same.
        let mut copy = Builder::new();
        copy.append(&btf);
        for again in [Btf::parse(&btf.to_bytes()).unwrap(), copy.build().unwrap()] {
            let all = |btf: &Btf| btf.types().map(seen).collect::<Vec<_>>();
            prop_assert_eq!(all(&again), all(&btf));
        }
    }

    #[test]
    fn merging_changes_no_types_meaning(recipes in recipes()) {
        let btf = cook(&recipes).build().unwrap();
        let (merged, map) = btf.deduplicate().unwrap();
        prop_assert!(merged.count() <= btf.count());
        for ty in btf.types().filter(|ty| !ty.is_forward()) {
            let new = merged.ty(map[ty.id().index()]);
            prop_assert_eq!((new.kind(), new.name(), new.size()), (ty.kind(), ty.name(), ty.size()));
            let target = ty.target_id().map(|id| map[id.index()]);
            prop_assert_eq!(new.target_id(), target);
        }
        let (again, _) = merged.deduplicate().unwrap();
        prop_assert_eq!(again.count(), merged.count(), "once is enough");
    }

    #[test]
    fn any_table_can_be_looked_at(recipes in recipes()) {
        exercise(&cook(&recipes).build().unwrap().to_bytes());
    }

    #[test]
    fn mutated_tables_never_panic(
        recipes in recipes(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        cut: bool,
    ) {
        let mut bytes = cook(&recipes).build().unwrap().to_bytes();
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        exercise(&bytes);
    }
}

#[test]
fn a_mutated_kernel_table_never_panics() {
    let Some(bytes) = vmlinux() else { return };
    // A fixed pseudo-random sequence of offsets.
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap() % below
    };
    for round in 0..sample::cases(12) {
        let mut mutated = bytes.clone();
        for _ in 0..1 << (round % 4) {
            let at = next(mutated.len());
            mutated[at] ^= 1 << next(8);
        }
        if round % 3 == 0 {
            mutated.truncate(next(bytes.len()));
        }
        if let Ok(btf) = Btf::parse(&mutated) {
            let _ = btf.write_c(&mut String::new());
            assert!(btf.named("task_struct").count() < 10);
        }
    }
}
