//! Backtracking through small programs, as shown by the log.

use std::sync::Arc;

use crate::isa::assemble;
use crate::program::Program;
use crate::spec::ProgType;
use crate::verifier::{LogLevel, Options, Verdict, verify};

fn verdict(text: &str, log: LogLevel) -> Verdict {
    let insns = assemble(text).unwrap();
    let program = Arc::new(Program::new("way", ProgType::SocketFilter, insns));
    let options = Options {
        log,
        ..Options::default()
    };
    verify(&program, &options).verdict
}

/// Each step back: the frame, the instruction, and the registers and slots wanted after it.
fn steps(text: &str) -> Vec<String> {
    let verdict = verdict(text, LogLevel::ALL);
    assert!(verdict.is_accepted(), "{}", verdict.log);
    let step = |line: &str| {
        let (frame, rest) = line
            .strip_prefix("mark_precise: frame")?
            .split_once(": regs=")?;
        let (regs, rest) = rest.split_once(" stack=")?;
        let (slots, rest) = rest.split_once(" before ")?;
        let (pc, _) = rest.split_once(':')?;
        Some(format!("{frame}/{pc} {regs}|{slots}"))
    };
    verdict.log.lines().filter_map(step).collect()
}

/// Adds a use of `r1 = fp + {reg}` as an address, which makes `reg` precise.
fn with_use(before: &str, reg: &str) -> String {
    format!("{before}\nr1 = r10\nr1 += {reg}\n*(u8 *)(r1 -64) = 0\nr0 = 0\nexit\n")
}

#[test]
fn through_a_spill_and_a_fill() {
    let text = "call 7\nr6 = r0\nr6 &= 7\n*(u64 *)(r10 -8) = r6\nr8 = *(u64 *)(r10 -8)";
    let way = [
        "0/5 r8|", "0/4 r8|", "0/3 |-8", "0/2 r6|", "0/1 r6|", "0/0 r0|",
    ];
    assert_eq!(steps(&with_use(text, "r8")), way);
}

/// A comparison of two scalars bounds both.
#[test]
fn through_a_comparison() {
    let text = "call 7\nr6 = r0\ncall 7\nr6 &= 7\nr0 &= 7\nif r6 > r0 goto +0";
    let way = [
        "0/6 r6|",
        "0/5 r6|",
        "0/4 r0,r6|",
        "0/3 r0,r6|",
        "0/2 r0,r6|",
        "0/1 r6|",
        "0/0 r0|",
    ];
    assert_eq!(steps(&with_use(text, "r6"))[..7], way);
}

/// A bound on one of two linked registers holds for both.
#[test]
fn through_a_comparison_of_a_linked_register() {
    let text = "call 7\nr6 = r0\nr7 = r0\nif r7 > 5 goto +3";
    let way = ["0/4 r6|", "0/3 r6|", "0/2 r6,r7|", "0/1 r0,r6|", "0/0 r0|"];
    assert_eq!(steps(&with_use(text, "r6")), way);
}

/// Into the callee that returned the scalar.
#[test]
fn into_a_function() {
    let main = with_use("call pc+6\nr0 &= 7", "r0");
    let text = format!("{main}call 7\nr6 = r0\nr0 = r6\nexit");
    let way = [
        "0/2 r0|", "0/1 r0|", "0/10 r0|", "1/9 r0|", "1/8 r6|", "1/7 r0|",
    ];
    assert_eq!(steps(&text), way);
}

/// Out of a callee to its caller, which passed the scalar.
#[test]
fn out_of_a_function() {
    let main = "call 7\nr0 &= 7\nr2 = r0\ncall pc+2\nr0 = 0\nexit\n";
    let text = format!("{main}{}", with_use("r3 = r2", "r3"));
    let way = [
        "1/7 r3|", "1/6 r3|", "1/3 r2|", "0/2 r2|", "0/1 r0|", "0/0 r0|",
    ];
    assert_eq!(steps(&text), way);
}

/// The result of a legacy packet load is not tracked: all scalars become precise.
#[test]
fn a_packet_load_ends_the_way() {
    let text = with_use("r6 = r1\nr0 = *(u8 *)skb[0]\nr0 &= 7", "r0");
    assert_eq!(steps(&text), ["0/3 r0|", "0/2 r0|", "0/1 r0|"]);
    let log = verdict(&text, LogLevel::ALL).log;
    assert!(log.contains("frame0: falling back to forcing all scalars precise"));
}

/// States that differ in an imprecise scalar are the same; states that differ in a precise
/// one are not. Otherwise the second path, with another offset, would be pruned.
#[test]
fn a_needed_number_keeps_ways_apart() {
    let text = |last: &str| {
        let head = "call 7\nr6 = -8\nif r0 != 0 goto +1\nr6 = -1000\nr1 = r10\nr0 = 0\n";
        let wait = "r2 = 1\nr2 = 2\nif r2 == 3 goto +0\nif r2 == 4 goto +0\n";
        format!("{head}{wait}{last}\nexit")
    };
    assert!(verdict(&text("r1 = r6"), LogLevel::empty()).is_accepted());
    let used = verdict(&text("r1 += r6\n*(u8 *)(r1 +0) = 0"), LogLevel::empty());
    assert!(!used.is_accepted());
}

/// The cache finds the same marks as full backtracking. The log needs every step, so with a
/// log the cache is off.
#[test]
fn shortcuts_change_nothing() {
    let texts = [
        "r6 = 0\ncall 7\nr0 &= 3\nr6 += r0\nr6 += 1\nif r6 s< 60 goto -5\nr0 = 0\nexit",
        "r6 = 0\nr7 = 1\nr8 = r7\nr6 += r8\nr7 += 1\nif r7 != 40 goto -4\nr0 = r6\nexit",
        "r6 = 0\n*(u64 *)(r10 -8) = r6\nr1 = *(u64 *)(r10 -8)\nr1 += 1\n*(u64 *)(r10 -8) = r1\n\
         if r1 != 70 goto -4\nr0 = 0\nexit",
    ];
    for text in texts {
        let plain = verdict(text, LogLevel::empty());
        let whole = verdict(text, LogLevel::ALL);
        let counts = |verdict: &Verdict| {
            let all = verdict.statistics.clone().unwrap();
            (all.processed, all.total_states, all.peak_states)
        };
        assert!(counts(&plain).0 > 40, "{text}");
        assert_eq!(counts(&plain), counts(&whole), "{text}");
    }
}
