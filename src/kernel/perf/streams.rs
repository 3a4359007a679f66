//! The ring buffers of an event, one per CPU, and the events that write to each.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::record::{Record, Sample, parse};
use super::ring::Ring;
use super::source::{EventSource, Sampling};
use crate::kernel::cpus;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::sys::{
    EventFlags, EventRequest, PerfFd, Polled, SampleType, page_size, poll, poll_each,
};
use crate::util::Errno;

type Result<T> = std::result::Result<T, KernelError>;

/// The event to sample, its tasks, and the fields of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Sampled<'a> {
    pub source: EventSource,
    pub sampling: Sampling,
    pub holds: SampleType,
    /// Only events of these threads; of all if empty.
    pub threads: &'a [u32],
    /// Also events of threads and processes that they create.
    pub inherit: bool,
    /// Only from the threads' next `execve`.
    pub on_exec: bool,
    /// An expression over the fields of a tracepoint, as ftrace reads it.
    pub filter: Option<&'a str>,
    /// Data pages per CPU, a power of two.
    pub pages: usize,
    /// Whether each sample wakes the reader; otherwise a buffer that is a quarter full does.
    pub eager: bool,
}

/// One CPU's ring buffer. Fields are dropped in this order: the memory before the events.
#[derive(Debug)]
struct Stream {
    cpu: u32,
    ring: Ring,
    /// The event whose memory is mapped.
    event: PerfFd,
    /// Events of further threads that write to the same memory.
    more: Vec<PerfFd>,
    /// Lost samples according to `PERF_RECORD_LOST`.
    lost: u64,
}

/// The ring buffers of an event.
#[derive(Debug)]
pub struct Streams {
    name: String,
    holds: SampleType,
    streams: Vec<Stream>,
}

/// All events that write to a ring buffer.
fn events_of(stream: &Stream) -> impl Iterator<Item = &PerfFd> {
    std::iter::once(&stream.event).chain(&stream.more)
}

/// The threads of a process.
pub fn threads_of(pid: u32) -> Result<Vec<u32>> {
    listed_threads(Path::new("/proc"), pid).map_err(|error| KernelError {
        log: match error {
            Errno::ESRCH => String::new(),
            _ => "cannot list its threads: /proc is not mounted".to_owned(),
        },
        ..KernelError::new(Command::PerfEventOpen, format!("process {pid}"), error)
    })
}

