//! Compares the tables of kfuncs and LSM hooks with the running kernel, if it is of the release that
//! is modelled: which program may call which kfunc, and attach to which hook.

use std::sync::Arc;

use bpflab::btf::{Btf, Kind};
use bpflab::isa::RawInsn;
use bpflab::kernel::running_btf;
use bpflab::program::Program;
use bpflab::spec::kfuncs::kfuncs;
use bpflab::spec::{AttachType, Capabilities, ProgFlags, ProgType};
use bpflab::verifier::verify;

use super::helpers::candidates;
use super::verdicts::{none_differ, options, parts, theirs};
use crate::shared::{Need, here, skip};

/// A call with five zeros.
fn call(id: u32) -> Vec<RawInsn> {
    let zero = |reg| RawInsn::new(0xb7, reg, 0, 0, 0);
    let call = RawInsn::new(0x85, 0, 2, 0, id.cast_signed());
    (1..=5).map(zero).chain([call]).collect()
}

#[test]
fn every_kfunc_for_every_type() {
    if here::judge().is_none() {
        return;
    }
    let (Some(btf), options) = (running_btf(), options(Capabilities::all())) else {
        return;
    };
    let (mut compared, mut different) = (0, Vec::new());
    let candidates = candidates();
    for kfunc in kfuncs() {
        let Some(function) = btf.find(kfunc.name, Kind::Func) else {
            continue;
        };
        for candidate in &candidates {
            let mut program = candidate.program(&call(function.id().0));
            program.kernel_btf = Some(btf.clone());
            let theirs = theirs(&program, Capabilities::all()).expect("a verdict");
            // A kernel may be built without a kfunc that its BTF declares.
            if theirs.message.ends_with(" is not allowed") && kfunc.set.config.is_some() {
                continue;
            }
            let ours = verify(&Arc::new(program), &options).verdict;
            compared += 1;
            if parts(&ours) != parts(&theirs) {
                different.push(format!(
                    "{} for {:?} {:?}: {} | {}",
                    kfunc.name,
                    candidate.caller.prog_type,
                    candidate.caller.attach_type,
                    parts(&ours),
                    parts(&theirs)
                ));
            }
        }
    }
    eprintln!("{compared} compared, {} kinds of program", candidates.len());
    assert!(compared > 5000, "{compared}");
    none_differ(&different);
}

/// The functions that are named like hooks.
fn hooks(btf: &Btf) -> impl Iterator<Item = (&str, bpflab::util::TypeId)> {
    btf.types()
        .filter(|ty| ty.kind() == Kind::Func && ty.name().starts_with("bpf_lsm_"))
        .map(|ty| (ty.name(), ty.id()))
}

/// Of Linux 6.18.15: later ones refuse some sleepable programs, which bpflab does, too.
const ACCEPTED_BEFORE: [(&str, bool); 4] = [
    ("bpf_lsm_bpf_prog_free", true),
    ("bpf_lsm_inet_conn_established", true),
    ("bpf_lsm_task_to_inode", true),
    ("bpf_lsm_xfrm_decode_session", false),
];

#[test]
fn every_hook_of_lsm() {
    if here::judge().is_none() {
        return;
    }
    let (Some(btf), options) = (running_btf(), options(Capabilities::all())) else {
        return;
    };
    let insns = vec![
        RawInsn::new(0xb7, 0, 0, 0, 0),
        RawInsn::new(0x95, 0, 0, 0, 0),
    ];
    let (mut compared, mut different) = (0, Vec::new());
    for (name, id) in hooks(btf) {
        for sleepable in [false, true] {
            let mut program = Program::new("hook", ProgType::Lsm, insns.clone());
            program.expected_attach_type = Some(AttachType::LsmMac);
            program.attach_btf_id = Some(id);
            program.kernel_btf = Some(btf.clone());
            program.license = "GPL".to_owned();
            program.flags.set(ProgFlags::SLEEPABLE, sleepable);
            let Ok(theirs) = theirs(&program, Capabilities::all()) else {
                continue;
            };
            let ours = verify(&Arc::new(program), &options).verdict;
            compared += 1;
            let known = ACCEPTED_BEFORE.contains(&(name, sleepable)) && theirs.is_accepted();
            if parts(&ours) != parts(&theirs) && !known {
                let (ours, theirs) = (parts(&ours), parts(&theirs));
                different.push(format!("{name}, sleepable {sleepable}: {ours} | {theirs}"));
            }
        }
    }
    if compared == 0 {
        skip(Need::Lsm, "the kernel refuses programs for LSM hooks");
        return;
    }
    assert!(compared > 500, "{compared}");
    none_differ(&different);
}
