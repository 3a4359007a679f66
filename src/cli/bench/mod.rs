//! `bpflab bench`: measures how long programs run on each engine.

mod arguments;
mod contender;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel;
mod lines;
mod ours;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod tracepoint;

pub(super) use arguments::Arguments;
use contender::{Contender, Stopped};
use ours::Ours;

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::files::{read_text, write_text};
use super::input::skip_untyped;
use super::printer::Printer;
use super::run::{Engine, ScheduledEvent, machine, open, scheduled_events};
use crate::harness::{CompileTime, EngineKind, Vm};
use crate::report::{BenchBaseline, BenchRow, BenchTable, LineRow, LinesTable, ReadyRow};
use crate::util::Bursts;
use crate::vm::ProgramHandle;
use crate::vm::events::Event;

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    if let Some(arguments::Verb::Tracepoint(arguments)) = &arguments.verb {
        return tracepoint::run(arguments, printer);
    }
    check_kernel(arguments)?;
    let baseline = arguments.against.as_ref().map(|file| {
        BenchBaseline::read(&read_text(file)?)
            .map_err(|error| Failure::bad(format!("{}: {error}", file.display())))
    });
    let baseline = baseline.transpose()?;
    let mut session = Session::new(arguments, printer, baseline)?;
    let name = arguments.setup.event.event.as_deref();
    let programs = &arguments.programs;
    let (found, failures) = scheduled_events(&mut session.first, programs, &arguments.setup, name)?;
    for failure in failures {
        session.exit = session.exit.max(session.printer.failure(failure)?);
    }
    for ScheduledEvent {
        event, programs, ..
    } in found
    {
        for program in programs {
            session.program(program, &event)?;
        }
    }
    session.finish()
}

/// Fails if the kernel is to be timed and no program can be loaded.
#[cfg(all(feature = "kernel", target_os = "linux"))]
fn check_kernel(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.vs_kernel {
        kernel::check()
    } else {
        Ok(())
    }
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn check_kernel(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.vs_kernel {
        let why = "--vs-kernel: this build can't ask a kernel; it needs Linux and the feature \
                   `kernel`";
        return Err(Failure::with(Exit::Unavailable, why));
    }
    Ok(())
}

struct Session<'a> {
    arguments: &'a Arguments,
    printer: &'a mut Printer,
    /// Holds the programs and their events; each engine gets its own machine.
    first: Vm,
    engines: Vec<EngineKind>,
    /// The times to compare with.
    baseline: Option<BenchBaseline>,
    /// The lines for `--save`.
    saved: String,
    /// The runs that take longer than allowed.
    slower: Vec<String>,
    exit: Exit,
}

impl<'a> Session<'a> {
    fn new(
        arguments: &'a Arguments,
        printer: &'a mut Printer,
        baseline: Option<BenchBaseline>,
    ) -> Result<Self, Failure> {
        let engines = match arguments.engine.as_slice() {
            [] => &[Engine::Checked, Engine::Interp, Engine::Jit],
            engines => engines,
        };
        let mut object = open(arguments.object(), &arguments.programs, &arguments.setup)?;
        for skipped in skip_untyped(&mut object, &arguments.programs)? {
            printer.warn(&skipped)?;
        }
        Ok(Self {
            first: machine(object, &arguments.programs, &arguments.setup)?,
            engines: engines.iter().map(|engine| (*engine).into()).collect(),
            arguments,
            printer,
            baseline,
            saved: String::new(),
            slower: Vec::new(),
            exit: Exit::Fine,
        })
    }

    /// Times a program on all engines and prints the rows.
    fn program(&mut self, handle: ProgramHandle, event: &Event) -> Result<(), Failure> {
        let Some(program) = self.first.program(handle).cloned() else {
            return Ok(());
        };
        let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
        for engine in &self.engines {
            let vm = load(self.arguments)?;
            contenders.push(Box::new(Ours::new(vm, *engine, handle, event.clone())));
        }
        #[cfg(all(feature = "kernel", target_os = "linux"))]
        if self.arguments.vs_kernel {
            let setup = &self.arguments.setup;
            contenders.push(Box::new(kernel::InKernel::new(&program, event, setup)?));
        }
        let file = self.arguments.object().display().to_string();
        let rows = self.rounds(&mut contenders)?;
        let mut rows: Vec<_> = contenders
            .iter()
            .zip(rows)
            .map(|(contender, timed)| {
                let row = BenchRow::new(&file, &program, event.name(), contender.name());
                match timed {
                    Ok(samples) => row.timed(samples, contender.insns()),
                    Err(why) => row.absent(&why),
                }
            })
            .collect();
        BenchRow::compare(&mut rows);
        let mut ready = ReadyRow::new(&file, &program, self.compile_time(handle)?);
        for contender in &contenders {
            ready.kernel_load(contender.load_time());
        }
        self.compare(&mut rows);
        if self.arguments.save.is_some() {
            for row in &rows {
                self.save(row)?;
            }
            self.save(&ready)?;
        }
        if self.printer.is_json() {
            for row in &rows {
                self.printer.row(row)?;
            }
            self.printer.row(&ready)?;
        } else {
            self.printer.text(BenchTable {
                rows: &rows,
                ready: &ready,
            })?;
        }
        match self.arguments.lines {
            Some(most) => self.lines(&file, handle, event, most.into()),
            None => Ok(()),
        }
    }

