//! Text as the kernel makes it: of formats, and of objects by their types. Where there is
//! a kernel it is asked, too.

use bpflab::btf::{Btf, Kind};
use bpflab::util::TypeId;
use bpflab::vm::events::Event;
use bpflab::{Object, Vm};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

#[cfg(all(feature = "kernel", target_os = "linux"))]
mod asked;
#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::shared::here;

const OBJECT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/objects/formatting.bpf.o"
);

const COMPACT: u64 = 1;
const NONAME: u64 = 2;
const ZERO: u64 = 8;

/// The value of the map `renders`.
#[derive(Debug, Clone, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Render {
    type_id: u32,
    ptr_size: u32,
    flags: u64,
    address: u64,
    said: i64,
    object: [u8; 1024],
    text: [u8; 16384],
}

impl Render {
    fn new(id: TypeId, object: &[u8], flags: u64) -> Self {
        let mut render = Self::new_zeroed();
        render.type_id = id.0;
        render.flags = flags;
        render.object[..object.len()].copy_from_slice(object);
        render.text.fill(b'#');
        render
    }

    /// The text up to its NUL, and what the program was told.
    fn shown(&self) -> (String, i64) {
        let end = self.text.iter().position(|byte| *byte == 0);
        let text = end.map_or(&[][..], |end| &self.text[..end]);
        (
            text.iter().map(|byte| char::from(*byte)).collect(),
            self.said,
        )
    }
}

fn ours(vm: &mut Vm, program: &str, render: &Render) -> Render {
    vm.map("renders").unwrap().set(&0u32, render).unwrap();
    vm.run(program, &Event::bytes(Vec::new())).unwrap();
    vm.map("renders").unwrap().get(&0u32).unwrap().unwrap()
}

/// A machine whose kernel types are the object's own, and those.
fn own_types() -> (Vm, Btf) {
    let mut object = Object::open(OBJECT).unwrap();
    object.set_target(bpflab::object::Target::Own);
    let btf = object.btf().unwrap().clone();
    (Vm::unverified(object).unwrap(), btf)
}

#[test]
fn an_object_is_shown_by_its_type() {
    let (mut vm, btf) = own_types();
    let task = btf.find("task_struct", Kind::Struct).unwrap().id();
    let mut object = 42u32.to_le_bytes().to_vec();
    object.extend(b"dd\0junk");
    let mut shown = |flags| {
        let rendered = ours(&mut vm, "render", &Render::new(task, &object, flags));
        let (text, said) = rendered.shown();
        assert_eq!(said, i64::try_from(text.len()).unwrap());
        text
    };
    let compact = "(struct task_struct){.pid = (int)42,.comm = (char[])['d','d',],}";
    assert_eq!(shown(COMPACT), compact);
    assert_eq!(shown(COMPACT | NONAME), "{42,['d','d',],}");
    let lines =
        "(struct task_struct){\n .pid = (int)42,\n .comm = (char[])[\n  'd',\n  'd',\n ],\n}\n";
    assert_eq!(shown(0), lines);
}

#[test]
fn zeros_are_left_out_unless_asked_for() {
    let (mut vm, btf) = own_types();
    let task = btf.find("task_struct", Kind::Struct).unwrap().id();
    let mut shown = |flags| {
        ours(&mut vm, "render", &Render::new(task, &[], flags))
            .shown()
            .0
    };
    assert_eq!(shown(COMPACT), "(struct task_struct){}");
    let zeros = "(struct task_struct){.pid = (int)0,.comm = (char[])[],}";
    assert_eq!(shown(COMPACT | ZERO), zeros);
}

#[test]
fn text_is_cut_and_the_whole_length_told() {
    let (mut vm, btf) = own_types();
    let task = btf.find("task_struct", Kind::Struct).unwrap().id();
    let render = Render::new(task, &[7], COMPACT);
    let short = ours(&mut vm, "render_short", &render);
    assert_eq!(
        short.shown(),
        ("(struct task_struct){.pid = (in".into(), 36)
    );
    assert_eq!(short.text[32], b'#');
}

#[test]
fn what_can_not_be_shown_is_told() {
    const EINVAL: i64 = -22;
    const ENOENT: i64 = -2;
    const EFAULT: i64 = -14;
    let (mut vm, btf) = own_types();
    let task = btf.find("task_struct", Kind::Struct).unwrap().id();
    let mut said = |change: fn(&mut Render)| {
        let mut render = Render::new(task, &[], COMPACT);
        change(&mut render);
        let render = ours(&mut vm, "render", &render);
        assert_eq!(render.text[0], b'#', "nothing is written");
        render.said
    };
    assert_eq!(said(|render| render.flags = 16), EINVAL);
    assert_eq!(said(|render| render.ptr_size = 12), EINVAL);
    assert_eq!(said(|render| render.type_id = 0), EINVAL);
    assert_eq!(said(|render| render.type_id = 1 << 20), ENOENT);
    assert_eq!(said(|render| render.type_id = u32::MAX), ENOENT);
    assert_eq!(
        said(|render| render.address = 0xffff_ffff_0000_0000),
        EFAULT
    );
}

#[test]
fn an_iterator_prints_for_who_reads_it() {
    use bpflab::vm::events::Iteration;

    let mut vm = Vm::unverified(Object::open(OBJECT).unwrap()).unwrap();
    let mut read = String::new();
    let tasks = [(1, "systemd"), (4242, "dd")];
    for (number, (pid, comm)) in (0..).zip(tasks) {
        let mut task = vm.world().new_task();
        task.set_pid(pid).set_comm(comm);
        let task = vm.world().task_object(&task).unwrap();
        let event = vm.iterator("task").unwrap().set("task", &task).unwrap();
        let event = event.iteration(Iteration::default().with_seq_num(number));
        read += &vm.run("tasks", &event).unwrap().seq();
    }
    let last = vm
        .iterator("task")
        .unwrap()
        .iteration(Iteration::default().with_seq_num(2));
    read += &vm.run("tasks", &last).unwrap().seq();
    assert_eq!(read, "   pid name\n     1 systemd\n  4242 dd\n2 tasks\n");
}
