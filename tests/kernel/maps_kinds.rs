//! Maps against the running kernel's: which can be created, and what user space reads.

use crate::shared::here;

use bpflab::isa::assemble_with;
use bpflab::kernel::{LoadOptions, LoadedMaps, TestRun, load, possible_cpus};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType, StackFlags, UpdateFlags};
use bpflab::util::{Errno, MapId};
use bpflab::vm::Event;
use bpflab::vm::maps::{self, Kind};
use bpflab::{Object, Vm};
use proptest::prelude::*;

/// The kernel's answer to a definition.
fn kernels(def: &MapDef) -> Result<LoadedMaps, Errno> {
    LoadedMaps::create(std::slice::from_ref(def), None).map_err(|refused| refused.error.errno)
}

fn definition() -> impl Strategy<Value = MapDef> {
    // Sizes and limits that are valid for some type, and their neighbours.
    let size = prop_oneof![
        4 => Just(4u32),
        3 => Just(8u32),
        1 => Just(0u32),
        2 => prop_oneof![Just(1u32), Just(5), Just(12), Just(16), Just(32), Just(512), Just(513)],
        1 => prop_oneof![Just(1016u32), Just(1024), Just(32_768), Just(32_769), Just(65_407),
            Just(65_408), Just(1 << 22)],
    ];
    let entries = prop_oneof![
        3 => 0u32..4,
        2 => prop_oneof![Just(4096u32), Just(8192), Just(12_288)],
    ];
    let flags = prop_oneof![
        4 => Just(0u32),
        4 => (0u32..19).prop_map(|bit| 1 << bit),
        1 => (0u32..19, 0u32..19).prop_map(|(one, other)| 1 << one | 1 << other),
    ];
    let extra = prop_oneof![
        8 => Just(0u64),
        1 => prop_oneof![Just(1u64), Just(16), Just(4096), Just(1 << 44), Just((1 << 32) - 4096)],
    ];
    let types: Vec<_> = MapType::ALL
        .iter()
        .copied()
        // The first needs a kernel structure, the others the definition of an inner map.
        .filter(|map_type| {
            !matches!(
                map_type,
                MapType::StructOps | MapType::ArrayOfMaps | MapType::HashOfMaps
            )
        })
        .collect();
    let map_type = proptest::sample::select(types);
    let needed = any::<bool>();
    (map_type, size.clone(), size, entries, flags, extra, needed).prop_map(
        |(map_type, key, value, entries, flags, extra, needed)| {
            let mut def = MapDef::new("m", map_type, key, value, entries);
            def.flags = MapFlags::from_bits_retain(flags);
            if needed {
                def.flags |= map_type.info().flags_needed;
            }
            def.extra = extra;
            def
        },
    )
}

/// Whether the kernel's answer depends on more than the definition.
fn is_beside_the_point(def: &MapDef) -> bool {
    // A NUMA node, a BTF object, a token.
    let others = MapFlags::NUMA_NODE | MapFlags::VTYPE_BTF_OBJ_FD | MapFlags::TOKEN_FD;
    // libbpf requires max_entries, and local storage gets its key from BTF types.
    let typed = matches!(
        def.map_type,
        MapType::SkStorage | MapType::InodeStorage | MapType::TaskStorage | MapType::CgrpStorage
    );
    // The largest number of CPUs depends on the kernel's build.
    let built_for = def.map_type == MapType::Cpumap && def.max_entries > 64;
    // The amount of memory.
    let bytes = u64::from(def.max_entries) * u64::from(def.value_size);
    def.flags.intersects(others) || typed || built_for || bytes > 1 << 26
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_map_is_made_or_refused_as_by_the_kernel(def in definition()) {
        if here::judge().is_none() || is_beside_the_point(&def) {
            return Ok(());
        }
        let ours = maps::create(&def, possible_cpus()).map(drop).map_err(|refused| refused.errno);
        let theirs = kernels(&def).map(drop);
        prop_assert_eq!(ours, theirs, "{:?}", def);
    }
}

/// An operation of user space on a map.
#[derive(Debug, Clone)]
enum Ask {
    Lookup(u8),
    Update(u8, u8, u64),
    Delete(u8),
    Next(Option<u8>),
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let key = 0u8..6;
    let ask = prop_oneof![
        2 => key.clone().prop_map(Ask::Lookup),
        4 => (key.clone(), 0u8..3, 0u64..4).prop_map(|(k, v, flags)| Ask::Update(k, v, flags)),
        2 => key.clone().prop_map(Ask::Delete),
        1 => proptest::option::of(key).prop_map(Ask::Next),
    ];
    proptest::collection::vec(ask, 1..40)
}

/// Bytes of this size that begin with a number.
fn bytes(number: u32, size: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(size, 0);
    bytes
}

