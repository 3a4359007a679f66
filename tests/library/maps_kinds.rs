//! Local storage, maps of references (sockets, maps, devices) and arenas, as tests use them.

use bpflab::harness::EngineKind;
use bpflab::object::Target;
use bpflab::vm::{Event, RedirectTarget, World};
use bpflab::zerocopy::IntoBytes as _;
use bpflab::{Error, Object, Result, Vm};

const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// The object of this name, with its own BTF as the target.
fn object(name: &str) -> Object {
    let path = format!("tests/objects/{name}.bpf.o");
    let mut object = Object::open(path).expect("an object that is committed");
    object.set_target(Target::Own);
    object
}

/// A machine with the object, without verification.
fn vm(name: &str) -> Vm {
    Vm::unverified(object(name)).expect("it can be loaded")
}

/// Runs a test on each engine.
fn on_every_engine(name: &str, test: impl Fn(&mut Vm) -> Result<()>) {
    for engine in ENGINES {
        let mut vm = vm(name);
        vm.set_engine(engine);
        test(&mut vm).unwrap_or_else(|error| panic!("{name} on {engine:?}: {error}"));
    }
}

/// A global variable at an offset in an object's data.
fn global(vm: &Vm, data: &str, at: usize) -> u64 {
    let map = vm.maps().find(|map| map.def().name.ends_with(data));
    let bytes = map.expect("it has such data").get_bytes(&[0; 4]);
    let bytes = bytes.unwrap().unwrap();
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A machine without verification: BTF tracepoints need a kernel's BTF.
fn unjudged(name: &str) -> Vm {
    Vm::unverified(object(name)).expect("it can be loaded")
}

#[test]
fn each_task_has_storage_of_its_own_until_it_goes() -> Result<()> {
    let mut vm = unjudged("local_storage");
    let (first, second) = (
        vm.world().kernel("task_struct")?.set("pid", 1)?,
        vm.world().kernel("task_struct")?.set("pid", 2)?,
    );
    for (from, to) in [(&first, &second), (&second, &first), (&first, &second)] {
        let switch = vm
            .raw_tracepoint("sched_switch")?
            .set("args[1]", from)?
            .set("args[2]", to)?;
        let outcome = vm.run("count_switches", &switch)?;
        assert_eq!(outcome.returned("count_switches"), Some(0));
    }
    let tasks = vm.map("tasks")?;
    assert_eq!(tasks.get_for::<[u64; 2]>(first.address())?, Some([101, 2]));
    assert_eq!(tasks.get_for::<[u64; 2]>(second.address())?, Some([102, 1]));
    assert_eq!(tasks.owners()?, [second.address(), first.address()]);
    tasks.set_for(first.address(), &[5u64, 0])?;

    let exit = vm
        .raw_tracepoint("sched_process_exit")?
        .set("args[0]", &first)?;
    let outcome = vm.run("forget", &exit)?;
    assert_eq!(outcome.runs[0].r0, 0);
    assert_eq!(
        vm.run("forget", &exit)?.runs[0].r0.cast_signed(),
        -2,
        "ENOENT"
    );
    assert_eq!(vm.map("tasks")?.get_for::<[u64; 2]>(first.address())?, None);

    assert!(second.free());
    assert_eq!(
        vm.map("tasks")?.owners()?,
        [0u64; 0],
        "freed with its owner"
    );
    assert!(!vm.map("tasks")?.delete_for(second.address())?);
    Ok(())
}

#[test]
fn cgroups_have_storage_by_address_and_for_their_programs() -> Result<()> {
    let mut vm = unjudged("local_storage");
    let cgroup = vm.world().kernel_bytes(&[0; 64])?;
    let mkdir = vm.raw_tracepoint("cgroup_mkdir")?.set("args[0]", &cgroup)?;
    vm.run("mark_cgroup", &mkdir)?;
    assert_eq!(
        vm.map("cgroups")?.get_for::<u64>(cgroup.address())?,
        Some(42)
    );

    assert!(vm.map("cgroups")?.delete_for(cgroup.address())?);
    Ok(())
}

#[test]
fn a_program_has_storage_in_its_cgroup() {
    on_every_engine("socket_storage", |vm| {
        vm.world().task().set_cgroup_id(9);
        let packet = Event::packet(vec![0x45; 64]);
        let own = |attach: u64| [9u64, attach];
        vm.map("own")?.create(&own(1))?;
        vm.map("own")?.create(&own(0))?;
        vm.map("own")?.set(&own(0), &1000u64)?;
        let before = vm.run("count_bytes", &packet)?;
        assert_eq!(before.returned("count_bytes"), Some(1));
        vm.world().set_cpu(2);
        vm.run("count_bytes", &packet)?;
        let total = vm.map("own")?.get::<_, u64>(&own(0))?.unwrap();
        let len = (total - 1000) / 2;
        assert!((50..=64).contains(&len), "{len} bytes of a packet");
        let cpus = vm.map("per_cpu")?.get_per_cpu::<u64, u64>(&9)?;
        assert_eq!(cpus, Some(vec![len, 0, len, 0]));
        assert_eq!(vm.map("own")?.get::<_, u64>(&own(1))?, Some(0));
        Ok(())
    });
}

#[test]
fn a_socket_keeps_its_storage_from_packet_to_packet() {
    on_every_engine("socket_storage", |vm| {
        let socket = vm.world().net().tcp().local("10.0.0.1:80").unwrap().id();
        let address = vm.socket_address(socket)?.expect("it is there");
        let mut bytes = vec![0x45; 64];
        bytes[12..14].copy_from_slice(&[8, 0]);
        let own = Event::packet(bytes);
        let about = own.clone().with(|kern| kern.socket = Some(socket));
        vm.run("count_bytes", &about)?;
        let once = vm.map("sockets")?.get_for::<u64>(address)?;
        vm.run("count_bytes", &about)?;
        let twice = vm.map("sockets")?.get_for::<u64>(address)?;
        assert_eq!(twice, once.map(|bytes| 2 * bytes));
        // The storage of an event's own socket is removed with it.
        vm.run("count_bytes", &own)?;
        assert_eq!(vm.map("sockets")?.owners()?, [address]);
        let gone = vm.run("forget_socket", &about)?;
        assert_eq!(gone.returned("forget_socket"), Some(1));
        assert_eq!(vm.map("sockets")?.owners()?, [0u64; 0]);
        let none = vm.map("own")?.get_for::<u64>(1u64);
        assert!(matches!(none, Err(Error::MapKind { .. })));
        Ok(())
    });
}

#[test]
fn values_own_objects_and_free_them_when_they_go() -> Result<()> {
    let mut vm = vm("kptr_values");
    let put = |vm: &mut Vm, program: &str, value: u64| -> Result<u64> {
        let outcome = vm.run(program, &Event::bytes(value.to_le_bytes()))?;
        assert_eq!((outcome.runs[0].r0, outcome.unreleased.len()), (0, 0));
        Ok([0, 8, 16]
            .map(|at| global(vm, ".bss", at))
            .into_iter()
            .max()
            .unwrap())
    };
    let is_freed = |vm: &mut Vm, object: u64| vm.machine().space.is_freed(object);
    vm.map("owners")?.set(&0u32, &[0u64; 2])?;
    let first = put(&mut vm, "put_in_hash", 5)?;
    assert_eq!(
        vm.map("owners")?.get::<u32, [u64; 2]>(&0)?,
        Some([1, 0]),
        "hidden"
    );
    let second = put(&mut vm, "put_in_hash", 6)?;
    let in_array = put(&mut vm, "put_in_array", 7)?;
    assert!(
        [0, 8, 16].map(|at| global(&vm, ".bss", at)).contains(&5),
        "what was there"
    );
    assert!(is_freed(&mut vm, first), "the program did");
    assert!(!is_freed(&mut vm, second) && !is_freed(&mut vm, in_array));

    assert_eq!(vm.run("replace", &Event::bytes([0; 8]))?.runs[0].r0, 0);
    assert!(
        is_freed(&mut vm, second) && is_freed(&mut vm, in_array),
        "with the old values"
    );
    assert_eq!(vm.map("one")?.get::<u32, [u64; 2]>(&0)?, Some([100, 0]));
    let third = put(&mut vm, "put_in_hash", 8)?;
    assert!(!is_freed(&mut vm, third));
    assert_eq!(vm.run("delete", &Event::bytes([0; 8]))?.runs[0].r0, 0);
    assert!(is_freed(&mut vm, third));
    Ok(())
}

#[test]
fn packets_go_where_the_maps_say() {
    on_every_engine("redirect_maps", |vm| {
        let program = vm.program_handle("to_queue")?;
        vm.map("devices")?.set_device(0, 7, Some(program))?;
        vm.map("devices_by_key")?.set(&0u32, &8u32)?;
        vm.map("cpus")?.set_queue(0, 192, None)?;
        let packet = Event::packet(vec![0; 64]);

        let outcome = vm.run("to_device", &packet)?;
        assert_eq!(outcome.returned("to_device"), Some(4));
        let redirect = outcome.redirect().expect("it was sent");
        assert_eq!(redirect.map.as_deref(), Some("devices"));
        let (index, program) = (7, Some(program));
        assert_eq!(redirect.target, RedirectTarget::Device { index, program });

        let outcome = vm.run("to_device_by_key", &packet)?;
        let (index, program) = (8, None);
        let target = RedirectTarget::Device { index, program };
        assert_eq!(outcome.redirect().map(|r| &r.target), Some(&target));

        let outcome = vm.run("to_cpu", &packet)?;
        let (cpu, program) = (0, None);
        let target = RedirectTarget::Cpu { cpu, program };
        assert_eq!(outcome.redirect().map(|r| &r.target), Some(&target));

        vm.map("devices")?.delete(&0u32)?;
        let outcome = vm.run("to_device", &packet)?;
        assert_eq!(
            (outcome.returned("to_device"), outcome.redirect()),
            (Some(0), None)
        );
        Ok(())
    });
}

#[test]
fn sockets_are_found_by_index_and_key() -> Result<()> {
    let mut vm = vm("redirect_maps");
    let socket = vm.world().kernel_bytes(&[0; 64])?;
    let packet = Event::packet(vec![0; 64]);
    let returned = |vm: &mut Vm, program: &str| -> Result<_> {
        let outcome = vm.run(program, &packet)?;
        let target = outcome.redirect().map(|redirect| redirect.target.clone());
        Ok((outcome.returned(program), target))
    };
    assert_eq!(returned(&mut vm, "to_socket")?, (Some(0), None), "SK_DROP");
    assert_eq!(returned(&mut vm, "to_queue")?, (Some(1), None), "XDP_DROP");
    for map in ["socks", "queues", "listeners"] {
        vm.map(map)?.set_object(&0u32, socket.address())?;
    }
    vm.map("socks_by_key")?
        .set_object(&0u64, socket.address())?;
    let there = Some(RedirectTarget::Socket(socket.address()));
    assert_eq!(returned(&mut vm, "to_socket")?, (Some(1), there.clone()));
    assert_eq!(returned(&mut vm, "to_queue")?, (Some(4), there));
    assert_eq!(vm.map("socks")?.object(&0u32)?, Some(socket.address()));
    assert_eq!(
        vm.map("socks_by_key")?.get::<u64, u64>(&0)?,
        Some(socket.address())
    );
    assert!(vm.map("socks")?.delete(&0u32)?);
    assert_eq!(returned(&mut vm, "to_socket")?, (Some(0), None));

    let listener = vm.world().net().tcp().local("10.0.0.1:80")?.id();
    let address = vm.socket_address(listener)?.expect("it is there");
    vm.map("socks")?.set_object(&0u32, address)?;
    let sent = returned(&mut vm, "to_socket")?;
    assert_eq!(sent, (Some(1), Some(RedirectTarget::Socket(address))));
    Ok(())
}

#[test]
fn programs_drain_what_a_test_produces() -> Result<()> {
    let mut vm = vm("user_ringbuf");
    let command = |add: u32, stop: u32| [add.to_le_bytes(), stop.to_le_bytes()].concat();
    for sample in [
        command(5, 0),
        vec![1],
        command(7, 0),
        command(1, 1),
        command(9, 0),
    ] {
        vm.map("commands")?.produce(&sample)?;
    }
    let enter = vm.raw_tracepoint("sys_enter")?;
    // The sample whose callback returns stop is counted, the next one stays.
    assert_eq!(vm.run("drain", &enter)?.runs[0].r0, 4);
    assert_eq!(global(&vm, ".bss", 0) + global(&vm, ".bss", 8), 2 * 13 + 1);
    assert_eq!(vm.run("drain", &enter)?.runs[0].r0, 1);
    let outcome = vm.run("drain", &enter)?;
    assert_eq!(outcome.runs[0].r0, 0);
    assert!(outcome.unreleased.is_empty());
    for _ in 0..256 {
        vm.map("commands")?.produce(&command(0, 0))?;
    }
    let full = vm.map("commands")?.produce(&[]).unwrap_err();
    assert!(full.to_string().contains("ENOSPC"), "{full}");
    Ok(())
}

#[test]
fn a_list_in_an_arena_is_shared_with_the_test() -> Result<()> {
    let mut vm = vm("arena_list");
    let arena = vm.map("arena")?;
    let start = arena.arena_start()?;
    assert_eq!(start, 1 << 44, "as map_extra says");
    // The object's global variables `factor` and `head`, in the compiler's order.
    let globals = [
        arena.read_at::<u64>(start)?,
        arena.read_at::<u64>(start + 8)?,
    ];
    assert!(
        globals.contains(&3) || globals.contains(&(3 << 32)),
        "{globals:?}"
    );

    let run = |vm: &mut Vm, program: &str, value: u64| -> Result<_> {
        let outcome = vm.run(program, &Event::bytes(value.to_le_bytes()))?;
        Ok((outcome.runs[0].r0, outcome.probed.len()))
    };
    for value in [1, 10, 100] {
        assert_eq!(run(&mut vm, "push", value)?, (0, 0));
    }
    run(&mut vm, "walk", 0)?;
    let (sum, seen) = (global(&vm, ".bss", 0), global(&vm, ".bss", 8));
    assert_eq!([sum, seen].iter().max(), Some(&333));
    assert_eq!([sum, seen].iter().min(), Some(&3));

    // The test traverses the list and appends a node.
    let arena = vm.map("arena")?;
    let globals = [
        arena.read_at::<u64>(start)?,
        arena.read_at::<u64>(start + 8)?,
    ];
    let mut at = *globals.iter().max().unwrap();
    let mut values = Vec::new();
    while at != 0 {
        assert_eq!(at >> 32, start >> 32, "pointers are user space's");
        let [next, value] = arena.read_at::<[u64; 2]>(at)?;
        values.push(value);
        if next == 0 {
            let own = start + 9 * 4096;
            arena.write_at(own, &[0u64, 1000])?;
            arena.write_at(at, &own)?;
        }
        at = next;
    }
    assert_eq!(values, [300, 30, 3]);
    run(&mut vm, "walk", 0)?;
    let (sum, seen) = (global(&vm, ".bss", 0), global(&vm, ".bss", 8));
    assert_eq!(sum.max(seen), 1333);

    // An unmapped page reads as zero, stores to it are lost, and both are reported.
    assert_eq!(run(&mut vm, "pop", 0)?, (0, 2));
    run(&mut vm, "walk", 0)?;
    let (sum, seen) = (global(&vm, ".bss", 0), global(&vm, ".bss", 8));
    assert_eq!(sum.max(seen), 1033);
    assert!(vm.map("arena")?.read_at::<u64>(start + 16 * 4096).is_err());
    Ok(())
}

#[test]
fn functions_of_a_struct_are_found_and_called() -> Result<()> {
    let mut vm = vm("struct_ops");
    let functions = vm.struct_ops("halving")?;
    let members: Vec<_> = functions
        .iter()
        .map(|f| (f.index, f.member.as_str()))
        .collect();
    assert_eq!(members, [(0, "ssthresh"), (2, "cong_avoid")]);
    let value = vm.map("halving")?.get_bytes(&[0; 4])?.unwrap();
    assert_eq!(value[24..28], 5u32.to_le_bytes());
    assert_eq!(&value[28..39], b"bpf_halving");

    let outcome = vm.call_struct_ops("halving", "ssthresh", &[0])?;
    assert_eq!(outcome.returned("half"), Some(21));
    vm.call_struct_ops("halving", "cong_avoid", &[0, 1, 40])?;
    // By the program itself.
    let arguments = Event::bytes([0u64, 1, 2].map(u64::to_le_bytes).concat());
    vm.run(functions[1].program, &arguments)?;
    assert_eq!(global(&vm, ".bss", 0), 42);
    assert!(matches!(
        vm.struct_ops("struct_o.bss"),
        Err(Error::MapKind { .. })
    ));
    let error = vm.call_struct_ops("halving", "undo_cwnd", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no program 'halving.undo_cwnd'; there are: ssthresh, cong_avoid"
    );
    Ok(())
}

#[test]
fn inner_maps_are_swapped_while_programs_run() {
    on_every_engine("map_in_map", |vm| {
        let enter = vm.raw_tracepoint("sys_enter")?;
        let counted =
            |vm: &Vm, map: &str| -> Result<_> { Ok(vm.map(map)?.get::<u32, u64>(&0)?.unwrap()) };
        vm.run("count_inner", &enter)?;
        assert_eq!((counted(vm, "inner_a")?, counted(vm, "inner_b")?), (0, 1));
        let a = vm.map("inner_a")?.handle();
        vm.map("outer_array")?.set_inner(&3u32, a)?;
        vm.run("count_inner", &enter)?;
        assert_eq!((counted(vm, "inner_a")?, counted(vm, "inner_b")?), (1, 1));
        assert!(vm.map("outer_array")?.delete(&3u32)?);
        let outcome = vm.run("count_inner", &enter)?;
        assert_eq!(outcome.returned("count_inner"), Some(1), "none is there");
        let wrong = vm.map("outer_hash")?.handle();
        assert!(vm.map("outer_array")?.set_inner(&3u32, wrong).is_err());
        Ok(())
    });
}

#[test]
fn what_a_map_is_not_is_said() {
    let vm = vm("redirect_maps");
    let map = vm.map("devices").unwrap();
    for error in [
        map.produce(&[]).unwrap_err(),
        map.read_at::<u64>(0).unwrap_err(),
        map.owners().unwrap_err(),
        map.set_object(&0u32, 1u64).unwrap_err(),
        map.create(&0u32).unwrap_err(),
    ] {
        assert!(error.to_string().contains("devices"), "{error}");
        assert!(error.to_string().contains("devmap"), "{error}");
    }
    assert!(
        Vm::with_world(World::default())
            .struct_ops("nothing")
            .is_err()
    );
}

#[test]
fn a_pointer_to_user_memory_is_followed_on_every_engine() -> Result<()> {
    let Some(kernel) = crate::shared::corpus() else {
        return Ok(());
    };
    let kernel = kernel.with_file_name("vmlinux-6.18.44.btf.xz");
    let mut object = Object::open("tests/objects/user_pointer.bpf.o")?;
    object.set_target(Target::file(kernel).expect("BTF"));
    let mut vm = Vm::new(object)?;
    let task = vm.world().current_task()?.address();
    let settings = vm.pin([10u64, 0].as_bytes())?;
    let event = vm.raw_tracepoint("sys_enter")?.set("id", 4)?;
    for (engine, used) in [
        (EngineKind::Checked, 4),
        (EngineKind::Interp, 8),
        (EngineKind::Jit, 12),
    ] {
        vm.set_engine(engine);
        vm.map("tasks")?.set_for(task, &[settings.address(), 0])?;
        vm.run("counts", &event)?;
        assert_eq!(settings.to_vec(), [10u64, used].as_bytes());

        // Memory that no kernel would have pinned.
        vm.map("tasks")?.set_for(task, &[0x5555_0000_0000u64, 0])?;
        let fault = vm.run("counts", &event).unwrap_err().to_string();
        assert!(fault.contains("settings->used += ctx[1]"), "{fault}");
    }
    assert_eq!(vm.global("over")?, 1);
    Ok(())
}
