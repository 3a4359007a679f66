//! A session about tracepoints without programs: their records as perf samples them.
//!
//! The event is opened for the command while it is held, on each CPU, and its children
//! inherit it as they are born. So nothing of theirs is missed, and what others do is
//! never seen.

use std::io::Write;
use std::process::Command;

use super::consume::Drain;
use super::error::LiveError;
use super::options::{BUFFER, LiveOptions, default_buffer};
use super::session::{Begun, Counted, Subject, record};
use super::snapshot::Snapshot;
use super::summary::{EventSummary, Summary};
use crate::compare::recording::{
    Cause, Header, Loss, RecordedEvent, Sample, WriteError, Writer,
};
use crate::kernel::perf::{EventSource, PerfSamples, SampleOptions};
use crate::kernel::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::kernel::tracepoints::{Group, Pattern, Tracepoint};
use crate::spec::limits::PAGE_SIZE;
use crate::util::Errno;

/// Tracepoints whose records are to be kept while a command runs.
///
/// ```no_run
/// use std::process::Command;
/// use bpflab::compare::live::{LiveEvents, LiveOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let events = ["syscalls/sys_enter_write", "sched/sched_process_*"];
/// let mut live = LiveEvents::start(&events, &LiveOptions::default())?;
/// let mut recording = Vec::new();
/// let summary = live.run(Command::new("echo").arg("hello"), &mut recording)?;
/// println!("{} events, {} lost", summary.recorded(), summary.lost());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LiveEvents {
    options: LiveOptions,
    events: Vec<RecordedEvent>,
    /// Bytes for each event on each CPU.
    room: usize,
}

/// The samples of all events, by their numbers.
#[derive(Debug)]
pub(super) struct Samples(Vec<(u32, PerfSamples, u64)>);

impl LiveEvents {
    /// Finds the events of these names: `group/name`, in which `*` stands for anything and
    /// `?` for a character.
    ///
    /// # Errors
    /// A name that no tracepoint has; [`LiveError::is_unavailable`] without the right to
    /// read tracefs.
    pub fn start<T: AsRef<str>>(names: &[T], options: &LiveOptions) -> Result<Self, LiveError> {
        let tracefs = Tracefs::open()?;
        let all = tracefs.events()?;
        let mut events: Vec<RecordedEvent> = Vec::new();
        for name in names {
            for (group, name) in matching(&all, name.as_ref())? {
                if events.iter().any(|known| (&known.group, &known.name) == (group, name)) {
                    continue;
                }
                events.push(RecordedEvent {
                    number: u32::try_from(events.len()).unwrap_or(u32::MAX),
                    group: group.clone(),
                    name: name.clone(),
                    id: tracefs.tracepoint_id(group, name)?,
                    format: tracefs.format_text(group, name)?,
                });
            }
        }
        let buffer = options.buffer.unwrap_or_else(default_buffer);
        if !buffer.is_power_of_two() || !BUFFER.contains(&buffer) {
            return Err(LiveError::Buffer(buffer.into()));
        }
        Ok(Self {
            options: options.clone(),
            room: share(buffer, events.len()),
            events,
        })
    }

    /// Runs a command and writes to `sink` what its processes did: as
    /// [`Live::run`](super::Live::run).
    ///
    /// # Errors
    /// As there.
    pub fn run(
        &mut self,
        command: &mut Command,
        sink: impl Write + Send,
    ) -> Result<Summary, LiveError> {
        let options = self.options.clone();
        record(self, Some(command), &options, sink)
    }

    /// Records without a command: as [`Live::watch`](super::Live::watch). Of a process
    /// that runs already it is the threads that it has and all that they make from now on.
    ///
    /// # Errors
    /// As there.
    pub fn watch(&mut self, sink: impl Write + Send) -> Result<Summary, LiveError> {
        let options = self.options.clone();
        options.can_watch()?;
        record(self, None, &options, sink)
    }
}

/// The events that a name means.
fn matching<'a>(
    all: &'a [(String, String)],
    text: &str,
) -> Result<Vec<(&'a String, &'a String)>, LiveError> {
    let pattern = Pattern::parse(text);
    let is_meant = |(group, name): &&(String, String)| {
        pattern.matches(&Tracepoint {
            group: Group::Known(group.clone()),
            name: name.clone(),
        })
    };
    let found: Vec<_> = all.iter().filter(is_meant).map(|(group, name)| (group, name)).collect();
    if found.is_empty() {
        return Err(LiveError::NoEvent(text.to_owned()));
    }
    Ok(found)
}

/// Each event's part of the buffer on each CPU, in bytes: a power of two, and enough for
/// what comes in a few milliseconds.
fn share(buffer: u32, events: usize) -> usize {
    const LEAST: usize = 64 << 10;
    let rings = events.max(1) * usize::try_from(possible_cpus()).unwrap_or(1).max(1);
    let share = usize::try_from(buffer).unwrap_or(LEAST) / rings;
    1 << share.max(LEAST).ilog2()
}

impl Subject for LiveEvents {
    type Drain = Samples;

    fn expect_child(&mut self) -> Result<(), LiveError> {
        Ok(())
    }

    fn begin(
        &mut self,
        child: Option<u32>,
        header: &mut Header,
    ) -> Result<Begun<Samples>, LiveError> {
        let process = child.or(self.options.pid).filter(|_| !self.options.all);
        let options = SampleOptions {
            process,
            inherit: process.is_some(),
            pages: self.room / PAGE_SIZE as usize,
            ..SampleOptions::default()
        };
        let opened = self.events.iter().map(|event| {
            let samples = PerfSamples::open(EventSource::Tracepoint(event.id), &options)?;
            Ok((event.number, samples, 0))
        });
        let opened = opened.collect::<Result<Vec<_>, LiveError>>()?;
        header.events.clone_from(&self.events);
        Ok(Begun {
            drain: Samples(opened),
            before: Snapshot::default(),
            resources: Vec::new(),
        })
    }

    fn end(&mut self, drain: &Samples) -> Result<(), LiveError> {
        for (_, samples, _) in &self.0 {
            samples.disable()?;
        }
        Ok(())
    }
}
