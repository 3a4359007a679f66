//! Perf events: what they count, and samples of them that the kernel writes to memory
//! shared with us, one ring a CPU.
//!
//! [`PerfSamples`] reads a tracepoint as `perf record` does: whatever the programs that
//! are attached to it let pass, with the record's bytes as a tracepoint program sees them
//! (behind the first eight, which are the common fields here).

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
