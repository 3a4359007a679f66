//! Compares our scalars with the running kernel's: random programs are loaded, and the
//! states in the kernel's log are compared with ours, bound by bound.
//!
//! `BPFLAB_SEED` selects other programs, `BPFLAB_PROGRAMS` their number.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared::here;
mod log;
mod program;

use bpflab::isa::encode;
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::verifier::LogLevel;
use bpflab::verifier::scalar::Scalar;

use self::program::{FIRST, Made, make};
use bpflab::fuzz::Random;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

/// The kernel's log of an accepted program.
fn kernel_log(made: &Made) -> String {
    let mut program = Program::new("numbers", ProgType::Tracepoint, encode(&made.insns));
    program.license = "GPL".to_owned();
    let maps = LoadedMaps::create(&[], None).unwrap();
    let log = LogLevel::ALL;
    let verdict = load(&program, &maps, &LoadOptions::default().with_log(log))
        .unwrap()
        .verdict;
    assert!(verdict.is_accepted(), "{}", verdict.log);
    verdict.log
}

/// The log shows no bounds for constants.
fn same(ours: &Scalar, kernel: &Scalar) -> bool {
    match ours.value() {
        Some(value) => kernel.value() == Some(value),
        None => ours == kernel,
    }
}

/// The first state that differs; if none, the number of equal states.
fn compare(made: &Made, log: &str) -> Result<usize, String> {
    let (states, mut walked) = log::parse(log);
    let mut compared = 0;
    for state in &states {
        let Some(ours) = made.expected.get(&state.place) else {
            return Err(format!("{:?} is not expected: {}", state.place, state.line));
        };
        for &(number, kernel) in &state.registers {
            let Some(at) = number.checked_sub(FIRST).filter(|&at| at < 4) else {
                continue;
            };
            compared += 1;
            if !ours.iter().any(|ours| same(&ours[at], &kernel)) {
                let ours: Vec<Scalar> = ours.iter().map(|ours| ours[at]).collect();
                return Err(format!(
                    "R{number} at {:?}\n  {}\nkernel {kernel:x?}\nours   {ours:x?}",
                    state.place, state.line
                ));
            }
        }
    }
    walked.sort_unstable();
    if walked != made.walked {
        return Err(format!("walked {walked:?}, expected {:?}", made.walked));
    }
    let mut violations: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("REG INVARIANTS VIOLATION"))
        .collect();
    violations.sort_unstable();
    if violations != made.violations {
        let ours = &made.violations;
        return Err(format!("violations {violations:#?}\nours {ours:#?}"));
    }
    Ok(compared)
}

#[test]
fn the_kernel_knows_the_same_of_numbers() {
    if here::kernel().is_none() {
        return;
    }
    let seed = number("BPFLAB_SEED", 1);
    let programs = number("BPFLAB_PROGRAMS", 800);
    let (mut compared, mut differ) = (0, 0);
    for program in 0..programs {
        let mut random = Random(seed << 32 | program);
        let made = make(&mut random, 24);
        let log = kernel_log(&made);
        match compare(&made, &log) {
            Ok(count) => compared += count,
            Err(how) => {
                differ += 1;
                if differ <= 8 {
                    eprintln!("program {program} of seed {seed}: {how}");
                }
            }
        }
    }
    eprintln!("{compared} states are the same, {differ} programs of {programs} differ");
    assert_eq!(differ, 0);
    assert!(compared > 30 * usize::try_from(programs).unwrap());
}
