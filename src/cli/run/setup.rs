//! Creates the machine with its programs, and the events that they run on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::arguments::{SetupArguments, WorldArguments};
use crate::cli::event_fields::assign_field;
use crate::cli::exit::{Exit, Failure};
use crate::cli::files::read_text;
use crate::cli::input::{assignment, bundled_types};
use crate::cli::target::{ObjectTarget, set_target};
use crate::cli::user_memory::put_user;
use crate::harness::{EngineKind, Error, UnverifiedProgram, Vm, describe_unverified};
use crate::object::{Object, Target};
use crate::program::Program;
use crate::spec::{AttachName, ProgType, Section, SectionFlags, attach_target, nearest_section};
use crate::util::nearest_first;
use crate::verifier::Decision;
use crate::vm::events::{Captured, Event, EventError, EventKind, Layout, parse_hex};
use crate::vm::{ProgramHandle, World};

/// The running kernel's BTF, and the folders of its tracepoint formats.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";
const TRACEFS: &[&str] = &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An event with the programs that it fires.
#[derive(Debug)]
pub(in crate::cli) struct ScheduledEvent {
    /// Time since the event before.
    pub wait: Duration,
    pub event: Event,
    pub programs: Vec<ProgramHandle>,
}

/// Opens an object, sets its global variables, and leaves out whatever would keep the wanted
/// programs from loading.
pub(in crate::cli) fn open(
    path: &Path,
    wanted: &[String],
    arguments: &SetupArguments,
) -> Result<Object, Failure> {
    let mut object = arguments.kernel.open(path)?;
    for name in wanted {
        object.entry_mut(name)?.set_autoload(true);
    }
    if !wanted.is_empty() {
        let names: Vec<_> = object
            .entries()
            .iter()
            .map(|entry| entry.name().to_owned())
            .collect();
        for name in names {
            if !wanted.contains(&name) && object.program(&name).is_err() {
                object.entry_mut(&name)?.set_autoload(false);
            }
        }
    }
    Ok(object)
}

/// A machine with the programs of an object in the world of the arguments.
///
/// # Errors
/// One of the programs to run (all if none is named) is rejected or unjudged, and
/// `--unverified` is not given.
pub(in crate::cli) fn machine(
    object: Object,
    wanted: &[String],
    arguments: &SetupArguments,
) -> Result<Vm, Failure> {
    let mut vm = empty_machine(arguments)?;
    load(&mut vm, object, wanted, arguments)?;
    Ok(vm)
}

/// The same with a program to whose functions the programs of the object are attached, and that
/// program's name.
pub(super) fn machine_with_target(
    mut object: Object,
    wanted: &[String],
    arguments: &SetupArguments,
    target: &ObjectTarget,
) -> Result<(Vm, String), Failure> {
    let mut vm = empty_machine(arguments)?;
    let (other, name) = target.open(&arguments.kernel)?;
    if object.entry(&name).is_ok() {
        return Err(Failure::bad(format!(
            "--target: both objects have a program '{name}'; rename one"
        )));
    }
    vm.load(other)?;
    set_target(&mut object, vm.target(&*name)?)?;
    load(&mut vm, object, wanted, arguments)?;
    let attaches = |program: &&Arc<Program>| {
        let is_wanted = wanted.is_empty() || wanted.contains(&program.name);
        is_wanted && program.attach_prog.known().is_some()
    };
    let attached = vm.programs().filter(attaches);
    let attached: Vec<_> = attached.map(|program| program.name.clone()).collect();
    for program in attached {
        vm.attach(&program)?;
    }
    Ok((vm, name))
}

fn empty_machine(arguments: &SetupArguments) -> Result<Vm, Failure> {
    let mut vm = Vm::with_world(world(&arguments.world)?);
    if let Some(btf) = arguments.kernel.btf()? {
        vm.set_kernel_btf(btf);
    }
    Ok(vm)
}

fn load(
    vm: &mut Vm,
    object: Object,
    wanted: &[String],
    arguments: &SetupArguments,
) -> Result<(), Failure> {
    vm.load_unverified(object)?;
    if !arguments.unverified {
        let runs = |program: &&Program| wanted.is_empty() || wanted.contains(&program.name);
        let programs = vm.handles().filter_map(|handle| {
            let program = vm.program(handle).filter(runs)?;
            UnverifiedProgram::of(program, vm.verification(handle).ok()?)
        });
        refuse(&programs.collect::<Vec<_>>())?;
    }
    for injection in &arguments.inject {
        vm.inject(injection.clone())?;
    }
    Ok(())
}

