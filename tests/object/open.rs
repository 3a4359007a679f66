//! Contents of the committed objects: programs, maps, global data, externs, notes.

use crate::shared;

use bpflab::isa::{PseudoKind, RawInsn};
use bpflab::object::{ExternKind, Problem, Target};
use bpflab::program::{Initial, MapDef, MapOrigin, Pinning, Program};
use bpflab::spec::{AttachType, MapFlags, MapType, ProgFlags, ProgType};
use bpflab::util::{MapId, Pc};
use bpflab::verifier::{Feature, Options, verify};
use bpflab::{Object, ObjectError};
use serde_json::json;
use shared::{Need, skip};

/// `BPF_LD | BPF_IMM | BPF_DW` and `BPF_JMP | BPF_CALL`.
const LOAD_64: u8 = 0x18;
const CALL: u8 = 0x85;

fn open(name: &str) -> Object {
    let path = format!("{}/tests/objects/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    let mut object = Object::open(path).unwrap();
    object.set_target(Target::Own);
    object
}

fn programs(object: &Object) -> Vec<Program> {
    object.programs().collect::<Result<_, _>>().unwrap()
}

fn names(programs: &[Program]) -> Vec<&str> {
    programs
        .iter()
        .map(|program| program.name.as_str())
        .collect()
}

/// The map and offset of each immediate that refers to global data.
fn data_references(program: &Program) -> Vec<(&str, i32)> {
    let pairs = program.insns.windows(2);
    pairs
        .filter(|pair| pair[0].opcode == LOAD_64 && pair[0].src() == PseudoKind::MapIdxValue.src())
        .map(|pair| {
            let map = program.map(MapId(pair[0].imm.cast_unsigned())).unwrap();
            (map.name.as_str(), pair[1].imm)
        })
        .collect()
}

#[test]
fn the_example_is_one_tracepoint_program() -> Result<(), ObjectError> {
    let object = Object::open(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/bpf/write_hist.bpf.o"
    ))?;
    assert_eq!(object.name(), "write_hist");
    let [entry] = object.entries() else {
        panic!("{:?}", object.entries())
    };
    assert_eq!(entry.prog_type(), Some(ProgType::Tracepoint));
    assert_eq!(entry.attach_target(), Some("syscalls/sys_enter_write"));
    let program = object.program(entry.name())?;
    assert_eq!(program.license, object.license());
    let line = program.source(Pc(0)).unwrap();
    assert!(line.file.ends_with("write_hist.bpf.c"), "{}", line.file);
    Ok(())
}

