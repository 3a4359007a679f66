//! The running kernel is asked how it shows what is made up at random.

use std::sync::Arc;

use bpflab::btf::{Btf, Kind};
use bpflab::kernel::{LoadOptions, LoadedMaps, LoadedProgram, TestRun, load};
use bpflab::program::Program;
use bpflab::spec::UpdateFlags;
use bpflab::util::MapId;
use bpflab::vm::events::Event;
use bpflab::vm::{Random, World};
use bpflab::{Object, Vm};
use zerocopy::{FromBytes, IntoBytes};

use super::{COMPACT, NONAME, OBJECT, Render, ZERO, here, ours};

const PTR_RAW: u64 = 4;

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

/// A program in the running kernel, with its maps.
struct There {
    program: LoadedProgram,
    maps: LoadedMaps,
}

impl There {
    fn load(program: &Program) -> Self {
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).unwrap();
        let loaded = load(program, &maps, &LoadOptions::default()).unwrap();
        let said = loaded.verdict.message;
        Self {
            program: loaded.program.expect(&said),
            maps,
        }
    }

    fn run(&self, map: MapId, value: &[u8]) -> Vec<u8> {
        let key = 0u32.to_le_bytes();
        let map = self.maps.map(map).unwrap();
        map.update(&key, value, UpdateFlags::empty()).unwrap();
        self.program.test_run(&TestRun::default()).unwrap();
        map.lookup(&key, UpdateFlags::empty()).unwrap()
    }
}

/// Objects of the kernel's own types: whatever bytes they have, the text is the same.
#[test]
fn the_kernel_shows_the_same() {
    if here::kernel().is_none() {
        return;
    }
    let kernel = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let btf = Btf::parse(&kernel).unwrap();
    let object = Object::open(OBJECT).unwrap();
    let program = object.program("render").unwrap();
    let there = There::load(&program);
    let map = (0..)
        .zip(program.maps.iter())
        .find(|(_, def)| def.name == "renders")
        .map(|(id, _)| MapId(id))
        .unwrap();
    let mut vm = Vm::unverified(object).unwrap();
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

/// Pieces that formats are made of: what works, what does not, and what lies around it.
const PIECES: [&str; 46] = [
    "%d", "%i", "%u", "%x", "%X", "%ld", "%lu", "%llx", "%5d", "%-5u|", "%05d", "%+d", "% d",
    "%08lx", "%c", "%3c", "%px", "%20px", "%s", "%10s|", "%-8s|", "%pks", "%pI4", "%pi4", "%pI6",
    "%pi6", "%pS", "%ps", "%pB", "%%", "%", "%5%", "%pz", "%.2d", "%#x", "%hd", "%o", "%zu", "%lc",
    "%pI5", "a", " ", "\n", "\u{1}", "\u{7f}", "\u{e9}",
];

/// Where things are in the value of the map `io`.
const ARGS: usize = 0;
const SAID: usize = 24;
const TEXT: usize = 32;
const ROOM: usize = 256;
const HELLO: usize = TEXT + ROOM;

/// A program that formats two numbers and an address of a text.
fn formatter(format: &[u8]) -> Program {
    use bpflab::isa::assemble_with;
    use bpflab::program::{Initial, MapDef};
    use bpflab::spec::{MapFlags, MapType, ProgType};

    let mut text = format.to_vec();
    text.push(0);
    let size = u32::try_from(text.len()).unwrap();
    let mut read_only = MapDef::new("formats", MapType::Array, 4, size, 1);
    read_only.flags = MapFlags::RDONLY_PROG;
    read_only.frozen = true;
    read_only.initial = vec![Initial::Bytes {
        key: vec![0; 4],
        value: text.into(),
    }];
    let io = MapDef::new("io", MapType::Array, 4, 32 + 256 + 32, 1);
    let mut program = Program::new("format", ProgType::Syscall, Vec::new());
    program.license = "GPL".into();
    program.flags = bpflab::spec::ProgFlags::SLEEPABLE;
    program.maps = vec![read_only, io].into();
    let text = format!(
        "r6 = map[idx:1][0]+0
        r1 = *(u64 *)(r6 +0)
        *(u64 *)(r10 -24) = r1
        r1 = *(u64 *)(r6 +8)
        *(u64 *)(r10 -16) = r1
        r1 = r6
        r1 += {HELLO}
        *(u64 *)(r10 -8) = r1
        r1 = r6
        r1 += {TEXT}
        r2 = {ROOM}
        r3 = map[idx:0][0]+0
        r4 = r10
        r4 += -24
        r5 = 24
        call bpf_snprintf
        *(u64 *)(r6 +{SAID}) = r0
        r0 = 0
        exit"
    );
    program.insns = assemble_with(&text, &program).unwrap().slots;
    program
}

/// Formats at random: both refuse the same ones, and of the others make the same text.
#[test]
fn the_kernel_formats_the_same() {
    if here::kernel().is_none() {
        return;
    }
    let mut random = Random::new(3);
    let (mut same, mut refused) = (0, 0);
    for _ in 0..400 {
        let count = random.next_u32() % 5 + 1;
        let mut args = 0;
        let pieces = (0..count).map(|_| {
            let piece = PIECES[random.next_u32() as usize % PIECES.len()];
            args += usize::from(piece.starts_with('%') && piece != "%%");
            // The third argument is an address, which differs: only what is there counts.
            let shows = ["%s", "%10s", "%-8s", "%pks", "%pI", "%pi"];
            match args > 2 && !shows.iter().any(|start| piece.starts_with(start)) {
                true => "%s ",
                false => piece,
            }
        });
        let format: String = pieces.collect();
        let program = formatter(format.as_bytes());
        let mut value = vec![b'#'; HELLO + 32];
        // No address of the kernel's code, which has names there.
        for at in [ARGS, ARGS + 8] {
            let number = random.next_u64() >> (random.next_u32() % 48 + 16);
            value[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        value[HELLO..].fill(0);
        value[HELLO..HELLO + 5].copy_from_slice(b"hello");

        let maps = LoadedMaps::create(&program.maps, None).unwrap();
        let loaded = load(&program, &maps, &LoadOptions::default()).unwrap();
        let verdict = loaded.verdict;
        let mut vm = Vm::with_world(World::default());
        let programs = vec![Arc::new(program.clone())];
        let handle = vm
            .load_unverified_programs(&program.maps, programs)
            .unwrap()[0];
        let key = 0u32.to_le_bytes();
        let io = vm.map("io").unwrap();
        io.set_bytes(&key, &value, UpdateFlags::empty()).unwrap();
        vm.run(handle, &Event::bytes(Vec::new())).unwrap();
        let found = vm.map("io").unwrap().get_bytes(&key).unwrap().unwrap();
        let Some(there) = loaded.program else {
            // The verifier looks at the format already.
            let said = i64::from_le_bytes(found[SAID..TEXT].try_into().unwrap());
            assert_eq!(said, -22, "{format:?}: {}", verdict.message);
            refused += 1;
            continue;
        };
        let map = maps.map(MapId(1)).unwrap();
        map.update(&key, &value, UpdateFlags::empty()).unwrap();
        there.test_run(&TestRun::default()).unwrap();
        let wanted = map.lookup(&key, UpdateFlags::empty()).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&wanted),
            "{format:?}"
        );
        same += 1;
    }
    assert!(same > 50 && refused > 50, "{same} alike, {refused} refused");
    eprintln!("{same} formats make the same text, {refused} are refused by both");
}