/// Runs the same operations on the kernel's map and on bpflab's.
fn compare(def: &MapDef, asks: &[Ask], number: impl Fn(u8) -> u32) -> Result<(), TestCaseError> {
    if here::judge().is_none() {
        return Ok(());
    }
    let ours = maps::create(def, possible_cpus()).unwrap();
    let loaded = kernels(def).unwrap();
    let theirs = loaded.map(MapId(0)).unwrap();
    let key = |key: u8| bytes(key.into(), def.key_size as usize);
    for ask in asks {
        let equal = match ask {
            Ask::Lookup(at) => {
                let (ours, theirs) = (
                    ours.read(&key(*at)),
                    theirs.lookup(&key(*at), UpdateFlags::empty()),
                );
                (format!("{ours:?}"), format!("{theirs:?}"))
            }
            Ask::Update(at, value, flags) => {
                let flags = UpdateFlags::from_bits_retain(*flags);
                let value = bytes(number(*value), ours.user_value_size());
                let ours = ours.write(&key(*at), &value, flags);
                let theirs = theirs.update(&key(*at), &value, flags);
                (format!("{ours:?}"), format!("{theirs:?}"))
            }
            Ask::Delete(at) => {
                let (ours, theirs) = (ours.remove(&key(*at)), theirs.delete(&key(*at)));
                (format!("{ours:?}"), format!("{theirs:?}"))
            }
            // The order of hashes is undefined; arrays have one.
            Ask::Next(_) if def.map_type == MapType::DevmapHash => continue,
            Ask::Next(at) => {
                let at = at.map(key);
                let ours = ours.next_key(at.as_deref());
                let theirs = theirs.next_key(at.as_deref());
                (format!("{ours:?}"), format!("{theirs:?}"))
            }
        };
        prop_assert_eq!(&equal.0, &equal.1, "{} of {:?}", def.map_type, ask);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every machine has device 1; none has device 0.
    #[test]
    fn devices_are_those_of_the_kernel(asks in asks(), wide: bool) {
        for map_type in [MapType::Devmap, MapType::DevmapHash] {
            let def = MapDef::new("m", map_type, 4, if wide { 8 } else { 4 }, 4);
            compare(&def, &asks, |value| u32::from(value % 2))?;
        }
    }

    #[test]
    fn queues_are_those_of_the_kernel(asks in asks(), wide: bool) {
        let def = MapDef::new("m", MapType::Cpumap, 4, if wide { 8 } else { 4 }, 4);
        compare(&def, &asks, |value| [0, 192, 16_385][usize::from(value)])?;
    }

    /// No such descriptor is open.
    #[test]
    fn descriptors_that_nobody_has_are_refused_as_by_the_kernel(asks in asks(), wide: bool) {
        let size = if wide { 8 } else { 4 };
        for (map_type, value) in [
            (MapType::CgroupArray, 4),
            (MapType::Sockmap, size),
            (MapType::Sockhash, size),
            (MapType::Xskmap, 4),
            (MapType::ReuseportSockarray, size),
        ] {
            let def = MapDef::new("m", map_type, 4, value, 4);
            compare(&def, &asks, |_| 999_999)?;
        }
    }

    #[test]
    fn what_is_not_there_is_told_as_by_the_kernel(asks in asks()) {
        for (map_type, key, value, entries) in [
            (MapType::StackTrace, 4, 16, 3),
            (MapType::CgroupStorage, 16, 8, 0),
            (MapType::CgroupStorage, 8, 8, 0),
            (MapType::PercpuCgroupStorage, 8, 12, 0),
        ] {
            let def = MapDef::new("m", map_type, key, value, entries);
            compare(&def, &asks, u32::from)?;
        }
    }
}

/// The id of a stack is its hash, which depends on the kernel.
#[test]
fn stacks_have_the_ids_that_the_kernel_gives_them() {
    if here::judge().is_none() {
        return;
    }
    let def = MapDef::new("stacks", MapType::StackTrace, 4, 127 * 8, 1 << 16);
    let mut program = Program::new("p", ProgType::RawTracepoint, Vec::new());
    program.maps = [def.clone()].into();
    program.license = "GPL".into();
    // Each number of skipped frames gives another stack.
    let text = "r6 = *(u64 *)(r1 +0)\nr2 = map[idx:0]\nr3 = r6\ncall bpf_get_stackid\nexit";
    program.insns = assemble_with(text, &program).unwrap().slots;
    let loaded = kernels(&def).unwrap();
    let theirs = load(&program, &loaded, &LoadOptions::default()).unwrap();
    let theirs = theirs.program.expect("the kernel accepts it");
    let mut seen = 0;
    for skip in 0u64..4 {
        let result = theirs.test_run(&TestRun::context(&skip.to_le_bytes()));
        let id = result.unwrap().retval;
        if id.cast_signed() < 0 {
            continue;
        }
        let value = loaded.lookup(MapId(0), &id.to_ne_bytes()).unwrap().unwrap();
        let (addresses, _) = value.as_chunks::<8>();
        let addresses = addresses.iter().map(|ip| u64::from_ne_bytes(*ip));
        let addresses: Vec<u64> = addresses.take_while(|ip| *ip != 0).collect();
        let ours = maps::create(&def, 1).unwrap();
        let Kind::StackTraces(stacks) = ours.kind() else {
            panic!("no stacks");
        };
        assert_eq!(stacks.insert(&addresses, StackFlags::empty()), Ok(id));
        let bytes = ours.read(&id.to_ne_bytes());
        assert_eq!(bytes, Ok(value), "{} frames", addresses.len());
        seen += 1;
    }
    assert!(seen > 0, "no stack of the kernel");
}

/// A list in an arena, in the kernel and in bpflab: the same sums and the same pages.
#[test]
fn an_arena_is_used_as_in_the_kernel() {
    if here::judge().is_none() {
        return;
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/objects/arena_list.bpf.o"
    );
    let object = Object::open(path).unwrap();
    let loaded = LoadedMaps::create(object.maps(), object.btf()).unwrap();
    let bss = |map: &MapDef| map.name.ends_with(".bss");
    let bss = MapId::from_index(object.maps().iter().position(bss).unwrap());
    let mut vm = Vm::unverified(object.clone()).unwrap();
    let programs: Vec<_> = ["push", "walk", "pop"]
        .iter()
        .map(|name| {
            let program = object.program(name).unwrap();
            let theirs = load(&program, &loaded, &LoadOptions::default()).unwrap();
            (*name, theirs.program.expect("the kernel accepts it"))
        })
        .collect();
    let steps = [0, 0, 1, 0, 1, 2, 1, 2, 2, 0, 2, 2, 1].into_iter().cycle();
    for (step, value) in steps.zip(1u64..60) {
        let (name, theirs) = &programs[step];
        let context = TestRun::context(&value.to_le_bytes());
        let theirs = theirs.test_run(&context).unwrap().retval;
        let ours = vm.run(name, &Event::bytes(value.to_le_bytes())).unwrap();
        assert_eq!(ours.returned(name), Some(theirs), "{name} in round {value}");
        let theirs = loaded.lookup(bss, &[0; 4]).unwrap();
        let ours = vm.maps().find(|map| map.def().name.ends_with(".bss"));
        let ours = ours.unwrap().get_bytes(&[0; 4]).unwrap();
        assert_eq!(ours, theirs, "after {name} in round {value}");
    }
}

/// Redirects by maps: the action on a hit, on a miss and for flags.
#[test]
fn redirects_are_decided_as_by_the_kernel() {
    if here::judge().is_none() {
        return;
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/objects/redirect_maps.bpf.o"
    );
    let object = Object::open(path).unwrap();
    let loaded = LoadedMaps::create(object.maps(), object.btf()).unwrap();
    let vm = &mut Vm::new(object.clone()).unwrap();
    let find = |name: &str| {
        let map = object
            .maps()
            .iter()
            .position(|map| map.name.ends_with(name));
        MapId::from_index(map.unwrap())
    };
    let any = UpdateFlags::empty();
    // Device 1 under keys 0 and 3, a queue for CPU 0.
    for (map, key, value) in [
        ("devices", 0u32, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("devices", 3, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("devices_by_key", 0, vec![1, 0, 0, 0]),
        ("cpus", 0, vec![192, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let theirs = loaded.map(find(map)).unwrap();
        theirs.update(&key.to_le_bytes(), &value, any).unwrap();
        let ours = vm.map(map).unwrap();
        ours.set_bytes(&key.to_le_bytes(), &value, any).unwrap();
    }
    let packet = [0; 64];
    for name in ["to_device", "to_device_by_key", "to_cpu", "to_queue"] {
        let program = object.program(name).unwrap();
        let theirs = load(&program, &loaded, &LoadOptions::default()).unwrap();
        let theirs = theirs.program.expect("the kernel accepts it");
        for (slot, flags) in (0u32..5).flat_map(|slot| (0u64..33).map(move |flags| (slot, flags))) {
            // The variables `slot`, `seen_device` and `flags`.
            let mut bytes = u64::from(slot).to_le_bytes().to_vec();
            bytes.extend(flags.to_le_bytes());
            let bss = loaded.map(find(".bss")).unwrap();
            bss.update(&[0; 4], &bytes, any).unwrap();
            let ours = vm.maps().find(|map| map.def().name.ends_with(".bss"));
            ours.unwrap().set_bytes(&[0; 4], &bytes, any).unwrap();
            let theirs = theirs.test_run(&TestRun::packet(&packet)).unwrap();
            let ours = vm.run(name, &Event::packet(packet)).unwrap();
            let action = (ours.returned(name), ours.redirect().is_some());
            let wanted = (Some(theirs.retval), theirs.retval == 4);
            assert_eq!(action, wanted, "{name}, slot {slot}, flags {flags}");
        }
    }
}