    /// Prints the costliest lines of a program, at most `most`.
    fn lines(
        &mut self,
        file: &str,
        program: ProgramHandle,
        event: &Event,
        most: usize,
    ) -> Result<(), Failure> {
        let mut vm = load(self.arguments)?;
        let rows: Vec<LineRow> = match lines::lines(file, &mut vm, program, event) {
            Ok(rows) => rows,
            Err(failure) => {
                self.exit = self.exit.max(self.printer.failure(failure)?);
                return Ok(());
            }
        };
        if self.printer.is_json() {
            for row in rows.iter().take(most) {
                self.printer.row(row)?;
            }
            return Ok(());
        }
        self.printer.text(LinesTable { rows: &rows, most })
    }

    /// Compares the rows with those of the earlier run.
    fn compare(&mut self, rows: &mut [BenchRow]) {
        let Some(baseline) = &mut self.baseline else {
            return;
        };
        let limit = self.arguments.fail_above;
        for row in rows {
            row.before_ns = baseline.take(row);
            if let Some(change) = row.change().filter(|change| *change > limit) {
                let BenchRow {
                    program, engine, ..
                } = row;
                self.slower
                    .push(format!("{program} on {engine} by {change:.1} %"));
            }
        }
    }

    /// Adds a line to what is saved.
    fn save(&mut self, row: &impl Serialize) -> Result<(), Failure> {
        self.saved += &serde_json::to_string(row).map_err(Failure::bad)?;
        self.saved.push('\n');
        Ok(())
    }

    /// Writes what is saved, and says what has changed.
    fn finish(self) -> Result<Exit, Failure> {
        if let Some(file) = &self.arguments.save {
            write_text(file, &self.saved)?;
        }
        let left = self.baseline.map_or(Vec::new(), |baseline| baseline.left());
        if !left.is_empty() {
            self.printer
                .warn(&format!("not measured this time: {}", left.join("; ")))?;
        }
        if self.slower.is_empty() {
            return Ok(self.exit);
        }
        if !self.printer.is_json() {
            let (slower, limit) = (self.slower.join(", "), self.arguments.fail_above);
            self.printer
                .text(format_args!("slower by more than {limit} %: {slower}\n"))?;
        }
        Ok(self.exit.max(Exit::No))
    }

    /// The time to verify and compile a program with warm caches.
    fn compile_time(&self, program: ProgramHandle) -> Result<CompileTime, Failure> {
        let mut time = self.first.compile_time(program)?;
        for _ in 1..self.arguments.samples {
            time = time.shortest(self.first.compile_time(program)?);
        }
        Ok(time)
    }

    /// The samples of each engine, taken in turns, or why there are none.
    fn rounds(
        &mut self,
        contenders: &mut [Box<dyn Contender>],
    ) -> Result<Vec<Result<Vec<f64>, String>>, Failure> {
        let bursts = self.arguments.bursts();
        let mut timed: Vec<_> = contenders.iter().map(|_| Ok(Vec::new())).collect();
        let mut times = vec![None; contenders.len()];
        for round in 1..=self.arguments.samples {
            let of = self.arguments.samples;
            self.printer
                .working(format_args!("measuring: round {round} of {of}"));
            for ((contender, timed), times) in contenders.iter_mut().zip(&mut timed).zip(&mut times)
            {
                let Ok(samples) = timed else { continue };
                match sample(&mut **contender, times, bursts) {
                    Ok(ns) => samples.push(ns),
                    Err(Stopped::Unavailable(why)) => *timed = Err(why),
                    Err(Stopped::Failed(failure)) => {
                        let Failure::Error { text, .. } = &failure else {
                            return Err(failure);
                        };
                        // The whole error is printed to standard error.
                        *timed = Err(text.lines().next().unwrap_or_default().to_owned());
                        self.exit = self.exit.max(self.printer.failure(failure)?);
                    }
                }
            }
        }
        Ok(timed)
    }
}

/// A machine with the programs loaded.
fn load(arguments: &Arguments) -> Result<Vm, Failure> {
    let object = open(arguments.object(), &arguments.programs, &arguments.setup)?;
    machine(object, &arguments.programs, &arguments.setup)
}

/// Nanoseconds per run, without the overhead around it.
fn sample(
    contender: &mut dyn Contender,
    times: &mut Option<u32>,
    bursts: Bursts,
) -> Result<f64, Stopped> {
    let count = match *times {
        Some(count) => count,
        None => *times.insert(bursts.calibrate(|count| contender.run(count))?),
    };
    let whole = bursts.shortest(count, |count| contender.run(count))?;
    let around = bursts.shortest(count, |count| contender.run_nothing(count))?;
    Ok((whole - around).max(0.0))
}
