use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::btf::Type;
use crate::btf::tests::vmlinux;
use crate::object::core::types_are_compatible;
use crate::object::{Object, Target};
use crate::verifier::{Options, verify};

fn bundled() -> Btf {
    build().unwrap()
}

#[test]
fn every_kfunc_that_programs_call_is_declared() {
    let btf = bundled();
    for kfunc in kfuncs() {
        let found = btf.find(kfunc.name, Kind::Func);
        let called = !kfunc.is_optional() && kfunc.set.hooks != Hooks::FMODRET;
        assert_eq!(found.is_some(), called, "{}", kfunc.name);
    }
    let tags = btf.types().filter(|ty| ty.kind() == Kind::DeclTag);
    let tagged: BTreeSet<_> = tags.map(|tag| tag.target().unwrap().name()).collect();
    assert!(tagged.contains("bpf_task_acquire") && tagged.contains("bpf_rbtree_add_impl"));
    // Numbers of unknown types would have a made-up size.
    let described = Btf::parse(DESCRIPTION).unwrap();
    let ints = |btf: &Btf| -> BTreeSet<String> {
        let ints = btf.types().filter(|ty| ty.kind() == Kind::Int);
        ints.map(|ty| ty.name().to_owned()).collect()
    };
    assert_eq!(ints(&btf), ints(&described));
    let kept = btf.types().filter(|ty| ty.name().starts_with("keep_"));
    assert_eq!(kept.count(), 0);
}

/// Names of a type's members, also in anonymous members.
fn members(ty: Type<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for member in ty.members() {
        if member.name.is_empty() {
            names.extend(members(ty.btf().unqualified(member.ty).unwrap()));
        } else {
            names.insert(member.name.to_owned());
        }
    }
    names
}

#[test]
fn functions_and_members_are_those_of_the_kernel() {
    let Some(bytes) = vmlinux() else { return };
    let (btf, kernel) = (bundled(), Btf::parse(&bytes).unwrap());
    let (mut functions, mut wrong) = (0, Vec::new());
    for ty in btf.types().filter(|ty| !ty.name().is_empty()) {
        let name = ty.name();
        let Some(same) = kernel.find(name, ty.kind()) else {
            continue;
        };
        match ty.kind() {
            Kind::Typedef if !name.starts_with("btf_trace_") => {}
            Kind::Func | Kind::Typedef => {
                functions += 1;
                if !types_are_compatible(
                    &btf,
                    ty.target_id().unwrap(),
                    &kernel,
                    same.target_id().unwrap(),
                ) {
                    wrong.push(name.to_owned());
                }
            }
            Kind::Struct => {
                let (own, theirs) = (members(ty), members(same));
                wrong.extend(
                    own.difference(&theirs)
                        .map(|member| format!("{name}.{member}")),
                );
            }
            _ => {}
        }
    }
    assert!(functions > 200, "{functions}");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_examples_are_accepted() {
    let mut verified = 0;
    for file in std::fs::read_dir("examples/bpf").unwrap() {
        let path = file.unwrap().path();
        if !path.to_string_lossy().ends_with(".bpf.o") {
            continue;
        }
        let mut object = Object::open(&path).unwrap();
        object.set_target(Target::bundled());
        for program in object.programs() {
            let program = Arc::new(program.unwrap());
            let verdict = verify(&program, &Options::default()).verdict;
            assert_eq!(verdict.message, "", "{}: {}", path.display(), program.name);
            verified += 1;
        }
    }
    assert!(verified > 20, "{verified}");
}
