//! `bpflab bench tracepoint`: measures the overhead of tracing a tracepoint.

mod arguments;
mod engines;
mod programs;
mod recorded;
mod watch;
mod writer;

pub(super) use arguments::Arguments;

use std::time::Duration;

use super::contender::Stopped;
use crate::cli::exit::{Exit, Failure};
use crate::cli::printer::Printer;
use crate::harness::EngineKind;
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::object::Object;
use crate::program::Program;
use crate::report::{Overhead, OverheadRow, WatchTurn};
use crate::util::Bursts;
use engines::{OnEngine, no_interpreter};
use programs::{GROUP, NAME};
use recorded::Recorded;
use watch::{Attached, Ftrace, Nothing, Perf, Turn, Watch};
use writer::{TARGET, Writer};

/// A turn. In the kernel a burst is a fixed number of writes, of any length.
const TURN: Bursts = Bursts {
    count: 5,
    length: Duration::from_millis(1),
};

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if let Some(size) = arguments.writer {
        let served = writer::serve(size);
        return match served {
            Ok(()) => Ok(Exit::Fine),
            Err(error) => Err(Failure::bad(format!("{TARGET}: {error}"))),
        };
    }
    let object = programs::object(arguments.object.as_deref())?;
    let program = programs::of_event(&object, arguments.program.as_deref())?;
    super::kernel::check()?;
    let tracefs = Tracefs::open().map_err(of_tracefs)?;
    let writer = Writer::start(arguments.size)?;
    let program = programs::of_process(program, writer.pid())?;
    let rows = rows(arguments, (object, &program), &tracefs, writer.pid())?;
    let bench = Bench {
        arguments,
        writer,
        rows,
    };
    let overhead = bench.measure(&program)?;
    if !printer.is_json() {
        printer.text(&overhead)?;
        return Ok(Exit::Fine);
    }
    for row in overhead.rows() {
        printer.row(row)?;
    }
    Ok(Exit::Fine)
}

fn of_tracefs(error: TracefsError) -> Failure {
    let exit = match error.is_unavailable() {
        true => Exit::Unavailable,
        false => Exit::Bad,
    };
    Failure::with(exit, error)
}

/// One way of tracing the event.
struct Row<'t> {
    /// Its name in JSON.
    what: &'static str,
    label: String,
    watch: Result<Box<dyn Watch + 't>, String>,
    turns: Vec<WatchTurn>,
}

/// All ways of tracing, the baseline first.
fn rows<'t>(
    arguments: &Arguments,
    (object, program): (Object, &Program),
    tracefs: &'t Tracefs,
    pid: u32,
) -> Result<Vec<Row<'t>>, Failure> {
    let id = tracefs.tracepoint_id(GROUP, NAME).map_err(of_tracefs)?;
    let size = arguments.size;
    // Filters that reject every write, and one that accepts all.
    let more = size.saturating_add(1);
    let condition = format!("count >= {more}");
    let perf = |filter: Option<String>| Perf { id, pid, filter };
    let ftrace = |filter: Option<String>| Ftrace {
        tracefs,
        pid,
        filter,
    };
    let own = |program| programs::of_process(program, pid);
    let mut rows = Rows::default();
    rows.add("nothing", "nothing attached", Ok(Nothing));
    rows.add(
        "empty",
        "empty program",
        Attached::load(&own(programs::empty()?)?, Nothing),
    );
    let name = format!("program {}", program.name);
    rows.add("program", &name, Attached::load(program, Nothing));
    let recorded = Recorded {
        object,
        program: program.name.clone(),
        pid,
    };
    let label = format!("{name}, recorded by bpflab");
    rows.add("recorded", &label, Ok(recorded));
    let drops = own(programs::filter(more)?)?;
    let passes = own(programs::filter(size)?)?;
    let label = "perf, a program drops all";
    rows.add(
        "perf_program_drops",
        label,
        Attached::load(&drops, perf(None)),
    );
    let label = "perf, a program passes all";
    rows.add(
        "perf_program_passes",
        label,
        Attached::load(&passes, perf(None)),
    );
    let label = format!("perf, filter {condition}");
    rows.add("perf_filter", &label, Ok(perf(Some(condition.clone()))));
    rows.add("perf", "perf", Ok(perf(None)));
    let label = format!("ftrace, filter {condition}");
    rows.add("ftrace_filter", &label, Ok(ftrace(Some(condition))));
    rows.add("ftrace", "ftrace", Ok(ftrace(None)));
    let why = Err::<Nothing, _>(Stopped::Unavailable(no_interpreter()));
    rows.add("program_without_jit", &format!("{name}, without JIT"), why);
    rows.done()
}

