//! Raw programs: `docs/raw-programs.md`.

use bpflab::harness::{EngineKind, RawProgram};

#[test]
fn adds_two_numbers_in_memory() -> bpflab::Result<()> {
    let program = RawProgram::assemble(
        "r0 = *(u32 *)(r1 +0)
         r3 = *(u32 *)(r1 +4)
         r0 += r3
         exit",
    )?;
    let mut vm = program.verified(&[40, 0, 0, 0, 2, 0, 0, 0])?;
    vm.set_engine(EngineKind::Jit);
    assert_eq!(vm.run()?.r0, 42);

    let repeated = vm.repeat(100_000)?;
    println!("{:?} on {}", repeated.elapsed, repeated.ran_on.engine);
    assert_eq!(repeated.returned, [(42, 100_000)]);
    Ok(())
}

#[test]
fn calls_a_helper_of_its_own() -> bpflab::Result<()> {
    let bytes = [
        [0xb7, 1, 0, 0, 20, 0, 0, 0],      // r1 = 20
        [0xb7, 2, 0, 0, 22, 0, 0, 0],      // r2 = 22
        [0x85, 0, 0, 0, 0xa0, 0x0f, 0, 0], // call 4000
        [0x95, 0, 0, 0, 0, 0, 0, 0],       // exit
    ];
    let mut vm = RawProgram::from_bytes(bytes.as_flattened())?.checked(&[])?;
    vm.set_helper(4000, |call| Ok(call.arg(1) + call.arg(2)));
    assert_eq!(vm.run()?.r0, 42);
    Ok(())
}
