//! The rings of an event, one a CPU, and the events that write to each.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use super::record::{Record, Sample, parse};
use super::ring::Ring;
use super::source::{EventSource, Sampling};
use crate::kernel::cpus;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::sys::{EventFlags, EventRequest, PerfFd, SampleType, page_size, poll};
use crate::util::Errno;

type Result<T> = std::result::Result<T, KernelError>;

/// What is sampled, whose, and what is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Sampled<'a> {
    pub source: EventSource,
    pub sampling: Sampling,
    pub holds: SampleType,
    /// Only these threads' events; all if there are none.
    pub threads: &'a [u32],
    /// And those of threads and processes that they make.
    pub inherit: bool,
    /// Only from the next `execve` of the threads on.
    pub on_exec: bool,
    /// An expression over the fields of a tracepoint, as ftrace reads it.
    pub filter: Option<&'a str>,
    /// Pages of data for each CPU, a power of two.
    pub pages: usize,
    /// Whether a reader is woken for each sample; otherwise when a quarter is full.
    pub eager: bool,
}

/// One CPU's ring. Fields are dropped in this order: the memory goes before the events.
#[derive(Debug)]
struct Stream {
    cpu: u32,
    ring: Ring,
    /// The one whose memory it is.
    event: PerfFd,
    /// Others that write there: of further threads.
    more: Vec<PerfFd>,
    /// Samples that found no room, as records told.
    lost: u64,
}

/// The rings of an event.
#[derive(Debug)]
pub struct Streams {
    name: String,
    holds: SampleType,
    streams: Vec<Stream>,
}

/// The threads of a process.
pub fn threads_of(pid: u32) -> Result<Vec<u32>> {
    listed_threads(Path::new("/proc"), pid).map_err(|error| KernelError {
        log: match error {
            Errno::ESRCH => String::new(),
            _ => "its threads are listed in /proc, which is not mounted here".to_owned(),
        },
        ..KernelError::new(Command::PerfEventOpen, format!("process {pid}"), error)
    })
}

/// The threads of a process in `/proc`: `ESRCH` where there are none, `ENOENT` where that
/// is not mounted, so that nobody knows.
fn listed_threads(proc: &Path, pid: u32) -> std::result::Result<Vec<u32>, Errno> {
    if !proc.join("self").exists() {
        return Err(Errno::ENOENT);
    }
    let entries = std::fs::read_dir(proc.join(format!("{pid}/task"))).map_err(|_| Errno::ESRCH)?;
    let threads: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    match threads.is_empty() {
        true => Err(Errno::ESRCH),
        false => Ok(threads),
    }
}

impl Streams {
    /// Opens the event on each CPU and switches it on.
    pub fn open(what: &Sampled<'_>) -> Result<Self> {
        let mut opened = Self {
            name: what.source.to_string(),
            holds: what.holds,
            streams: Vec::new(),
        };
        for cpu in cpus::online() {
            // A CPU may leave while we go through them.
            match opened.stream(what, cpu) {
                Err(error) if error.errno == Errno::ENODEV => {}
                stream => opened.streams.push(stream?),
            }
        }
        if opened.streams.is_empty() {
            return Err(opened.failed(Command::PerfEventOpen)(Errno::ENODEV));
        }
        if !what.on_exec {
            opened.enable()?;
        }
        Ok(opened)
    }

    fn failed(&self, command: Command) -> impl Fn(Errno) -> KernelError {
        let object = format!("event {}", self.name);
        move |errno| KernelError::new(command, object.clone(), errno)
    }

    fn stream(&self, what: &Sampled<'_>, cpu: u32) -> Result<Stream> {
        let tasks = match what.threads {
            [] => vec![None],
            threads => threads.iter().copied().map(Some).collect(),
        };
        let mut events = tasks.into_iter().filter_map(|task| {
            match self.event(what, cpu, task) {
                // It has ended: meanwhile, or as the first of its process, which stays
                // listed until the others end.
                Err(error) if error.errno == Errno::ESRCH => None,
                event => Some(event),
            }
        });
        let none = || Err(self.failed(Command::PerfEventOpen)(Errno::ESRCH));
        let event = events.next().unwrap_or_else(none)?;
        let page = page_size();
        let memory = event.map(what.pages, page);
        let ring = memory.and_then(|memory| Ring::new(memory, page));
        let ring = ring.map_err(self.failed(Command::Mmap))?;
        let mut more = Vec::new();
        for other in events {
            let other = other?;
            other
                .set_output(&event)
                .map_err(self.failed(Command::PerfControl))?;
            more.push(other);
        }
        Ok(Stream {
            cpu,
            ring,
            event,
            more,
            lost: 0,
        })
    }