#[test]
fn global_data_is_maps_by_libbpfs_names() {
    let object = open("globals");
    let found: Vec<_> = object
        .maps()
        .iter()
        .map(|map| {
            (
                map.name.as_str(),
                map.flags,
                map.frozen,
                map.initial.is_empty(),
            )
        })
        .collect();
    let read = MapFlags::RDONLY_PROG | MapFlags::MMAPABLE;
    let write = MapFlags::MMAPABLE;
    for expected in [
        ("globals.rodata", read, true, false),
        (".rodata.text", read, true, false),
        ("globals.data", write, false, false),
        (".data.tagged", write, false, false),
        ("globals.bss", write, false, true),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    assert_eq!(found.len(), 5);
    for map in object.maps() {
        assert_eq!(
            (map.map_type, map.key_size, map.max_entries),
            (MapType::Array, 4, 1)
        );
        assert!(matches!(map.origin, MapOrigin::Section(_)));
    }
    assert_eq!(object.map(".bss").unwrap().name, "globals.bss");
}

#[test]
fn variables_are_read_and_set_by_name() {
    let mut object = open("globals");
    assert_eq!(object.global("total").unwrap(), 100);
    assert_eq!(
        object.global("limits").unwrap(),
        json!({"low": 3, "high": 1u64 << 40})
    );
    assert_eq!(object.global("offset").unwrap(), -7, "static ones too");
    assert_eq!(object.global("by_cpu").unwrap(), json!([0, 0, 0, 0]));

    object.set_global("wanted_pid", 42).unwrap();
    object.set_global("limits.high", 7).unwrap();
    object.set_global("by_cpu[2]", 9).unwrap();
    object.set_global("tagged", json!([7, 8, 9])).unwrap();
    assert_eq!(
        object.global("limits").unwrap(),
        json!({"low": 3, "high": 7})
    );
    assert_eq!(object.global("by_cpu[2]").unwrap(), 9);
    let program = object.program("touch_globals").unwrap();
    let rodata = program
        .maps
        .iter()
        .find(|map| map.name == "globals.rodata")
        .unwrap();
    let variable = object
        .globals()
        .iter()
        .find(|global| global.name == "wanted_pid")
        .unwrap();
    let start = variable.offset as usize;
    assert_eq!(
        rodata.initial_value(&[0; 4]).unwrap()[start..start + 4],
        [42, 0, 0, 0]
    );

    for (path, part) in [
        ("wanted", "no such variable; there are '"),
        ("limits.mid", "no member `mid`"),
        ("by_cpu[4]", "outside of the array"),
        ("wanted_pid.x", "struct or union expected"),
    ] {
        let text = object.set_global(path, 1).unwrap_err().to_string();
        assert!(
            text.contains(&format!("global '{path}'")) && text.contains(part),
            "{text}"
        );
    }
    assert!(
        object.set_global("tagged[0]", 256).is_err(),
        "no room for 256 in a byte"
    );
}

#[test]
fn references_to_data_name_map_and_byte() {
    let object = open("globals");
    let program = object.program("touch_globals").unwrap();
    let references = data_references(&program);
    for name in [
        "wanted_pid",
        "limits",
        "greeting",
        "seen",
        "by_cpu",
        "total",
        "tagged",
    ] {
        let global = object
            .globals()
            .iter()
            .find(|global| global.name == name)
            .unwrap();
        let map = &object.maps()[global.map.index()];
        let found = references.iter().any(|(of, byte)| {
            let range = global.offset..global.offset + global.size;
            *of == map.name && range.contains(&byte.cast_unsigned())
        });
        assert!(found, "{name}: {references:?}");
    }
}

#[test]
fn programs_of_a_section_stand_in_its_order() {
    let object = open("programs_in_section");
    let programs = programs(&object);
    assert_eq!(names(&programs), ["first", "second", "third"]);
    for program in &programs {
        assert_eq!(program.section, "tp/sched/sched_switch");
        assert_eq!(
            program.insns.last().unwrap().opcode,
            0x95,
            "each ends with exit"
        );
    }
}

#[test]
fn a_question_mark_keeps_a_program_from_loading() {
    let mut object = open("optional_programs");
    assert_eq!(names(&programs(&object)), ["always"]);
    assert_eq!(
        object.program("nor_this").unwrap().section,
        "raw_tp/sys_enter"
    );
    object.load_only(["nor_this", "not_unless_asked"]).unwrap();
    assert_eq!(names(&programs(&object)), ["not_unless_asked", "nor_this"]);
    let text = object.load_only(["nobody"]).unwrap_err().to_string();
    assert!(
        text.contains("program 'nobody': no such program; there are 'not_unless_asked'"),
        "{text}"
    );
    object.entry_mut("always").unwrap().set_autoload(true);
    assert_eq!(programs(&object).len(), 3);
}

#[test]
fn subprograms_follow_in_the_order_of_the_calls() {
    let object = open("subprograms");
    let program = object.program("calls_both").unwrap();
    let functions: Vec<_> = program
        .subprograms
        .iter()
        .map(|function| (function.name.as_str(), function.global))
        .collect();
    let order = [
        ("calls_both", true),
        ("deep", false),
        ("square", false),
        ("clamp", true),
    ];
    assert_eq!(functions, order);
    // Every call targets the start of a function.
    for (slot, insn) in program.insns.iter().enumerate() {
        if insn.opcode == CALL && insn.src() == 1 {
            let target = i64::try_from(slot).unwrap() + 1 + i64::from(insn.imm);
            let starts = program
                .subprograms
                .iter()
                .any(|f| i64::from(f.start.0) == target);
            assert!(starts, "call at {slot} to {target}");
        }
    }
    assert_eq!(program.func_info.len(), 4);
    let starts: Vec<_> = program.func_info.iter().map(|info| info.insn_off).collect();
    let expected: Vec<_> = program
        .subprograms
        .iter()
        .map(|function| function.start.0)
        .collect();
    assert_eq!(starts, expected);
    assert!(
        program
            .lines
            .windows(2)
            .all(|pair| pair[0].insn_off < pair[1].insn_off)
    );
    let in_square = program.subprograms[2].start;
    assert_eq!(
        program.source(in_square).unwrap().text.trim(),
        "static __noinline __u64 square(__u64 x)"
    );
    assert_eq!(program.subprogram(in_square).unwrap().name, "square");

    let other = object.program("calls_one").unwrap();
    assert_eq!(other.subprograms.len(), 2, "only what is reached");
}

#[test]
fn functions_may_stand_in_any_section() {
    let object = open("subprograms_elsewhere");
    let program = object.program("calls_all").unwrap();
    let called: Vec<_> = program
        .subprograms
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(
        called,
        ["calls_all", "beside", "beside_global", "elsewhere"]
    );
    assert!(
        object
            .notes()
            .iter()
            .any(|note| note.text.contains("'beside' is static"))
    );
}

#[test]
fn an_unknown_section_is_an_error_until_a_type_is_set() {
    let mut object = open("unknown_section");
    let error = object.programs().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("'bpflab/unheard_of'"), "{error}");
    object.entry_mut("of_no_type").unwrap().set_autoload(false);
    assert_eq!(names(&programs(&object)), ["known"]);
    object.entry_mut("of_no_type").unwrap().set_autoload(true);
    let notes: Vec<_> = object
        .notes()
        .iter()
        .map(|note| note.section.as_str())
        .collect();
    assert_eq!(notes, ["bpflab/unheard_of", ".bpflab.note"]);
    let text = object.program("of_no_type").unwrap_err().to_string();
    assert!(
        text.contains("section 'bpflab/unheard_of'") && text.contains("set the type"),
        "{text}"
    );
    object
        .entry_mut("of_no_type")
        .unwrap()
        .set_prog_type(ProgType::Xdp);
    assert_eq!(programs(&object)[0].prog_type, ProgType::Xdp);
}

