mod clang;

use proptest::prelude::*;

use super::*;
use crate::btf::{Array, Builder, Encoding, Enumerator, Member, Param};

/// `r1 = imm`, an ALU instruction.
fn mov(imm: i32) -> RawInsn {
    RawInsn::new(0xb7, 1, 0, 0, imm)
}

/// `r1 = *(u32 *)(r2 + off)`.
fn load(off: i16) -> RawInsn {
    RawInsn::new(0x61, 1, 2, off, 0)
}

fn member(name: &str, ty: TypeId, bit_offset: u32) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    }
}

fn bits(name: &str, ty: TypeId, bit_offset: u32, width: u8) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset,
        bitfield: Some(width),
    }
}

/// A type table with strings for records.
struct Table {
    b: Builder,
    int: TypeId,
    uint: TypeId,
    ptr: TypeId,
}

fn table() -> Table {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let uint = b.int("unsigned int", 4, Encoding::Unsigned);
    let ptr = b.ptr(TypeId(0));
    Table { b, int, uint, ptr }
}

/// Relocates one instruction (and the slot after it) of an object with this table.
fn relocate(
    local: &Builder,
    target: &Btf,
    ty: TypeId,
    access: &str,
    kind: RelocationKind,
    insns: &mut [RawInsn],
) -> Result<Resolution, CoreError> {
    let mut local = local.clone();
    let access = local.string(access);
    let local = local.build().unwrap();
    let record = CoreRelo {
        insn_off: 0,
        ty,
        access,
        kind: kind as u32,
    };
    Relocator::new(&local, std::slice::from_ref(target)).relocate(insns, 0, &record)
}

/// The number that a relocation puts into a `mov` that contained `old`.
fn ask(
    local: &Builder,
    target: &Btf,
    ty: TypeId,
    access: &str,
    kind: RelocationKind,
    old: i32,
) -> Option<u64> {
    let mut insns = [mov(old)];
    let done = relocate(local, target, ty, access, kind, &mut insns).unwrap();
    match done.result {
        Relocated::Value(value) => assert_eq!(i64::from(insns[0].imm).cast_unsigned(), value),
        _ => assert!(is_poison(insns[0])),
    }
    done.value()
}

/// struct task___mine { int pid; struct { int flags; }; int args[4]; struct task *up; }
fn local_task(t: &mut Table) -> TypeId {
    let inner = t.b.structure("", 4, &[member("flags", t.int, 0)]);
    let args = t.b.array(Array {
        element: t.int,
        index: t.int,
        len: 4,
    });
    let members = [
        member("pid", t.int, 0),
        member("", inner, 32),
        member("args", args, 64),
        member("up", t.ptr, 192),
    ];
    t.b.structure("task___mine", 32, &members)
}

#[test]
fn fields_are_found_by_name_wherever_they_went() {
    use RelocationKind::FieldByteOffset;
    let mut local = table();
    let task = local_task(&mut local);
    let typedef = local.b.typedef("task_t", task);

    let mut t = table();
    let args = t.b.array(Array {
        element: t.int,
        index: t.int,
        len: 8,
    });
    let deep = t.b.union("", 32, &[member("args", args, 0)]);
    let deeper =
        t.b.structure("", 40, &[member("x", t.int, 0), member("", deep, 64)]);
    let real = t.b.structure(
        "task",
        64,
        &[
            member("flags", t.int, 0),
            member("", deeper, 64),
            member("pid", t.int, 448),
        ],
    );
    t.b.typedef("task_t", real);
    let target = t.b.build().unwrap();

    for (access, off, new) in [
        ("0:0", 0, 56),
        ("0:1:0", 4, 0),
        ("0:2:3", 20, 28),
        ("1:0", 32, 120),
    ] {
        for root in [task, typedef] {
            let mut insns = [load(off)];
            relocate(&local.b, &target, root, access, FieldByteOffset, &mut insns).unwrap();
            assert_eq!(insns[0], load(new), "{access}");
        }
    }
    let done = relocate(
        &local.b,
        &target,
        task,
        "0:2:3",
        FieldByteOffset,
        &mut [load(20)],
    )
    .unwrap();
    assert_eq!(done.access, "struct task___mine.args[3]");
    assert_eq!(done.local, "struct task___mine.args[3] (0:2:3 @ offset 20)");
    assert_eq!(
        done.target.as_deref(),
        Some("struct task.args[3] (0:1:1:0:3 @ offset 28)")
    );
}

