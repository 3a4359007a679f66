//! Kernel memory mocked by BTF type, for programs and tests.

use crate::shared;

use std::path::Path;

use bpflab::btf::{Array, Btf, Builder, Encoding, Linkage, Member, Param, Variable};
use bpflab::harness::EngineKind;
use bpflab::object::Target;
use bpflab::util::TypeId;
use bpflab::vm::{KernelObject, Outcome, World};
use bpflab::{Object, Vm};

use shared::{Need, skip};

const OBJECT: &str = "tests/objects/kernel_memory.bpf.o";

/// The BTF of a small kernel whose `task_struct` has another layout than the object's.
fn kernel() -> Btf {
    let member = |name, ty, bit_offset| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let unsigned = b.int("unsigned int", 4, Encoding::Unsigned);
    let character = b.int("char", 1, Encoding::Char);
    let comm = b.array(Array {
        element: character,
        index: int,
        len: 16,
    });
    let kuid = b.structure("", 4, &[member("val", unsigned, 0)]);
    let kuid = b.typedef("kuid_t", kuid);
    let cred = b.structure("cred", 16, &[member("uid", kuid, 64)]);
    let cred = b.constant(cred);
    let cred = b.ptr(cred);
    let mm = b.structure("mm_struct", 8, &[member("map_count", int, 32)]);
    let mm = b.ptr(mm);
    let task = TypeId(b.next_id().0 + 1);
    let task_pointer = b.ptr(task);
    let in_execve = Member {
        bitfield: Some(1),
        ..member("in_execve", unsigned, 3)
    };
    b.structure(
        "task_struct",
        80,
        &[
            in_execve,
            member("comm", comm, 64),
            member("pid", int, 192),
            member("tgid", int, 224),
            member("real_parent", task_pointer, 256),
            member("group_leader", task_pointer, 320),
            member("cred", cred, 384),
            member("mm", mm, 448),
        ],
    );
    let rq = b.structure("rq", 64, &[member("nr_running", unsigned, 128)]);
    let rq = b.variable("runqueues", rq, Linkage::Global);
    let active = b.variable("bpf_prog_active", int, Linkage::Global);
    b.section(
        ".data..percpu",
        68,
        &[
            Variable {
                ty: rq,
                offset: 0,
                size: 64,
            },
            Variable {
                ty: active,
                offset: 64,
                size: 4,
            },
        ],
    );
    let data = Param {
        name: "__data",
        ty: b.ptr(TypeId(0)),
    };
    let argument = Param {
        name: "p",
        ty: task_pointer,
    };
    let probe = b.prototype(TypeId(0), &[data, argument]);
    let probe = b.ptr(probe);
    b.typedef("btf_trace_sched_process_exec", probe);
    b.build().unwrap()
}

/// The test object for a target kernel, with all of its programs.
fn with_variables(target: Target) -> Object {
    let mut object = Object::open(OBJECT).unwrap();
    object.set_target(target);
    let entry = object.entry_mut("read_variables").unwrap();
    entry.set_autoload(true);
    object
}

/// A machine with the test object, and access to its variables.
struct Test {
    vm: Vm,
    object: Object,
}

impl Test {
    fn new() -> Self {
        Self::of(with_variables(Target::Kernel(kernel())))
    }

    fn of(object: Object) -> Self {
        let vm = Vm::unverified(object.clone()).unwrap();
        Self { vm, object }
    }

    fn kernel(&mut self, name: &str) -> KernelObject {
        self.vm.world().kernel(name).unwrap()
    }

    /// A task with only a parent.
    fn task(&mut self) -> KernelObject {
        let world = self.vm.world();
        let set = || {
            world
                .kernel("task_struct")?
                .set("pid", 8)?
                .set("tgid", 7)?
                .set("real_parent.tgid", 3)
        };
        set().unwrap()
    }

    /// Runs a program with this first argument.
    fn run(&mut self, program: &str, argument: u64) -> Outcome {
        let event = self.vm.raw_tracepoint("sched_process_exec").unwrap();
        let event = event.set("args[0]", argument).unwrap();
        self.vm.run(program, &event).unwrap()
    }