    fn event(&self, what: &Sampled<'_>, cpu: u32, task: Option<u32>) -> Result<PerfFd> {
        let mut flags = EventFlags::DISABLED | EventFlags::USE_CLOCKID;
        flags.set(EventFlags::INHERIT, what.inherit);
        flags.set(EventFlags::ENABLE_ON_EXEC, what.on_exec);
        flags.set(EventFlags::WATERMARK, !what.eager);
        let sample = match what.sampling {
            Sampling::Period(period) => period,
            Sampling::Frequency(frequency) => {
                flags |= EventFlags::FREQ;
                frequency
            }
        };
        let (event_type, config) = what.source.numbers();
        let quarter = what.pages.saturating_mul(page_size()) / 4;
        let event = PerfFd::open(&EventRequest {
            event_type,
            config,
            sample,
            sample_type: what.holds,
            flags,
            wakeup: match what.eager {
                true => 1,
                false => u32::try_from(quarter).unwrap_or(u32::MAX),
            },
            clock: libc::CLOCK_MONOTONIC,
            task,
            cpu: Some(cpu),
            ..EventRequest::default()
        });
        let event = event.map_err(self.failed(Command::PerfEventOpen))?;
        if let Some(filter) = what.filter {
            let set = CString::new(filter).map_err(|_| Errno::EINVAL);
            let set = set.and_then(|filter| event.set_filter(&filter));
            set.map_err(|errno| {
                let object = format!("{} ({filter})", self.name);
                KernelError::new(Command::PerfSetFilter, object, errno)
            })?;
        }
        Ok(event)
    }

    fn events(&self) -> impl Iterator<Item = &PerfFd> {
        let streams = self.streams.iter();
        streams.flat_map(|stream| std::iter::once(&stream.event).chain(&stream.more))
    }

    /// The CPUs, and the event on each.
    pub fn by_cpu(&self) -> impl Iterator<Item = (u32, &PerfFd)> {
        self.streams
            .iter()
            .map(|stream| (stream.cpu, &stream.event))
    }

    pub fn enable(&self) -> Result<()> {
        let all = self.events().try_for_each(PerfFd::enable);
        all.map_err(self.failed(Command::PerfControl))
    }

    pub fn disable(&self) -> Result<()> {
        let all = self.events().try_for_each(PerfFd::disable);
        all.map_err(self.failed(Command::PerfControl))
    }

    /// Hands over all samples that are there: CPU by CPU, of each the oldest first.
    pub fn drain(&mut self, mut each: impl FnMut(u32, &Sample<'_>)) -> usize {
        let mut count = 0;
        for Stream {
            cpu, ring, lost, ..
        } in &mut self.streams
        {
            ring.drain(|record| match parse(record, self.holds) {
                Ok(Record::Sample(sample)) => {
                    count += 1;
                    each(*cpu, &sample);
                }
                Ok(Record::Lost(more)) => *lost = lost.saturating_add(more),
                Ok(Record::Other) => {}
                // Of samples that can't be read nobody knows how many there were.
                Err(_) => *lost = lost.saturating_add(1),
            });
        }
        count
    }

    /// Samples that found no room until now.
    pub fn lost(&self) -> u64 {
        let of = |stream: &Stream| {
            let events = std::iter::once(&stream.event).chain(&stream.more);
            // The kernel tells of a loss only when there is room again, but counts all.
            let counted = events.filter_map(|event| event.counts().ok());
            let counted: u64 = counted.map(|(_, lost)| lost).sum();
            counted.max(stream.lost)
        };
        self.streams.iter().map(of).sum()
    }

    /// How often the event happened: also when there was no room, and when a filter or a
    /// program dropped it, it is not counted.
    pub fn count(&self) -> u64 {
        let counts = self.events().filter_map(|event| event.counts().ok());
        counts.map(|(count, _)| count).sum()
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().map(|stream| stream.event.as_fd())
    }

    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let fds: Vec<_> = self.fds().collect();
        let ready = poll(&fds, timeout).map_err(self.failed(Command::Poll))?;
        Ok(ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::perf::Software;
    use crate::kernel::sys;

    #[test]
    fn threads_are_listed_or_it_is_said_why_not() {
        let own = std::process::id();
        assert!(threads_of(own).unwrap().contains(&own));
        let proc = Path::new("/proc");
        assert_eq!(listed_threads(proc, u32::MAX), Err(Errno::ESRCH));
        let none = listed_threads(Path::new("/no-such-mount"), own);
        assert_eq!(none, Err(Errno::ENOENT));
    }

    /// The first thread of a process may end before the others.
    #[test]
    fn a_thread_that_has_ended_does_not_hide_the_others() {
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let own = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let of = |threads: &[u32]| {
            Streams::open(&Sampled {
                source: EventSource::Software(Software::TaskClock),
                sampling: Sampling::Period(1_000_000),
                holds: SampleType::TID,
                threads,
                inherit: false,
                on_exec: false,
                filter: None,
                pages: 1,
                eager: true,
            })
        };
        match of(&[own]) {
            Err(error) => return eprintln!("skipped: {error}"),
            Ok(streams) => assert!(streams.by_cpu().all(|(_, event)| event.counts().is_ok())),
        }
        let mut both = of(&[gone.id(), own]).unwrap();
        let until = sys::monotonic() + 1_000_000_000;
        let mut seen = 0;
        while seen == 0 && sys::monotonic() < until {
            seen += both.drain(|_, sample| assert_eq!(sample.tid, own));
        }
        assert!(seen > 0, "samples of the one that lives");
        assert_eq!(of(&[gone.id()]).unwrap_err().errno, Errno::ESRCH);
    }
}