#[test]
fn what_the_target_lacks_is_poison_or_zero() {
    use RelocationKind::{
        EnumvalExists, FieldByteOffset, FieldExists, TypeExists, TypeIdTarget, TypeSize,
    };
    let mut local = table();
    let task = local_task(&mut local);
    let value = Enumerator {
        name: "ON",
        bits: 1,
        signed: false,
    };
    let state = local.b.enumeration("state", 4, false, &[value]);
    let target = table().b.build().unwrap();

    let mut insns = [load(24)];
    let done = relocate(&local.b, &target, task, "0:3", FieldByteOffset, &mut insns).unwrap();
    assert_eq!(
        (done.result, done.target, insns[0]),
        (Relocated::Missing, None, poison())
    );
    assert_eq!(poison(), RawInsn::new(0x85, 0, 0, 0, 195_896_080));

    // Both slots of a 64-bit immediate.
    let mut insns = [RawInsn::new(0x18, 1, 0, 0, 24), RawInsn::default()];
    relocate(&local.b, &target, task, "0:3", FieldByteOffset, &mut insns).unwrap();
    assert_eq!(insns, [poison(); 2]);

    for (ty, access, kind, old) in [
        (task, "0:3", FieldExists, 1),
        (task, "0", TypeExists, 1),
        (task, "0", TypeSize, 32),
        (task, "0", TypeIdTarget, 99),
        (state, "0", EnumvalExists, 1),
    ] {
        assert_eq!(
            ask(&local.b, &target, ty, access, kind, old),
            Some(0),
            "{kind}"
        );
    }
}

#[test]
fn bitfields_give_offset_size_sign_and_shifts() {
    use RelocationKind::*;
    let mut local = table();
    let flags = [bits("low", local.int, 0, 3), bits("mid", local.uint, 3, 7)];
    let flags = local.b.structure("flags", 4, &flags);
    let mut t = table();
    // A bitfield that crosses 32 bits needs 64.
    t.b.structure(
        "flags",
        16,
        &[bits("mid", t.int, 92, 7), member("low", t.uint, 0)],
    );
    let target = t.b.build().unwrap();
    let ask = |access, kind, old| ask(&local.b, &target, flags, access, kind, old);

    assert_eq!(
        ask("0:1", FieldByteOffset, 77),
        Some(8),
        "bitfields' offsets aren't checked"
    );
    assert_eq!(ask("0:1", FieldByteSize, 4), Some(8));
    assert_eq!(ask("0:1", FieldSigned, 0), Some(1));
    assert_eq!(ask("0:1", FieldLshiftU64, 0), Some(64 - (92 + 7 - 64)));
    assert_eq!(ask("0:1", FieldRshiftU64, 57), Some(57));
    assert_eq!(
        ask("0:0", FieldByteSize, 4),
        Some(4),
        "a bitfield may become a whole member"
    );
    assert_eq!(ask("0:0", FieldSigned, 1), Some(0));
    assert_eq!(ask("0:0", FieldRshiftU64, 61), Some(32));
    // A load has one size; a bitfield's is not known.
    let done = relocate(
        &local.b,
        &target,
        flags,
        "0:0",
        FieldByteOffset,
        &mut [load(0)],
    )
    .unwrap();
    assert_eq!(done.result, Relocated::WrongSize);
}