    /// The bytes of a global variable.
    fn global(&self, name: &str) -> Vec<u8> {
        let globals = self.object.globals();
        let global = globals.iter().find(|global| global.name == name).unwrap();
        let map = &self.object.maps()[global.map.index()].name;
        let map = self.vm.map(map).unwrap();
        let value = map.get_bytes(&0u32.to_le_bytes()).unwrap().unwrap();
        value[global.offset as usize..][..global.size as usize].to_vec()
    }

    fn number(&self, name: &str) -> u64 {
        let bytes = self.global(name);
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[test]
fn variables_are_the_worlds() {
    let mut test = Test::new();
    let world = test.vm.world();
    world
        .per_cpu("runqueues", 0)
        .unwrap()
        .set("nr_running", 3)
        .unwrap();
    world
        .per_cpu("runqueues", 2)
        .unwrap()
        .set("nr_running", 4)
        .unwrap();
    let outcome = test.run("read_variables", 0);
    assert_eq!(outcome.probed, []);
    let seen = ["running", "running_there", "on_missing"];
    assert_eq!(seen.map(|name| test.number(name)), [3, 4, 0]);
    // A function without a mocked address gets one in the kernel's text; a weak symbol is 0.
    let vfs_read = test.number("vfs_read_address");
    assert_eq!(vfs_read >> 28, 0xf_ffff_fff8);
    assert_eq!(test.number("init_task_address"), 0);
    let world = test.vm.world();
    world.set_cpu(2);
    test.run("read_variables", 0);
    assert_eq!(test.number("running"), 4);

    // A test may set a symbol's address and make it a variable.
    let mut object = test.object.clone();
    object.set_ksym("init_task", 0xffff_ffff_8340_1000);
    let mut test = Test::of(object);
    test.run("read_variables", 0);
    assert_eq!(test.number("init_task_address"), 0xffff_ffff_8340_1000);
    let world = test.vm.world();
    assert!(world.variable("init_task").is_err());
    let init = world.variable_of("init_task", "task_struct").unwrap();
    assert_eq!(init.address(), 0xffff_ffff_8340_1000);
    // Variables mocked before an object is loaded are used.
    let mut vm = Vm::with_world(World::default());
    vm.set_kernel_btf(kernel());
    let init = vm.world().variable_of("init_task", "task_struct").unwrap();
    let object = with_variables(Target::Kernel(kernel()));
    vm.load_unverified(object.clone()).unwrap();
    let mut test = Test { vm, object };
    test.run("read_variables", 0);
    assert_eq!(test.number("init_task_address"), init.address());
}

#[test]
fn every_engine_reads_the_same() {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut test = Test::new();
        test.vm.set_engine(engine);
        let task = test.task();
        let world = test.vm.world();
        world.task().set_pid(42).set_ppid(40).set_comm("ls");
        let mm = world
            .kernel("mm_struct")
            .unwrap()
            .set("map_count", 5)
            .unwrap();
        world.current_task().unwrap().set("mm", &mm).unwrap();
        let outcome = test.run("read_raw", task.address());
        assert_eq!(
            (outcome.returned("read_raw"), &outcome.probed[..]),
            (Some(0), &[][..])
        );
        let seen = ["parent_core", "pid", "parent", "count"];
        assert_eq!(
            seen.map(|name| test.number(name)),
            [3, 42, 40, 5],
            "{engine}"
        );
        assert!(test.global("comm").starts_with(b"ls\0"));
        // A null pointer plus 4 is below any kernel address.
        assert_eq!(test.number("same").cast_signed(), -34, "{engine}");
    }
}

#[test]
fn an_objects_own_types_will_do() {
    let object = with_variables(Target::Own);
    let vm = Vm::unverified(object.clone()).unwrap();
    let mut test = Test { vm, object };
    let task = test.task();
    assert!(task.size() < 100);
    let outcome = test.run("read_directly", task.address());
    assert_eq!((test.number("pid"), test.number("parent")), (8, 3));
    assert_eq!(outcome.probed.len(), 3);
    let world = test.vm.world();
    world
        .per_cpu("runqueues", 2)
        .unwrap()
        .set("nr_running", 6)
        .unwrap();
    test.run("read_variables", 0);
    assert_eq!(test.number("running_there"), 6);
}

#[test]
fn so_will_the_running_kernels() {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        skip(Need::Kernel, "this kernel does not show its BTF");
        return;
    }
    let mut test = Test::of(Object::open(OBJECT).unwrap());
    let world = test.vm.world();
    world
        .task()
        .set_pid(42)
        .set_uid(7)
        .set_ppid(40)
        .set_comm("ls");
    world.task().set_cgroups(&[5, 9]);
    let current = world.current_task().unwrap();
    assert!(current.size() > 1000);
    assert_eq!(current.get("cred.euid").unwrap(), 7);
    assert_eq!(current.get("group_leader").unwrap(), current.address());
    assert_eq!(current.get("real_parent->real_parent->pid").unwrap(), 1);
    assert_eq!(
        current.text("real_parent.real_parent.comm").unwrap(),
        "init"
    );
    // The verifier takes these for not null, in any task.
    for task in [&current, &current.at("real_parent.real_parent").unwrap()] {
        let own = task.at("cpus_mask").unwrap().address();
        assert_eq!(task.get("cpus_ptr").unwrap(), own);
        assert_ne!(task.get("cgroups.dfl_cgrp").unwrap(), 0);
    }
    let cgroup = current.at("cgroups.dfl_cgrp").unwrap();
    assert_eq!(cgroup.get("kn.id").unwrap(), 9);
    for file in ["procs_file.kn", "events_file.kn"] {
        let node = cgroup.at(file).unwrap();
        // By its name before Linux 6.15, too.
        let parent = node.get("__parent").or_else(|_| node.get("parent"));
        assert_eq!(parent.unwrap(), cgroup.get("kn").unwrap());
    }
    assert_eq!(cgroup.get("level").unwrap(), 2);
    assert_eq!(cgroup.get("ancestors[1].kn.id").unwrap(), 5);
    let found = test.vm.world().find_cgroup(5).unwrap();
    assert_eq!(cgroup.get("self.parent").unwrap(), found.address());
    let outcome = test.run("read_current", current.address());
    assert_eq!(outcome.probed, []);
    let seen = ["pid", "parent", "uid", "same"];
    assert_eq!(seen.map(|name| test.number(name)), [42, 40, 7, 1]);

