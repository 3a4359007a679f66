//! The examples at kprobes and kretprobes. The probed functions have other names on some kernels:
//! the tests look them up, as a user would in `/proc/kallsyms`.

use bpflab::Object;
use bpflab::compare::live::LiveOptions;

use crate::run::{compare, disk_for, events, example, lacks};
use crate::shared::{Need, skip};
use crate::{ANY_ORDER, FINE, all, work};

/// The kernel's name of a function, which may have a compiler's suffix (`.constprop.0`): the first
/// of `names` that there is. None skips the test.
fn function(example: &str, names: &[&str]) -> Option<String> {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let symbols = || {
        let symbols = symbols.lines().map(|line| line.split_whitespace());
        symbols.filter_map(|mut words| words.nth(2))
    };
    let is_whole = |name: &str| {
        let parts = name.split('.').skip(1);
        !parts.into_iter().any(|part| part == "cold")
    };
    let found = names.iter().find_map(|name| {
        let mut all = symbols();
        all.find(|symbol| symbol.split('.').next() == Some(name) && is_whole(symbol))
    });
    if found.is_none() {
        let why = format!("{}: no such function", names.join(", "));
        lacks(example, &why);
        skip(Need::Feature, format_args!("{example}: {why}"));
    }
    found.map(str::to_owned)
}

/// An example with these programs attached to another function.
fn attached_to(name: &str, programs: &[&str], function: &str) -> Object {
    let mut object = example(name);
    for program in programs {
        let entry = object.entry_mut(program).unwrap();
        entry.set_attach_target(function);
    }
    object
}

#[test]
fn sizes_of_writes_in_a_function() {
    let count = events();
    let (name, options) = ("write_hist_kprobe", LiveOptions::default());
    let mut command = work::command("writes", count);
    if let Some(done) = compare(name, &example(name), &options, &mut command) {
        done.expect(count, FINE);
    }
}

#[test]
fn waits_in_a_function() {
    let count = events();
    let (name, options) = ("vfs_read_latency", LiveOptions::default());
    let mut command = work::command("opens", count);
    if let Some(done) = compare(name, &example(name), &options, &mut command) {
        done.expect(2 * count, FINE);
    }
}

#[test]
fn calls_of_a_kernel_function() {
    let count = events();
    let (name, options) = ("func_counts", LiveOptions::default());
    let object = attached_to(name, &["count_call"], "vfs_write");
    let mut command = work::command("writes", count);
    if let Some(done) = compare(name, &object, &options, &mut command) {
        done.expect(count, FINE);
    }
}

#[test]
fn reads_of_urandom() {
    let count = events();
    let options = LiveOptions::default().with_programs(["probed"]);
    let mut command = work::command("randoms", count);
    let object = example("urandom_read");
    if let Some(done) = compare("urandom_read", &object, &options, &mut command) {
        done.expect(count, FINE);
    }
}

/// A pattern finds the function, where the kernel has kprobe.multi.
#[test]
fn packets_of_lo_by_pattern() {
    let count = events();
    let options = all().with_programs(["any"]);
    let mut command = work::command("datagrams 9", count);
    let (row, object) = ("lo_packets (kprobe.multi)", example("lo_packets"));
    if let Some(done) = compare(row, &object, &options, &mut command) {
        done.expect(count / 2, ANY_ORDER);
    }
}

#[test]
fn packets_of_lo_by_name() {
    let count = events();
    let row = "lo_packets (kprobe)";
    let Some(function) = function(row, &["__netif_receive_skb_core"]) else {
        return;
    };
    let object = attached_to("lo_packets", &["one"], &function);
    let options = all().with_programs(["one"]);
    let mut command = work::command("datagrams 9", count);
    if let Some(done) = compare(row, &object, &options, &mut command) {
        done.expect(count / 2, ANY_ORDER);
    }
}

#[test]
fn requests_to_a_disk() {
    let count = events() / 2;
    for name in ["block_latency_kprobe", "disksnoop_kprobe"] {
        let Some(disk) = disk_for(name) else {
            continue;
        };
        let mut command = work::command(&format!("reads {}", disk.path()), count);
        if let Some(done) = compare(name, &example(name), &all(), &mut command) {
            done.expect(2 * count, ANY_ORDER);
        }
    }
}

/// Each open allocates at least the file, and frees something.
#[test]
fn objects_of_slab_caches() {
    let count = events();
    let name = "slab_objects";
    let names = ["kmem_cache_alloc_noprof", "kmem_cache_alloc"];
    let Some(function) = function(name, &names) else {
        return;
    };
    let object = attached_to(name, &["enter", "leave"], &function);
    let options = LiveOptions::default();
    let mut command = work::command("opens", count);
    if let Some(done) = compare(name, &object, &options, &mut command) {
        done.expect(3 * count, FINE);
    }
}
