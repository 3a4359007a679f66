//! Runs a session: the subject is attached before the command's first instruction, and detached
//! before its exit status is read.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Instant;

use super::background::Background;
use super::consume::{Drain, consume};
use super::error::LiveError;
use super::options::LiveOptions;
use super::snapshot::Snapshot;
use super::summary::Summary;
use crate::compare::recording::{
    CpuTotal, Ended as Why, Filter, Header, KernelInfo, Resource, Start, When, Writer,
};
use crate::kernel::process::{Child, Ended, SpawnError, Stop, settle, spawn_held};
use crate::kernel::{Clocks, Uname, possible_cpus};

/// A kind of session: what it attaches and records.
pub(super) trait Subject: Send {
    /// The reader of its rings and buffers.
    type Drain: Drain;

    /// Prepares for the command; called by the thread that forks it.
    fn expect_child(&mut self) -> Result<(), LiveError>;

    /// Attaches everything. The command exists and is stopped; `child` is its id as this process
    /// sees it. Fills in the header.
    fn begin(
        &mut self,
        child: Option<u32>,
        header: &mut Header,
    ) -> Result<Begun<Self::Drain>, LiveError>;

    /// Detaches everything, also what a failed [`begin`](Self::begin) attached.
    fn end(&mut self) -> Result<(), LiveError>;

    /// Writes the rest, and adds losses and counts to the summary.
    fn conclude<W: Write>(
        &mut self,
        drain: Self::Drain,
        writer: &mut Writer<W>,
        summary: &mut Summary,
    ) -> Result<Counted, LiveError>;
}

/// The state of a session after everything is attached.
pub(super) struct Begun<D> {
    pub drain: D,
    /// The contents of maps before.
    pub before: Snapshot,
    /// Files for the recording to carry.
    pub resources: Vec<(&'static [u8], Vec<u8>)>,
}

/// Results at the end of a session, besides the summary.
#[derive(Default)]
pub(super) struct Counted {
    pub after: Snapshot,
    pub cpus: Vec<CpuTotal>,
}

/// A running session.
struct Under<'s, W: Write + Send + 's, D> {
    writer: Writer<Background<'s, W>>,
    drain: D,
}

/// Records while a command runs; without a command, until the options end it.
pub(super) fn record<S: Subject, W: Write + Send>(
    subject: &mut S,
    mut command: Option<&mut Command>,
    options: &LiveOptions,
    sink: W,
) -> Result<Summary, LiveError> {
    let header = Header {
        bpflab: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.as_deref().map(words).unwrap_or_default(),
        ..machine()
    };
    thread::scope(|scope| {
        let mut under = None;
        let mut started = Instant::now();
        let begin = |subject: &mut S, child| {
            under = Some(begin(scope, subject, child, header, options, sink)?);
            started = Instant::now();
            Ok(())
        };
        let child = match &mut command {
            Some(command) => {
                subject.expect_child()?;
                let held = spawn_held(command, |pid| begin(subject, Some(pid)));
                Some(held.map_err(|error| spawn_error(command, error))?)
            }
            None => {
                begin(subject, None)?;
                None
            }
        };
        let Some(under) = under else {
            return Err(LiveError::Nothing("the command did not run".to_owned()));
        };
        finish(subject, under, child, started, options)
    })
}

/// Attaches everything and writes the start of the recording.
fn begin<'s, 'e, S: Subject, W: Write + Send + 's>(
    scope: &'s Scope<'s, 'e>,
    subject: &mut S,
    child: Option<u32>,
    mut header: Header,
    options: &LiveOptions,
    sink: W,
) -> Result<Under<'s, W, S::Drain>, LiveError> {
    header.filter = match child.or(options.pid) {
        Some(root) if !options.all => Filter::PidTree { root },
        _ => Filter::All,
    };
    header.start = start();
    let begun = subject.begin(child, &mut header);
    let begun = begun.and_then(|begun| {
        let mut writer = Writer::new(Background::new(scope, sink), &header)?;
        for (name, bytes) in &begun.resources {
            writer.resource(&Resource { name, bytes })?;
        }
        begun.before.write(&mut writer, When::Before)?;
        // From now on the file can be read even if bpflab is killed.
        writer.flush()?;
        Ok(Under {
            writer,
            drain: begun.drain,
        })
    });
    if begun.is_err() {
        // Some of it may be attached already. The first error is reported, this one is not.
        let _ = subject.end();
    }
    begun
}