/// The failure for programs that do not run unverified.
pub(super) fn refuse(programs: &[UnverifiedProgram]) -> Result<(), Failure> {
    if programs.is_empty() {
        return Ok(());
    }
    let text = format!(
        "{}\n--unverified runs unverified programs, too, with each access checked",
        describe_unverified(programs)
    );
    Err(Failure::with(Exit::No, text))
}

/// Selects the engine that programs run on.
///
/// # Errors
/// A program that is to run can't run on it.
pub(in crate::cli) fn choose_engine(
    vm: &mut Vm,
    engine: EngineKind,
    wanted: &[String],
) -> Result<(), Failure> {
    vm.set_engine(engine);
    for program in vm.programs().map(|program| program.name.clone()) {
        let is_wanted = wanted.is_empty() || wanted.contains(&program);
        let fallback = vm.engine_of(&program)?.fallback.filter(|_| is_wanted);
        if let Some(fallback) = fallback {
            let why = match fallback.is_unverified() {
                true => format!("{fallback}: {}", vm.verification(&program)?.verdict.message),
                false => fallback.to_string(),
            };
            return Err(Failure::from(Error::Engine {
                program,
                engine,
                why,
            }));
        }
    }
    Ok(())
}

/// Warnings about programs that run all the same: that their types are no kernel's, or that a
/// kernel would not load them.
pub(super) fn warnings(vm: &Vm, wanted: &[String]) -> Vec<String> {
    let runs = |handle: &ProgramHandle| {
        let program = vm.program(*handle);
        wanted.is_empty() || program.is_some_and(|program| wanted.contains(&program.name))
    };
    let warning = |handle| {
        let known = vm.verification(handle).ok()?;
        let name = &vm.program(handle)?.name;
        let what = match known.verdict.decision {
            Decision::Accept => return None,
            Decision::Reject => "is rejected",
            Decision::Unjudged => "is not judged",
        };
        let why = &known.verdict.message;
        Some(format!(
            "program '{name}' {what}: {why}; it runs with each access checked"
        ))
    };
    let mut programs = vm
        .handles()
        .filter(runs)
        .filter_map(|handle| vm.program(handle));
    let bundled = programs.find_map(bundled_types).map(str::to_owned);
    let unverified = vm.handles().filter(runs).filter_map(warning);
    bundled.into_iter().chain(unverified).collect()
}

/// The world of the arguments.
pub(super) fn world(given: &WorldArguments) -> Result<World, Failure> {
    let mut world = World::with_cpus(given.cpus);
    world.random().seed(given.seed);
    if let Some(cpu) = given.cpu {
        if cpu >= given.cpus {
            let cpus = given.cpus;
            return Err(Failure::bad(format!(
                "--cpu {cpu}: there are {cpus} CPUs; see --cpus"
            )));
        }
        world.set_cpu(cpu);
    }
    if let Some(ns) = given.ns {
        world.clock().set_ns(ns);
    }
    let task = world.task();
    if let Some(pid) = given.pid {
        task.set_pid(pid);
    }
    if let Some(tid) = given.tid {
        task.set_tid(tid);
    }
    if let Some(uid) = given.uid {
        task.set_uid(uid);
    }
    if let Some(gid) = given.gid {
        task.set_gid(gid);
    }
    if let Some(id) = given.cgroup {
        task.set_cgroup_id(id);
    }
    if let Some(comm) = &given.comm {
        task.set_comm(comm);
    }
    for text in &given.user {
        let (at, value) = assignment("--user", text)?;
        put_user(&mut world, at, value)
            .map_err(|why| Failure::bad(format!("--user {text}: {why}")))?;
    }
    Ok(world)
}

