//! The most frequent mistakes, each as a small program in
//! `tests/verifier_mistakes/NAME.bpf.c`: the kernel rejects it with its error line, and so
//! do we, with a report that says what to change. `NAME.txt` next to it has the kernel's
//! lines and the report. `BLESS=1` rewrites it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::Object;
use bpflab::btf::{Btf, Builder, Encoding, Member};
use bpflab::object::Target;
use bpflab::program::Program;
use bpflab::verifier::diagnose::Report;
use bpflab::verifier::{Options, Unverified, verify};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verifier_mistakes")
}

/// The names of all mistakes.
fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the folder of mistakes");
    let files = files.map(|file| file.expect("a file").file_name());
    let mut names: Vec<_> = files
        .filter_map(|file| Some(file.to_str()?.strip_suffix(".bpf.o")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Kernel BTF with a small `task_struct`.
fn kernel() -> Btf {
    let mut builder = Builder::new();
    let int = builder.int("int", 4, Encoding::Signed);
    let pid = Member {
        name: "pid",
        ty: int,
        bit_offset: 0,
        bitfield: None,
    };
    builder.structure("task_struct", 4, &[pid]);
    builder.build().expect("types")
}

fn program(name: &str) -> Program {
    let file = folder().join(format!("{name}.bpf.o"));
    let mut object = Object::open(&file).expect("an object");
    object.set_target(Target::Kernel(kernel()));
    let mut programs = object.programs();
    let program = programs.next().expect("a program").expect("relocated");
    assert!(programs.next().is_none(), "{name}: one mistake a file");
    program
}

/// The kernel's lines, an empty line, the report.
fn expected(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap_or_default()
}

#[test]
fn each_is_explained() {
    let bless = std::env::var_os("BLESS").is_some();
    let names = names();
    assert!(names.len() >= 20, "{names:?}");
    let mut wrong = String::new();
    for name in &names {
        let program = Arc::new(program(name));
        let verification = verify(&program, &Options::default());
        let Err(why) = verification.outcome else {
            writeln!(wrong, "== {name}: accepted").expect("a string");
            continue;
        };
        let report = Report::new(&program, &why);
        let Unverified::Rejected(reject) = why else {
            writeln!(wrong, "== {name}: {why}").expect("a string");
            continue;
        };
        assert!(report.help.is_some(), "{name}: no advice on {reject}");
        let text = format!("{}\n\n{report}", reject.text());
        let wanted = expected(name);
        if text != wanted {
            if bless {
                fs::write(folder().join(format!("{name}.txt")), &text).expect("written");
            } else {
                writeln!(wrong, "== {name}\n-- expected\n{wanted}-- is\n{text}").expect("a string");
            }
        }
    }
    assert!(wrong.is_empty(), "BLESS=1 accepts it:\n{wrong}");
}

#[cfg(all(feature = "kernel", target_os = "linux"))]
use crate::shared::here;

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn the_kernel_says_the_same() {
    use bpflab::kernel::{LoadOptions, LoadedMaps, load};

    if here::judge().is_none() {
        return;
    }
    for name in names() {
        let program = program(&name);
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).expect("maps");
        let loaded = load(&program, &maps, &LoadOptions::default()).expect("a verdict");
        assert!(!loaded.verdict.is_accepted(), "{name}");
        let wanted = expected(&name);
        let lines = wanted.split("\n\n").next().unwrap_or_default();
        let last = lines.lines().next_back().unwrap_or_default();
        assert_eq!(loaded.verdict.message, last, "{name}");
    }
}
