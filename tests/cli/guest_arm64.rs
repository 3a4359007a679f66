//! `--vm` with a kernel for arm64, whose own JIT is the peer: bpflab built for arm64 is named by
//! `BPFLAB_ARM64`, and is the workload, too.

use std::path::Path;
use std::process::Command;

use crate::guest::{bpflab, json, said, text};
use crate::shared::{Need, is_emulated, skip};

/// The arm64 bpflab and the newest arm64 kernel of the cache; none skips the test.
fn setting() -> Option<(String, String)> {
    if is_emulated() {
        return None;
    }
    let missing = |why: &str| {
        skip(Need::GuestArm64, why);
        None
    };
    let Ok(binary) = std::env::var("BPFLAB_ARM64") else {
        return missing("BPFLAB_ARM64 does not name a bpflab for arm64");
    };
    assert!(Path::new(&binary).is_absolute(), "BPFLAB_ARM64={binary}");
    let qemu = Command::new("qemu-system-aarch64")
        .arg("--version")
        .output();
    if let Err(error) = qemu {
        return missing(&format!("qemu-system-aarch64: {error}"));
    }
    let listed = json(&bpflab("kernels list --json"));
    let found = listed.iter().rfind(|line| line["arch"] == "arm64");
    match found {
        Some(kernel) => Some((binary, format!("arm64/{}", text(&kernel["release"])))),
        None => missing("no kernel for arm64 in the cache (bpflab kernels add)"),
    }
}

#[test]
fn an_arm64_kernel_is_asked_by_an_arm64_bpflab() {
    let Some((binary, kernel)) = setting() else {
        return;
    };
    let vm = format!("--vm {kernel} --guest-bpflab {binary}");
    let objects = "examples/bpf/write_hist.bpf.o tests/verifier_mistakes/null_check_missing.bpf.o";
    let (code, out, err) = said(&bpflab(&format!("kernel load {objects} {vm}")));
    assert_eq!(code, Some(1), "one is rejected: {out}{err}");
    assert!(
        out.contains("1 accepted, 1 rejected, 0 not judged"),
        "{out}"
    );

    let object = "examples/bpf/vfs_read_latency.arm64.bpf.o";
    let work = format!("{binary} inspect {object}");
    let (code, out, err) = said(&bpflab(&format!("compare {object} {vm} -- {work}")));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("verdict: equal"), "{out}");
}

/// Without the other bpflab, and with a command of this machine.
#[test]
fn what_cannot_run_there_is_said() {
    let Some((binary, kernel)) = setting() else {
        return;
    };
    let (code, _, err) = said(&bpflab(&format!("kernel check --vm {kernel}")));
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("--guest-bpflab"), "{err}");
    let vm = format!("--vm {kernel} --guest-bpflab {binary}");
    let (code, _, err) = said(&bpflab(&format!("kernel exec {vm} -- true")));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("and the kernel is for arm64"), "{err}");
}
