//! Fires events, shows the programs' output meanwhile, and at the end their return values and
//! maps.

use std::path::Path;
use std::time::Duration;

use super::arguments::{Arguments, OutputArguments, Uninit};
use super::options::{histogram_rules, record_types};
use super::pcap::{PacketFile, drops, sees_frames};
use super::pictures::Pictures;
use super::setup::{self, ScheduledEvent};
use rustc_hash::FxHashMap;

use crate::cli::event_fields::set_field;
use crate::cli::event_lines::{EventLine, EventLines};
use crate::cli::exit::{Exit, Failure};
use crate::cli::files::write_text;
use crate::cli::input::skip_untyped;
use crate::cli::map_values;
use crate::cli::printer::Printer;
use crate::harness::{MapView, Vm};
use crate::program::MapOrigin;
use crate::report::{
    EventTally, FaultRow, HistogramRule, InjectedRow, LeakRow, MapContents, OutputRow, PacketRow,
    ProgramTally, RecordTypes, RunPage,
};
use crate::spec::MapType;
use crate::vm::attach::{Hook, Tally};
use crate::vm::events::{Event, EventKind};
use crate::vm::{Fault, Leak, Outcome, ProgramHandle};

/// Runs after which outputs are taken from the machine.
const CHUNK: u32 = 4096;

struct Session<'a> {
    vm: Vm,
    arguments: &'a Arguments,
    printer: &'a mut Printer,
    /// The object whose programs run.
    object: String,
    /// The programs to run; all if none is named.
    runs: Vec<String>,
    types: RecordTypes,
    histograms: FxHashMap<String, HistogramRule>,
    /// Whether there are ring buffers, which fill up unless they are read.
    has_rings: bool,
    programs: Vec<(ProgramHandle, ProgramTally)>,
    events: Vec<EventTally>,
    /// Programs that faulted and don't run again; the others go on.
    faulted: Vec<ProgramHandle>,
    /// The capture file of packets that were not dropped.
    out: Option<PacketFile>,
    /// Messages of faulting probe loads that were already shown.
    probed: Vec<String>,
    /// Uninitialised bytes that were already shown.
    leaks: Vec<Leak>,
    page: Option<RunPage>,
    pictures: Option<Pictures<'a>>,
    exit: Exit,
}

pub(super) fn run(
    path: &Path,
    arguments: &Arguments,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let mut object = setup::open(path, arguments.wanted(), &arguments.setup)?;
    let output = &arguments.output;
    let types = record_types(&output.record, &object)?;
    let histograms = histogram_rules(output, &object)?;
    for name in &output.map {
        object.map(name)?;
    }
    let has_rings = object
        .maps()
        .iter()
        .any(|map| map.map_type == MapType::Ringbuf);
    for skipped in skip_untyped(&mut object, arguments.wanted())? {
        printer.warn(&skipped)?;
    }
    let (wanted, setup) = (arguments.wanted(), &arguments.setup);
    let (mut vm, path, runs) = match &arguments.target {
        None => (
            setup::machine(object, wanted, setup)?,
            path,
            wanted.to_vec(),
        ),
        Some(target) => {
            let (vm, program) = setup::machine_with_target(object, wanted, setup, target)?;
            (vm, target.path(), vec![program])
        }
    };
    if let Some(engine) = arguments.engine {
        setup::choose_engine(&mut vm, engine.into(), &runs)?;
    }
    #[cfg(feature = "jit")]
    if arguments.perf_map {
        write_perf_map(&vm)?;
    }
    let mut session = Session {
        vm,
        arguments,
        printer,
        object: path.display().to_string(),
        runs,
        types,
        histograms,
        has_rings,
        programs: Vec::new(),
        events: Vec::new(),
        faulted: Vec::new(),
        out: arguments
            .out
            .as_deref()
            .map(PacketFile::create)
            .transpose()?,
        probed: Vec::new(),
        leaks: Vec::new(),
        page: arguments.html.is_some().then(RunPage::default),
        pictures: arguments.svg.as_deref().map(Pictures::new),
        exit: Exit::Fine,
    };
    if arguments.uninit != Uninit::Off {
        session.vm.find_uninit(true);
    }
    if arguments.engine.is_none() {
        for warning in setup::warnings(&session.vm, &session.runs) {
            session.printer.warn(&warning)?;
        }
    }
    for given in &arguments.map_set {
        map_values::set(&session.vm, "--map-set", given)?;
    }
    let fired = session.fire_all();
    // What ran before an error is shown: the lines of an events file before a wrong one.
    if fired.is_ok() || !session.programs.is_empty() {
        session.show_results()?;
        session.show_maps()?;
        session.write_pictures()?;
    }
    fired?;
    if let Some(out) = session.out {
        let said = out.finish()?;
        if !session.printer.is_json() {
            session.printer.text(format_args!("{said}\n"))?;
        }
    }
    Ok(session.exit)
}

