//! Static linking, compared with the output of `bpftool gen object` for the same files.

use bpflab::btf::Kind;
use bpflab::object::{Problem, Target};
use bpflab::program::Program;
use bpflab::{Object, ObjectError};

const OBJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects");

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("{OBJECTS}/{name}.bpf.o")).unwrap()
}

fn link(name: &str, files: &[&str]) -> Result<Object, ObjectError> {
    let read: Vec<_> = files.iter().map(|file| (*file, bytes(file))).collect();
    let files: Vec<_> = read
        .iter()
        .map(|(file, bytes)| (*file, bytes.as_slice()))
        .collect();
    Object::link(name, &files)
}

fn only_program(object: &mut Object) -> Program {
    object.set_target(Target::Own);
    let mut programs = object.programs();
    let program = programs.next().unwrap().unwrap();
    assert!(programs.next().is_none());
    program
}

/// All properties of a program that don't depend on type numbers.
fn essence(program: &Program) -> impl PartialEq + std::fmt::Debug {
    let btf = program.btf.as_ref().unwrap();
    let lines: Vec<_> = program
        .lines
        .iter()
        .map(|line| {
            (
                line.insn_off,
                line.source(btf).text.to_owned(),
                line.line_col,
            )
        })
        .collect();
    let functions: Vec<_> = program
        .subprograms
        .iter()
        .map(|function| (function.name.clone(), function.start, function.global))
        .collect();
    let types: Vec<_> = program
        .func_info
        .iter()
        .map(|info| (info.insn_off, btf.ty(info.ty).name().to_owned()))
        .collect();
    let maps: Vec<_> = program
        .maps
        .iter()
        .map(|map| {
            let ty = |id: Option<_>| id.map(|id| btf.ty(id).name().to_owned());
            (
                map.name.clone(),
                map.value_size,
                map.flags,
                ty(map.value_type),
                map.initial.clone(),
            )
        })
        .collect();
    (program.insns.clone(), lines, functions, types, maps)
}

#[test]
fn two_halves_are_what_bpftool_makes_of_them() {
    let mut ours = link("link_main.whole.bpf.o", &["link_main", "link_library"]).unwrap();
    let mut theirs = Object::open(format!("{OBJECTS}/link_main.whole.bpf.o")).unwrap();
    assert_eq!(ours.notes(), []);
    assert_eq!(ours.license(), "Dual MIT/GPL");
    let (ours_program, theirs_program) = (only_program(&mut ours), only_program(&mut theirs));
    assert_eq!(essence(&ours_program), essence(&theirs_program));
    assert_eq!(ours.global("library_limit").unwrap(), 6);

    let count = |object: &Object, kind| {
        object
            .btf()
            .unwrap()
            .own_types()
            .filter(|ty| ty.kind() == kind)
            .count()
    };
    for kind in [
        Kind::Int,
        Kind::Func,
        Kind::Var,
        Kind::Datasec,
        Kind::Struct,
    ] {
        assert_eq!(count(&ours, kind), count(&theirs, kind), "{kind}");
    }
}

#[test]
fn the_order_of_the_halves_does_not_matter() {
    let mut object = link("x", &["link_library", "link_main"]).unwrap();
    let program = only_program(&mut object);
    let names: Vec<_> = program
        .subprograms
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert!(names.contains(&"overridden") && names.contains(&"library_weak"));
    assert_eq!(names.iter().filter(|name| **name == "same_name").count(), 2);
    // The strong definition of `overridden` adds 100, the weak one subtracts 1.
    let function = program
        .subprograms
        .iter()
        .find(|f| f.name == "overridden")
        .unwrap();
    assert_eq!(program.insns[function.start.index() + 1].imm, 100);
}

#[test]
fn a_file_alone_is_linked_to_itself() {
    for file in [
        "globals",
        "map_in_map",
        "subprograms",
        "core_fields",
        "kconfig",
        "ksyms",
    ] {
        let mut alone = Object::open(format!("{OBJECTS}/{file}.bpf.o")).unwrap();
        let mut linked = link(&format!("{file}.bpf.o"), &[file]).unwrap();
        for object in [&mut alone, &mut linked] {
            object.set_target(Target::Own);
            object.set_ksym("bpf_map_fops", 7);
            object
                .read_kconfig("CONFIG_BPF_SYSCALL=y\nCONFIG_HZ=250\n")
                .unwrap();
        }
        for (a, b) in alone.programs().zip(linked.programs()) {
            match (a, b) {
                (Ok(a), Ok(b)) => {
                    let ids = |p: &Program| p.accesses.clone();
                    assert_eq!(ids(&a), ids(&b), "{file}");
                    assert_eq!(a.lines.len(), b.lines.len(), "{file}");
                    assert_eq!(a.insns.len(), b.insns.len(), "{file}");
                }
                (Err(a), Err(b)) => assert_eq!(a.problem(), b.problem(), "{file}"),
                (a, b) => panic!("{file}: {a:?} and {b:?}"),
            }
        }
        let values = |object: &Object| -> Vec<_> {
            object
                .globals()
                .iter()
                .map(|g| (g.name.clone(), object.global(&g.name).ok()))
                .collect()
        };
        assert_eq!(values(&alone), values(&linked), "{file}");
    }
}

#[test]
fn an_unlinked_half_opens_and_says_what_is_missing() {
    let object = Object::open(format!("{OBJECTS}/link_main.bpf.o"));
    let error = match object {
        Ok(object) => object.programs().next().unwrap().unwrap_err(),
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.contains("link"), "{text}");
}

#[test]
fn contradictions_are_errors_with_both_files() {
    let error = link("x", &["globals", "globals"]).unwrap_err();
    assert!(matches!(error.problem(), Problem::Link(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("globals: '") && text.contains("is defined here and in globals"),
        "{text}"
    );

    let text = link("x", &["license_gpl", "license_proprietary"])
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("section 'license'") || text.contains("section 'version'"),
        "{text}"
    );
}
