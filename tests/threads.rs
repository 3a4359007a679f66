//! One machine, several CPUs, each on a thread of its own.

use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::vm::events::Event;
use bpflab::vm::{CpuError, World};
use bpflab::{Error, Vm};

/// A socket filter from its text, with these maps.
fn program(name: &str, maps: &[MapDef], text: &str) -> Arc<Program> {
    let mut program = Program::new(name, ProgType::SocketFilter, Vec::new());
    program.maps = maps.into();
    program.license = "GPL".into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    Arc::new(program)
}

/// A machine with the program `p`.
fn vm(maps: &[MapDef], text: &str) -> Vm {
    let mut vm = Vm::with_world(World::default());
    vm.load_programs(maps, vec![program("p", maps, text)])
        .unwrap();
    assert!(vm.verdict("p").unwrap().accepted, "{:?}", vm.verdict("p"));
    vm
}

fn event() -> Event {
    Event::packet(vec![0; 64])
}

/// What `p` returns there.
fn returns(vm: &mut Vm) -> u32 {
    vm.run("p", &event()).unwrap().returned("p").unwrap()
}

fn taken(result: Result<Vm, Error>) -> CpuError {
    match result {
        Err(Error::Cpu(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_may_be_sent_and_shared() {
    fn sent_and_shared<T: Send + Sync>() {}
    sent_and_shared::<Vm>();
}

const CPU: &str = "call bpf_get_smp_processor_id\nexit";

#[test]
fn each_cpu_has_its_number() {
    let mut first = vm(&[], CPU);
    let (mut second, mut last) = (first.cpu(1).unwrap(), first.cpu(3).unwrap());
    assert_eq!([&mut first, &mut second, &mut last].map(returns), [0, 1, 3]);
    // World and what was chosen are copied once.
    first.world().task().set_pid(7);
    assert_eq!(second.world().task().pid(), 1000);
}

#[test]
fn a_cpu_is_used_once() {
    let first = vm(&[], CPU);
    assert_eq!(taken(first.cpu(0)), CpuError::Taken(0));
    let missing = CpuError::Missing { cpu: 4, cpus: 4 };
    assert_eq!(taken(first.cpu(4)), missing);
    let mut second = first.cpu(1).unwrap();
    assert_eq!(taken(second.cpu(1)), CpuError::Taken(1));
    // A CPU that a world is moved to is taken when something runs there.
    second.world().set_cpu(2);
    assert_eq!(returns(&mut second), 2);
    let third = first.cpu(1).unwrap();
    second.world().set_cpu(1);
    let refused = second.run("p", &event()).map(|_| vm(&[], CPU));
    assert_eq!(taken(refused), CpuError::Taken(1));
    drop(third);
    assert_eq!(returns(&mut second), 1);
    drop(first);
    assert_eq!(returns(&mut second.cpu(0).unwrap()), 0);
}

#[test]
fn nothing_is_added_while_there_are_several() {
    let mut first = vm(&[], CPU);
    let second = first.cpu(1).unwrap();
    let more = || vec![program("q", &[], "r0 = 5\nexit")];
    let error = first.load_programs(&[], more()).unwrap_err().to_string();
    assert!(error.starts_with("programs can't be added"), "{error}");
    let map = bpflab::vm::maps::create(&MapDef::new("m", MapType::Array, 4, 8, 1), 4).unwrap();
    assert!(first.machine().add_map(map.clone()).is_err());
    drop(second);
    assert!(first.load_programs(&[], more()).is_ok());
    assert!(first.machine().add_map(map).is_ok());
    let mut second = first.cpu(1).unwrap();
    assert_eq!(second.run("q", &event()).unwrap().returned("q"), Some(5));
}

#[test]
fn attachments_are_copied() {
    let mut program = Program::clone(&program("t", &[], "r0 = 1\nexit"));
    program.prog_type = ProgType::Tracepoint;
    let mut first = Vm::with_world(World::default());
    first.load_programs(&[], vec![Arc::new(program)]).unwrap();
    let place = "syscalls/sys_enter_write";
    first.attach_to("t", place).unwrap();
    let mut second = first.cpu(1).unwrap();
    first.detach("t").unwrap();
    let mut runs = |vm: &mut Vm| {
        let event = vm.tracepoint(place).unwrap();
        vm.fire(event).unwrap().runs.len()
    };
    assert_eq!([&mut first, &mut second].map(&mut runs), [0, 1]);
}

/// A function of the test stands in for a helper on all CPUs, one call at a time.
#[test]
fn a_mock_is_shared() {
    let mut first = vm(
        &[],
        "r1 = 0\nr2 = 0\nr3 = 0\ncall bpf_get_prandom_u32\nexit",
    );
    let mut calls = 0;
    first
        .mock_helper("bpf_get_prandom_u32", move |_| {
            calls += 1;
            Ok(calls)
        })
        .unwrap();
    let mut second = first.cpu(1).unwrap();
    let highest = std::thread::scope(|threads| {
        let each = [&mut first, &mut second]
            .map(|vm| threads.spawn(move || (0..500).map(|_| returns(vm)).max().unwrap()));
        each.map(|thread| thread.join().unwrap()).into_iter().max()
    });
    assert_eq!(highest, Some(1000));
}

#[test]
fn chance_is_another_on_each_cpu() {
    let mut first = vm(&[], "call bpf_get_prandom_u32\nexit");
    let mut second = first.cpu(1).unwrap();
    assert_ne!(returns(&mut first), returns(&mut second));
}
