//! Light skeletons (`bpftool gen skeleton -L`): the loader program of an object, of type syscall,
//! which loads the object's maps and programs by `bpf_sys_bpf`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use bpflab::Vm;
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::object::cases::read_case;
use bpflab::program::Program;
use bpflab::verifier::{Options, verify};
use bpflab::vm::World;
use bpflab::vm::events::Event;

use super::objects::objects;
use crate::shared::here;
use crate::shared::{Need, skip};

/// `enum bpf_cmd`.
const MAP_CREATE: u64 = 0;
const PROG_LOAD: u64 = 5;
const BTF_LOAD: u64 = 18;

/// The slot's opcode and `src_reg` for the address of a map's value, by the map's number in
/// `fd_array` (`BPF_PSEUDO_MAP_IDX_VALUE`).
const LOAD_IMM64: u8 = 0x18;
const MAP_INDEX_VALUE: u8 = 6;

/// The header that bpftool writes for an object, if it can.
fn header(object: &Path) -> Option<String> {
    let mut bpftool = Command::new("bpftool");
    bpftool.args(["gen", "skeleton", "-L"]).arg(object);
    bpftool.args(["name", "tested"]).stderr(Stdio::null());
    let output = bpftool.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && text.contains("opts.insns")).then_some(text)
}

/// The bytes of a string of C in which each byte is itself, or `\0`, or `\xNN`; lines end with a
/// backslash.
fn bytes_of(header: &str, field: &str) -> Vec<u8> {
    let start = format!("opts.{field} = (void *)\"");
    let at = header.find(&start).expect("the field") + start.len();
    let mut chars = header[at..].chars();
    let mut bytes = Vec::new();
    loop {
        match chars.next().expect("the end of the string") {
            '"' => return bytes,
            '\\' => match chars.next().expect("an escape") {
                '\n' => {}
                'x' => {
                    let digits: String = chars.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).expect("two digits"));
                }
                '0' => bytes.push(0),
                'n' => bytes.push(b'\n'),
                't' => bytes.push(b'\t'),
                quoted @ ('"' | '\\') => bytes.push(u8::try_from(quoted).unwrap()),
                other => panic!("escape {other}"),
            },
            plain => bytes.push(u8::try_from(plain).expect("ASCII")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The program as `bpf_load_and_run` of `skel_internal.h` loads it: with one map, which has the
/// loader's data.
fn loader(header: &str) -> Program {
    let (insns, data) = (bytes_of(header, "insns"), bytes_of(header, "data"));
    let slots = insns.chunks_exact(8);
    let is_map = |slot: &[u8]| slot[0] == LOAD_IMM64 && slot[1] >> 4 == MAP_INDEX_VALUE;
    let fixups: Vec<_> = slots
        .clone()
        .enumerate()
        .filter(|(_, slot)| is_map(slot))
        .map(|(at, _)| format!("[{at},0]"))
        .collect();
    let case = format!(
        r#"{{"id":"loader","object":"","program":"loader","section":"","type_name":"syscall",
"prog_type":31,"expected_attach_type":0,"attach_btf_id":0,"prog_flags":16,"license":"Dual BSD/GPL",
"kern_name":"__loader.prog","insns":"{}","insn_cnt":{},"fixups":[{}],"btf":"","func_info":"",
"maps":[{{"idx":0,"type":2,"name":"__loader.map","key_size":4,"value_size":{},"max_entries":1,
"map_flags":0,"map_extra":0,"btf":"","btf_key_type_id":0,"btf_value_type_id":0,
"btf_vmlinux_value_type_id":0,"inner":-1,"frozen":false,"init":[["00000000","{}"]]}}]}}"#,
        hex(&insns),
        slots.len(),
        fixups.join(","),
        data.len(),
        hex(&data),
    );
    let case = read_case(&case.replace('\n', "")).expect("a case");
    case.to_program(None, None).expect("a program")
}

fn has_bpftool() -> bool {
    let mut bpftool = Command::new("bpftool");
    let found = bpftool.arg("version").stdout(Stdio::null()).status();
    if found.is_err() {
        skip(Need::Tools, "bpftool is not there");
    }
    found.is_ok()
}

#[test]
fn the_kernel_gives_loaders_the_same_verdict() {
    if here::judge().is_none() || !has_bpftool() {
        return;
    }
    let mut judged = 0;
    for object in objects() {
        // bpftool refuses objects of the other byte order, and with what loaders can't do.
        let Some(header) = header(&object) else {
            continue;
        };
        let program = loader(&header);
        let maps = LoadedMaps::create(&program.maps, None).unwrap();
        let theirs = load(&program, &maps, &LoadOptions::default()).unwrap();
        let ours = verify(&Arc::new(program), &Options::default()).verdict;
        let file = object.display();
        assert!(ours.is_accepted(), "{file}: {}", ours.message);
        assert!(theirs.verdict.is_accepted(), "{file}");
        assert_eq!(ours.processed(), theirs.verdict.processed(), "{file}");
        judged += 1;
    }
    assert!(judged > 80, "{judged}");
}

#[test]
fn a_loader_runs_against_a_mocked_bpf() {
    if !has_bpftool() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = header(&root.join("examples/bpf/write_hist.bpf.o")).expect("a header");
    let program = Arc::new(loader(&header));
    let mut vm = Vm::with_world(World::default());
    let handles = vm
        .load_unverified_programs(&program.maps.clone(), vec![program])
        .unwrap();
    let commands = Arc::new(Mutex::new(Vec::new()));
    let seen = commands.clone();
    vm.mock_helper("bpf_sys_bpf", move |call| {
        let mut seen = seen.lock().unwrap();
        seen.push(call.arg(1));
        Ok(100 + seen.len() as u64)
    })
    .unwrap();
    vm.mock_helper("bpf_sys_close", |_| Ok(0)).unwrap();
    // `struct bpf_loader_ctx`, one `struct bpf_map_desc`, and the program's descriptor.
    let mut context = vec![0; 48];
    context[0] = 44;
    let outcome = vm.run(handles[0], &Event::bytes(context)).unwrap();
    assert_eq!(outcome.runs[0].r0, 0);
    assert_eq!(*commands.lock().unwrap(), [BTF_LOAD, MAP_CREATE, PROG_LOAD]);
    let context = outcome.context;
    assert_eq!((context[24], context[40]), (102, 103));
}