#[test]
fn section_names_say_type_hook_and_target() {
    use AttachType as At;
    use ProgType as Type;
    let object = open("contexts");
    for (name, prog_type, attach, target) in [
        (
            "raw_tracepoint",
            Type::RawTracepoint,
            None,
            Some("sys_enter"),
        ),
        (
            "btf_tracepoint",
            Type::Tracing,
            Some(At::TraceRawTp),
            Some("sched_switch"),
        ),
        ("xdp_length", Type::Xdp, Some(At::Xdp), None),
        ("tc_mark", Type::SchedCls, None, None),
        ("socket_filter", Type::SocketFilter, None, None),
        ("on_sleep", Type::Kprobe, None, Some("do_nanosleep")),
        ("on_main", Type::Kprobe, None, Some("/bin/sh:main+0x10")),
        ("on_sample", Type::PerfEvent, None, None),
        (
            "let_pass",
            Type::CgroupSkb,
            Some(At::CgroupInetEgress),
            None,
        ),
        (
            "on_read",
            Type::Tracing,
            Some(At::TraceFentry),
            Some("vfs_read"),
        ),
        (
            "sleeps_and_changes",
            Type::Tracing,
            Some(At::ModifyReturn),
            Some("bpf_fentry_test1"),
        ),
        ("allow_open", Type::Lsm, Some(At::LsmMac), Some("file_open")),
        (
            "each_task",
            Type::Tracing,
            Some(At::TraceIter),
            Some("task"),
        ),
        ("from_user", Type::Syscall, None, None),
    ] {
        let program = object.program(name).unwrap();
        assert_eq!(program.prog_type, prog_type, "{name}");
        assert_eq!(program.expected_attach_type, attach, "{name}");
        assert_eq!(program.attach_target.as_deref(), target, "{name}");
        let sleeps = ["sleeps_and_changes", "from_user"].contains(&name);
        assert_eq!(
            program.flags.contains(ProgFlags::SLEEPABLE),
            sleeps,
            "{name}"
        );
    }
}