/// Waits for the end, detaches everything and writes the rest.
fn finish<'s, S: Subject, W: Write + Send + 's>(
    subject: &mut S,
    under: Under<'s, W, S::Drain>,
    mut child: Option<Child>,
    started: Instant,
    options: &LiveOptions,
) -> Result<Summary, LiveError> {
    let Under {
        mut writer,
        mut drain,
    } = under;
    let ended = AtomicBool::new(false);
    let failed = Stop::new().map_err(LiveError::system("making an eventfd"))?;
    let stops: Vec<&Stop> = options.stop.iter().chain([&failed]).collect();
    let until = options.duration.map(|duration| started + duration);
    let (waited, consumed, duration, off) = thread::scope(|inner| {
        let over = Over(&ended);
        let consumer = inner.spawn(|| {
            let consumed = consume(&mut drain, &mut writer, &ended);
            if consumed.is_err() {
                failed.now();
            }
            consumed
        });
        let waited = Ended::wait(child.as_ref(), until, &stops);
        let duration = started.elapsed();
        let off = subject.end();
        settle();
        drop(over);
        let consumed = match consumer.join() {
            Ok(consumed) => consumed,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (waited, consumed, duration, off)
    });
    let waited = waited.map_err(LiveError::system("waiting for the end"))?;
    consumed?;
    off?;
    let status = child.as_mut().map(Child::end).transpose();
    let status = status.map_err(LiveError::Waiting)?;
    let mut summary = Summary {
        ended: match (waited, status, options.stop.as_ref().and_then(Stop::signal)) {
            (Ended::Command, Some(status), _) => match (status.code(), status.signal()) {
                (Some(code), _) => Why::Exited { code },
                (None, Some(signal)) => Why::Killed { signal },
                (None, None) => Why::Other,
            },
            (Ended::Duration, ..) => Why::Duration,
            (Ended::Stopped, _, Some(signal)) => Why::Interrupted { signal },
            _ => Why::Other,
        },
        status,
        duration,
        all: options.all,
        ..Summary::default()
    };
    let counted = subject.conclude(drain, &mut writer, &mut summary)?;
    for loss in &summary.losses {
        writer.loss(loss)?;
    }
    counted.after.write(&mut writer, When::After)?;
    summary.totals = *writer.totals();
    let file = writer.finish(summary.end(counted.cpus))?;
    summary.file_bytes = file.bytes();
    file.finish()
        .map_err(crate::compare::recording::WriteError::Io)?;
    Ok(summary)
}

/// Ends the consumer when dropped, also on a panic: it would wait forever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The command and its arguments.
fn words(command: &Command) -> Vec<String> {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn spawn_error(command: &Command, error: SpawnError<LiveError>) -> LiveError {
    match error {
        SpawnError::Prepare(error) => error,
        SpawnError::Start(error) => LiveError::Command {
            command: command.get_program().to_string_lossy().into_owned(),
            error,
        },
    }
}

fn machine() -> Header {
    let Uname {
        release,
        version,
        machine,
    } = Uname::here();
    Header {
        kernel: KernelInfo {
            release,
            version,
            machine,
        },
        possible_cpus: possible_cpus(),
        ..Header::default()
    }
}

fn start() -> Start {
    let Clocks {
        realtime,
        monotonic,
        boottime,
    } = Clocks::now();
    Start {
        realtime,
        monotonic,
        boottime,
    }
}
