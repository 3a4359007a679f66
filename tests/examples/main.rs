//! The examples in `examples/bpf`, each with the unit test that its author would have
//! written beside it: what it counts, what it passes over, where it may go wrong. Every
//! test runs on every engine, relocated for no kernel and, where this machine shows its
//! kernel's types, for that one ([`engines`]).

#[path = "../shared/mod.rs"]
mod shared;

mod engines;

mod block_latency;
mod block_latency_kprobe;
mod disksnoop;
mod disksnoop_kprobe;
mod dropmon;
mod execsnoop;
mod exits;
mod func_counts;
mod func_latency;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod in_the_kernel;
mod lines;
mod lo_filter;
mod lo_packets;
mod one_liners;
mod pages;
mod profile;
mod raw_programs;
mod runqlat;
mod slab_objects;
mod softirqs;
mod urandom_read;
mod usdt_latency;
mod verifier_alone;
mod vfs_read_latency;
mod write_hist;
mod write_hist_kprobe;
mod xdp_count;
