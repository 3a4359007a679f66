//! The examples in `examples/bpf`, each with the unit test that its author would have
//! written beside it: what it counts, what it passes over, where it may go wrong. Every
//! test runs on every engine, relocated for no kernel and, where this machine shows its
//! kernel's types, for that one ([`engines`]).

#[path = "examples/engines.rs"]
mod engines;

#[path = "examples/block_latency.rs"]
mod block_latency;
#[path = "examples/disksnoop.rs"]
mod disksnoop;
#[path = "examples/dropmon.rs"]
mod dropmon;
#[path = "examples/execsnoop.rs"]
mod execsnoop;
#[path = "examples/exits.rs"]
mod exits;
#[path = "examples/func_counts.rs"]
mod func_counts;
#[path = "examples/func_latency.rs"]
mod func_latency;
#[cfg(all(feature = "kernel", target_os = "linux"))]
#[path = "examples/in_the_kernel.rs"]
mod in_the_kernel;
#[path = "examples/lines.rs"]
mod lines;
#[path = "examples/lo_filter.rs"]
mod lo_filter;
#[path = "examples/one_liners.rs"]
mod one_liners;
#[path = "examples/pages.rs"]
mod pages;
#[path = "examples/profile.rs"]
mod profile;
#[path = "examples/runqlat.rs"]
mod runqlat;
mod shared;
#[path = "examples/softirqs.rs"]
mod softirqs;
#[path = "examples/urandom_read.rs"]
mod urandom_read;
#[path = "examples/usdt_latency.rs"]
mod usdt_latency;
#[path = "examples/vfs_read_latency.rs"]
mod vfs_read_latency;
#[path = "examples/write_hist.rs"]
mod write_hist;
#[path = "examples/write_hist_kprobe.rs"]
mod write_hist_kprobe;
#[path = "examples/xdp_count.rs"]
mod xdp_count;
