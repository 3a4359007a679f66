//! bpflab's own objects in the running kernel: each program gets the expected verdict, runs
//! there as in bpflab's machine, and nothing stays loaded.

use crate::shared::here;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::Object;
use bpflab::btf::{Builder, Encoding, Linkage, Variable};
use bpflab::kernel::{LoadOptions, Loaded, LoadedMaps, NoVerdict, NoVerdictKind, TestRun, load};
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgFlags, ProgType};
use bpflab::util::{Errno, MapId, TypeId};
use bpflab::verifier::{LogLevel, Options, verify};

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// All objects, sorted.
pub fn objects() -> Vec<PathBuf> {
    objects_in(&["examples/bpf", "tests/objects"])
}

/// Objects with mistakes that the verifier finds.
pub fn mistakes() -> Vec<PathBuf> {
    objects_in(&["tests/verifier_mistakes"])
}

fn objects_in(folders: &[&str]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .collect();
    all.sort();
    all
}

fn judge(program: &Program, options: &LoadOptions) -> Result<(Loaded, LoadedMaps), NoVerdict> {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
    assert_eq!(maps.btf_refused(), None, "{}", program.name);
    Ok((load(program, &maps, options)?, maps))
}

fn program(path: &str, name: &str) -> Program {
    Object::open(root(path)).unwrap().program(name).unwrap()
}

/// The number of file descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Objects whose programs the verifier must reject.
const REFUSED: [&str; 3] = [
    "past_the_end.bpf.o",
    "kfunc_misuse.bpf.o",
    "user_pointer_misuse.bpf.o",
];

/// Whether the kernel gave a verdict on a program; an error for an unexpected verdict.
fn check(path: &Path, program: &Program) -> Result<bool, String> {
    let is = |name: &&str| path.ends_with(name);
    let to_be_refused = REFUSED.iter().any(is);
    match judge(program, &LoadOptions::default()) {
        Ok((loaded, _)) => {
            let verdict = &loaded.verdict;
            if verdict.is_accepted() == to_be_refused {
                return Err(format!(
                    "accepted: {}: {}",
                    verdict.is_accepted(),
                    verdict.message
                ));
            }
            let explained = match verdict.errno {
                None => verdict.processed() > 0,
                Some(errno) => {
                    let past_the_end = is(&"past_the_end.bpf.o");
                    !verdict.message.is_empty() && (!past_the_end || errno == Errno::EACCES)
                }
            };
            if !explained || verdict.is_accepted() != loaded.program.is_some() {
                return Err(format!("{verdict:?}"));
            }
            Ok(true)
        }
        // Hooks that this machine's policy or configuration forbids.
        Err(none) if [NoVerdictKind::Permission, NoVerdictKind::Feature].contains(&none.kind) => {
            eprintln!("{}: {}: not judged: {none}", path.display(), program.name);
            Ok(false)
        }
        Err(none) => Err(none.to_string()),
    }
}

