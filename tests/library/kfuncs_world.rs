//! Kfuncs on objects in the mocked kernel's memory: tasks, cgroups, memory areas, caches
//! (`tests/objects/kernel_objects.bpf.c`).

use bpflab::object::Target;
use bpflab::spec::ProgType;
use bpflab::vm::KernelObject;
use bpflab::vm::events::Event;
use bpflab::{Object, Result, Vm};

/// A machine with the object's own types as the kernel's.
fn machine() -> Vm {
    let mut object = Object::open("tests/objects/kernel_objects.bpf.o").unwrap();
    object.set_target(Target::Own);
    Vm::unverified(object).unwrap()
}

/// A program's return value; it must leave no resources unreleased.
fn run(vm: &mut Vm, program: &str) -> i32 {
    let event = Event::input(ProgType::Syscall, Vec::new());
    let outcome = vm.run(program, &event).unwrap();
    assert_eq!(outcome.unreleased, [], "{program}");
    assert_eq!(outcome.probed, [], "{program}");
    outcome.returned(program).unwrap().cast_signed()
}

/// The first `count` numbers that the program found.
fn found(vm: &Vm, count: i32) -> Vec<u64> {
    let numbers = vm.global("found").unwrap();
    let numbers = numbers.as_array().unwrap().iter();
    let numbers = numbers.map(|number| number.as_u64().unwrap());
    numbers.take(usize::try_from(count).unwrap()).collect()
}

fn task(vm: &mut Vm, pid: u32, tgid: u32) -> Result<KernelObject> {
    let task = vm.world().kernel("struct task_struct")?;
    Ok(task.set("pid", pid)?.set("tgid", tgid)?)
}

/// A cgroup with this ID below another one.
fn cgroup(vm: &mut Vm, id: u64, parent: Option<&KernelObject>) -> Result<KernelObject> {
    let cgroup = vm.world().kernel("struct cgroup")?.set("kn.id", id)?;
    let cgroup = cgroup.clone().set("self.cgroup", &cgroup)?;
    let Some(parent) = parent else {
        return Ok(cgroup);
    };
    let level = parent.get("level")? + 1;
    Ok(cgroup.set("self.parent", parent)?.set("level", level)?)
}

#[test]
fn tasks_are_found_by_number_and_walked() -> Result<()> {
    let mut vm = machine();
    vm.world().task().set_pid(42);
    for (pid, tgid) in [(77, 77), (78, 77), (79, 77), (80, 80)] {
        task(&mut vm, pid, tgid)?;
    }
    for (pid, tgid) in [(42, 42), (78, 77), (80, 80), (81, -1)] {
        vm.set_global("pid", pid)?;
        assert_eq!(run(&mut vm, "task_by_pid"), tgid);
    }
    vm.set_global("pid", 79)?;
    assert_eq!(run(&mut vm, "tasks"), 3);
    assert_eq!(found(&vm, 3), [77, 78, 79]);
    assert_eq!(run(&mut vm, "processes"), 0);
    Ok(())
}

#[test]
fn cgroups_are_found_by_id_and_know_those_around_them() -> Result<()> {
    let mut vm = machine();
    let root = cgroup(&mut vm, 1, None)?;
    let outer = cgroup(&mut vm, 20, Some(&root))?;
    let first = cgroup(&mut vm, 21, Some(&outer))?;
    let inner = cgroup(&mut vm, 22, Some(&first))?;
    cgroup(&mut vm, 23, Some(&outer))?;

    vm.set_global("id", 22)?;
    for (level, id) in [(3, 22), (2, 21), (1, 20), (0, 1)] {
        vm.set_global("flags", level)?;
        assert_eq!(run(&mut vm, "level_above"), level);
        assert_eq!(found(&vm, 1), [id]);
    }
    for (id, level, result) in [(22, 4, -2), (22, u32::MAX, -2), (24, 0, -1)] {
        vm.set_global("id", id)?;
        vm.set_global("flags", level)?;
        assert_eq!(run(&mut vm, "level_above"), result);
    }

    let current = vm.world().current_task()?;
    current.set("cgroups.dfl_cgrp", &inner)?;
    for (id, is_under) in [(1, 1), (20, 1), (21, 1), (22, 1), (23, 0)] {
        vm.set_global("id", id)?;
        assert_eq!(run(&mut vm, "is_under"), is_under);
    }

    vm.set_global("id", 20)?;
    for (flags, ids) in [
        (2, &[20, 21, 22, 23][..]),
        (3, &[22, 21, 23, 20]),
        (4, &[20, 1]),
    ] {
        vm.set_global("flags", flags)?;
        let count = run(&mut vm, "family");
        assert_eq!(found(&vm, count), ids);
    }
    vm.set_global("flags", 7)?;
    assert_eq!(run(&mut vm, "family"), -22);
    Ok(())
}