#[test]
fn declared_maps_have_every_attribute() {
    let object = open("map_kinds");
    let map = object.map("entries").unwrap();
    assert_eq!(map.map_type, MapType::Hash);
    assert_eq!(
        (map.key_size, map.value_size, map.max_entries),
        (4, 32, 1024)
    );
    assert_eq!(map.flags, MapFlags::NO_PREALLOC);
    assert_eq!(map.pinning, Pinning::ByName);
    let btf = object.btf().unwrap();
    assert_eq!(btf.type_name(map.value_type.unwrap()), "struct entry");
    let map = object.map("sizes_only").unwrap();
    assert_eq!((map.key_size, map.value_size), (12, 20));
    assert_eq!((map.key_type, map.value_type), (None, None));
    assert_eq!(object.map("records").unwrap().max_entries, 256 * 1024);
    let text = object.map("nothing").unwrap_err().to_string();
    assert!(
        text.contains("map 'nothing': no such map; there are 'per_cpu', 'entries'"),
        "{text}"
    );
}

#[test]
fn maps_of_maps_and_programs_start_with_what_they_declare() {
    let object = open("map_in_map");
    let id = |name: &str| {
        MapId::from_index(
            object
                .maps()
                .iter()
                .position(|map| map.name == name)
                .unwrap(),
        )
    };
    let outer = object.map("outer_array").unwrap();
    let expected = [
        Initial::Map {
            index: 0,
            map: id("inner_a"),
        },
        Initial::Map {
            index: 3,
            map: id("inner_b"),
        },
    ];
    assert_eq!(outer.initial, expected);
    let inner = outer.inner.as_ref().unwrap();
    assert_eq!(
        (inner.name.as_str(), inner.map_type, inner.value_size),
        ("outer_array.inner", MapType::Array, 8)
    );
    let inner = object.map("outer_hash").unwrap().inner.as_ref().unwrap();
    assert_eq!((inner.map_type, inner.max_entries), (MapType::Hash, 5));

    let object = open("tail_calls");
    let program = |index, name: &str| Initial::Program {
        index,
        name: name.to_owned(),
    };
    assert_eq!(
        object.map("jumps").unwrap().initial,
        [program(0, "last"), program(2, "again")]
    );
}

#[test]
fn maps_of_the_old_form_are_read() {
    let object = open("legacy_maps");
    let map = object.map("old_hash").unwrap();
    assert_eq!(
        (map.map_type, map.key_size, map.value_size, map.max_entries),
        (MapType::Hash, 4, 8, 16)
    );
    assert_eq!(map.flags, MapFlags::NO_PREALLOC);
    let program = object.program("count_old").unwrap();
    let used: Vec<_> = program
        .insns
        .iter()
        .filter(|insn| insn.opcode == LOAD_64 && insn.src() == PseudoKind::MapIdx.src())
        .map(|insn| {
            object.maps()[MapId(insn.imm.cast_unsigned()).index()]
                .name
                .as_str()
        })
        .collect();
    assert_eq!(used, ["old_array", "old_hash"]);
}

