//! The list of missing features is complete: it contains the one where exploration stops.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Feature, Missing, scan};
use crate::btf::{Builder, Linkage};
use crate::isa::{RawInsn, assemble};
use crate::object::cases::Cases;
use crate::object::{Object, Target};
use crate::program::Program;
use crate::spec::{Capabilities, ProgType};
use crate::util::TypeId;
use crate::verifier::{Options, Unverified, caller_of, verify};

/// The missing feature at which a program's exploration stopped, if any.
fn stopped(program: &Arc<Program>) -> Option<Missing> {
    match verify(program, &Options::default()).outcome {
        Err(Unverified::Unjudged(unjudged)) => Some(unjudged.stopped().clone()),
        _ => None,
    }
}

/// Whether [`scan`] finds the feature at which exploration stops; otherwise what it finds.
fn is_in_list(program: &Arc<Program>, stopped: &Missing) -> Result<(), Vec<Missing>> {
    let found = scan(
        program,
        &caller_of(program, &Options::default(), Capabilities::default()),
    );
    if found.contains(stopped) {
        return Ok(());
    }
    Err(found)
}

#[test]
fn what_stops_the_exploration_is_in_the_list() {
    let Some(path) = crate::shared::corpus() else {
        return;
    };
    let mut cases = Cases::open(&path).unwrap();
    let kernel = path.with_file_name("vmlinux-6.18.44.btf.xz");
    if let Ok(Target::Kernel(btf)) = Target::file(kernel) {
        cases.set_kernel(btf);
    }
    let (mut features, mut wrong) = (BTreeMap::<&str, usize>::new(), Vec::new());
    while let Some(case) = cases.next() {
        let case = case.unwrap();
        let program = Arc::new(cases.program(&case).unwrap());
        let Some(stopped) = stopped(&program) else {
            continue;
        };
        *features.entry(stopped.feature.key()).or_default() += 1;
        if let Err(found) = is_in_list(&program, &stopped) {
            wrong.push(format!("{}: {stopped} is not in {found:?}", case.id));
        }
    }
    eprintln!("{features:?}");
    assert_eq!(wrong, [""; 0]);
    assert!(features.is_empty(), "all are judged: {features:?}");
}

#[test]
fn so_it_is_in_our_objects() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects");
    let (mut unjudged, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(object) = Object::open(&path) else {
            continue;
        };
        for program in object.programs().filter_map(Result::ok) {
            let program = Arc::new(program);
            let Some(stopped) = stopped(&program) else {
                continue;
            };
            unjudged += 1;
            if let Err(found) = is_in_list(&program, &stopped) {
                let name = &program.name;
                wrong.push(format!(
                    "{}/{name}: {stopped} is not in {found:?}",
                    path.display()
                ));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(unjudged, 0, "all of our objects are judged");
}

fn program(prog_type: ProgType, text: &str) -> Arc<Program> {
    let mut program = Program::new("p", prog_type, assemble(text).unwrap());
    program.license = "GPL".to_owned();
    Arc::new(program)
}

/// The uses in a program, as text.
fn uses(prog_type: ProgType, text: &str) -> Vec<String> {
    match verify(&program(prog_type, text), &Options::default()).outcome {
        Err(Unverified::Unjudged(unjudged)) => {
            let missing = unjudged.missing().iter();
            missing.map(ToString::to_string).collect()
        }
        other => panic!("{:?}", other.map(|_| "accepted")),
    }
}

/// A kfunc call in a program without the kernel's BTF.
const KFUNC: &str = "call kernel-function#77";

#[test]
fn all_uses_are_found_behind_the_first() {
    // Exploration stops at the first one.
    let text = format!("{KFUNC}\nr0 = 0\n{KFUNC}\nr0 = 0\nexit");
    let found = uses(ProgType::Xdp, &text);
    assert_eq!(
        found,
        [
            "kernel type without the kernel's BTF (insn 0)",
            "kernel type without the kernel's BTF (insn 2)"
        ]
    );
    let found = uses(ProgType::Ext, "r0 = 0\nexit");
    assert_eq!(found, ["extension program without its target"]);
}

#[test]
fn a_reject_that_comes_first_is_a_reject() {
    let reject = |text: &str| verify(&program(ProgType::Xdp, text), &Options::default()).verdict;
    let before = reject(&format!("r0 = r5\n{KFUNC}\nr0 = 0\nexit"));
    assert_eq!(
        (before.errno.map(|errno| errno.0), &before.message[..]),
        (Some(13), "R5 !read_ok")
    );
    // The code after it is not judged.
    let behind = reject(&format!("{KFUNC}\nr0 = r5\nexit"));
    assert!(behind.is_unjudged());
    assert_eq!(behind.errno, None);
}

#[test]
fn keys_differ() {
    let mut keys: Vec<_> = Feature::ALL.iter().map(|feature| feature.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), Feature::ALL.len());
}

#[test]
fn the_page_of_differences_has_every_feature() {
    let page = include_str!("../../../docs/verifier-differences.md");
    for feature in Feature::ALL {
        assert!(
            page.contains(&format!("`{}`", feature.key())),
            "{feature:?}"
        );
    }
}

/// A kfunc that only a later kernel has is no error of the program; a function that is none is.
#[test]
fn a_kfunc_of_another_kernel_is_not_judged() {
    let mut kernel = Builder::new();
    let prototype = kernel.prototype(TypeId(0), &[]);
    let later = kernel.function("bpf_later", prototype, Linkage::Static);
    let other = kernel.function("schedule", prototype, Linkage::Static);
    kernel.decl_tag("bpf_kfunc", later, None, false);
    let kernel = kernel.build().unwrap();
    let message = |function: TypeId| {
        let mut insns = assemble("r0 = 0\nexit").unwrap();
        let call = RawInsn::new(0x85, 0, 2, 0, function.0.cast_signed());
        insns.insert(0, call);
        let mut program = Program::new("p", ProgType::Kprobe, insns);
        program.license = "GPL".to_owned();
        program.kernel_btf = Some(kernel.clone());
        verify(&Arc::new(program), &Options::default())
            .verdict
            .message
    };
    assert_eq!(
        message(later),
        "not modelled by bpflab: kfunc bpf_later (insn 0)"
    );
    assert_eq!(
        message(other),
        "calling kernel function schedule is not allowed"
    );
}
