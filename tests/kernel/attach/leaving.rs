//! Nothing stays attached: when an attachment is dropped, after a panic, when the process is
//! killed.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bpflab::kernel::program_ids;

use super::rig::{GROUP, NAME, attached, fire, is_there, point, records, returning, samples_of};

/// Whether programs are unloaded, which the kernel may do a little later.
fn are_gone(ids: &[u32]) -> bool {
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let there = program_ids().unwrap();
        if ids.iter().all(|id| !there.contains(id)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_panic_detaches() {
    if !is_there() {
        return;
    }
    let mut ids = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let first = attached(&returning(0), &point()).unwrap();
        let second = attached(&returning(1), &point()).unwrap();
        ids = vec![first.info().unwrap().id, second.info().unwrap().id];
        let there = program_ids().unwrap();
        assert!(ids.iter().all(|id| there.contains(id)));
        let mut samples = samples_of(GROUP, NAME);
        fire(1, 1);
        assert_eq!(records(&mut samples).len(), 0, "0 drops it");
        // The panic that the test is about.
        std::panic::resume_unwind(Box::new("in the middle"));
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"in the middle"));
    assert!(are_gone(&ids), "{ids:?}");
    let mut samples = samples_of(GROUP, NAME);
    fire(1, 1);
    assert_eq!(records(&mut samples).len(), 1);
}

/// Runs in the child process: attaches, prints the ids, and waits to be killed.
#[test]
#[ignore = "only as a process of the test below"]
fn attach_and_wait() {
    let first = attached(&returning(1), &point()).unwrap();
    let second = attached(&returning(1), &point()).unwrap();
    let ids = [first.info().unwrap().id, second.info().unwrap().id];
    println!("\nids {} {}", ids[0], ids[1]);
    std::thread::sleep(Duration::from_secs(60));
}

/// Starts another process of these tests, which attaches and waits; returns it with the ids
/// that it prints.
fn waiting(test: &str) -> (Child, Vec<u32>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("ids "));
    let ids: Vec<u32> = line
        .unwrap()
        .split_whitespace()
        .skip(1)
        .map(|id| id.parse().unwrap())
        .collect();
    let there = program_ids().unwrap();
    assert!(
        !ids.is_empty() && ids.iter().all(|id| there.contains(id)),
        "{ids:?}"
    );
    (child, ids)
}

#[test]
fn a_process_that_is_killed_leaves_nothing() {
    if !is_there() {
        return;
    }
    let (mut child, ids) = waiting("attach::leaving::attach_and_wait");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(are_gone(&ids), "{ids:?}");
}

/// A probe is an instruction in the memory of each process that has the library.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod breakpoint {
    use std::os::unix::fs::FileExt;

    use bpflab::kernel::attach::AttachPoint;
    use bpflab::spec::ProgType;

    use super::super::rig::program;
    use super::*;

    /// A function that nothing in these tests calls or probes.
    const PROBED: &str = "lchown";

    /// Runs in the child process: puts a probe into its parent.
    #[test]
    #[ignore = "only as a process of the test below"]
    fn probe_and_wait() {
        let program = program("probes", ProgType::Kprobe, &[], "r0 = 0");
        let point = AttachPoint::uprobe("libc.so.6", PROBED);
        let point = point.with_pid(std::os::unix::process::parent_id());
        let attachment = attached(&program, &point).unwrap();
        println!("\nids {}", attachment.info().unwrap().id);
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_process_that_is_killed_leaves_no_breakpoint() {
        const BREAKPOINT: u8 = 0xcc;
        if !is_there() {
            return;
        }
        let function = libc::lchown as *const () as u64;
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        let first = || {
            let mut byte = [0];
            memory.read_exact_at(&mut byte, function).unwrap();
            byte[0]
        };
        let before = first();
        assert_ne!(before, BREAKPOINT);
        let (mut child, ids) = waiting("attach::leaving::breakpoint::probe_and_wait");
        assert_eq!(first(), BREAKPOINT, "{PROBED} is probed");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(are_gone(&ids), "{ids:?}");
        assert_eq!(first(), before, "{PROBED} is as it was");
    }
}
