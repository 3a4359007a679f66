//! A machine with a program that runs on several CPUs.

use std::sync::Arc;

use bpflab::Vm;
use bpflab::btf::Btf;
use bpflab::harness::EngineKind;
use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::ProgType;
use bpflab::vm::World;
use bpflab::vm::events::Event;

pub const ENGINES: [EngineKind; 3] = [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit];

/// A socket filter from assembly, with these maps.
pub fn program(name: &str, maps: &[MapDef], text: &str) -> Arc<Program> {
    let mut program = Program::new(name, ProgType::SocketFilter, Vec::new());
    program.maps = maps.into();
    program.license = "GPL".into();
    program.insns = assemble_with(text, &program).unwrap().slots;
    Arc::new(program)
}

/// A machine with the program `p`.
pub fn vm(maps: &[MapDef], text: &str) -> Vm {
    let mut vm = Vm::with_world(World::default());
    vm.load_programs(maps, vec![program("p", maps, text)])
        .unwrap();
    assert!(
        vm.verification("p").unwrap().verdict.is_accepted(),
        "{:?}",
        vm.verification("p").map(|known| &known.verdict)
    );
    vm
}

pub fn event() -> Event {
    Event::packet(vec![0; 64])
}

/// The same with an XDP program and BTF.
pub fn xdp(maps: &[MapDef], types: Option<Btf>, text: &str) -> Vm {
    let mut program = Program::clone(&program("p", maps, text));
    program.prog_type = ProgType::Xdp;
    program.btf = types;
    let mut vm = Vm::with_world(World::default());
    vm.load_programs(maps, vec![Arc::new(program)]).unwrap();
    assert!(
        vm.verification("p").unwrap().verdict.is_accepted(),
        "{:?}",
        vm.verification("p").map(|known| &known.verdict)
    );
    vm
}

/// Runs `p` this many times on each of these CPUs concurrently.
pub fn hammer(vm: &mut Vm, cpus: std::ops::Range<u32>, runs: u32) {
    let mut others: Vec<_> = cpus.map(|cpu| vm.cpu(cpu).unwrap()).collect();
    std::thread::scope(|threads| {
        let vms = others.iter_mut().chain([vm]);
        let each =
            vms.map(|vm| threads.spawn(move || (0..runs).for_each(|_| assert_eq!(returns(vm), 0))));
        for thread in each.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
    });
}

/// The return value of `p` on this CPU.
pub fn returns(vm: &mut Vm) -> u32 {
    vm.run("p", &event()).unwrap().returned("p").unwrap()
}