/// The events to fire, each once, with their programs, and failures of programs without an
/// event. `name` is the event of the command line; without one each program's own event is
/// used.
///
/// # Errors
/// No program has an event.
pub(in crate::cli) fn scheduled_events(
    vm: &mut Vm,
    wanted: &[String],
    arguments: &SetupArguments,
    name: Option<&str>,
) -> Result<(Vec<ScheduledEvent>, Vec<Failure>), Failure> {
    let mut scheduled: Vec<ScheduledEvent> = Vec::new();
    let mut failures = Vec::new();
    for handle in select(vm, wanted, name)? {
        let other = name.filter(|name| !names_section(vm, &handle, name));
        let other = other.map(attach_target);
        let events = match events_of(vm, handle, other.as_deref(), arguments) {
            Ok(events) => events,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        for (event, wait) in events {
            // Bytes and packets depend on the program type, so their events are not merged.
            match scheduled
                .iter_mut()
                .find(|known| known.event == event && event.layout().is_some())
            {
                Some(known) => known.programs.push(handle),
                None => scheduled.push(ScheduledEvent {
                    event,
                    wait,
                    programs: vec![handle],
                }),
            }
        }
    }
    match (scheduled.is_empty(), failures.pop()) {
        (true, Some(failure)) => Err(failure),
        (_, last) => {
            failures.extend(last);
            Ok((scheduled, failures))
        }
    }
}

/// The events that a program runs on, with their fields set, each with the time since the one
/// before: a single event, or the packets of a capture file.
fn events_of(
    vm: &mut Vm,
    handle: ProgramHandle,
    name: Option<&str>,
    arguments: &SetupArguments,
) -> Result<Vec<(Event, Duration)>, Failure> {
    let program = vm.program(handle).cloned();
    let program = program.ok_or_else(|| Failure::bad("no such program"))?;
    let mut events = match &arguments.event.data {
        Some(data) => data_events(program.prog_type, data)?,
        None => vec![(layout_of(vm, &program, name, arguments)?, Duration::ZERO)],
    };
    for given in &arguments.event.set {
        for (event, _) in &mut events {
            assign_field(vm, event, given)?;
        }
    }
    Ok(events)
}

/// The events of `--data` for a program type.
fn data_events(prog_type: ProgType, given: &str) -> Result<Vec<(Event, Duration)>, Failure> {
    let bytes = bytes(given)?;
    let one = Event::input(prog_type, bytes.as_slice());
    if one.kind() != EventKind::Packet || !Captured::is_file(&bytes) {
        return Ok(vec![(one, Duration::ZERO)]);
    }
    let captured = Captured::read(&bytes);
    let captured = captured.map_err(|error| Failure::bad(format!("--data {given}: {error}")))?;
    let mut before = captured.first().map_or(0, |first| first.ns);
    let timed = captured.into_iter().map(|packet| {
        let wait = packet.ns.saturating_sub(before);
        before = packet.ns;
        (packet.event, Duration::from_nanos(wait))
    });
    let timed: Vec<_> = timed.collect();
    if timed.is_empty() {
        return Err(Failure::bad(format!(
            "--data {given}: a capture without packets"
        )));
    }
    Ok(timed)
}

/// The programs to run: those named, or those that `event` fires, or all.
fn select(vm: &Vm, wanted: &[String], event: Option<&str>) -> Result<Vec<ProgramHandle>, Failure> {
    if !wanted.is_empty() {
        let handles = wanted.iter().map(|name| vm.program_handle(name));
        return Ok(handles.collect::<Result<_, _>>()?);
    }
    let target = |handle: &ProgramHandle| vm.program(*handle)?.attach_target.as_deref();
    let is_on = |handle: &ProgramHandle, event: &str| {
        let place = attach_target(event);
        let is_target =
            AttachName::parse(event).is_none() && target(handle) == Some(place.as_str());
        is_target || target(handle) == Some(event) || names_section(vm, handle, event)
    };
    let found: Vec<_> = vm
        .handles()
        .filter(|handle| event.is_none_or(|event| is_on(handle, event)))
        .collect();
    if found.is_empty() {
        let all: Vec<_> = vm.programs().map(|program| program.name.as_str()).collect();
        return Err(Failure::bad(match (event, all.as_slice()) {
            (_, []) => "the object loads no program by default; name one".to_owned(),
            (Some(event), all) => {
                let targets = vm.handles().filter_map(|handle| target(&handle));
                no_program_on(event, targets.map(str::to_owned).collect(), &all.join(", "))
            }
            (None, _) => "no program to run".to_owned(),
        }));
    }
    Ok(found)
}

/// The error for an event that no program of the object is on: an unknown kind of event, or
/// `targets` of the programs, the nearest first.
fn no_program_on(event: &str, mut targets: Vec<String>, programs: &str) -> String {
    if let (None, Some(meant)) = (AttachName::parse(event), nearest_section(event)) {
        return format!("unknown kind of event in '{event}'; similar is '{meant}'");
    }
    targets.sort_unstable();
    targets.dedup();
    let targets = nearest_first(&attach_target(event), targets);
    let known = match targets.as_slice() {
        [] => String::new(),
        targets => format!("; programs are on {}", targets.join(", ")),
    };
    format!(
        "no program is on event '{event}'{known}; to run one on it nevertheless, name it: {programs}"
    )
}

/// Whether a name with a kind is that of the program's section: `tp/sched/sched_switch` and
/// `tracepoint:sched:sched_switch`.
fn names_section(vm: &Vm, handle: &ProgramHandle, name: &str) -> bool {
    let Some(program) = vm.program(*handle) else {
        return false;
    };
    let named = || {
        let (name, own) = (
            AttachName::parse(name)?,
            Section::classify(&program.section)?,
        );
        let (rule, own) = (name.rule()?, own.rule);
        let same = (rule.prog_type, rule.attach_type) == (own.prog_type, own.attach_type)
            && rule.flags.contains(SectionFlags::ON_RETURN)
                == own.flags.contains(SectionFlags::ON_RETURN);
        Some(same && program.attach_target.as_ref() == Some(&name.target))
    };
    program.section == name || named().unwrap_or(false)
}

/// The event that a program runs on, all zero, from any source that has its layout.
fn layout_of(
    vm: &mut Vm,
    program: &Program,
    name: Option<&str>,
    arguments: &SetupArguments,
) -> Result<Event, Failure> {
    if let (Some(file), Some(name)) = (&arguments.event.format, name) {
        return Ok(Event::tracepoint(format_file(
            &file.display().to_string(),
            name,
        )?));
    }
    let own_types_only = arguments.kernel.btf.is_some();
    match vm.event_for(program, name) {
        Err(Error::Event(EventError::NoLayout { .. })) if !own_types_only => {}
        // A probe always has registers; the names of arguments need types.
        Ok(event) if !own_types_only && has_no_names(vm, &event) => {}
        known => return Ok(known?),
    }
    // The object was not relocated for the running kernel, but its BTF may have the event.
    if let Ok(Target::Kernel(btf)) = Target::file(KERNEL_BTF) {
        vm.set_kernel_btf(btf);
    }
    let unknown = match vm.event_for(program, name) {
        Err(Error::Event(unknown @ EventError::NoLayout { .. })) => unknown,
        known => return Ok(known?),
    };
    let place = name
        .or(program.attach_target.as_deref())
        .unwrap_or_default();
    if program.prog_type == ProgType::Tracepoint {
        for tracefs in TRACEFS {
            let file = format!("{tracefs}/events/{place}/format");
            if Path::new(&file).exists() {
                return Ok(Event::tracepoint(format_file(&file, place)?));
            }
        }
    }
    Err(unknown.into())
}

/// Whether it is a kernel function for which no BTF here has types.
fn has_no_names(vm: &Vm, event: &Event) -> bool {
    event.kind() == EventKind::Kprobe && vm.function(event.name()).is_err()
}

fn format_file(file: &str, event: &str) -> Result<Layout, Failure> {
    let (group, _) = event.split_once('/').unwrap_or(("", event));
    Ok(Layout::from_format(group, &read_text(file)?)?)
}

/// The bytes of `--data`: a file's, or hexadecimal digits.
pub(in crate::cli) fn bytes(given: &str) -> Result<Vec<u8>, Failure> {
    let hex = parse_hex(given);
    let path = Path::new(given);
    if path.exists() {
        return std::fs::read(path)
            .map_err(|error| Failure::bad(format!("--data {given}: can't be read: {error}")));
    }
    hex.map_err(|error| {
        Failure::bad(format!(
            "--data {given}: neither a file nor hexadecimal digits: {error}"
        ))
    })
}