    let file = test.vm.world().file("/etc/passwd").unwrap();
    assert_eq!(file.text("f_path.dentry.d_name.name").unwrap(), "passwd");
    assert_ne!(file.get("f_inode.i_ino").unwrap(), 0);
    let error = test.kernel("task_struct").set("pidd", 1).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "struct task_struct: `pidd`: struct task_struct has no member `pidd`; it has pid,"
        ),
        "{text}"
    );
    let error = test
        .vm
        .world()
        .kernel("task_strukt")
        .unwrap_err()
        .to_string();
    assert!(error.contains("task_struct"), "{error}");
}

#[test]
fn tasks_know_their_relatives() {
    let mut test = Test::new();
    let world = test.vm.world();
    let mut shell = world.new_task();
    shell.set_pid(50).set_comm("sh");
    let shell_object = world.task_object(&shell).unwrap();
    let mut thread = world.new_task();
    thread.set_pid(60).set_tid(61).set_ppid(50);
    let object = world.task_object(&thread).unwrap();
    assert_eq!(object.get("real_parent").unwrap(), shell_object.address());
    assert_eq!(object.text("real_parent.comm").unwrap(), "sh");
    // The world has no task for the thread's process, but the process has an object.
    assert_eq!(object.get("group_leader.pid").unwrap(), 60);
    let leader = world.find_task(60).unwrap();
    assert_eq!(object.get("group_leader").unwrap(), leader.address());
    assert_eq!(world.find_task(61).unwrap(), object);
    let init = world.find_task(1).unwrap();
    assert_eq!(shell_object.get("real_parent").unwrap(), init.address());
    let idle = init.at("real_parent").unwrap();
    assert_eq!(idle.get("real_parent").unwrap(), idle.address());
    assert!(world.find_task(1234).is_none());
    assert!(world.find_task(1000).is_some(), "the current one");

    // Switch between the tasks.
    for (task, pid) in [(&shell, 50), (&thread, 61), (&shell, 50)] {
        test.vm.world().run_task(task);
        test.run("read_current", shell_object.address());
        assert_eq!(test.number("pid"), pid);
        assert_eq!(test.number("same"), u64::from(pid == 50));
    }
    // A freed object is replaced by a new one on the next request.
    assert!(shell_object.free());
    let again = test.vm.world().current_task().unwrap();
    assert_ne!(again, shell_object);
    assert_eq!(again.get("pid"), Ok(50));
}

