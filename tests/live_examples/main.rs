//! The examples of `examples/bpf` in the running kernel: recorded while a command runs, and
//! replayed on every engine with the same verdict. Skipped, visibly, if the kernel can't be used.
//!
//! `BPFLAB_LIVE_EVENTS` sets how many events each test makes (default 3000), and with
//! `--nocapture` each prints its row of the table in `docs/live.md`:
//!
//! ```text
//! BPFLAB_LIVE_EVENTS=100000 cargo test --release --test live_examples -- --nocapture
//! ```
//!
//! `examples/kernels.sh` runs this binary in virtual machines with other kernels, and joins the
//! lines `row | EXAMPLE | RESULT`.

#![cfg(all(feature = "kernel", target_os = "linux"))]

mod disk;
mod forms;
mod honesty;
mod packets;
mod probes;
mod races;
mod run;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../shared/work.rs"]
mod work;

use bpflab::compare::live::LiveOptions;
use bpflab::compare::replay::Word;

use run::{compare, disk_for, events, example, process_starts};

/// All is equal.
const FINE: &[Word] = &[Word::Equal];
/// The same, if final contents may depend on the order of events on several CPUs.
const ANY_ORDER: &[Word] = &[Word::Equal, Word::OrderUnknown];

/// Records all processes: a packet may be received by the kernel's own thread (ksoftirqd).
fn all() -> LiveOptions {
    LiveOptions::default().with_all(true)
}

#[test]
fn sizes_of_writes() {
    let count = events();
    let mut command = work::command("writes", count);
    let object = example("write_hist");
    if let Some(done) = compare("write_hist", &object, &LiveOptions::default(), &mut command) {
        done.expect(count, FINE);
    }
}

#[test]
fn dropped_packets() {
    let count = events();
    let mut command = work::command("datagrams 9", count);
    let object = example("dropmon");
    if let Some(done) = compare("dropmon", &object, &all(), &mut command) {
        done.expect(count / 2, ANY_ORDER);
    }
}

#[test]
fn programs_that_start() {
    let count = events() / 20;
    if !process_starts("execsnoop") {
        return;
    }
    let mut command = work::command("processes", count);
    let object = example("execsnoop");
    if let Some(done) = compare("execsnoop", &object, &LiveOptions::default(), &mut command) {
        done.expect(count, ANY_ORDER);
    }
}

#[test]
fn processes_that_end() {
    let count = events() / 20;
    if !process_starts("exits") {
        return;
    }
    let mut command = work::command("processes", count);
    let object = example("exits");
    if let Some(done) = compare("exits", &object, &LiveOptions::default(), &mut command) {
        done.expect(count, ANY_ORDER);
    }
}

#[test]
fn softirqs() {
    let mut command = work::command("datagrams 9", events());
    if let Some(done) = compare("softirqs", &example("softirqs"), &all(), &mut command) {
        done.expect(events(), ANY_ORDER);
    }
}

#[test]
fn waits_for_a_cpu() {
    let mut command = work::command("threads", events());
    if let Some(done) = compare("runqlat", &example("runqlat"), &all(), &mut command) {
        done.expect(events(), ANY_ORDER);
    }
}

#[test]
fn samples_of_what_runs() {
    let options = LiveOptions::default().with_frequency(4000);
    let mut command = work::command("milliseconds", events() / 3);
    if let Some(done) = compare("profile", &example("profile"), &options, &mut command) {
        // Kernel stacks can't be replayed.
        done.expect_without(events() / 10, &["stacks"]);
    }
}

#[test]
fn packets_of_each_protocol() {
    let object = example("xdp_count");
    packets::compare_on_lo("xdp_count", object, "count_packet", events());
}

#[test]
fn only_packets_of_lo() {
    let count = events();
    let mut command = work::command("datagrams 9", count);
    let object = example("lo_filter");
    if let Some(done) = compare("lo_filter", &object, &all(), &mut command) {
        done.expect(count / 2, ANY_ORDER);
    }
}

#[test]
fn calls_of_a_function() {
    let count = events();
    let binary = std::env::current_exe().unwrap();
    let mut object = example("func_latency");
    for name in ["enter", "leave"] {
        let target = format!("{}:handle_request", binary.display());
        object.entry_mut(name).unwrap().set_attach_target(target);
    }
    let mut command = work::command("requests", count);
    let options = LiveOptions::default();
    if let Some(done) = compare("func_latency", &object, &options, &mut command) {
        done.expect(2 * count, FINE);
    }
}

#[test]
fn calls_between_markers() {
    let count = events();
    let binary = std::env::current_exe().unwrap();
    let mut object = example("usdt_latency");
    for (name, marker) in [("start", "request__start"), ("done", "request__done")] {
        let target = format!("{}:server:{marker}", binary.display());
        object.entry_mut(name).unwrap().set_attach_target(target);
    }
    let mut command = work::command("requests", count);
    let options = LiveOptions::default();
    if let Some(done) = compare("usdt_latency", &object, &options, &mut command) {
        done.expect(2 * count, FINE);
    }
}

#[test]
fn one_liners() {
    let count = events() / 2;
    let mut object = example("one_liners");
    let everywhere = object.entry_mut("count_event").unwrap();
    everywhere.set_attach_target("syscalls/sys_enter_read".to_owned());
    // Without a disk the programs for block requests have nothing to do.
    let disk = disk::Disk::new("one_liners").ok();
    let path = disk.as_ref().map_or("", disk::Disk::path);
    let mut command = work::command(&format!("opens {path}"), count);
    let options = LiveOptions::default().with_frequency(1000);
    // Kprobe programs in kernels without kprobes, programs that never fired, and stacks.
    let parts = [
        "read_results",
        "read_ends",
        "read_begins",
        "print_path",
        "block_sizes",
        "switches",
        "ns",
        "start",
        "linear",
        "block_hist",
        "stacks",
    ];
    if let Some(done) = compare("one_liners", &object, &options, &mut command) {
        done.expect_without(2 * count, &parts);
    }
}

#[test]
fn reads_of_a_disk() {
    let count = events() / 2;
    for name in ["block_latency", "disksnoop"] {
        let Some(disk) = disk_for(name) else {
            continue;
        };
        let mut command = work::command(&format!("reads {}", disk.path()), count);
        if let Some(done) = compare(name, &example(name), &all(), &mut command) {
            done.expect(2 * count, ANY_ORDER);
        }
    }
}
