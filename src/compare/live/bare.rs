//! A session with tracepoints and no programs: their records as perf samples.
//!
//! Each event is opened for the command before it runs, on each CPU, and its children inherit
//! it on fork. So no event of theirs is missed, and events of others are never seen.

use std::io::Write;
use std::process::Command;

use super::consume::Drain;
use super::error::LiveError;
use super::options::LiveOptions;
use super::session::{Begun, Counted, Subject, record};
use super::snapshot::Snapshot;
use super::summary::{EventSummary, Summary};
use super::tree::with_children;
use crate::compare::recording::{Cause, Header, Loss, RecordedEvent, Sample, WriteError, Writer};
use crate::kernel::perf::{EventSource, PerfSamples, SampleOptions};
use crate::kernel::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::kernel::tracepoints::{Catalogue, Pattern};
use crate::spec::limits::PAGE_SIZE;

/// Records tracepoints while a command runs.
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
    /// Finds the events of these names: `group/name`, in which `*` matches any text and `?` one
    /// character.
    ///
    /// # Errors
    /// A name that no tracepoint has; [`LiveError::is_unavailable`] without the right to
    /// read tracefs.
    pub fn start<T: AsRef<str>>(names: &[T], options: &LiveOptions) -> Result<Self, LiveError> {
        options.check_process()?;
        let tracefs = Tracefs::open()?;
        let events = find(&tracefs, names)?;
        let buffer = options.buffer()?;
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

    /// Records without a command: as [`Live::watch`](super::Live::watch). Of a running process it
    /// records the threads of the process and its children, and all that they create later.
    ///
    /// # Errors
    /// As there.
    pub fn watch(&mut self, sink: impl Write + Send) -> Result<Summary, LiveError> {
        let options = self.options.clone();
        options.can_watch()?;
        record(self, None, &options, sink)
    }
}

/// The events that match any of the names, in the kernel's order.
fn find<T: AsRef<str>>(tracefs: &Tracefs, names: &[T]) -> Result<Vec<RecordedEvent>, LiveError> {
    let catalogue = Catalogue::of_this_kernel()?;
    let patterns: Vec<_> = names
        .iter()
        .map(|name| Pattern::parse(name.as_ref()))
        .collect();
    for (pattern, name) in patterns.iter().zip(names) {
        let found = catalogue.matching(std::slice::from_ref(pattern));
        if !found
            .iter()
            .any(|tracepoint| tracepoint.group.name().is_some())
        {
            return Err(LiveError::NoEvent {
                name: name.as_ref().to_owned(),
                similar: catalogue.similar(pattern, 3),
            });
        }
    }
    let events = catalogue.matching(&patterns).into_iter();
    let events = events.filter_map(|event| Some((event.group.name()?, event.name.as_str())));
    let described = (0..).zip(events).map(|(number, (group, name))| {
        Ok(RecordedEvent {
            number,
            group: group.to_owned(),
            name: name.to_owned(),
            id: tracefs.tracepoint_id(group, name)?,
            format: tracefs.format_text(group, name)?,
        })
    });
    described.collect()
}

/// Each event's share of the buffer on each CPU, in bytes: a power of two, at least enough for a
/// few milliseconds of events.
fn share(buffer: u32, events: usize) -> usize {
    const LEAST: usize = 64 << 10;
    let rings = events.max(1) * cpus();
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
        let processes = match (child, self.options.pid) {
            _ if self.options.all => Vec::new(),
            (Some(child), _) => vec![child],
            // Processes forked from now on inherit the events; one forked at this very moment
            // may be missed.
            (None, Some(pid)) => with_children(pid),
            (None, None) => Vec::new(),
        };
        let options = SampleOptions {
            inherit: !processes.is_empty(),
            processes,
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

    fn end(&mut self) -> Result<(), LiveError> {
        Ok(()) // `Samples::switch_off` disables the events.
    }

    fn conclude<W: Write>(
        &mut self,
        drain: Samples,
        _: &mut Writer<W>,
        summary: &mut Summary,
    ) -> Result<Counted, LiveError> {
        for (event, (number, samples, taken)) in self.events.iter().zip(&drain.0) {
            let lost = samples.lost();
            summary.events.push(EventSummary {
                name: format!("{}/{}", event.group, event.name),
                samples: *taken,
                lost,
            });
            if lost > 0 {
                summary.losses.push(Loss {
                    cause: Cause::SampleFull,
                    cpu: None,
                    of: Some(*number),
                    count: lost,
                });
            }
        }
        let rings = self.events.len() * cpus();
        summary.buffer_bytes = (rings * self.room) as u64;
        Ok(Counted::default())
    }
}

impl Drain for Samples {
    fn drain<W: Write>(&mut self, writer: &mut Writer<W>) -> Result<usize, WriteError> {
        let mut all = 0;
        for (number, samples, taken) in &mut self.0 {
            let mut written = Ok(());
            let count = samples.drain(|sample| {
                if written.is_ok() {
                    written = writer.sample(&Sample {
                        event: *number,
                        cpu: sample.cpu,
                        pid: sample.pid,
                        tid: sample.tid,
                        time: sample.time,
                        raw: sample.raw,
                    });
                }
            });
            written?;
            *taken += count as u64;
            all += count;
        }
        Ok(all)
    }

    fn switch_off(&mut self) -> Result<(), LiveError> {
        for (_, samples, _) in &self.0 {
            samples.disable()?;
        }
        Ok(())
    }
}

fn cpus() -> usize {
    usize::try_from(possible_cpus()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_share_the_buffer() {
        assert!(share(64 << 20, 1) <= (64 << 20) / cpus());
        assert!(share(64 << 20, 1).is_power_of_two());
        assert_eq!(share(4096, 1000), 64 << 10);
    }
}
