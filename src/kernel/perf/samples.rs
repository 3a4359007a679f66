//! Samples of an event on all CPUs.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::record::Sample;
use super::source::{EventSource, Sampling};
use super::streams::{Sampled, Streams, threads_of};
use crate::kernel::error::KernelError;
use crate::kernel::sys::SampleType;
use crate::util::with;

/// What is sampled, and the size of the ring buffers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleOptions {
    /// The sampling rate; by default every event.
    pub sampling: Sampling,
    /// Only events of these processes, with all their threads; of all processes if empty.
    /// Processes that have ended are ignored, unless all have.
    pub processes: Vec<u32>,
    /// Also events of threads and processes that these create from now on.
    pub inherit: bool,
    /// Only from the process's next `execve`, for a command that is held before it starts.
    pub on_exec: bool,
    /// A filter expression over the fields of a tracepoint: `count > 100`
    /// (`Documentation/trace/events.rst`). The kernel applies it after the attached programs.
    pub filter: Option<String>,
    /// Data pages per CPU, a power of two.
    pub pages: usize,
    /// Whether [`PerfSamples::wait`] returns at the first sample; otherwise when a quarter of
    /// the memory is full.
    pub eager: bool,
}

impl Default for SampleOptions {
    /// Every event of all processes, in 512 KiB per CPU.
    fn default() -> Self {
        Self {
            sampling: Sampling::Period(1),
            processes: Vec::new(),
            inherit: false,
            on_exec: false,
            filter: None,
            pages: 128,
            eager: false,
        }
    }
}

impl SampleOptions {
    with! {
        with_sampling(sampling: Sampling);
        with_processes(processes: impl Into<Vec<u32>>);
        with_inherit(inherit: bool);
        with_on_exec(on_exec: bool);
        with_pages(pages: usize);
        with_eager(eager: bool);
    }

    /// The same with this field `filter`.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Restricts the options to one process.
    #[must_use]
    pub fn of_process(mut self, pid: u32) -> Self {
        self.processes = vec![pid];
        self
    }
}

/// An event on all CPUs, with the ring buffers of its samples. Dropping it closes the event.
///
/// ```no_run
/// use bpflab::kernel::perf::{EventSource, PerfSamples, SampleOptions};
/// use bpflab::kernel::tracefs::Tracefs;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let id = Tracefs::open()?.tracepoint_id("syscalls", "sys_enter_write")?;
/// let own = SampleOptions::default().of_process(std::process::id());
/// let mut samples = PerfSamples::open(EventSource::Tracepoint(id), &own)?;
/// println!("this is a write");
/// samples.drain(|sample| assert_eq!(sample.pid, std::process::id()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PerfSamples {
    streams: Streams,
}

impl PerfSamples {
    /// Opens and enables the event.
    ///
    /// # Errors
    /// The kernel's error: `EACCES` or `EPERM` without `CAP_PERFMON`, `ENOENT` for a counter
    /// that the machine does not have, `EINVAL` for an invalid filter or a number of pages that
    /// is not a power of two.
    pub fn open(source: EventSource, options: &SampleOptions) -> Result<Self, KernelError> {
        let found = options.processes.iter().map(|pid| threads_of(*pid));
        let (found, gone): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
        let threads: Vec<u32> = found.into_iter().flatten().flatten().collect();
        if let (true, Some(Err(gone))) = (threads.is_empty(), gone.into_iter().next()) {
            return Err(gone);
        }
        let all = SampleType::TID | SampleType::TIME | SampleType::CPU;
        let has_record = matches!(source, EventSource::Tracepoint(_));
        let streams = Streams::open(&Sampled {
            source,
            sampling: options.sampling,
            holds: match has_record {
                true => all | SampleType::RAW,
                false => all,
            },
            threads: &threads,
            inherit: options.inherit,
            on_exec: options.on_exec,
            filter: options.filter.as_deref(),
            pages: options.pages,
            eager: options.eager,
        })?;
        Ok(Self { streams })
    }

    /// Passes each unread sample to `each` once, CPU by CPU, the oldest of each CPU first.
    /// Returns their number. Allocates and copies nothing, except for records that wrap around
    /// the end of the buffer.
    pub fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) -> usize {
        self.streams.drain(|_, sample| each(sample))
    }

    /// Waits for samples, at most for `timeout` (without one until all sampled processes have
    /// ended). Returns whether there are any. A signal ends the wait.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, KernelError> {
        self.streams.wait(timeout)
    }

    /// The number of samples lost so far because a ring buffer was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.streams.lost()
    }

    /// The number of events so far, including lost samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.streams.count()
    }

    /// Enables the event again.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn enable(&self) -> Result<(), KernelError> {
        self.streams.enable()
    }

    /// Disables the event; unread samples stay readable.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn disable(&self) -> Result<(), KernelError> {
        self.streams.disable()
    }

    /// File descriptors that become readable when there are samples, for a wait on several
    /// sources. Those of ended tasks are always readable.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.fds()
    }
}
