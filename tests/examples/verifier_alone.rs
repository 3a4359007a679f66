//! The verifier alone: `docs/verifier.md`.

use std::sync::Arc;

use bpflab::Pc;
use bpflab::Vm;
use bpflab::harness::Oracle;
use bpflab::isa::assemble;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::verifier::diagnose::Report;
use bpflab::verifier::{LogLevel, Options, Through, trace, verify};
use bpflab::vm::World;
use bpflab::vm::events::Event;

#[test]
fn says_why_a_program_is_rejected() -> bpflab::Result<()> {
    let insns = assemble("r0 = *(u64 *)(r10 -8)\nr0 += r5\nexit")?;
    let program = Arc::new(Program::new("sum", ProgType::SocketFilter, insns));
    let mut options = Options::default();
    options.log = LogLevel::PATH;
    let verification = verify(&program, &options);

    let verdict = &verification.verdict;
    assert_eq!(verdict.message, "R5 !read_ok");
    assert_eq!(verdict.processed(), 2);
    println!("{}", verdict.log);
    if let Err(why) = &verification.outcome {
        println!("{}", Report::new(&program, why));
    }
    Ok(())
}

#[test]
fn gives_the_proved_facts_and_the_explored_states() -> bpflab::Result<()> {
    let insns = assemble("r0 = *(u32 *)(r1 +0)\nr0 &= 7\nexit")?;
    let program = Arc::new(Program::new("low", ProgType::SocketFilter, insns));
    let options = Options::default();
    let verified = verify(&program, &options).outcome.expect("it is accepted");
    assert_eq!(verified.through(Pc(0)), Some(Through::Context { off: 0 }));

    let trace = trace(&program, &options, 1000).expect("it is accepted");
    assert_eq!(trace.len(), 3);
    let mut vm = Vm::with_world(World::default());
    let handle = vm.load_programs(&[], vec![program])?[0];
    let report = Oracle::new(&trace).run(&mut vm, handle, &Event::packet([0; 64]));
    assert_eq!((report.held, report.violation), (3, None));
    Ok(())
}