#[test]
fn the_kernels_configuration_reaches_its_map() {
    let mut object = open("kconfig");
    let error = object.program("read_config").unwrap_err();
    assert!(matches!(error.problem(), Problem::Unresolved(_)));
    let text = error.to_string();
    assert!(
        text.contains("CONFIG_BPF_SYSCALL") && text.contains("kconfig.bpf.c"),
        "{text}"
    );

    object.set_kconfig("CONFIG_HZ", "1000");
    object
        .read_kconfig("CONFIG_BPF_SYSCALL=y\nCONFIG_HZ=250\nCONFIG_BPF_JIT=m\nCONFIG_DEFAULT_HOSTNAME=\"(none)\"\n")
        .unwrap();
    let program = object.program("read_config").unwrap();
    let map = program
        .maps
        .iter()
        .find(|map| map.origin == MapOrigin::Kconfig)
        .unwrap();
    assert!(map.frozen && map.flags.contains(MapFlags::RDONLY_PROG));
    let value = map.initial_value(&[0; 4]).unwrap();
    let at = |name: &str| {
        let ext = object
            .externs()
            .iter()
            .find(|ext| ext.name == name)
            .unwrap();
        let ExternKind::Kconfig(variable) = ext.kind else {
            panic!("{ext:?}")
        };
        let start = variable.offset as usize;
        let mut bytes = value.get(start..).unwrap_or_default().to_vec();
        bytes.resize(variable.size as usize, 0);
        bytes
    };
    assert_eq!(at("CONFIG_HZ"), 1000u32.to_le_bytes());
    assert_eq!(at("CONFIG_BPF_SYSCALL"), [1]);
    assert_eq!(at("CONFIG_BPF_JIT"), 2u32.to_le_bytes());
    assert_eq!(at("CONFIG_DEFAULT_HOSTNAME")[..7], *b"(none)\0");
    assert_eq!(at("CONFIG_BPFLAB_IS_NOT_THERE"), [0; 8], "weak ones are 0");
    assert_eq!(at("LINUX_KERNEL_VERSION"), 0x061200u32.to_le_bytes());

    object.set_kconfig("CONFIG_BPF_SYSCALL", "7");
    let text = object.program("read_config").unwrap_err().to_string();
    assert!(
        text.contains("7 is a number, but the variable is a bool"),
        "{text}"
    );
}

#[test]
fn kernel_symbols_are_addresses_ids_or_poisoned_calls() {
    let mut object = open("ksyms");
    let text = object.program("read_symbols").unwrap_err().to_string();
    assert!(
        text.contains("extern 'vfs_read'") && text.contains("set_ksym"),
        "{text}"
    );
    object.read_kallsyms("ffffffff81000010 T vfs_write\nffffffff81000020 T vfs_read\n");
    let program = object.program("read_symbols").unwrap();
    let address = program
        .insns
        .windows(2)
        .find(|pair| pair[0].opcode == LOAD_64 && pair[0].src() == 0 && pair[0].imm != 0);
    let [low, high] = address.unwrap() else {
        panic!()
    };
    assert_eq!((low.imm, high.imm), (0x8100_0020u32.cast_signed(), -1));
    let calls: Vec<_> = program
        .insns
        .iter()
        .filter(|insn| insn.opcode == CALL)
        .collect();
    let kfuncs = calls.iter().filter(|insn| insn.src() == 2).count();
    assert!(kfuncs >= 2, "{calls:?}");
    for insn in calls.iter().filter(|insn| insn.src() == 2) {
        let function = program
            .kernel_btf
            .as_ref()
            .unwrap()
            .ty(bpflab::util::TypeId(insn.imm.cast_unsigned()));
        assert!(function.name().starts_with("bpf"), "{function:?}");
    }
}

#[test]
fn accesses_that_the_target_lacks_are_poisoned() {
    let object = open("core_unresolvable");
    let program = object.program("guarded").unwrap();
    assert!(
        program.accesses.iter().all(|access| !access.poisoned),
        "the object has its own types"
    );
    assert!(
        program
            .accesses
            .iter()
            .any(|a| a.path == "struct task_struct.bpflab_no_such_field")
    );

    // A kernel whose task_struct has no such field.
    let mut builder = bpflab::btf::Builder::new();
    let int = builder.int("int", 4, bpflab::btf::Encoding::Signed);
    let pid = bpflab::btf::Member {
        name: "pid",
        ty: int,
        bit_offset: 512,
        bitfield: None,
    };
    builder.structure("task_struct", 128, &[pid]);
    let mut object = object;
    object.set_target(Target::Kernel(builder.build().unwrap()));
    let program = object.program("guarded").unwrap();
    let poisoned: Vec<_> = program
        .accesses
        .iter()
        .filter(|access| access.poisoned)
        .collect();
    assert_eq!(poisoned.len(), 1);
    assert_eq!(poisoned[0].path, "struct task_struct.bpflab_no_such_field");
    assert_eq!(
        program.insns[poisoned[0].pc.index()],
        bpflab::object::core::poison()
    );
    assert_eq!(program.core_access(poisoned[0].pc), Some(poisoned[0]));
    let moved = program.insns.iter().any(|insn: &RawInsn| insn.imm == 64);
    assert!(moved, "pid is at byte 64 there");
}

