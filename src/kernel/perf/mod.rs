//! Perf events: what they count, and their samples, which the kernel writes to memory shared
//! with user space, one ring buffer per CPU.
//!
//! [`PerfSamples`] reads a tracepoint as `perf record` does: it gets the records that the
//! attached programs let through, with the bytes as a tracepoint program sees them (after the
//! first eight, which are the common fields here).

mod pmu;
mod record;
mod ring;
mod samples;
mod source;
mod streams;

pub(super) use pmu::Pmu;
pub use record::Sample;
pub use samples::{PerfSamples, SampleOptions};
pub use source::{EventSource, Hardware, Sampling, Software};
pub(super) use streams::{Sampled, Streams, threads_of};