/// Collects rows until one fails.
#[derive(Default)]
struct Rows<'t> {
    rows: Vec<Row<'t>>,
    failed: Option<Failure>,
}

impl<'t> Rows<'t> {
    fn add(&mut self, what: &'static str, label: &str, watch: Result<impl Watch + 't, Stopped>) {
        let watch: Result<Box<dyn Watch + 't>, _> = match watch {
            Ok(watch) => Ok(Box::new(watch)),
            Err(Stopped::Unavailable(why)) => Err(why),
            Err(Stopped::Failed(failure)) => {
                self.failed.get_or_insert(failure);
                return;
            }
        };
        self.rows.push(Row {
            what,
            label: label.to_owned(),
            watch,
            turns: Vec::new(),
        });
    }

    fn done(self) -> Result<Vec<Row<'t>>, Failure> {
        match self.failed {
            Some(failure) => Err(failure),
            None => Ok(self.rows),
        }
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    writer: Writer,
    rows: Vec<Row<'a>>,
}

impl Bench<'_> {
    /// Runs the rounds, in each of which every row has a turn.
    fn measure(mut self, program: &Program) -> Result<Overhead, Failure> {
        let Arguments {
            size,
            calls,
            samples,
            ..
        } = *self.arguments;
        let pid = self.writer.pid();
        let engines = [EngineKind::Interp, EngineKind::Checked, EngineKind::Jit];
        let mut engines = engines.map(|engine| {
            let made = OnEngine::new(engine, program, pid, size);
            (engine, made.map_err(Stopped::Failed), Vec::new())
        });
        // The first writes run with cold caches.
        self.writer.write(calls)?;
        for _ in 0..samples {
            for row in &mut self.rows {
                row.turn(&mut self.writer, calls)?;
            }
            for (_, engine, turns) in &mut engines {
                let Ok(made) = engine else { continue };
                match made.turn(TURN) {
                    Ok(ns) => turns.push(ns),
                    Err(stopped) => *engine = Err(stopped),
                }
            }
        }
        let mut overhead = Overhead::new(TARGET, size, calls, TURN.count);
        for row in self.rows {
            let shown = OverheadRow::new(row.what, &row.label);
            overhead.add(match row.watch {
                Ok(_) => shown.timed(row.turns),
                Err(why) => shown.absent(&why),
            });
        }
        for (engine, made, turns) in engines {
            let row = OverheadRow::of_engine(engine.name(), &program.name);
            overhead.add(match made {
                Ok(_) => row.on_engine(turns),
                Err(Stopped::Unavailable(why)) => row.absent(&why),
                Err(Stopped::Failed(failure)) => return Err(failure),
            });
        }
        overhead.compare();
        Ok(overhead)
    }
}

impl Row<'_> {
    /// Makes the process write while the event is traced.
    fn turn(&mut self, writer: &mut Writer, calls: u32) -> Result<(), Failure> {
        let Ok(watch) = &mut self.watch else {
            return Ok(());
        };
        let mut work = || TURN.shortest(calls, |calls| writer.write(calls));
        match watch.during(&mut work) {
            Ok(Turn { ns, recorded, lost }) => {
                #[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
                let of_all = |count: u64| count as f64 / (f64::from(calls) * TURN.count as f64);
                self.turns.push(WatchTurn {
                    ns,
                    recorded: recorded.map(of_all),
                    lost: of_all(lost),
                });
                Ok(())
            }
            Err(Stopped::Unavailable(why)) => {
                self.watch = Err(why);
                Ok(())
            }
            Err(Stopped::Failed(failure)) => Err(failure),
        }
    }
}