/// Writes the file in which `perf report` looks up the machine code of this process.
#[cfg(feature = "jit")]
fn write_perf_map(vm: &Vm) -> Result<(), Failure> {
    let map = vm.perf_map();
    if map.is_empty() {
        return Err(Failure::bad(
            "--perf-map: no machine code: no program is verified, or this host \
             can't execute any",
        ));
    }
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let failed = |error| Failure::bad(format!("{path}: can't be written: {error}"));
    std::fs::write(&path, map).map_err(failed)
}

impl Session<'_> {
    /// Fires all events of the command line.
    fn fire_all(&mut self) -> Result<(), Failure> {
        let name = self.arguments.setup.event.event.as_deref();
        let (default, failures) = self.scheduled_events(name)?;
        for failure in failures {
            self.exit = self.exit.max(self.printer.failure(failure)?);
        }
        self.printer.working("running programs");
        let Some(file) = &self.arguments.events else {
            return self.fire(&default, &EventLine::default());
        };
        let mut known = vec![(None, default)];
        let mut lines = EventLines::open(file)?;
        while let Some(line) = lines.next() {
            let line = line?;
            line.change(self.vm.world())
                .map_err(|error| lines.error(error))?;
            if known.iter().all(|(name, _)| *name != line.event) {
                let scheduled = self.scheduled_events(line.event.as_deref());
                let (scheduled, _) = scheduled.map_err(|error| lines.at(error))?;
                known.push((line.event.clone(), scheduled));
            }
            for (_, scheduled) in known.iter().filter(|(name, _)| *name == line.event) {
                self.fire(scheduled, &line)
                    .map_err(|error| lines.at(error))?;
            }
        }
        Ok(())
    }

    /// The events of this name, or those that the programs' sections name.
    fn scheduled_events(
        &mut self,
        name: Option<&str>,
    ) -> Result<(Vec<ScheduledEvent>, Vec<Failure>), Failure> {
        setup::scheduled_events(&mut self.vm, &self.runs, &self.arguments.setup, name)
    }

    /// Fires events with the fields of a line.
    fn fire(&mut self, scheduled: &[ScheduledEvent], line: &EventLine) -> Result<(), Failure> {
        for next in scheduled {
            let ScheduledEvent {
                event, programs, ..
            } = next;
            self.vm.world().clock().advance(next.wait);
            let mut event = event.clone();
            for (field, value) in &line.fields {
                set_field(&self.vm, &mut event, field, value)?;
            }
            let able = programs
                .iter()
                .filter(|program| !self.faulted.contains(program));
            match *able.copied().collect::<Vec<_>>() {
                [program] if !self.has_rings => self.repeat(program, &event)?,
                ref programs => self.fire_for(programs, &event)?,
            }
        }
        Ok(())
    }

    /// Runs one program on an event, `--repeat` times.
    fn repeat(&mut self, program: ProgramHandle, event: &Event) -> Result<(), Failure> {
        let mut left = self.arguments.repeat.unwrap_or(1);
        while left > 0 && !self.faulted.contains(&program) {
            let count = left.min(CHUNK);
            left -= count;
            let repeated = self.vm.runner(program, event)?.repeat(count)?;
            let passed = repeated.returned.iter().filter(|(value, _)| passes(*value));
            let passed = passed.map(|(_, runs)| runs).sum();
            self.note_event(event, repeated.runs(), passed);
            self.show_given(&repeated.outcome)?;
            self.show_packet(program, event, &repeated.outcome)?;
            let insns = repeated.outcome.runs.last().and_then(|run| run.insns);
            let tally = self.tally(program);
            tally.ran_on(repeated.ran_on);
            tally.add(event.name(), &repeated.returned, insns, repeated.elapsed);
            if let Some(fault) = repeated.fault {
                self.give_up(program, &fault)?;
            }
        }
        Ok(())
    }

    /// Fires an event for several programs, `--repeat` times.
    fn fire_for(&mut self, programs: &[ProgramHandle], event: &Event) -> Result<(), Failure> {
        for _ in 0..self.arguments.repeat.unwrap_or(1) {
            let (mut ran, mut passed) = (false, true);
            let mut left = programs.to_vec();
            loop {
                left.retain(|program| !self.faulted.contains(program));
                if left.is_empty() {
                    break;
                }
                let fired = self.vm.fire_for(&left, event.clone())?;
                self.show_given(&fired.outcome)?;
                if let Some(program) = left.first() {
                    self.show_packet(*program, event, &fired.outcome)?;
                }
                for ((program, elapsed), run) in fired.runs.iter().zip(&fired.outcome.runs) {
                    let returned = [(run.returned(), 1)];
                    let tally = self.tally(*program);
                    tally.ran_on(run.ran_on);
                    tally.add(event.name(), &returned, run.insns, *elapsed);
                    ran = true;
                }
                passed &= fired.outcome.passed;
                let Some((program, fault)) = fired.fault else {
                    break;
                };
                // A kernel would not have loaded it: the other programs still see the event.
                passed = false;
                let stopped = self.tally(program);
                stopped.add(event.name(), &[], None, Duration::ZERO);
                self.give_up(program, &fault)?;
                left.retain(|program| fired.runs.iter().all(|(done, _)| done != program));
            }
            if ran {
                self.note_event(event, 1, u64::from(passed));
            }
        }
        Ok(())
    }

    /// Shows the output of a run.
    fn show_given(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        for output in &outcome.outputs {
            let row = OutputRow::new(output, &self.types);
            self.printer.show(&row)?;
            if let Some(page) = &mut self.page {
                page.add_output(&row);
            }
        }
        for injected in &outcome.injected {
            let row = InjectedRow::from(injected);
            self.printer.show(&row)?;
            if let Some(page) = &mut self.page {
                page.add_line(&row);
            }
        }
        for probed in &outcome.probed {
            let text = format!("{probed}\n  the load returns 0, as in the kernel");
            if !self.probed.contains(&text) {
                self.printer.warn(&text)?;
                if let Some(page) = &mut self.page {
                    page.add_line(format_args!("warning: {text}"));
                }
                self.probed.push(text);
            }
        }
        for leak in &outcome.leaks {
            self.show_leak(leak)?;
        }
        if self.has_rings {
            let rings = self
                .vm
                .maps()
                .filter(|map| map.def().map_type == MapType::Ringbuf);
            for ring in rings {
                ring.take_records()?;
            }
        }
        Ok(())
    }

    /// Shows uninitialised bytes that left a program, unless they were shown before.
    fn show_leak(&mut self, leak: &Leak) -> Result<(), Failure> {
        if self.leaks.iter().any(|known| known.is_again(leak)) {
            return Ok(());
        }
        self.leaks.push(leak.clone());
        if self.arguments.uninit == Uninit::Fail {
            self.exit = self.exit.max(Exit::No);
        }
        match (self.printer.is_json(), self.arguments.uninit) {
            (true, _) => self.printer.row(&LeakRow::from(leak)),
            (_, Uninit::Fail) => self.printer.complain(&leak.to_string()),
            _ => self.printer.warn(&leak.to_string()),
        }
    }

    /// Shows what programs, of which one is given, changed in a packet, and keeps it unless one
    /// of them dropped it.
    fn show_packet(
        &mut self,
        program: ProgramHandle,
        event: &Event,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        let prog_type = self.vm.program(program).map(|known| known.prog_type);
        let (Some(prog_type), Some(packet)) = (prog_type, &outcome.packet) else {
            return Ok(());
        };
        if event.kind() != EventKind::Packet || !sees_frames(prog_type) || outcome.runs.is_empty() {
            return Ok(());
        }
        let before = event.record();
        let dropped = outcome
            .runs
            .iter()
            .any(|run| drops(prog_type, run.returned()));
        // Packets without --data have no contents that anyone asked for.
        if self.arguments.setup.event.data.is_some()
            && let Some(row) = PacketRow::new(&before, packet)
        {
            self.printer.show(&row)?;
            if let Some(page) = &mut self.page {
                page.add_packet(&row);
            }
        }
        let now = self.vm.world().clock().realtime_ns();
        match &mut self.out {
            Some(out) if dropped => out.dropped += 1,
            Some(out) => out.add(now, packet)?,
            None => {}
        }
        Ok(())
    }

    /// Reports a fault; the program does not run again.
    fn give_up(&mut self, program: ProgramHandle, fault: &Fault) -> Result<(), Failure> {
        self.faulted.push(program);
        self.exit = self.exit.max(Exit::No);
        if self.printer.is_json() {
            self.printer.row(&FaultRow::new(fault))?;
        }
        if let Some(page) = &mut self.page {
            page.add_fault(fault);
        }
        self.printer.complain(&fault.to_string())
    }

    fn tally(&mut self, program: ProgramHandle) -> &mut ProgramTally {
        let known = self
            .programs
            .iter()
            .position(|(handle, _)| *handle == program);
        let at = known.unwrap_or_else(|| {
            if let Some(known) = self.vm.program(program) {
                let tally = ProgramTally::new(&self.object, known);
                self.programs.push((program, tally));
            }
            self.programs.len() - 1
        });
        &mut self.programs[at].1
    }

    /// Counts tracepoint events; other kinds have no perf sample.
    fn note_event(&mut self, event: &Event, fired: u64, passed: u64) {
        if event.kind() != EventKind::Tracepoint || fired == 0 {
            return;
        }
        let known = self
            .events
            .iter()
            .position(|tally| tally.event == event.name());
        let at = known.unwrap_or_else(|| {
            self.events.push(EventTally::new(event.name()));
            self.events.len() - 1
        });
        self.events[at].add(fired, passed);
    }

    fn show_results(&mut self) -> Result<(), Failure> {
        for (_, tally) in &mut self.programs {
            if self.arguments.repeat.is_some() {
                tally.time();
            }
            self.printer.show(tally)?;
            if let Some(page) = &mut self.page {
                page.add_program(tally);
            }
        }
        for tally in &self.events {
            self.printer.show(tally)?;
            if let Some(page) = &mut self.page {
                page.add_event(tally);
            }
        }
        Ok(())
    }

    fn show_maps(&mut self) -> Result<(), Failure> {
        let output = &self.arguments.output;
        for map in self.vm.maps().filter(|map| is_shown(map, output)) {
            let rule = self.histograms.get(&map.def().name);
            let rule = rule.copied().unwrap_or_default();
            if let Some(contents) = MapContents::new(&map, rule)? {
                if !self.printer.is_json() {
                    self.printer.text("\n")?;
                }
                self.printer.show(&contents)?;
                if let Some(page) = &mut self.page {
                    page.add_map(&contents);
                }
                if let Some(found) = &mut self.pictures {
                    found.add(&contents);
                }
            }
        }
        Ok(())
    }

    /// Writes the page and the pictures.
    fn write_pictures(&mut self) -> Result<(), Failure> {
        if let (Some(file), Some(page)) = (&self.arguments.html, self.page.take()) {
            write_text(file, &page.finish(&self.object))?;
        }
        match self.pictures.take() {
            Some(found) => found.write(),
            None => Ok(()),
        }
    }
}

/// Whether perf gets a sample of a tracepoint's event if one program returns this.
fn passes(returned: u32) -> bool {
    let mut tally = Tally::new(Hook::Tracepoint.rule().results);
    tally.add(returned.into(), &mut 0, false);
    tally.passes()
}

/// Whether a map has this name; maps of global data may also be named by their section.
fn is_named(map: &MapView<'_>, name: &str) -> bool {
    let def = map.def();
    def.name == name || matches!(&def.origin, MapOrigin::Section(section) if section == name)
}

/// Whether a map is selected, or is one that programs may have changed.
fn is_shown(map: &MapView<'_>, output: &OutputArguments) -> bool {
    if !output.map.is_empty() {
        return output.map.iter().any(|name| is_named(map, name));
    }
    let def = map.def();
    let fixed = def.map_type == MapType::ProgArray || def.map_type.holds_maps();
    !def.frozen && !fixed && def.origin != MapOrigin::Kconfig
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_two_drops_the_event() {
        assert_eq!([0, 1, 2, 3].map(passes), [false, true, false, true]);
    }
}
