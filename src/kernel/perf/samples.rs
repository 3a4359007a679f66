//! Samples of an event on all CPUs.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::record::Sample;
use super::source::{EventSource, Sampling};
use super::streams::{Sampled, Streams, threads_of};
use crate::kernel::error::KernelError;
use crate::kernel::sys::SampleType;

/// What is sampled, and how much of it is kept until it is read.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// How often. Each event, unless this says otherwise.
    pub sampling: Sampling,
    /// Only the events of these processes, of all threads that they have; everybody's if
    /// none is named. Those that are gone are left out, unless all are.
    pub processes: Vec<u32>,
    /// And of all threads and processes that these make from now on.
    pub inherit: bool,
    /// Only from the process's next `execve` on: a command can be waiting for it.
    pub on_exec: bool,
    /// An expression over the fields of a tracepoint: `count > 100`
    /// (`Documentation/trace/events.rst`). The kernel judges after the attached programs.
    pub filter: Option<String>,
    /// Pages of memory for each CPU, a power of two.
    pub pages: usize,
    /// Whether [`PerfSamples::wait`] ends with the first sample, instead of when a quarter
    /// of the memory is full.
    pub eager: bool,
}

impl Default for SampleOptions {
    /// Each event of all processes, in 512 KiB a CPU.
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
    /// The same for one process.
    #[must_use]
    pub fn of_process(mut self, pid: u32) -> Self {
        self.processes = vec![pid];
        self
    }
}

/// An event on all CPUs, with the memory that the kernel writes samples to. It ends when
/// this is dropped.
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
    /// Opens the event and switches it on.
    ///
    /// # Errors
    /// What the kernel says: `EACCES` or `EPERM` without `CAP_PERFMON`, `ENOENT` for a
    /// counter that the machine does not have, `EINVAL` for a filter that it does not
    /// understand or pages that are no power of two.
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

    /// Hands over all samples that are there, each once: CPU by CPU, of each the oldest
    /// first. Says how many. Nothing is allocated or copied, except for a record that lies
    /// at the end of the memory and goes on at its start.
    pub fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) -> usize {
        self.streams.drain(|_, sample| each(sample))
    }

    /// Waits until there is something to read, or for so long (without a time until all
    /// processes that are sampled have ended): whether there is. A signal ends the waiting.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, KernelError> {
        self.streams.wait(timeout)
    }

    /// Samples that found no room until now.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.streams.lost()
    }

    /// How often the event was counted until now: samples, and those that were lost.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.streams.count()
    }

    /// Switches it on again.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(&self) -> Result<(), KernelError> {
        self.streams.enable()
    }

    /// Switches it off; what is there can still be read.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn disable(&self) -> Result<(), KernelError> {
        self.streams.disable()
    }

    /// Descriptors that are ready to be read when there is something, for a wait on
    /// several things. Those of tasks that have ended are ready for ever.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.fds()
    }
}