#[test]
fn a_struct_may_be_copied_to_user_space() {
    let mut test = Test::new();
    let world = test.vm.world();
    let cred = world.kernel("cred").unwrap().set("uid", 7).unwrap();
    let address = world.user_copy(&cred);
    assert!(address < 1 << 47);
    let copied = world.user().read(address, cred.size()).unwrap();
    assert_eq!((copied[8], &copied), (7, &cred.bytes()));
}

#[test]
fn a_stray_pointer_into_what_is_known_stays_a_fault() {
    let mut test = Test::new();
    // The map value's address has an object without bytes.
    let map = test.vm.map("kernel_m.bss").map(|map| map.handle()).unwrap();
    let address = test.vm.machine().value_address(map, 0).unwrap();
    let event = test.vm.raw_tracepoint("sched_process_exec").unwrap();
    let event = event.set("args[0]", address + 4096).unwrap();
    let fault = test
        .vm
        .run("read_directly", &event)
        .unwrap_err()
        .to_string();
    assert!(fault.contains("map value"), "{fault}");
    assert!(fault.contains("past its end"), "{fault}");
}

#[test]
fn other_cpus_see_what_a_test_changes_while_they_run() {
    let mut test = Test::new();
    let task = test.task();
    let mut other = test.vm.cpu(1).unwrap();
    let event = test.vm.raw_tracepoint("sched_process_exec").unwrap();
    let event = event.set("args[0]", task.address()).unwrap();
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            for _ in 0..200 {
                other.run("read_directly", &event).unwrap();
            }
        });
        for pid in 0..1000 {
            task.clone().set("pid", pid).unwrap();
        }
        thread.join().unwrap();
    });
    // Created after the CPU, and visible there.
    let late = test.task().set("pid", 77).unwrap();
    let event = event.set("args[0]", &late).unwrap();
    other.run("read_directly", &event).unwrap();
    assert_eq!(test.number("pid"), 77);
    // Each CPU has its own current task.
    test.vm.world().task().set_pid(5);
    other.world().task().set_pid(6);
    let (ours, theirs) = (test.vm.world().current_task(), other.world().current_task());
    assert_eq!(ours.unwrap().get("pid"), Ok(5));
    assert_eq!(theirs.unwrap().get("pid"), Ok(6));
}

#[test]
fn a_world_that_is_replaced_brings_its_memory() {
    let mut test = Test::new();
    let old = test.task();
    *test.vm.world() = World::default();
    let outcome = test.run("read_directly", old.address());
    assert_eq!((test.number("pid"), outcome.probed.len()), (0, 11));
    let new = test.task();
    test.run("read_directly", new.address());
    assert_eq!(test.number("pid"), 8);
}

#[test]
fn a_program_reads_a_task_directly() {
    let mut test = Test::new();
    let mm = test.kernel("mm_struct").set("map_count", 12).unwrap();
    let task = test.task();
    let task = task.set("cred.uid", 1001).unwrap().set("mm", &mm).unwrap();
    let task = task.set("real_parent->real_parent->tgid", 1).unwrap();
    let outcome = test.run("read_directly", task.address());
    assert_eq!(outcome.probed, []);
    let seen = ["pid", "tgid", "parent", "grandparent", "uid", "count"];
    assert_eq!(seen.map(|name| test.number(name)), [8, 7, 3, 1, 1001, 12]);
}