#[test]
fn types_and_enumerators() {
    use RelocationKind::*;
    let mut local = table();
    let on = |name, bits| Enumerator {
        name,
        bits,
        signed: false,
    };
    let state = local
        .b
        .enumeration("state___old", 4, false, &[on("OFF", 0), on("ON___x", 1)]);
    let wide = local
        .b
        .enumeration64("wide", 8, false, &[on("HUGE", 1 << 40)]);
    let size = local.b.structure("size", 4, &[member("a", local.int, 0)]);
    let proto = local.b.prototype(
        local.int,
        &[Param {
            name: "x",
            ty: local.ptr,
        }],
    );
    let callback = local.b.ptr(proto);
    let callback = local.b.typedef("callback", callback);

    let mut t = table();
    t.b.enumeration("state", 4, false, &[on("ON", 0xffff_fff0)]);
    t.b.enumeration64("wide", 8, false, &[on("HUGE", 7 << 40)]);
    let big =
        t.b.structure("size", 12, &[member("b", t.int, 0), member("a", t.int, 32)]);
    let proto = t.b.prototype(
        t.int,
        &[Param {
            name: "y",
            ty: t.ptr,
        }],
    );
    let pointer = t.b.ptr(proto);
    t.b.typedef("callback", pointer);
    let target = t.b.build().unwrap();
    let ask = |ty, access, kind, old| ask(&local.b, &target, ty, access, kind, old);

    assert_eq!(ask(size, "0", TypeSize, 4), Some(12));
    assert_eq!(ask(size, "0", TypeExists, 1), Some(1));
    assert_eq!(ask(size, "0", TypeMatches, 1), Some(1));
    assert_eq!(ask(size, "0", TypeIdTarget, 0), Some(u64::from(big.0)));
    assert_eq!(ask(size, "0", TypeIdLocal, 0), Some(u64::from(size.0)));
    assert_eq!(ask(callback, "0", TypeExists, 1), Some(1));
    assert_eq!(ask(callback, "0", TypeMatches, 1), Some(1));
    assert_eq!(ask(state, "0", EnumvalExists, 1), Some(0), "OFF is gone");
    assert_eq!(
        ask(state, "1", EnumvalExists, 1),
        Some(1),
        "flavors don't count"
    );
    // libbpf always sign-extends 32 bits.
    assert_eq!(
        ask(state, "1", EnumvalValue, 1),
        Some(0xffff_ffff_ffff_fff0)
    );

    let imm = |value: u64| {
        let [low, high] = [value, value >> 32]
            .map(|half| u32::try_from(half & 0xffff_ffff).unwrap().cast_signed());
        [
            RawInsn::new(0x18, 1, 0, 0, low),
            RawInsn::new(0, 0, 0, 0, high),
        ]
    };
    let mut insns = imm(1 << 40);
    relocate(&local.b, &target, wide, "0", EnumvalValue, &mut insns).unwrap();
    assert_eq!(insns, imm(7 << 40));
}

#[test]
fn loads_change_their_size_where_that_is_safe() {
    let mut local = table();
    let long = local.b.int("unsigned long", 8, Encoding::Unsigned);
    let signed = local.b.int("long", 8, Encoding::Signed);
    let pair = local
        .b
        .structure("pair", 16, &[member("u", long, 0), member("s", signed, 64)]);
    let mut t = table();
    t.b.structure("pair", 8, &[member("s", t.int, 0), member("u", t.uint, 32)]);
    let target = t.b.build().unwrap();
    let kind = RelocationKind::FieldByteOffset;

    let wide = |off| RawInsn::new(0x79, 1, 2, off, 0);
    let mut insns = [wide(0)];
    relocate(&local.b, &target, pair, "0:0", kind, &mut insns).unwrap();
    assert_eq!(insns[0], load(4), "u64 became u32");
    let mut insns = [wide(8)];
    let done = relocate(&local.b, &target, pair, "0:1", kind, &mut insns).unwrap();
    assert_eq!(
        (done.result, insns[0]),
        (Relocated::WrongSize, poison()),
        "a sign would be lost"
    );
    let error = relocate(&local.b, &target, pair, "0:0", kind, &mut [load(0)]).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("accesses 4 bytes, but the field has 8"),
        "{error}"
    );
    // An ALU instruction has no size.
    assert_eq!(ask(&local.b, &target, pair, "0:1", kind, 8), Some(0));
}

