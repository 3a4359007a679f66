//! Ways of tracing the event while a process writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::programs::{GROUP, NAME};
use crate::cli::bench::contender::Stopped;
use crate::cli::exit::Failure;
use crate::kernel::attach::{AttachPoint, attach};
use crate::kernel::perf::{EventSource, PerfSamples, SampleOptions};
use crate::kernel::tracefs::{Instance, Tracefs};
use crate::kernel::{LoadOptions, LoadedMaps, LoadedProgram, load};
use crate::program::Program;

/// Pages for samples per CPU: room for a whole burst, so that the cost of writing samples is
/// measured, not that of losing them.
const PAGES: usize = 1024;
/// The longest sleep of the reader.
const NAP: Duration = Duration::from_millis(2);

/// The writes to trace: returns nanoseconds per write.
pub(super) type Work<'w> = dyn FnMut() -> Result<f64, Failure> + 'w;

/// The result of a turn: nanoseconds per write, and the number of events recorded, if they are
/// recorded.
pub(super) struct Turn {
    pub ns: f64,
    pub recorded: Option<u64>,
    pub lost: u64,
}

/// A way of tracing the event.
pub(super) trait Watch {
    /// Runs the work while the event is traced. Detaches everything afterwards.
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped>;
}

pub(super) fn unavailable(why: impl ToString) -> Stopped {
    Stopped::Unavailable(why.to_string())
}

/// No tracing.
pub(super) struct Nothing;

impl Watch for Nothing {
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped> {
        let ns = work().map_err(Stopped::Failed)?;
        Ok(Turn {
            ns,
            recorded: None,
            lost: 0,
        })
    }
}

/// An attached program.
pub(super) struct Attached {
    program: LoadedProgram,
    point: AttachPoint,
    _maps: LoadedMaps,
    then: Box<dyn Watch>,
}

impl Attached {
    /// Loads the program; `then` traces the events that it passes on.
    pub fn load(program: &Program, then: impl Watch + 'static) -> Result<Self, Stopped> {
        let point = AttachPoint::of(program).map_err(unavailable)?;
        let maps = LoadedMaps::create(&program.maps, program.btf.as_ref()).map_err(unavailable)?;
        let loaded = load(program, &maps, &LoadOptions::default()).map_err(unavailable)?;
        let Some(accepted) = loaded.program else {
            return Err(unavailable(loaded.verdict.message));
        };
        Ok(Self {
            program: accepted,
            point,
            _maps: maps,
            then: Box::new(then),
        })
    }
}

impl Watch for Attached {
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped> {
        let _attachment = attach(&self.program, &self.point).map_err(unavailable)?;
        self.then.during(work)
    }
}

/// A recording by perf: samples in memory, read at the same time.
pub(super) struct Perf {
    pub id: u32,
    pub pid: u32,
    pub filter: Option<String>,
}

impl Watch for Perf {
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped> {
        let options = SampleOptions {
            filter: self.filter.clone(),
            pages: PAGES,
            ..SampleOptions::default().of_process(self.pid)
        };
        let source = EventSource::Tracepoint(self.id);
        let mut samples = PerfSamples::open(source, &options).map_err(unavailable)?;
        let done = AtomicBool::new(false);
        let (ns, recorded) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut recorded = 0;
                while !done.load(Ordering::Acquire) {
                    // The wait can only fail by a signal.
                    let _ = samples.wait(Some(NAP));
                    recorded += samples.drain(|_| ());
                }
                recorded + samples.drain(|_| ())
            });
            let ns = work();
            done.store(true, Ordering::Release);
            (ns, reader.join().unwrap_or_default())
        });
        Ok(Turn {
            ns: ns.map_err(Stopped::Failed)?,
            recorded: u64::try_from(recorded).ok(),
            lost: samples.lost(),
        })
    }
}

/// A recording by ftrace, into a buffer that overwrites its oldest events when full.
pub(super) struct Ftrace<'t> {
    pub tracefs: &'t Tracefs,
    pub pid: u32,
    pub filter: Option<String>,
}

impl Watch for Ftrace<'_> {
    fn during(&mut self, work: &mut Work<'_>) -> Result<Turn, Stopped> {
        let instance = Instance::create(self.tracefs).map_err(unavailable)?;
        instance.set_pids(&[self.pid]).map_err(unavailable)?;
        if let Some(filter) = &self.filter {
            instance
                .set_filter(GROUP, NAME, filter)
                .map_err(unavailable)?;
        }
        instance.enable(GROUP, NAME, true).map_err(unavailable)?;
        let ns = work().map_err(Stopped::Failed)?;
        instance.enable(GROUP, NAME, false).map_err(unavailable)?;
        Ok(Turn {
            ns,
            recorded: Some(instance.recorded().map_err(unavailable)?),
            lost: 0,
        })
    }
}
