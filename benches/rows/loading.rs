//! From a file to a program that is ready to run. Here the object is opened, relocated,
//! verified and compiled; in the kernel maps are created, BTF and programs loaded, from
//! memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bpflab::object::Target;
use bpflab::util::median;
use bpflab::{Object, Vm};

use super::goals::{self, Figure, number};
use crate::measure::Effort;

/// Typical tracing objects: a tracepoint with an array, one with a ring buffer.
const OBJECTS: &[&str] = &[
    "examples/bpf/write_hist.bpf.o",
    "tests/objects/ringbuf_exec.bpf.o",
];

/// The kernel that objects are relocated for. Its BTF is read once; libbpf caches it, too.
fn target() -> Target {
    Target::file("/sys/kernel/btf/vmlinux").unwrap_or(Target::Own)
}

fn open(file: &str, target: &Target) -> Object {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(file);
    let mut object = Object::open(path).expect("it is committed");
    object.set_target(target.clone());
    object
}

fn ours(file: &str, target: &Target) -> Duration {
    let start = Instant::now();
    let vm = Vm::new(open(file, target)).expect("it loads");
    // Machine code is made when it is first asked for.
    for program in vm.programs() {
        let ran_on = vm.engine_of(program.name.as_str()).expect("it is there");
        assert_eq!(ran_on.fallback, None);
    }
    let elapsed = start.elapsed();
    drop(vm);
    elapsed
}

/// The part of the time until programs are relocated.
fn relocating(file: &str, target: &Target) -> Duration {
    let start = Instant::now();
    let object = open(file, target);
    assert!(object.programs().all(|program| program.is_ok()));
    start.elapsed()
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
fn kernel(file: &str, target: &Target) -> Option<Duration> {
    use bpflab::kernel::{LoadOptions, LoadedMaps, load};
    let object = open(file, target);
    let programs: Vec<_> = object
        .programs()
        .map(|one| one.expect("it relocates"))
        .collect();
    let start = Instant::now();
    let maps = LoadedMaps::create(object.maps(), object.btf()).ok()?;
    let options = LoadOptions::default();
    let loaded: Vec<_> = programs
        .iter()
        .map(|one| load(one, &maps, &options))
        .collect();
    let elapsed = start.elapsed();
    let is_there = |one: &Result<bpflab::kernel::Loaded, _>| {
        one.as_ref().is_ok_and(|loaded| loaded.program.is_some())
    };
    loaded.iter().all(is_there).then_some(elapsed)
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn kernel(_: &str, _: &Target) -> Option<Duration> {
    None
}

/// The factor by which bpflab is faster, for the object with the smallest one.
pub fn figure(effort: Effort) -> Figure {
    let target = target();
    let mut worst: Option<(f64, String)> = None;
    for file in OBJECTS {
        let mut samples = Vec::new();
        for _ in 0..effort.samples {
            let ours = effort.once(|| ours(file, &target));
            // `Duration::MAX` means that the kernel loaded nothing; such samples are skipped.
            let theirs = effort.once(|| kernel(file, &target).unwrap_or(Duration::MAX));
            if theirs < 1e15 {
                samples.push((theirs / ours, ours, theirs));
            }
        }
        if samples.is_empty() {
            continue;
        }
        let middle = |of: fn(&(f64, f64, f64)) -> f64| median(samples.iter().map(of).collect());
        let ratio = middle(|sample| sample.0);
        let (ours, theirs) = (middle(|sample| sample.1), middle(|sample| sample.2));
        if worst.as_ref().is_none_or(|(least, _)| ratio < *least) {
            let name = file.rsplit('/').next().unwrap_or(file);
            let us = |ns: f64| number(ns / 1e3);
            let part = us(effort.once(|| relocating(file, &target)));
            let (ours, theirs) = (us(ours), us(theirs));
            let note = format!("{name}: {ours} µs, {part} of them to relocate it, to {theirs} µs");
            worst = Some((ratio, note));
        }
    }
    let (ratio, note) = worst.unzip();
    goals::LOADING
        .measured(ratio)
        .noted(note.unwrap_or_default())
}
