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
#[path = "examples/lo_filter.rs"]
mod lo_filter;
#[path = "examples/runqlat.rs"]
mod runqlat;
#[path = "examples/softirqs.rs"]
mod softirqs;
#[path = "examples/urandom_read.rs"]
mod urandom_read;
#[path = "examples/write_hist.rs"]
mod write_hist;
#[path = "examples/xdp_count.rs"]
mod xdp_count;
