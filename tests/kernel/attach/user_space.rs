//! Probes in user space: functions of a library and of a program, and USDT probes.

use crate::shared::{Need, skip};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bpflab::kernel::LoadedMaps;
use bpflab::kernel::attach::{AttachError, AttachPoint, AttachTarget, Attachment, attach};
use bpflab::kernel::outputs::Contents;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{AttachType, MapType, ProgType};
use bpflab::util::MapId;
use bpflab::{Object, Vm};

use super::rig::{counting, fire, is_there, loaded, program};

/// A program compiled for these tests.
struct Server(PathBuf);

impl Server {
    /// Compiles it; `None` if there is no compiler.
    fn build(name: &str) -> Option<Self> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/attach/server.c");
        let path = format!("bpflab-server-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-o"])
            .args([&path, Path::new(source)])
            .status();
        match built {
            Ok(status) => {
                assert!(status.success(), "{source} was not compiled");
                Some(Self(path))
            }
            Err(error) => {
                skip(Need::Tools, format_args!("cc: {error}"));
                None
            }
        }
    }

    /// Runs `requests` requests; returns the server's value of the USDT semaphore.
    fn run(&self, requests: usize) -> String {
        let run = Command::new(&self.0).arg(requests.to_string()).output();
        let run = run.unwrap();
        assert!(run.status.success());
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An example, loaded, with its programs attached in this file: to all locations at once, or to
/// each location separately as on kernels before 6.6.
fn example(name: &str, server: &Server, each: bool) -> (Object, LoadedMaps, Vec<Attachment>) {
    let path = format!("{}/examples/bpf/{name}.bpf.o", env!("CARGO_MANIFEST_DIR"));
    let object = Object::open(path).unwrap();
    let mut programs: Vec<Program> = object.programs().map(Result::unwrap).collect();
    if each {
        for program in &mut programs {
            program.expected_attach_type = None;
        }
    }
    let first = &programs[0];
    let maps = LoadedMaps::create(&first.maps, first.btf.as_ref()).unwrap();
    let attachments = programs
        .iter()
        .map(|program| {
            let point = AttachPoint::of(program).unwrap().with_path(&server.0);
            attach(&loaded(program, &maps), &point).unwrap()
        })
        .collect();
    (object, maps, attachments)
}

fn map_id(object: &Object, name: &str) -> MapId {
    let index = object.maps().iter().position(|def| def.name == name);
    MapId::from_index(index.unwrap())
}

/// The sum of a histogram's counts.
fn total(maps: &LoadedMaps, map: MapId) -> u64 {
    let contents = Contents::read(&maps.map(map).unwrap()).unwrap();
    let counts = contents.iter().map(|(_, value)| value.try_into().unwrap());
    counts.map(u64::from_ne_bytes).sum()
}

#[test]
fn functions_of_a_program_are_timed() {
    let Some(server) = is_there().then(|| Server::build("func")).flatten() else {
        return;
    };
    let (object, maps, attachments) = example("func_latency", &server, false);
    let hist = map_id(&object, "hist");
    assert_eq!(server.run(100), "0");
    // Each request calls the function with a recursion depth of three.
    assert_eq!(total(&maps, hist), 300);
    let threads = maps.map(map_id(&object, "threads")).unwrap();
    assert!(Contents::read(&threads).unwrap().is_empty());
    let describe = attachments[1].describe();
    assert!(describe.starts_with("leave at uretprobe//"), "{describe}");
    assert!(describe.ends_with(":handle_request"), "{describe}");
    drop(attachments);
    server.run(100);
    assert_eq!(total(&maps, hist), 300);
}

#[test]
fn markers_give_their_arguments() {
    let Some(server) = is_there().then(|| Server::build("usdt")).flatten() else {
        return;
    };
    for each in [false, true] {
        assert_eq!(server.run(1), "0", "nobody listens");
        let (object, maps, attachments) = example("usdt_latency", &server, each);
        assert_eq!(total(&maps, map_id(&object, "hist")), 0);
        let failures = maps.map(map_id(&object, "failures")).unwrap();
        let failures = failures.ring().unwrap();
        // The USDT probe has two locations, with a uprobe each.
        assert_eq!(server.run(100), "2");
        assert_eq!(total(&maps, map_id(&object, "hist")), 100);
        let mut failed = Vec::new();
        failures.drain(|record| {
            let id = u64::from_ne_bytes(record[..8].try_into().unwrap());
            let status = i32::from_ne_bytes(record[16..20].try_into().unwrap());
            let path = record[20..84].split(|byte| *byte == 0).next().unwrap();
            assert_eq!((status, path), (404, &b"/missing"[..]));
            failed.push(id);
        });
        assert_eq!(failed, (0..50).map(|half| half * 2 + 1).collect::<Vec<_>>());
        let requests = maps.map(map_id(&object, "requests")).unwrap();
        assert!(Contents::read(&requests).unwrap().is_empty());
        drop(attachments);
        assert_eq!(server.run(1), "0", "nobody listens any more");
    }
}

/// The same firings in bpflab's machine fill the same maps.
#[test]
fn markers_here_and_there() {
    let Some(server) = is_there().then(|| Server::build("both")).flatten() else {
        return;
    };
    let (object, maps, _attachments) = example("usdt_latency", &server, false);
    server.run(10);
    let mut vm = Vm::new(object.clone()).unwrap();
    vm.attach_all().unwrap();
    for id in 0..10u64 {
        let start = vm.usdt("server:request__start").unwrap().args([id, 0]);
        vm.fire(start.unwrap()).unwrap();
        let status = if id % 2 == 1 { 404 } else { 200 };
        let done = vm.usdt("server:request__done").unwrap().args([id, status]);
        vm.fire(done.unwrap()).unwrap();
    }
    let theirs = maps.map(map_id(&object, "failures")).unwrap();
    let theirs = theirs.ring().unwrap().take();
    let ours = vm.map("failures").unwrap().take_records().unwrap();
    let head = |record: &Vec<u8>| (record[..8].to_vec(), record[16..20].to_vec());
    let heads = |records: &[Vec<u8>]| records.iter().map(head).collect::<Vec<_>>();
    assert_eq!(heads(&theirs), heads(&ours));
    assert_eq!(theirs.len(), 5);
}

/// Counts in this thread, and stores a register.
fn keeping(name: &str, register: u32) -> Arc<Program> {
    let body = format!(
        "r7 = *(u64 *)(r6 + {register})
         {}
         r0 = 0",
        counting("*(u64 *)(r0 + 8) = r7")
    );
    let seen = MapDef::new("seen", MapType::Array, 4, 16, 1);
    program(name, ProgType::Kprobe, &[seen], &body)
}

fn kept(maps: &LoadedMaps) -> (u64, u64) {
    let value = maps.lookup(MapId(0), &[0; 4]).unwrap().unwrap();
    let word = |at: usize| u64::from_ne_bytes(value[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn functions_of_a_library_are_probed_in_this_process() {
    if !is_there() {
        return;
    }
    // The second argument at the start; the return value at the return.
    for (returns, register, expected) in [(false, 104, 4709), (true, 80, u64::from(u32::MAX))] {
        let program = keeping("chown", register);
        let maps = LoadedMaps::create(&program.maps, None).unwrap();
        let library = "libc.so.6";
        let point = match returns {
            false => AttachPoint::uprobe(library, "chown"),
            true => AttachPoint::uretprobe(library, "chown"),
        };
        let point = point.with_pid(std::process::id());
        let attachment = attach(&loaded(&program, &maps), &point).unwrap();
        (4700..4710).for_each(|uid| fire(uid, 1));
        let (count, kept) = kept(&maps);
        assert_eq!((count, kept & 0xffff_ffff), (10, expected), "{point}");
        drop(attachment);
    }
}

#[test]
fn functions_are_named_by_a_pattern() {
    let Some(server) = is_there().then(|| Server::build("multi")).flatten() else {
        return;
    };
    // For all processes: the server is another process.
    let seen = MapDef::new("seen", MapType::Array, 4, 16, 1);
    let mut counts = Program::new("counts", ProgType::Kprobe, Vec::new());
    counts.license = "GPL".to_owned();
    counts.expected_attach_type = Some(AttachType::TraceUprobeMulti);
    counts.section = format!("uprobe.multi/{}:handle_*", server.0.display());
    counts.attach_target = counts.section.split_once('/').map(|(_, at)| at.to_owned());
    counts.maps = [seen].into();
    let text = format!("{}\nothers:\nr0 = 0\nexit", counting(""));
    let insns = bpflab::isa::assemble_with(&text, &counts);
    counts.insns = insns.unwrap().slots;
    let maps = LoadedMaps::create(&counts.maps, None).unwrap();
    let point = AttachPoint::of(&counts).unwrap();
    assert!(matches!(point.place(), AttachTarget::UserMulti { .. }));
    let counts = loaded(&counts, &maps);
    match attach(&counts, &point) {
        Ok(attachment) => {
            server.run(10);
            assert_eq!(kept(&maps).0, 30);
            drop(attachment);
            server.run(10);
            assert_eq!(kept(&maps).0, 30);
        }
        Err(error) => {
            assert!(error.is_unavailable(), "{error}");
            skip(Need::Feature, error);
        }
    }
}

#[test]
fn what_a_file_does_not_have_is_said() {
    let Some(server) = is_there().then(|| Server::build("errors")).flatten() else {
        return;
    };
    let program = keeping("k", 0);
    let maps = LoadedMaps::create(&program.maps, None).unwrap();
    let program = loaded(&program, &maps);
    let error = |point: AttachPoint| {
        let error = attach(&program, &point).unwrap_err();
        assert!(!error.is_unavailable(), "{error}");
        error.to_string()
    };
    let path = &server.0;
    assert!(error(AttachPoint::uprobe(path, "no_such")).contains("has no function 'no_such'"));
    assert!(error(AttachPoint::uprobe("/no/file", "f")).contains("no file '/no/file'"));
    assert!(error(AttachPoint::usdt(path, "server", "no")).contains("no USDT probe server:no"));
    let script = path.with_extension("sh");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let text = error(AttachPoint::uprobe(&script, "f"));
    std::fs::remove_file(&script).unwrap();
    assert!(text.contains("not an ELF file"), "{text}");
    let all = AttachPoint::uprobe(path, "main").with_pid(0);
    assert!(error(all).contains("process id 0 would mean"));
    let gone = AttachPoint::uprobe(path, "main").with_pid(u32::MAX >> 2);
    match attach(&program, &gone).unwrap_err() {
        AttachError::Kernel(error) => assert!(error.to_string().contains("ESRCH"), "{error}"),
        error => panic!("{error}"),
    }
}
