//! The programs that are attached.
//!
//! A tracepoint program runs for every task, and its return value decides for everybody who
//! records the event. So each program first checks whose task it is, and returns 1 for all
//! others, which passes the event on.

use std::path::Path;

use crate::cli::exit::Failure;
use crate::isa::assemble_with;
use crate::object::{Entry, Object};
use crate::program::Program;
use crate::spec::ProgType;
use crate::util::Pc;

/// The event.
pub(super) const GROUP: &str = "syscalls";
pub(super) const NAME: &str = "sys_enter_write";
/// The object measured by default: a histogram of write sizes by powers of two.
const EXAMPLE: &[u8] = include_bytes!("../../../../examples/bpf/write_hist.bpf.o");
const EXAMPLE_NAME: &str = "write_hist.bpf.o";

/// `syscalls/sys_enter_write`.
pub(super) fn event() -> String {
    format!("{GROUP}/{NAME}")
}

/// The object to measure.
pub(super) fn object(path: Option<&Path>) -> Result<Object, Failure> {
    Ok(match path {
        Some(path) => Object::open(path)?,
        None => Object::parse(EXAMPLE_NAME, EXAMPLE)?,
    })
}

/// The object's program on the event: the named one, or the first.
pub(super) fn of_event(object: &Object, program: Option<&str>) -> Result<Program, Failure> {
    let event = event();
    let is_there = |entry: &Entry| match program {
        Some(name) => entry.name() == name,
        None => entry.attach_target() == Some(&event),
    };
    let Some(entry) = object.entries().iter().find(|entry| is_there(entry)) else {
        let which = program.map_or_else(|| format!("on {event}"), |name| format!("'{name}'"));
        let text = format!("{}: no program {which}", object.file());
        return Err(Failure::bad(text));
    };
    let (prog_type, target) = (entry.prog_type(), entry.attach_target());
    if prog_type != Some(ProgType::Tracepoint) || target != Some(&event) {
        let text = format!(
            "{}: program '{}' is in section {}; only SEC(\"tp/{event}\") is measured",
            object.file(),
            entry.name(),
            entry.section()
        );
        return Err(Failure::bad(text));
    }
    Ok(object.program(entry.name())?)
}

/// A program that returns 0.
pub(super) fn empty() -> Result<Program, Failure> {
    program("empty", "r0 = 0\nexit")
}

/// A program that passes on events whose `count` is at least `least`.
pub(super) fn filter(least: u16) -> Result<Program, Failure> {
    let text = format!(
        "r1 = *(u64 *)(r1 + 32)
         r0 = 1
         if r1 >= {least} goto +1
         r0 = 0
         exit"
    );
    program("filter", &text)
}

fn program(name: &str, text: &str) -> Result<Program, Failure> {
    let mut program = Program::new(name, ProgType::Tracepoint, Vec::new());
    program.license = "GPL".into();
    program.section = format!("tp/{}", event());
    program.attach_target = Some(event());
    program.insns = assemble_with(text, &program).map_err(Failure::bad)?.slots;
    Ok(program)
}

/// A program restricted to one process: for other processes it returns 1.
pub(super) fn of_process(mut program: Program, pid: u32) -> Result<Program, Failure> {
    let text = format!(
        "r6 = r1
         call bpf_get_current_pid_tgid
         r0 >>= 32
         if w0 == {pid} goto +2
         r0 = 1
         exit
         r1 = r6"
    );
    let before = assemble_with(&text, &program).map_err(Failure::bad)?.slots;
    let Ok(length) = u32::try_from(before.len()) else {
        return Ok(program);
    };
    // The main program still begins at 0; everything after moves.
    let moved = |at: u32| {
        if at == 0 {
            0
        } else {
            at.saturating_add(length)
        }
    };
    for info in &mut program.func_info {
        info.insn_off = moved(info.insn_off);
    }
    for line in &mut program.lines {
        line.insn_off = moved(line.insn_off);
    }
    for subprogram in &mut program.subprograms {
        subprogram.start = Pc(moved(subprogram.start.0));
    }
    for access in &mut program.accesses {
        access.pc = Pc(access.pc.0.saturating_add(length));
    }
    program.insns.splice(0..0, before);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::harness::Vm;
    use crate::spec::context::Arch;
    use crate::vm::World;
    use crate::vm::events::{Event, Layout};

    fn histogram() -> Program {
        of_event(&object(None).unwrap(), None).unwrap()
    }

    /// The return value for a task of process 42 that writes `count` bytes.
    fn returned(program: Program, count: u64) -> u64 {
        let mut vm = Vm::with_world(World::default());
        vm.world().task().set_pid(42);
        let maps = program.maps.clone();
        let handles = vm.load_programs(&maps, vec![Arc::new(program)]).unwrap();
        let layout = Layout::of_syscall(NAME, Arch::X86_64).unwrap();
        let event = Event::tracepoint(layout).set("count", count).unwrap();
        let repeated = vm
            .runner(handles[0], &event)
            .expect("it is its event")
            .repeat(1)
            .unwrap();
        assert!(repeated.fault.is_none());
        assert!(vm.verification(handles[0]).unwrap().outcome.is_ok());
        repeated.outcome.runs[0].r0
    }

    #[test]
    fn elsewhere_events_pass() {
        let all = || [histogram(), empty().unwrap(), filter(513).unwrap()];
        for program in all() {
            assert_eq!(returned(of_process(program, 42).unwrap(), 512), 0);
        }
        for program in all() {
            assert_eq!(returned(of_process(program, 43).unwrap(), 512), 1);
        }
        assert_eq!(
            returned(of_process(filter(512).unwrap(), 42).unwrap(), 512),
            1
        );
    }

    #[test]
    fn positions_move_with_the_instructions() {
        let program = histogram();
        let moved = of_process(program.clone(), 42).unwrap();
        let by = moved.insns.len() - program.insns.len();
        assert_eq!(moved.func_info[0].insn_off, 0);
        let (last, before) = (moved.lines.last().unwrap(), program.lines.last().unwrap());
        assert_eq!(last.insn_off as usize, before.insn_off as usize + by);
        assert_eq!(moved.lines[0].insn_off, 0);
    }

    #[test]
    fn other_programs_are_refused() {
        let error = |path: &str, program| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            match of_event(&object(Some(&path)).unwrap(), program) {
                Err(Failure::Error { text, .. }) => text,
                other => panic!("{other:?}"),
            }
        };
        let softirqs = "examples/bpf/softirqs.bpf.o";
        assert!(error(softirqs, None).contains("no program on syscalls/sys_enter_write"));
        let write = "examples/bpf/write_hist.bpf.o";
        assert!(error(write, Some("nothing")).contains("no program 'nothing'"));
    }
}