/// The current task's cgroup comes from the world, without an object made by the test.
#[test]
fn the_current_tasks_cgroup_is_there_when_asked_for() -> Result<()> {
    let mut vm = machine();
    vm.world().task().set_cgroup_id(9);
    vm.set_global("id", 9)?;
    assert_eq!(run(&mut vm, "is_under"), 1);
    vm.set_global("flags", 0)?;
    assert_eq!(run(&mut vm, "level_above"), 0);
    assert_eq!(found(&vm, 1), [1]);
    vm.set_global("id", 1)?;
    assert_eq!(run(&mut vm, "is_under"), 1);
    vm.set_global("id", 10)?;
    assert_eq!(run(&mut vm, "is_under"), -1);
    Ok(())
}

#[test]
fn a_tasks_mappings_are_in_order() -> Result<()> {
    let mut vm = machine();
    assert_eq!(run(&mut vm, "mappings"), -2, "no memory, ENOENT");
    let mm = vm.world().kernel("struct mm_struct")?;
    let other = vm.world().kernel("struct mm_struct")?;
    vm.world().current_task()?.set("mm", &mm)?;
    for (start, end, of) in [
        (0x7000u64, 0x8000u64, &mm),
        (0x1000, 0x3000, &mm),
        (0x5000, 0x6000, &mm),
        (0x9000, 0xa000, &other),
    ] {
        let vma = vm.world().kernel("struct vm_area_struct")?;
        vma.set("vm_start", start)?
            .set("vm_end", end)?
            .set("vm_mm", of)?;
    }
    assert_eq!(run(&mut vm, "mappings"), 3);
    assert_eq!(found(&vm, 3), [0x1000, 0x5000, 0x7000]);
    vm.set_global("address", 0x3000)?;
    assert_eq!(run(&mut vm, "mappings"), 2);
    assert_eq!(found(&vm, 2), [0x5000, 0x7000]);
    Ok(())
}

#[test]
fn caches_are_walked_and_user_memory_is_read() -> Result<()> {
    let mut vm = machine();
    assert_eq!(run(&mut vm, "caches"), 0);
    for size in [64, 192] {
        let cache = vm.world().kernel("struct kmem_cache")?;
        cache.set("object_size", size)?;
    }
    assert_eq!(run(&mut vm, "caches"), 2);
    assert_eq!(found(&vm, 2), [64, 192]);

    let (short, long) = (
        vm.world().user_cstr("short"),
        vm.world().user_cstr("longer than that"),
    );
    for (address, flags, result, text) in [
        (short, 0, 6, "short"),
        (long, 0, 8, "longer "),
        (short, 1, 6, "short"),
        (short, 2, -22, "short"),
        (1, 0, -14, "short"),
        (1, 1, -14, ""),
    ] {
        vm.set_global("address", address)?;
        vm.set_global("flags", flags)?;
        assert_eq!(run(&mut vm, "user_text"), result);
        assert_eq!(vm.global("text")?.as_str(), Some(text));
    }
    Ok(())
}