#[test]
fn programs_without_a_type_get_one_by_name_or_pattern() {
    let mut object = open("set_by_tool");
    let untyped = |object: &Object| -> Vec<String> {
        let entries = object.untyped();
        entries.map(|entry| entry.name().to_owned()).collect()
    };
    assert_eq!(untyped(&object), ["numbered", "classify"]);
    assert_eq!(object.programs().filter(Result::is_err).count(), 2);
    for (pattern, nearest) in [("2/8", "2/7"), ("clasify", "classify")] {
        let error = object.set_types(pattern, ProgType::SchedCls, None);
        let text = error.unwrap_err().to_string();
        let wanted = format!("no program or section has this name; there are '{nearest}'");
        assert!(text.contains(&wanted), "{text}");
    }
    let attach = Some(AttachType::TcxIngress);
    assert_eq!(
        object.set_types("2/*", ProgType::SchedCls, attach).unwrap(),
        1
    );
    assert_eq!(untyped(&object), ["classify"]);
    assert_eq!(object.set_untyped(ProgType::SchedAct, None), 1);
    let made = programs(&object);
    let types: Vec<_> = made
        .iter()
        .map(|program| (program.prog_type, program.expected_attach_type))
        .collect();
    assert_eq!(
        types,
        [(ProgType::SchedCls, attach), (ProgType::SchedAct, None)]
    );
    // The type from the section name is replaced, too.
    assert_eq!(object.set_types("send", ProgType::Kprobe, None).unwrap(), 1);
    assert_eq!(object.program("send").unwrap().prog_type, ProgType::Kprobe);
}

#[test]
fn a_pinning_of_another_loader_is_told_and_not_shared() {
    let object = open("set_by_tool");
    assert_eq!(object.map("outer").unwrap().pinning, Pinning::Other(16));
    let mut notes = object.notes().iter();
    assert!(
        notes.any(|note| note.text.contains("'outer' has pinning 16")),
        "{:?}",
        object.notes()
    );
}

#[test]
fn the_running_kernels_configuration_is_the_default() {
    const FILE: &str = "/proc/config.gz";
    if !std::path::Path::new(FILE).exists() {
        return skip(Need::Feature, format_args!("no {FILE}"));
    }
    let values = |object: &Object| {
        let mut maps = object.maps().iter();
        let map = maps.find(|map| map.origin == MapOrigin::Kconfig).unwrap();
        map.initial_value(&[0; 4]).unwrap().to_vec()
    };
    let path = format!("{}/tests/objects/kconfig.bpf.o", env!("CARGO_MANIFEST_DIR"));
    let mut running = Object::open(path).unwrap();
    running.program("read_config").unwrap();

    let mut own = open("kconfig");
    assert_ne!(values(&own), values(&running));
    own.read_kconfig_file(FILE).unwrap();
    assert_eq!(values(&own), values(&running));

    // Explicit values take precedence, and for another kernel the running one's values are
    // ignored.
    running.set_kconfig("CONFIG_HZ", "12345");
    assert!(
        values(&running)
            .windows(4)
            .any(|word| word == 12345u32.to_le_bytes())
    );
    running.set_target(Target::Own);
    assert!(running.program("read_config").is_err());
}