#[test]
fn candidates_must_agree() {
    let mut local = table();
    let s = local.b.structure(
        "s",
        8,
        &[member("a", local.int, 0), member("b", local.int, 32)],
    );
    let mut t = table();
    t.b.structure("s", 8, &[member("a", t.int, 0)]);
    t.b.structure("s___2", 8, &[member("a", t.int, 32), member("b", t.int, 0)]);
    t.b.union("s", 4, &[member("a", t.int, 0)]);
    let target = t.b.build().unwrap();
    let kind = RelocationKind::FieldByteOffset;
    let error = relocate(&local.b, &target, s, "0:0", kind, &mut [load(0)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CO-RE relocation byte_off of struct s.a at instruction 0: ambiguous: the target has \
         struct s.a (0:0 @ offset 0) (0) and struct s___2.a (0:0 @ offset 4) (4); rename or remove one"
    );

    // An access that only one candidate has narrows the candidates for the rest of the
    // object.
    let mut with_strings = local.b.clone();
    let (a, b) = (with_strings.string("0:0"), with_strings.string("0:1"));
    let btf = with_strings.build().unwrap();
    let targets = [target];
    let mut relocator = Relocator::new(&btf, &targets);
    let record = |access| CoreRelo {
        insn_off: 0,
        ty: s,
        access,
        kind: 0,
    };
    let mut insns = [load(4), load(0)];
    relocator.relocate(&mut insns, 0, &record(b)).unwrap();
    relocator.relocate(&mut insns, 1, &record(a)).unwrap();
    assert_eq!(insns, [load(0), load(4)]);
}

#[test]
fn a_module_is_asked_for_what_the_kernel_lacks() {
    let mut local = table();
    let s = local
        .b
        .structure("only_module", 4, &[member("a", local.int, 0)]);
    let access = local.b.string("0:0");
    let local = local.b.build().unwrap();
    let base = table();
    let (int, kernel) = (base.int, base.b.build().unwrap());
    let mut module = Builder::split(&kernel);
    module.structure("only_module", 12, &[member("a", int, 64)]);
    let targets = [kernel, module.build().unwrap()];
    let record = CoreRelo {
        insn_off: 0,
        ty: s,
        access,
        kind: 0,
    };
    let mut insns = [load(0)];
    Relocator::new(&local, &targets)
        .relocate(&mut insns, 0, &record)
        .unwrap();
    assert_eq!(insns[0].off, 8);
}

#[test]
fn broken_records_and_instructions_are_errors_that_name_the_access() {
    use RelocationKind::*;
    let mut local = table();
    let task = local_task(&mut local);
    let anonymous = local.b.structure("", 4, &[member("a", local.int, 0)]);
    let target = local.b.build().unwrap();
    let error = |ty, access: &str, kind, insn| {
        relocate(&local.b, &target, ty, access, kind, &mut [insn])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(task, "0:0", FieldByteOffset, load(12)),
        "CO-RE relocation byte_off of struct task___mine.pid at instruction 0: \
         the instruction contains 12, but the object's own BTF says 0"
    );
    for access in [
        "",
        ":",
        "0:",
        "x",
        "0:9",
        "0:0:1",
        "-1",
        "+1",
        "0:2:4",
        "0 :0",
        "99999999999",
    ] {
        let text = error(task, access, FieldByteOffset, load(0));
        assert!(
            text.contains(&format!(
                "struct task___mine at instruction 0: access string `{access}`"
            )),
            "{text}"
        );
    }
    assert!(error(task, "0:1", TypeSize, mov(0)).contains("access string `0:1`"));
    assert!(error(anonymous, "0:0", FieldByteOffset, load(0)).contains("anonymous type"));
    assert!(error(task, "0:2:1", FieldSigned, mov(0)).contains("array's element"));
    assert!(
        error(task, "0:0", FieldByteOffset, RawInsn::new(0x95, 0, 0, 0, 0)).contains("opcode 0x95")
    );
    assert!(
        error(task, "0:0", FieldByteOffset, RawInsn::new(0xbf, 1, 2, 0, 0)).contains("opcode 0xbf")
    );
    assert!(
        error(task, "0:0", FieldByteOffset, RawInsn::new(0x18, 1, 0, 0, 0))
            .contains("unexpected form")
    );

    let btf = local.b.build().unwrap();
    let targets = [target];
    let mut relocator = Relocator::new(&btf, &targets);
    let record = CoreRelo {
        insn_off: 0,
        ty: task,
        access: 9999,
        kind: 0,
    };
    let error = relocator.relocate(&mut [load(0)], 0, &record).unwrap_err();
    assert_eq!(error.fault, Fault::String(9999));
    let record = CoreRelo { kind: 13, ..record };
    let error = relocator.relocate(&mut [load(0)], 7, &record).unwrap_err();
    assert_eq!((error.fault, error.insn), (Fault::Kind(13), Pc(7)));
}

#[test]
fn an_object_is_its_own_target_when_there_is_no_other() {
    let mut local = table();
    let task = local_task(&mut local);
    let target = local.b.build().unwrap();
    for (access, off) in [("0:0", 0), ("0:1:0", 4), ("0:2:1", 12)] {
        let mut insns = [load(off)];
        relocate(
            &local.b,
            &target,
            task,
            access,
            RelocationKind::FieldByteOffset,
            &mut insns,
        )
        .unwrap();
        assert_eq!(insns[0], load(off));
    }
}

#[test]
fn types_that_multiply_end() {
    use RelocationKind::{FieldByteOffset, TypeExists, TypeMatches};
    let mut t = table();
    let mut inner = t.int;
    let mut proto = t.int;
    for _ in 0..60 {
        inner =
            t.b.structure("s", 4, &[member("a", inner, 0), member("b", inner, 0)]);
        let param = |name| Param { name, ty: proto };
        let twice = [param("a"), param("b")];
        proto = t.b.prototype(t.int, &twice);
    }
    let anonymous = (0..60).fold(t.int, |inner, _| {
        t.b.union("", 4, &[member("", inner, 0), member("", inner, 0)])
    });
    let deep = t.b.structure(
        "deep",
        4,
        &[member("", anonymous, 0), member("x", t.int, 0)],
    );
    let callback = t.b.typedef("callback", proto);
    let target = t.b.build().unwrap();
    for (ty, access, kind) in [
        (inner, "0", TypeMatches),
        (callback, "0", TypeMatches),
        (callback, "0", TypeExists),
    ] {
        let done = relocate(&t.b, &target, ty, access, kind, &mut [mov(1)]);
        assert!(done.is_ok(), "{kind}: {done:?}");
    }
    let done = relocate(&t.b, &target, deep, "0:1", FieldByteOffset, &mut [load(0)]);
    assert!(done.is_ok() || done.is_err_and(|error| error.fault == Fault::TooDeep));
}

proptest! {
    #[test]
    fn any_record_on_any_instruction_has_an_answer(
        ty in 0u32..12, access in "[0-4]?(:[0-4]){0,4}|[0-9:-]{0,6}", kind in 0u32..15,
        slots in prop::collection::vec(any::<[u8; 8]>(), 0..3), at in 0usize..4, same: bool,
    ) {
        let mut local = table();
        local_task(&mut local);
        let access = local.b.string(&access);
        let btf = local.b.build().unwrap();
        let mut other = table();
        other.b.structure("task", 4, &[member("args", other.int, 0), member("pid", other.uint, 7)]);
        let targets = [if same { btf.clone() } else { other.b.build().unwrap() }];
        let mut insns: Vec<_> = slots.into_iter().map(RawInsn::from_bytes).collect();
        let before = insns.clone();
        let record = CoreRelo { insn_off: 0, ty: TypeId(ty), access, kind };
        match Relocator::new(&btf, &targets).relocate(&mut insns, at, &record) {
            Ok(done) if done.value().is_none() => prop_assert!(is_poison(insns[at])),
            Ok(_) => prop_assert!(at < before.len()),
            Err(error) => {
                prop_assert!(error.to_string().contains(&error.access));
                prop_assert_eq!(error.insn.index(), at);
            }
        }
    }
}