#[test]
fn what_is_not_there_reads_as_zero_and_the_outcome_says_where() {
    let mut test = Test::new();
    let task = test.task();
    let outcome = test.run("read_directly", task.address());
    let seen = ["pid", "parent", "grandparent", "uid", "count"];
    assert_eq!(seen.map(|name| test.number(name)), [8, 3, 0, 0, 0]);
    // Grandparent, credentials, address space.
    assert_eq!(outcome.probed.len(), 3);
    let text = outcome.probed[0].to_string();
    assert!(
        text.contains("reads 4 bytes at a null pointer+28"),
        "{text}"
    );
    assert!(
        text.contains("task->real_parent->real_parent->tgid"),
        "{text}"
    );
    assert!(text.contains("kernel_memory.bpf.c"), "{text}");

    assert!(task.at("real_parent").unwrap().free());
    let outcome = test.run("read_directly", task.address());
    assert_eq!(test.number("parent"), 0);
    let text = outcome.probed[0].to_string();
    assert!(
        text.contains("struct task_struct+28, which was freed"),
        "{text}"
    );

    // A number that is not an address.
    let outcome = test.run("read_directly", 0x1234_5678);
    assert_eq!(test.number("pid"), 0);
    assert_eq!(outcome.probed.len(), 11);
}

/// The second run finds the objects where the first one left them.
#[test]
fn an_object_that_was_freed_is_gone_on_every_engine() {
    for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
        let mut object = Object::open(OBJECT).unwrap();
        object.set_target(Target::Kernel(kernel()));
        object.load_only(["read_current"]).unwrap();
        let vm = Vm::new(object.clone()).unwrap();
        let mut test = Test { vm, object };
        test.vm.set_engine(engine);
        test.vm.world().task().set_pid(8);
        let task = test.vm.world().current_task().unwrap();
        let task = task.set("real_parent.tgid", 3).unwrap();
        for (frees, parent, probed) in [(false, 3, 0), (false, 3, 0), (true, 0, 1)] {
            assert!(!frees || task.at("real_parent").unwrap().free());
            let outcome = test.run("read_current", 0);
            assert_eq!(outcome.runs[0].ran_on.engine, engine);
            assert_eq!((test.number("pid"), test.number("parent")), (8, parent));
            assert_eq!(outcome.probed.len(), probed, "{engine}");
        }
    }
}

#[test]
fn core_read_goes_the_same_way() {
    let mut test = Test::new();
    let task = test.task().set("in_execve", 1).unwrap();
    let task = task.set("comm", "dd").unwrap().set("cred.uid", 5).unwrap();
    let outcome = test.run("read_by_core_read", task.address());
    // The grandparent is not readable: the helper returns the error.
    assert_eq!(outcome.probed, []);
    let seen = ["parent_core", "grandparent", "uid", "in_execve"];
    assert_eq!(seen.map(|name| test.number(name)), [3, 0, 5, 1]);
    assert!(test.global("comm").starts_with(b"dd\0"));
}

#[test]
fn the_current_task_is_the_worlds() {
    let mut test = Test::new();
    let world = test.vm.world();
    world
        .task()
        .set_pid(42)
        .set_uid(7)
        .set_ppid(40)
        .set_comm("ls");
    let current = world.current_task().unwrap();
    let outcome = test.run("read_current", current.address());
    assert_eq!(outcome.probed, []);
    let seen = ["pid", "parent", "uid", "same"];
    assert_eq!(seen.map(|name| test.number(name)), [42, 40, 7, 1]);
    assert!(test.global("comm").starts_with(b"ls\0"));

    // The object follows the task but keeps fields that the test set.
    let current = current.set("real_parent.tgid", 41).unwrap();
    test.vm.world().task().set_pid(43);
    test.run("read_current", 0);
    let seen = ["pid", "parent", "same"];
    assert_eq!(seen.map(|name| test.number(name)), [43, 41, 0]);

    // Another task has another object.
    let mut dd = test.vm.world().new_task();
    dd.set_pid(50).set_comm("dd");
    test.vm.world().run_task(&dd);
    test.run("read_current", current.address());
    assert_eq!(test.number("pid"), 50);
    assert_eq!(test.number("same"), 0);
    assert!(test.global("comm").starts_with(b"dd\0"));
}
