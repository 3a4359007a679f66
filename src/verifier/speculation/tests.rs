//! Programs of loaders with fewer capabilities, up to the verdict.

use std::sync::Arc;

use crate::isa::assemble;
use crate::program::{MapDef, Program};
use crate::spec::{Capabilities, MapType, ProgType};
use crate::verifier::{LogLevel, Options, Verdict, verify};

/// The verdict on a socket filter with an array of one value of 16 bytes.
fn verdict(text: &str, capabilities: Capabilities) -> Verdict {
    let insns = assemble(text).unwrap();
    let mut program = Program::new("f", ProgType::SocketFilter, insns);
    program.license = "GPL".to_owned();
    program.maps = [MapDef::new("values", MapType::Array, 4, 16, 1)].into();
    let options = Options::default()
        .with_log(LogLevel::ALL)
        .with_capabilities(capabilities);
    verify(&Arc::new(program), &options).verdict
}

fn message(text: &str) -> String {
    verdict(text, Capabilities::empty()).message
}

/// Looks up the array's value, with `r6` in 0 to 255.
const LOOKUP: &str = "r6 = *(u8 *)(r1 +0)
*(u32 *)(r10 -4) = 0
r2 = r10
r2 += -4
r1 = map[idx:0]
call 1
if r0 != 0 goto +2
r0 = 0
exit
";

#[test]
fn an_error_that_only_speculation_reaches_becomes_a_barrier() {
    let text = "r6 = 0\nif r6 == 0 goto +1\nr7 = *(u64 *)(r6 +0)\nr0 = 0\nexit";
    let unprivileged = verdict(text, Capabilities::empty());
    assert!(unprivileged.is_accepted(), "{}", unprivileged.log);
    let log = &unprivileged.log;
    for line in [
        "from 1 to 2 (speculative execution):",
        "R6 invalid mem access 'scalar'\n",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
    // The instruction with the barrier counts, those after it are not reached.
    assert_eq!(unprivileged.processed(), 5);
    let privileged = verdict(text, Capabilities::default());
    assert_eq!(privileged.processed(), 4);
    assert!(
        !privileged.log.contains("speculative"),
        "{}",
        privileged.log
    );
}

#[test]
fn an_error_on_both_kinds_of_paths_is_a_reject() {
    let text = "r6 = 0\nif r6 == 0 goto +1\nr0 = 0\nr7 = *(u64 *)(r6 +0)\nr0 = 0\nexit";
    assert_eq!(message(text), "R6 invalid mem access 'scalar'");
}

#[test]
fn a_pointer_moves_by_a_masked_distance() {
    let sum = |before: &str| format!("{LOOKUP}{before}r0 += r6\nr1 = *(u8 *)(r0 +0)\nr0 = 0\nexit");
    let fits = verdict(&sum("r6 &= 15\n"), Capabilities::empty());
    assert!(fits.is_accepted(), "{}", fits.log);
    // The path with the number 0 is explored, too.
    assert!(fits.log.contains("(speculative execution)"), "{}", fits.log);
    let mixed = "R6 has unknown scalar with mixed signed bounds, pointer arithmetic with it \
                 prohibited for !root";
    assert_eq!(message(&sum("r6 -= 8\n")), mixed);
    assert_eq!(
        message(&sum("")),
        "R0 pointer arithmetic of map value goes out of range, prohibited for !root"
    );
    let two_paths = "if r6 == 7 goto +2\nr6 = 3\ngoto +1\nr6 = 4\n";
    assert_eq!(
        message(&sum(two_paths)),
        "R0 tried to add from different maps, paths or scalars, pointer arithmetic with it \
         prohibited for !root"
    );
}

#[test]
fn the_stack_is_left_neither_for_a_moment_nor_unwritten() {
    let end = "r0 = 0\nexit";
    assert_eq!(
        message(&format!("r1 = r10\nr1 += -520\nr1 += 512\n{end}")),
        "R1 stack pointer arithmetic goes out of range, prohibited for !root; off=-520"
    );
    assert_eq!(
        message(&format!("r1 = *(u64 *)(r10 -8)\n{end}")),
        "invalid read from stack R10 off=-8 size=8"
    );
    assert_eq!(
        message(&format!(
            "*(u32 *)(r10 -8) = 0\nr1 = *(u64 *)(r10 -8)\n{end}"
        )),
        "invalid read from stack off -8+4 size 8"
    );
    assert_eq!(
        message(&format!(
            "*(u64 *)(r10 -8) = r1\n*(u8 *)(r10 -8) = 0\n{end}"
        )),
        "attempt to corrupt spilled pointer on stack"
    );
}

#[test]
fn pointers_leak_nowhere() {
    for (text, expected) in [
        ("r0 = r10\nexit", "R0 leaks addr as return value"),
        ("r1 = -r1\nr0 = 0\nexit", "R1 pointer arithmetic prohibited"),
        ("w0 = w1\nexit", "R1 partial copy of pointer"),
        ("r0 = (s8)r1\nexit", "R1 sign-extension part of pointer"),
        (
            "r0 = r1\nr0 -= r10\nexit",
            "R0 pointer -= pointer prohibited",
        ),
        (
            "w1 -= w10\nr0 = 0\nexit",
            "R1 pointer -= pointer prohibited",
        ),
        (
            "w1 -= 1\nr0 = 0\nexit",
            "R1 32-bit pointer arithmetic prohibited",
        ),
        (
            "r0 = 0\nif r1 == r10 goto +0\nexit",
            "R10 pointer comparison prohibited",
        ),
        (
            "r0 = 0\nif r1 == 7 goto +0\nexit",
            "R1 pointer comparison prohibited",
        ),
        (
            "*(u64 *)(r1 +48) = r10\nr0 = 0\nexit",
            "R10 leaks addr into ctx",
        ),
        (
            "*(u64 *)(r10 -8) = 0\nlock *(u64 *)(r10 -8) += r1\nr0 = 0\nexit",
            "R1 leaks addr into mem",
        ),
        (
            "*(u64 *)(r10 -8) = r1\nr2 = 1\nlock *(u64 *)(r10 -8) += r2\nr0 = 0\nexit",
            "leaking pointer from stack off -8",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn one_function_without_loops_for_an_ordinary_user() {
    assert_eq!(
        message("call pc+1\nexit\nr0 = 0\nexit"),
        "loading/calling other bpf or kernel functions are allowed for CAP_BPF and CAP_SYS_ADMIN"
    );
    let looping = "r0 = 0\nr0 += 1\nif r0 < 9 goto -2\nexit";
    assert_eq!(message(looping), "back-edge from insn 2 to 1");
    let capable = Capabilities::BPF | Capabilities::PERFMON;
    assert!(verdict(looping, capable).is_accepted());
    // On a speculative path it looks as if the loop did not end. Linux says the same.
    let speculative = verdict(looping, Capabilities::BPF);
    assert!(
        speculative
            .log
            .contains("infinite loop detected at insn 1\n"),
        "{}",
        speculative.log
    );
    assert_eq!(speculative.processed(), 78);
    assert_eq!(
        message("call 118\nr0 = 0\nexit"),
        "program of this type cannot use helper bpf_jiffies64#118"
    );
}
