//! The most frequent mistakes, each as a small program in
//! `tests/verifier_mistakes/NAME.bpf.c`: the kernel rejects it with its error line, and so
//! do we, with a report that says what to change. `NAME.txt` next to it has the kernel's
//! lines and the report. `BLESS=1` rewrites it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bpflab::btf::{Btf, Builder, Encoding, Linkage, Member, Param};
use bpflab::object::Target;
use bpflab::program::Program;
use bpflab::verifier::diagnose::Report;
use bpflab::verifier::{Options, Unverified, verify};
use bpflab::{Object, TypeId};

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

/// Kernel BTF with the types, the kfuncs and the tracepoint that the programs name.
fn kernel() -> Btf {
    let mut types = Builder::new();
    let int = types.int("int", 4, Encoding::Signed);
    let unsigned = types.int("unsigned int", 4, Encoding::Unsigned);
    let long = types.int("unsigned long long", 8, Encoding::Unsigned);
    let pointer_to = |types: &mut Builder, name, members: &[Member<'_>]| {
        let size = if name == "task_struct" || name == "bpf_dynptr" {
            16
        } else {
            8
        };
        let structure = types.structure(name, size, members);
        types.ptr(structure)
    };
    let member = |name, ty, bit_offset| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    // The pointer comes after the structure that it points to.
    let itself = TypeId(types.next_id().0 + 1);
    let members = [member("last_wakee", itself, 0), member("pid", int, 64)];
    let task = pointer_to(&mut types, "task_struct", &members);
    let group = pointer_to(&mut types, "cgroup", &[member("level", int, 0)]);
    let number = pointer_to(&mut types, "bpf_iter_num", &[member("__opaque", long, 0)]);
    let dynptr = pointer_to(&mut types, "bpf_dynptr", &[member("__opaque", long, 0)]);
    let packet = pointer_to(&mut types, "__sk_buff", &[member("len", unsigned, 0)]);
    let opaque = [member("__opaque", long, 0)];
    let head = pointer_to(&mut types, "bpf_list_head", &opaque);
    let node = pointer_to(&mut types, "bpf_list_node", &opaque);
    let number_at = types.ptr(int);
    let anything = types.ptr(TypeId(0));
    let nothing = TypeId(0);
    type Function<'a> = (&'static str, TypeId, &'a [(&'static str, TypeId)]);
    let functions: &[Function<'_>] = &[
        ("bpf_task_acquire", task, &[("p", task)]),
        ("bpf_task_release", nothing, &[("p", task)]),
        ("bpf_task_from_pid", task, &[("pid", int)]),
        ("bpf_cgroup_acquire", group, &[("cgrp", group)]),
        ("bpf_cgroup_release", nothing, &[("cgrp", group)]),
        ("bpf_rcu_read_lock", nothing, &[]),
        ("bpf_rcu_read_unlock", nothing, &[]),
        (
            "bpf_copy_from_user_str",
            int,
            &[
                ("dst", anything),
                ("dst__sz", unsigned),
                ("unsafe_ptr__ign", anything),
                ("flags", long),
            ],
        ),
        ("bpf_throw", nothing, &[("cookie", long)]),
        (
            "bpf_obj_new_impl",
            anything,
            &[("local_type_id__k", long), ("meta__ign", anything)],
        ),
        (
            "bpf_obj_drop_impl",
            nothing,
            &[("p__alloc", anything), ("meta__ign", anything)],
        ),
        (
            "bpf_list_push_front_impl",
            int,
            &[
                ("head", head),
                ("node", node),
                ("meta__ign", anything),
                ("off", long),
            ],
        ),
        (
            "bpf_iter_num_new",
            int,
            &[("it", number), ("start", int), ("end", int)],
        ),
        ("bpf_iter_num_next", number_at, &[("it", number)]),
        ("bpf_iter_num_destroy", nothing, &[("it", number)]),
        (
            "bpf_dynptr_from_skb",
            int,
            &[("s", packet), ("flags", long), ("ptr__uninit", dynptr)],
        ),
        (
            "bpf_dynptr_slice",
            anything,
            &[
                ("p", dynptr),
                ("offset", unsigned),
                ("buffer__opt", anything),
                ("buffer__szk", unsigned),
            ],
        ),
    ];
    let params = |list: &[(&'static str, TypeId)]| -> Vec<_> {
        let params = list.iter().map(|(name, ty)| Param { name, ty: *ty });
        params.collect()
    };
    for (name, result, list) in functions {
        let prototype = types.prototype(*result, &params(list));
        types.function(name, prototype, Linkage::Static);
    }
    let tracepoint = [("__data", anything), ("task", task), ("clone_flags", long)];
    let tracepoint = types.prototype(nothing, &params(&tracepoint));
    let tracepoint = types.ptr(tracepoint);
    types.typedef("btf_trace_task_newtask", tracepoint);
    types.build().expect("types")
}

fn program(name: &str, target: Target) -> Program {
    let file = folder().join(format!("{name}.bpf.o"));
    let mut object = Object::open(&file).expect("an object");
    object.set_target(target);
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
        let program = Arc::new(program(name, Target::Kernel(kernel())));
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
        // The running kernel has other offsets.
        let program = program(&name, Target::Auto);
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).expect("maps");
        let loaded = load(&program, &maps, &LoadOptions::default()).expect("a verdict");
        assert!(!loaded.verdict.is_accepted(), "{name}");
        let wanted = expected(&name);
        let lines = wanted.split("\n\n").next().unwrap_or_default();
        let last = lines.lines().next_back().unwrap_or_default();
        assert_eq!(loaded.verdict.message, last, "{name}");
    }
}
