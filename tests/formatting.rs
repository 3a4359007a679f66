//! Text as the kernel makes it: of formats, and of objects by their types. Where there is
//! a kernel it is asked, too.

use bpflab::btf::{Btf, Kind};
use bpflab::util::TypeId;
use bpflab::vm::Random;
use bpflab::vm::events::Event;
use bpflab::{Object, Vm};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[path = "kernel/here.rs"]
mod here;

const OBJECT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/objects/formatting.bpf.o"
);

const COMPACT: u64 = 1;
const NONAME: u64 = 2;
const PTR_RAW: u64 = 4;
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

/// What an object of a type may look like: zeros, small numbers, text, anything.
fn made_up(random: &mut Random, size: usize) -> Vec<u8> {
    let style = random.next_u32() % 4;
    let mut bytes: Vec<u8> = (0..size)
        .map(|_| {
            let byte = random.next_u32().to_le_bytes()[0];
            match style {
                0 => 0,
                1 if byte > 24 => 0,
                2 => byte % 96 + 32,
                _ => byte,
            }
        })
        .collect();
    if style == 0 && size > 0 {
        // One byte that is set.
        let at = random.next_u32() as usize % size;
        bytes[at] = 1;
    }
    bytes
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
mod asked {
    use super::*;
    use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};
    use bpflab::program::Program;
    use bpflab::spec::UpdateFlags;
    use bpflab::util::MapId;

    /// A program in the running kernel, with its maps.
    pub struct There {
        program: LoadedProgram,
        maps: LoadedMaps,
    }

    impl There {
        pub fn load(program: &Program) -> Self {
            let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
            let loaded = load(program, &maps, &LoadOptions::default()).unwrap();
            let said = loaded.verdict.message;
            Self {
                program: loaded.program.expect(&said),
                maps,
            }
        }

        pub fn run(&self, map: MapId, value: &[u8]) -> Vec<u8> {
            let key = 0u32.to_le_bytes();
            let map = self.maps.map(map).unwrap();
            map.update(&key, value, UpdateFlags::empty()).unwrap();
            self.program.test_run(&TestRun::default()).unwrap();
            map.lookup(&key, UpdateFlags::empty()).unwrap()
        }
    }
}

/// Objects of the kernel's own types: whatever bytes they have, the text is the same.
#[test]
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn the_kernel_shows_the_same() {
    if here::kernel().is_none() {
        return;
    }
    let kernel = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let btf = Btf::parse(&kernel).unwrap();
    let object = Object::open(OBJECT).unwrap();
    let program = object.program("render").unwrap();
    let there = asked::There::load(&program);
    let map = (0..)
        .zip(program.maps.iter())
        .find(|(_, def)| def.name == "renders")
        .map(|(id, _)| bpflab::util::MapId(id))
        .unwrap();
    let mut vm = Vm::new(object).unwrap();
    let mut random = Random::new(7);
    let mut compared = 0;
    for ty in btf.types().step_by(7) {
        // Nothing else: a variable, for one, brings down the kernel (6.18, btf_var_show).
        let has_text = btf.resolve(ty.id()).is_ok_and(|ty| {
            use Kind::{Array, Enum, Enum64, Int, Ptr, Struct, Union};
            matches!(
                ty.kind(),
                Int | Ptr | Struct | Union | Enum | Enum64 | Array
            )
        });
        let Some(size) = btf.size_of(ty.id()).ok().filter(|_| has_text) else {
            continue;
        };
        let size = size as usize;
        if ty.kind() == Kind::Var || size > 1024 {
            continue;
        }
        let flags = PTR_RAW | u64::from(random.next_u32()) & (COMPACT | NONAME | ZERO);
        let render = Render::new(ty.id(), &made_up(&mut random, size), flags);
        let wanted = there.run(map, render.as_bytes());
        let wanted = Render::read_from_bytes(&wanted).unwrap();
        let found = ours(&mut vm, "render", &render);
        assert_eq!(
            found.shown(),
            wanted.shown(),
            "type {} ({} {}), flags {flags:#x}, bytes {:x?}",
            ty.id(),
            ty.kind(),
            ty.name(),
            &render.object[..size]
        );
        compared += 1;
    }
    assert!(compared > 1000, "{compared} types");
    eprintln!("{compared} types are shown as the kernel shows them");
}