#[test]
fn our_objects_get_their_verdicts() {
    if here::kernel().is_none() {
        return;
    }
    let (mut judged, mut not_judged, mut wrong) = (0, 0, Vec::new());
    for path in objects() {
        // Functions and types that no kernel has, and registers of another machine; helpers
        // that not every kernel is built with.
        let name = path.to_string_lossy();
        if name.contains("/probes.") || name.contains("/of_some_kernels.") {
            continue;
        }
        // Some objects exist to be refused, so they can't be relocated.
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        for program in object.programs().filter_map(Result::ok) {
            match check(&path, &program) {
                Ok(true) => judged += 1,
                Ok(false) => not_judged += 1,
                Err(why) => wrong.push(format!("{}: {}: {why}", path.display(), program.name)),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(judged > 40 && not_judged < 15, "{judged}, {not_judged}");
}

#[test]
fn a_packet_is_run_through_and_maps_are_read() {
    if here::kernel().is_none() {
        return;
    }
    let program = program("tests/objects/contexts.bpf.o", "xdp_length");
    let (loaded, maps) = judge(&program, &LoadOptions::default()).unwrap();
    let accepted = loaded.program.unwrap();
    let mut packet = [0; 64];
    packet[12] = 8;
    let result = accepted.test_run(&TestRun::packet(&packet)).unwrap();
    assert_eq!((result.retval, result.data.as_slice()), (2, &packet[..]));

    let bss = program
        .maps
        .iter()
        .position(|map| map.name.ends_with(".bss"));
    let bss = MapId::from_index(bss.unwrap());
    let value = maps.lookup(bss, &[0; 4]).unwrap().unwrap();
    assert!(
        value.windows(4).any(|word| word == 64u32.to_ne_bytes()),
        "{value:?}"
    );
    assert_eq!(maps.keys(bss).unwrap(), [[0; 4]]);
    assert!(maps.lookup(bss, &[0; 8]).is_err());
}

#[test]
fn a_context_is_run_on_in_place() {
    if here::kernel().is_none() {
        return;
    }
    let mut twice = Program::new("twice", ProgType::Syscall, Vec::new());
    twice.flags = ProgFlags::SLEEPABLE;
    twice.insns = bpflab::isa::RawInsn::slots(&[
        0x61, 0x12, 0, 0, 0, 0, 0, 0, // r2 = *(u32 *)(r1 +0)
        0x67, 0x02, 0, 0, 1, 0, 0, 0, // r2 <<= 1
        0x63, 0x21, 0, 0, 0, 0, 0, 0, // *(u32 *)(r1 +0) = r2
        0xb7, 0, 0, 0, 7, 0, 0, 0, // r0 = 7
        0x95, 0, 0, 0, 0, 0, 0, 0, // exit
    ])
    .0;
    let (loaded, _maps) = judge(&twice, &LoadOptions::default()).unwrap();
    let result = loaded
        .program
        .unwrap()
        .test_run(&TestRun::context(&[21, 0, 0, 0]));
    let result = result.unwrap();
    assert_eq!((result.retval, result.context), (7, vec![42, 0, 0, 0]));
}

#[test]
fn tail_calls_reach_programs_of_the_object() {
    if here::kernel().is_none() {
        return;
    }
    let object = Object::open(root("tests/objects/tail_calls.bpf.o")).unwrap();
    let programs: Vec<Program> = object.programs().collect::<Result<_, _>>().unwrap();
    let maps = LoadedMaps::create(object.maps(), object.btf()).unwrap();
    let loaded: Vec<_> = programs
        .iter()
        .map(|program| load(program, &maps, &LoadOptions::default()).unwrap())
        .filter_map(|loaded| loaded.program)
        .collect();
    assert_eq!(loaded.len(), programs.len());
    for program in &loaded {
        maps.set_program(object.maps(), program).unwrap();
    }
    let array = object
        .maps()
        .iter()
        .position(|map| map.map_type == MapType::ProgArray);
    let array = MapId::from_index(array.unwrap());
    // The kernel shows programs in an array by their ids, which are not 0.
    let first = maps.lookup(array, &maps.keys(array).unwrap()[0]).unwrap();
    assert!(first.is_none_or(|id| id != [0; 4]));
}

#[test]
fn the_log_is_whole() {
    if here::kernel().is_none() {
        return;
    }
    let program = program("examples/bpf/write_hist.bpf.o", "count_write");
    let log = LogLevel::ALL;
    let (loaded, _maps) = judge(&program, &LoadOptions::default().with_log(log)).unwrap();
    let log = &loaded.verdict.log;
    assert!(
        log.len() > 1 << 14 && log.contains("\n0: "),
        "{}",
        log.len()
    );
    assert!(
        loaded
            .verdict
            .statistics
            .is_some_and(|statistics| statistics.time_us.is_some())
    );
}

#[test]
fn a_map_that_cannot_be_made_is_no_verdict() {
    if here::kernel().is_none() {
        return;
    }
    let none = LoadedMaps::create(&[MapDef::new("m", MapType::Array, 3, 4, 1)], None);
    let none = none.unwrap_err();
    assert_eq!(none.kind, NoVerdictKind::Map);
    let text = "BPF_MAP_CREATE of map m: EINVAL (Invalid argument)";
    assert_eq!(none.to_string(), text);
}

#[test]
fn per_cpu_values_are_read_whole() {
    if here::kernel().is_none() {
        return;
    }
    let def = MapDef::new("counts", MapType::PercpuArray, 4, 4, 2);
    let maps = LoadedMaps::create(&[def], None).unwrap();
    let value = maps.lookup(MapId(0), &1u32.to_ne_bytes()).unwrap().unwrap();
    assert!(!value.is_empty() && value.len().is_multiple_of(8));
    assert_eq!(maps.lookup(MapId(0), &2u32.to_ne_bytes()).unwrap(), None);
}

#[test]
fn an_arena_begins_with_its_variables() {
    if here::kernel().is_none() {
        return;
    }
    let mut def = MapDef::new("arena", MapType::Arena, 0, 0, 4);
    def.flags = MapFlags::MMAPABLE;
    let initial = |bytes: usize| Initial::Bytes {
        key: Vec::new(),
        value: vec![7; bytes].into(),
    };
    def.initial = vec![initial(100)];
    assert!(LoadedMaps::create(std::slice::from_ref(&def), None).is_ok());
    def.initial = vec![initial(5 * 4096)];
    let error = LoadedMaps::create(&[def], None).unwrap_err().error;
    assert_eq!(error.errno, Errno::E2BIG);
}

#[test]
fn nothing_stays_behind() {
    if here::kernel().is_none() {
        return;
    }
    // Other tests open and close descriptors meanwhile: a leak would grow with every round.
    let program = program("tests/objects/map_kinds.bpf.o", "use_maps");
    let before = descriptors();
    for _ in 0..100 {
        judge(&program, &LoadOptions::default()).unwrap();
    }
    assert!(descriptors() < before + 90);
}

/// bpflab's verdict and the kernel's: accepted or not, error line, instructions processed.
fn both(program: Program) -> [(bool, String, u64); 2] {
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
    let theirs = load(&program, &maps, &LoadOptions::default())
        .unwrap()
        .verdict;
    let ours = verify(&Arc::new(program), &Options::default()).verdict;
    [ours, theirs].map(|verdict| {
        let processed = verdict.processed();
        (verdict.is_accepted(), verdict.message, processed)
    })
}

#[test]
fn addresses_of_weak_functions_are_judged_as_the_kernel_does() {
    if here::kernel().is_none() {
        return;
    }
    for (name, accepted) in [("which", true), ("follow", false)] {
        let [ours, theirs] = both(program("tests/objects/ksym_exists.bpf.o", name));
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(ours.0, accepted, "{name}");
    }
}

#[test]
fn what_a_tool_sets_makes_programs_and_maps_that_the_kernel_takes() {
    if here::kernel().is_none() {
        return;
    }
    let mut object = Object::open(root("tests/objects/set_by_tool.bpf.o")).unwrap();
    let program = object.program("find_inner").unwrap();
    let none = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap_err();
    assert_eq!(none.kind, NoVerdictKind::Map);

    object.set_types("2/*", ProgType::SchedCls, None).unwrap();
    object.set_untyped(ProgType::SchedCls, None);
    let like = object.map("like").unwrap().clone();
    object.map_mut("outer").unwrap().set_inner(like).unwrap();
    object
        .map_mut("events")
        .unwrap()
        .set_max_entries(4096)
        .unwrap();
    object.map_mut("sized").unwrap().set_value_size(8).unwrap();
    let mut samples = object.map_mut("samples").unwrap();
    samples.set_key_size(4).unwrap().set_value_size(4).unwrap();
    let mut traces = object.map_mut("traces").unwrap();
    traces
        .set_value_size(80)
        .unwrap()
        .set_max_entries(8)
        .unwrap();
    let names = object.entries().iter().map(|entry| entry.name().to_owned());
    for name in names.collect::<Vec<_>>() {
        let [ours, theirs] = both(object.program(&name).unwrap());
        assert_eq!(ours, theirs, "{name}");
        assert!(ours.0, "{name}: {}", ours.1);
    }
}

#[test]
fn refused_types_are_told_by_the_kernels_first_error() {
    if here::kernel().is_none() {
        return;
    }
    let program = program("tests/objects/extern_function.bpf.o", "calls_global");
    let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
    let refused = maps.btf_refused().unwrap();
    assert_eq!(refused.errno, Errno::EINVAL);
    assert!(
        refused.log.contains("Invalid func linkage"),
        "{}",
        refused.log
    );
    let [ours, theirs] = both(program);
    assert_eq!(ours, theirs);
    assert!(ours.0, "{}", ours.1);
}

#[test]
fn the_kernel_refuses_the_types_that_we_say_it_does() {
    if here::kernel().is_none() {
        return;
    }
    type Make = fn(&mut Builder);
    fn make_function(builder: &mut Builder, name: &str, linkage: Linkage) {
        let prototype = builder.prototype(TypeId(0), &[]);
        builder.function(name, prototype, linkage);
    }
    fn make_section(builder: &mut Builder, name: &str, size: u32, places: &[(u32, u32)]) {
        let int = builder.int("int", 4, Encoding::Signed);
        let places: Vec<_> = places
            .iter()
            .enumerate()
            .map(|(index, &(offset, size))| Variable {
                ty: builder.variable(&format!("v{index}"), int, Linkage::Global),
                offset,
                size,
            })
            .collect();
        builder.section(name, size, &places);
    }
    let cases: &[(Make, Option<&str>)] = &[
        (|b| make_function(b, "f", Linkage::Global), None),
        (|b| make_function(b, "f", Linkage::Static), None),
        (
            |b| make_function(b, "f", Linkage::Extern),
            Some("Invalid func linkage"),
        ),
        (|b| make_function(b, "a.b", Linkage::Static), None),
        (
            |b| make_function(b, "a::b", Linkage::Static),
            Some("Invalid name"),
        ),
        (
            |b| make_function(b, "", Linkage::Static),
            Some("Invalid name"),
        ),
        (
            |b| make_function(b, "1a", Linkage::Static),
            Some("Invalid name"),
        ),
        (|b| make_section(b, ".data", 8, &[(0, 4), (4, 4)]), None),
        (|b| make_section(b, ".data odd name", 8, &[(0, 4)]), None),
        (|b| make_section(b, ".data", 0, &[]), Some("size == 0")),
        (|b| make_section(b, "", 8, &[]), Some("Invalid name")),
        (
            |b| make_section(b, ".data", 8, &[(4, 4), (0, 4)]),
            Some("Invalid offset"),
        ),
        (
            |b| make_section(b, ".data", 8, &[(0, 4), (2, 4)]),
            Some("Invalid offset"),
        ),
        (
            |b| make_section(b, ".data", 8, &[(8, 4)]),
            Some("Invalid offset"),
        ),
        (
            |b| make_section(b, ".data", 8, &[(0, 0)]),
            Some("Invalid size"),
        ),
        (
            |b| make_section(b, ".data", 8, &[(6, 4)]),
            Some("Invalid offset+size"),
        ),
        (
            |b| make_section(b, ".data", 8, &[(0, 2)]),
            Some("Invalid size"),
        ),
    ];
    for (number, (make, reason)) in cases.iter().enumerate() {
        let mut builder = Builder::new();
        make(&mut builder);
        let btf = builder.build().unwrap();
        let refusal = btf.refusal();
        assert_eq!(
            refusal.as_ref().map(|refusal| refusal.reason),
            *reason,
            "{number}"
        );
        let loaded = LoadedMaps::create(&[], Some(&btf)).unwrap();
        let said = loaded.btf_refused().map(|error| error.log.as_str());
        match (reason, said) {
            (None, None) => {}
            (Some(reason), Some(log)) if log.contains(reason) => {}
            (reason, said) => panic!("{number}: we say {reason:?}, the kernel {said:?}"),
        }
    }
}
