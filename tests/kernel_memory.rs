//! Kernel memory, mocked by BTF type, as programs and tests see it.

use bpflab::btf::{Array, Btf, Builder, Encoding, Linkage, Member, Param, Variable};
use bpflab::object::Target;
use bpflab::util::TypeId;
use bpflab::vm::{KernelObject, Outcome};
use bpflab::{Object, Vm};

/// A kernel with little in it, whose `task_struct` is laid out otherwise than the
/// object's.
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

/// A machine with the test's object, and where its variables are.
struct Test {
    vm: Vm,
    object: Object,
}

impl Test {
    fn new() -> Self {
        let mut object = Object::open("tests/objects/kernel_memory.bpf.o").unwrap();
        object.set_target(Target::Kernel(kernel()));
        let vm = Vm::new(object.clone()).unwrap();
        Self { vm, object }
    }

    fn kernel(&mut self, name: &str) -> KernelObject {
        self.vm.world().kernel(name).unwrap()
    }

    /// A task with a parent, without anything else.
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

    /// Runs a program with this as its first argument.
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
    // The grandparent, the credentials, the address space.
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
        text.contains("struct task_struct+28, which is gone"),
        "{text}"
    );

    // A number that is no address.
    let outcome = test.run("read_directly", 0x1234_5678);
    assert_eq!(test.number("pid"), 0);
    assert_eq!(outcome.probed.len(), 11);
}

#[test]
fn core_read_goes_the_same_way() {
    let mut test = Test::new();
    let task = test.task().set("in_execve", 1).unwrap();
    let task = task.set("comm", "dd").unwrap().set("cred.uid", 5).unwrap();
    let outcome = test.run("read_by_core_read", task.address());
    // Nothing is at the grandparent; that is the helper's to say.
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

    // It follows the task, and keeps what the test wrote there.
    let current = current.set("real_parent.tgid", 41).unwrap();
    test.vm.world().task().set_pid(43);
    test.run("read_current", 0);
    let seen = ["pid", "parent", "same"];
    assert_eq!(seen.map(|name| test.number(name)), [43, 41, 0]);

    // Another task is another object.
    let mut dd = test.vm.world().new_task();
    dd.set_pid(50).set_comm("dd");
    test.vm.world().run_task(&dd);
    test.run("read_current", current.address());
    assert_eq!(test.number("pid"), 50);
    assert_eq!(test.number("same"), 0);
    assert!(test.global("comm").starts_with(b"dd\0"));
}
