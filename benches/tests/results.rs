//! The benchmark programs return the expected results on every engine of this machine. No
//! time is measured (see `docs/benchmarks.md`).

#[allow(dead_code, reason = "each target uses a part of it")]
#[path = "../../tests/shared/skip.rs"]
mod skip;
#[allow(dead_code, reason = "each target uses a part of it")]
#[path = "../suite/mod.rs"]
mod suite;

use bpflab::harness::EngineKind;
use skip::{Need, skip_part};
use suite::columns::Column;
use suite::engine::Loaded;
use suite::installed::Peer;
use suite::ours::Ours;
use suite::programs::{PROGRAMS, Program};

/// Runs all programs; those that an engine has not are told.
fn run_all(column: Column, may_be_absent: impl Fn(&Program, &str) -> bool) {
    let engine = column.engine();
    for program in PROGRAMS {
        let expected = (program.expected)(&(program.input)());
        match engine.load(program) {
            Ok(mut loaded) => {
                let name = program.name;
                assert_eq!(loaded.run(1).1, expected, "{name} on {}", column.title());
                // The next runs find the memory as the ones before left it.
                assert_eq!(loaded.run(3).1, expected, "{name} again");
            }
            Err(why) => {
                assert!(may_be_absent(program, &why), "{}: {why}", program.name);
                // What a peer lacks by its nature is no skip of ours.
                let told = format!("{} on {}: {why}", program.name, column.title());
                match column {
                    Column::Native => skip_part(Need::Tools, told),
                    _ => eprintln!("not run: {told}"),
                }
            }
        }
    }
}

#[test]
fn ours() {
    let has_code = cfg!(all(
        feature = "jit",
        unix,
        any(target_arch = "x86_64", target_arch = "aarch64")
    ));
    run_all(Column::Checked, |_, _| false);
    run_all(Column::Interp, |_, _| false);
    run_all(Column::Jit, |_, _| !has_code);
}

#[test]
fn peers() {
    let has_code = cfg!(all(target_arch = "x86_64", unix));
    run_all(Column::RbpfInterp, |program, _| !program.is_flat);
    run_all(Column::SbpfInterp, |program, _| !program.is_flat);
    run_all(Column::RbpfJit, |program, _| !program.is_flat || !has_code);
    run_all(Column::SbpfJit, |program, _| !program.is_flat || !has_code);
}

/// The peers that are shared libraries, where there are any.
#[test]
fn installed_peers() {
    for column in [Column::UbpfInterp, Column::UbpfJit, Column::Llvmbpf] {
        match column.peer().and_then(Peer::missing) {
            Some(why) => skip_part(Need::Peers, why),
            None => run_all(column, |program, _| !program.is_flat),
        }
    }
}

/// There may be no compiler, or one for another machine.
#[test]
fn native() {
    run_all(Column::Native, |_, _| true);
}

/// There may be no kernel that can be asked, but one that can accepts them all.
#[test]
fn kernel() {
    let first = PROGRAMS
        .first()
        .map(|program| Column::Kernel.engine().load(program));
    let is_here = matches!(first, Some(Ok(_)));
    run_all(Column::Kernel, |_, _| !is_here);
}

/// Each of the counts is in its slot, whatever engine put it there.
#[test]
fn maps_hold_the_histogram() {
    for name in ["map_array", "map_hash"] {
        let program = PROGRAMS.iter().find(|program| program.name == name);
        let program = program.expect("there is one");
        let expected = suite::expected::slots(&(program.input)());
        for engine in [EngineKind::Checked, EngineKind::Interp, EngineKind::Jit] {
            let Ok(mut running) = Ours(engine).running(program) else {
                continue;
            };
            running.run(2);
            let counts = running.vm.map("counts").expect("there is one");
            for (slot, expected) in (0_u32..).zip(expected) {
                let count = counts.get::<u32, u64>(&slot).expect("of its size");
                assert_eq!(count.unwrap_or(0), 2 * expected, "slot {slot} of {name}");
            }
        }
    }
}

/// Flat programs are the same C: they have neither maps nor contexts.
#[test]
fn flat_programs_refer_to_nothing() {
    for program in PROGRAMS.iter().filter(|program| program.is_flat) {
        let code = program.flat().expect("it has one");
        let mut slots = code.chunks_exact(8);
        while let Some(insn) = slots.next() {
            if insn[0] == 0x18 {
                assert_eq!(insn[1] >> 4, 0, "{}: a map", program.name);
                slots.next();
            }
        }
    }
}