/// The threads of a process in `/proc`: `ESRCH` if the process does not exist, `ENOENT` if
/// `/proc` is not mounted.
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
    /// Opens and enables the event on each CPU.
    pub fn open(what: &Sampled<'_>) -> Result<Self> {
        let mut opened = Self {
            name: what.source.to_string(),
            holds: what.holds,
            streams: Vec::new(),
        };
        if matches!(what.sampling, Sampling::Period(0) | Sampling::Frequency(0)) {
            return Err(KernelError {
                log: "a period or frequency of 0 is invalid".to_owned(),
                ..opened.failed(Command::PerfEventOpen)(Errno::EINVAL)
            });
        }
        for cpu in cpus::online() {
            // A CPU may go offline during the loop.
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
                // The thread has ended, or is the main thread, which stays listed until the
                // others end.
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
        self.streams.iter().flat_map(events_of)
    }

    /// The CPUs, each with its event.
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

    /// Passes each unread sample to `each`: CPU by CPU, the oldest of each CPU first.
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
                // How many samples a malformed record stands for is unknown; count one.
                Err(_) => *lost = lost.saturating_add(1),
            });
        }
        count
    }

    /// The number of samples lost so far because a ring buffer was full.
    pub fn lost(&self) -> u64 {
        let of = |stream: &Stream| {
            // The kernel writes a record of lost samples only when there is room again, but
            // counts all of them.
            let counted = events_of(stream).filter_map(|event| event.counts().ok());
            let counted: u64 = counted.map(|(_, lost)| lost).sum();
            counted.max(stream.lost)
        };
        self.streams.iter().map(of).sum()
    }

    /// The number of events, including lost samples. An event that a filter or a program
    /// dropped is not counted.
    pub fn count(&self) -> u64 {
        let counts = self.events().filter_map(|event| event.counts().ok());
        counts.map(|(count, _)| count).sum()
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().map(|stream| stream.event.as_fd())
    }

    /// Waits for samples, at most for `timeout`; without one it also ends when all tasks have
    /// ended. Returns whether there are any.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let failed = self.failed(Command::Poll);
        let of_stream = |stream| events_of(stream).map(move |event| (stream, event));
        // The event of an ended task is always readable, whether or not its buffer has data.
        let mut living: Vec<(&Stream, &PerfFd)> = self.streams.iter().flat_map(of_stream).collect();
        while !living.is_empty() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let fds: Vec<_> = living.iter().map(|(_, event)| event.as_fd()).collect();
            let polled = poll_each(&fds, left).map_err(&failed)?;
            let states = || living.iter().zip(&polled);
            if states().any(|((stream, _), polled)| match polled {
                Polled::Quiet => false,
                Polled::Readable => true,
                Polled::Over => !stream.ring.is_empty(),
            }) {
                return Ok(true);
            }
            let still = states().filter(|(_, polled)| **polled == Polled::Quiet);
            let still: Vec<_> = still.map(|(living, _)| *living).collect();
            if still.len() == living.len() {
                return Ok(false); // Timeout, or a signal.
            }
            living = still;
        }
        if let Some(until) = until {
            let left = until.saturating_duration_since(Instant::now());
            poll(&[], Some(left)).map_err(failed)?;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::perf::Software;

    #[test]
    fn threads_are_listed_or_it_is_said_why_not() {
        let own = std::process::id();
        assert!(threads_of(own).unwrap().contains(&own));
        let proc = Path::new("/proc");
        assert_eq!(listed_threads(proc, u32::MAX), Err(Errno::ESRCH));
        let none = listed_threads(Path::new("/no-such-mount"), own);
        assert_eq!(none, Err(Errno::ENOENT));
    }

    fn tid() -> u32 {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        link.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    /// Samples of a clock while these threads run.
    fn clock_of(threads: &[u32]) -> Result<Streams> {
        sampled(threads, Sampling::Period(1_000_000))
    }

    fn sampled(threads: &[u32], sampling: Sampling) -> Result<Streams> {
        Streams::open(&Sampled {
            source: EventSource::Software(Software::TaskClock),
            sampling,
            holds: SampleType::TID,
            threads,
            inherit: false,
            on_exec: false,
            filter: None,
            pages: 1,
            eager: true,
        })
    }

    #[test]
    fn what_takes_no_samples_is_refused() {
        for none in [Sampling::Period(0), Sampling::Frequency(0)] {
            let error = sampled(&[], none).unwrap_err();
            assert!(error.to_string().ends_with("is invalid"), "{error}");
        }
    }

    fn is_here() -> bool {
        let opened = clock_of(&[tid()]);
        opened
            .inspect_err(|error| crate::shared::skip(crate::shared::Need::Kernel, error))
            .is_ok()
    }

    /// Runs until there is a sample of this thread, for at most a second.
    fn is_sampled(streams: &mut Streams) -> bool {
        let until = Instant::now() + Duration::from_secs(1);
        let own = tid();
        let mut seen = 0;
        while seen == 0 && Instant::now() < until {
            streams.drain(|_, sample| seen += u32::from(sample.tid == own));
        }
        seen > 0
    }

    /// The main thread of a process may end before the others.
    #[test]
    fn a_thread_that_has_ended_does_not_hide_the_others() {
        if !is_here() {
            return;
        }
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let mut both = clock_of(&[gone.id(), tid()]).unwrap();
        assert!(is_sampled(&mut both));
        assert_eq!(clock_of(&[gone.id()]).unwrap_err().errno, Errno::ESRCH);
    }

    /// The event of an ended task is always readable.
    #[test]
    fn who_has_ended_wakes_nobody() {
        const SHORT: Duration = Duration::from_millis(50);
        if !is_here() {
            return;
        }
        let (told, first) = std::sync::mpsc::channel();
        let (go, end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(tid()).unwrap();
            end.recv().unwrap();
        });
        let first = first.recv().unwrap();
        let alone = clock_of(&[first]).unwrap();
        let mut both = clock_of(&[first, tid()]).unwrap();
        go.send(()).unwrap();
        thread.join().unwrap();
        // The thread is joined a little before its task has ended.
        let until = Instant::now() + Duration::from_secs(1);
        while alone.wait(None).unwrap() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(alone.wait(None), Ok(false), "no more events possible");
        let start = Instant::now();
        assert_eq!(alone.wait(Some(SHORT)), Ok(false));
        assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());

        both.drain(|_, _| ());
        let start = Instant::now();
        let woken = both.wait(Some(SHORT)).unwrap();
        assert!(woken || start.elapsed() >= SHORT, "{:?}", start.elapsed());
        assert!(is_sampled(&mut both), "the other thread still runs");
    }
}
