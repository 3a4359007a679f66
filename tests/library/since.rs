//! The releases of features against the BTF of kernels: what a kernel should have, and what not.

use std::collections::HashSet;

use bpflab::btf::{Btf, Kind};
use bpflab::object::Target;
use bpflab::spec::since::{FeatureKind, Release, of_kind};

use crate::shared;

/// The kernels of the shared corpus, and their types.
const KERNELS: &[(&str, &str)] = &[
    ("6.1", "kernels/vmlinux-6.1.192.btf.xz"),
    ("6.12", "kernels/vmlinux-6.12.117.btf.xz"),
    ("6.18", "vmlinux-6.18.44.btf.xz"),
    ("7.2", "kernels/vmlinux-7.2.13.btf.xz"),
    ("7.3", "kernels/vmlinux-7.3-rc7.btf.xz"),
];

/// Functions that were in the kernel before programs could call them.
const FORMER_FUNCTIONS: &[&str] = &["cgroup_rstat_updated", "cgroup_rstat_flush", "crash_kexec"];

#[test]
fn kernels_have_the_features_of_their_release() {
    let Some(corpus) = shared::corpus() else {
        return;
    };
    let mut wrong = Vec::new();
    for (release, file) in KERNELS {
        let file = corpus.with_file_name(file);
        let Target::Kernel(btf) = Target::file(&file).expect("a BTF file") else {
            panic!("{}: no kernel's types", file.display());
        };
        let release = Release::parse(release).expect("a release");
        wrong.extend(differences(&btf, release));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The features that a kernel has too early or too late.
fn differences(btf: &Btf, release: Release) -> Vec<String> {
    let enumerators: HashSet<String> = btf
        .types()
        .flat_map(|ty| ty.enumerators())
        .map(|it| it.name.to_owned())
        .collect();
    let mut wrong = Vec::new();
    for (kind, prefix, tail) in [
        (FeatureKind::ProgramType, "BPF_PROG_TYPE_", 0),
        (FeatureKind::MapType, "BPF_MAP_TYPE_", 0),
        (FeatureKind::AttachType, "BPF_", 0),
        (FeatureKind::MapFlag, "", 0),
        (FeatureKind::Helper, "BPF_FUNC_", "bpf_".len()),
    ] {
        for (name, since) in of_kind(kind) {
            let name = match kind {
                FeatureKind::Helper | FeatureKind::MapFlag => &name[tail..],
                _ => &name.to_uppercase(),
            };
            let enumerator = format!("{prefix}{name}");
            let has = enumerators.contains(&enumerator);
            if has != (since <= release) {
                let word = if has { "has" } else { "lacks" };
                wrong.push(format!("{release} {word} {enumerator}, since {since}"));
            }
        }
    }
    // A kernel may be built without some kfuncs.
    for (name, since) in of_kind(FeatureKind::Kfunc) {
        let has = btf.find(name, Kind::Func).is_some();
        if has && since > release && !FORMER_FUNCTIONS.contains(&name) {
            wrong.push(format!("{release} has {name}, since {since}"));
        }
    }
    wrong
}