#[test]
fn maps_that_are_descriptors_are_defined_by_hand() {
    let mut object = open("bpftrace_0_17");
    assert_eq!(object.license(), "GPL", "as bpftrace loads it");
    let name = "tracepoint:syscalls:sys_enter_openat";
    let text = object.program(name).unwrap_err().to_string();
    assert!(
        text.contains("a map by descriptor 0") && text.contains("define_descriptor"),
        "{text}"
    );
    let counts = MapDef::new("fd:0", MapType::Hash, 8, 8, 1);
    object.define_descriptor(0, counts);
    let counts = MapDef::new("opens", MapType::Hash, 16, 8, 1024);
    object.define_descriptor(0, counts);
    assert_eq!(
        object.maps().len(),
        1,
        "a second definition replaces the first"
    );
    let program = object.program(name).unwrap();
    assert_eq!(program.prog_type, ProgType::Tracepoint);
    assert_eq!(
        program.attach_target.as_deref(),
        Some("syscalls/sys_enter_openat")
    );

    object.define_descriptor(1, MapDef::new("events", MapType::PerfEventArray, 4, 4, 0));
    let mut vm = bpflab::Vm::new(object).unwrap();
    vm.world().task().set_comm("openat");
    let event = bpflab::vm::events::Event::input(ProgType::Tracepoint, vec![0; 64]);
    for _ in 0..3 {
        vm.run(name, &event).unwrap();
    }
    let mut key = [0; 16];
    key[..6].copy_from_slice(b"openat");
    let count = vm.map("opens").unwrap().get::<[u8; 16], u64>(&key).unwrap();
    assert_eq!(count, Some(3));
}

#[test]
fn what_a_tool_sets_of_maps_is_needed_where_it_is_used() {
    let mut object = open("set_by_tool");
    let judge = |object: &Object, name: &str| {
        let program = std::sync::Arc::new(object.program(name).unwrap());
        verify(&program, &Options::default())
    };
    for name in ["find_inner", "find_sized"] {
        let why = judge(&object, name).outcome.unwrap_err();
        let unjudged = why.unjudged().unwrap_or_else(|| panic!("{name}: {why:?}"));
        assert_eq!(unjudged.missing()[0].feature, Feature::MapShape, "{name}");
    }
    // The map operations of these programs are the same for all sizes.
    for name in ["send", "trace", "sample"] {
        assert!(judge(&object, name).verdict.is_accepted(), "{name}");
    }

    let like = object.map("like").unwrap().clone();
    let outer = object.map("outer").unwrap().clone();
    object.map_mut("outer").unwrap().set_inner(like).unwrap();
    object.map_mut("sized").unwrap().set_value_size(8).unwrap();
    for name in ["find_inner", "find_sized"] {
        let verdict = judge(&object, name).verdict;
        assert!(verdict.is_accepted(), "{name}: {}", verdict.message);
    }
    let mut changed = object.map_mut("outer").unwrap();
    let text = changed.set_inner(outer).unwrap_err().to_string();
    assert!(text.contains("maps nest only once"), "{text}");
    let mut like = object.map_mut("like").unwrap();
    let error = like.set_inner(MapDef::new("x", MapType::Array, 4, 8, 1));
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("a map of type array has no inner maps"),
        "{text}"
    );
}

#[test]
fn programs_whose_btf_the_kernel_refuses_are_judged_without_it() {
    let object = open("extern_function");
    let refusal = object.btf_refusal().unwrap();
    assert_eq!(refusal.reason, "Invalid func linkage");
    assert!(refusal.to_string().contains("FUNC bpflab_elsewhere"));
    let program = std::sync::Arc::new(object.program("calls_global").unwrap());
    assert!(program.btf_refused && program.btf.is_some());
    let judged = verify(&program, &Options::default());
    assert!(judged.verdict.is_accepted(), "{}", judged.verdict.message);
    // With its types the function would be global and verified on its own, with a pointer
    // to a number that may be null.
    let mut typed = Program::clone(&program);
    typed.btf_refused = false;
    let typed = verify(&std::sync::Arc::new(typed), &Options::default());
    assert_ne!(
        (typed.verdict.is_accepted(), typed.verdict.processed()),
        (true, judged.verdict.processed())
    );
    assert!(open("globals").btf_refusal().is_none());
}
