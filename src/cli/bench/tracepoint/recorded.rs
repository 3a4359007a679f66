//! A recording by bpflab: does all that `bpflab record` does, but discards the output.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::watch::{Turn, Watch, Work, unavailable};
use crate::cli::bench::contender::Stopped;
use crate::cli::exit::Failure;
use crate::compare::live::{Live, LiveError, LiveOptions, Summary};
use crate::kernel::process::Stop;
use crate::object::Object;

/// An object's program, to be recorded.
pub(super) struct Recorded {
    pub object: Object,
    pub program: String,
    /// The process to trace.
    pub pid: u32,
}

impl Recorded {
    fn watch(&self, stop: &Stop, sink: Started) -> Result<Summary, LiveError> {
        let options = LiveOptions {
            programs: vec![self.program.clone()],
            pid: Some(self.pid),
            stop: Some(stop.clone()),
            ..LiveOptions::default()
        };
        Live::start(&self.object, &options)?.watch(sink)
    }
}

impl Watch for Recorded {
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped> {
        let stop = Stop::new().map_err(unavailable)?;
        let (sink, started) = Started::new();
        let (ns, summary) = thread::scope(|scope| {
            let recorder = scope.spawn(|| self.watch(&stop, sink));
            // If the recorder fails before it writes, it drops its sink and returns an error.
            let ns = started.recv().is_ok().then(work);
            stop.now();
            (ns, recorder.join())
        });
        let summary = match summary {
            Ok(Ok(summary)) => summary,
            Ok(Err(error)) if error.is_unavailable() => return Err(unavailable(error)),
            Ok(Err(error)) => return Err(Stopped::Failed(Failure::bad(error))),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some(left_out) = summary.left_out.first() {
            return Err(unavailable(&left_out.why));
        }
        let ns = ns.ok_or_else(|| unavailable("the recorder ended before it recorded"))?;
        Ok(Turn {
            ns: ns.map_err(Stopped::Failed)?,
            recorded: Some(summary.recorded()),
            lost: summary.lost(),
        })
    }
}

/// A sink for a recording that signals its first write: everything is attached then.
struct Started(Option<SyncSender<()>>);

impl Started {
    fn new() -> (Self, std::sync::mpsc::Receiver<()>) {
        let (says, hears) = sync_channel(1);
        (Self(Some(says)), hears)
    }
}

impl Write for Started {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(says) = self.0.take() {
            // The receiver may have stopped waiting.
            let _ = says.send(());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
