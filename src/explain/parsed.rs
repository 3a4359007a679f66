//! Follows a log to its error: the path, the instructions, the registers.
//!
//! The log of level 2 shows all paths. The verifier goes on with the branch that it put aside
//! last (`push_stack`, `kernel/bpf/verifier.c`), so that `from 3 to 7` returns to the last
//! instruction 3 of the path which has not been returned to.

use std::collections::{BTreeMap, BTreeSet};

use super::registers::{self, Registers};
use super::text::{insn, is_end};
use crate::isa::{Code, Insn, Reg};
use crate::util::Pc;

/// A line of source in a log: `; *count += 1; @ file.c:18`; before Linux 6.9 without the place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub file: String,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    pub text: String,
}

/// An instruction as the log prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printed {
    pub opcode: u8,
    pub text: String,
    pub source: Option<Source>,
}

/// A place of a log that prints registers.
#[derive(Debug, Clone)]
enum Printing {
    /// All that are known there.
    All(Registers),
    /// Those that this instruction changed; perhaps none.
    Behind(Pc, Registers),
}

/// What a log shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Parsed {
    pub insns: BTreeMap<Pc, Printed>,
    /// The path to the last instruction.
    pub path: Vec<Pc>,
    /// What the log prints of registers, in its order, up to the last instruction.
    states: Vec<Printing>,
    /// The lines behind the last instruction: the error.
    pub error: Vec<String>,
    /// First instructions of functions.
    pub functions: BTreeSet<Pc>,
    /// Whether the log has its end, the statistics.
    pub ended: bool,
    /// Indices of the path which a branch has returned to.
    returned: BTreeSet<usize>,
    source: Option<Source>,
    listing: bool,
    /// The lines of Linux 7.3's own report.
    report: Option<Vec<String>>,
}

impl Parsed {
    pub fn of(lines: &[String]) -> Self {
        let mut parsed = Self::default();
        for line in lines {
            parsed.line(line);
        }
        parsed.leave_report();
        while parsed.error.last().is_some_and(|line| line.is_empty()) {
            parsed.error.pop();
        }
        // The kernel's remarks on arguments come before the first instruction; without one,
        // they may stand before the error.
        if parsed.error.len() > 1 {
            let last = parsed.error.len() - 1;
            let mut at = 0;
            parsed.error.retain(|line| {
                at += 1;
                at > last || !is_remark(line)
            });
        }
        parsed
    }

    /// The registers before the last instruction, as far as the log prints them. What an
    /// instruction writes without a print is unknown.
    pub fn known(&self, code: &Code) -> Registers {
        let mut known = Registers::new();
        let before = self
            .states
            .split_last()
            .map_or(&[][..], |(last, before)| match last {
                Printing::Behind(..) => before,
                Printing::All(_) => &self.states,
            });
        for printing in before {
            match printing {
                Printing::All(registers) => known.clone_from(registers),
                Printing::Behind(pc, registers) => {
                    match code.insn(*pc) {
                        // Another frame's registers.
                        None | Some(Insn::Exit) => known.clear(),
                        Some(insn) if insn.subprogram_target(*pc).is_some() => known.clear(),
                        Some(insn) => known.retain(|number, _| {
                            Reg::from_number(*number)
                                .is_some_and(|reg| !insn.writes().contains(reg))
                        }),
                    }
                    known.extend(registers.clone());
                }
            }
        }
        known
    }

    /// The instruction at which the verifier stopped.
    pub fn at(&self) -> Option<Pc> {
        self.path.last().copied()
    }

    fn line(&mut self, line: &str) {
        // The statistics begin behind an error line that need not end its line.
        let line = match line.split_once("verification time ") {
            Some((before, _)) => before,
            None => line,
        };
        if is_end(line) {
            self.ended = true;
        }
        if self.ended || is_count(line) {
            return;
        }
        if line.starts_with("subprog#") || line.starts_with("stack use/def ") {
            self.listing = true;
            return;
        }
        let insn = insn(line);
        // The analysis of the stack in Linux 7.2 lists whole functions.
        self.listing &= insn.is_some();
        if self.listing {
            return;
        }
        if let Some((number, opcode, text)) = insn {
            self.insn(Pc(number), opcode, text);
        } else if let Some(report) = &mut self.report {
            report.push(line.to_owned());
        } else if line.starts_with("Verification failed: ") {
            self.report = Some(Vec::new());
        } else if let Some(text) = line.strip_prefix("; ") {
            self.source = Some(source(text));
        } else if let Some(rest) = line.strip_prefix("from ") {
            self.branch(rest, line);
        } else if registers::is_list(line) {
            self.state(line);
        } else if let Some((_, list)) = numbered(line) {
            if registers::is_list(list) {
                self.state(list);
            }
        } else if let Some((_, start)) = line
            .strip_prefix("func#")
            .and_then(|rest| rest.split_once(" @"))
        {
            self.functions.extend(start.parse().ok().map(Pc));
        } else if line.starts_with("Validating ") {
            // Another function, with its own path.
            self.path.clear();
            self.returned.clear();
            self.states.clear();
        } else if !(is_trace(line) || line.is_empty() && self.error.is_empty()) {
            self.error.push(line.to_owned());
        }
    }

    /// Linux 7.3 prints a report of its own behind the error line, or between two of them: then
    /// the last paragraph is an error line, and has no heading.
    fn leave_report(&mut self) {
        let Some(mut report) = self.report.take() else {
            return;
        };
        while report.last().is_some_and(|line| line.is_empty()) {
            report.pop();
        }
        let start = report.iter().rposition(|line| line.is_empty());
        let paragraph = report.split_off(start.map_or(0, |at| at + 1));
        let is_part = |line: &String| line.ends_with(':') || line.contains(" @ ");
        if !paragraph.first().is_none_or(is_part) {
            self.error.extend(paragraph);
        }
    }

    fn insn(&mut self, pc: Pc, opcode: u8, text: &str) {
        self.error.clear();
        self.report = None;
        let (text, state) = split_state(text);
        self.path.push(pc);
        let state = state.map(registers::read).unwrap_or_default();
        self.states.push(Printing::Behind(pc, state));
        self.insns.entry(pc).or_insert_with(|| Printed {
            opcode,
            text: text.trim_end().to_owned(),
            source: self.source.clone(),
        });
    }

    /// A list of all registers that are known.
    fn state(&mut self, list: &str) {
        // Nothing from before is needed.
        self.states.clear();
        self.states.push(Printing::All(registers::read(list)));
    }

    /// `3 to 7: R0=…`: a branch that was put aside.
    fn branch(&mut self, rest: &str, line: &str) {
        let numbers = rest.split_once(" to ").and_then(|(from, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            Some((from.parse().ok()?, rest.get(end..)?))
        });
        let Some((from, rest)) = numbers else {
            self.error.push(line.to_owned());
            return;
        };
        self.error.clear();
        let from = Pc(from);
        let steps = self.path.iter().enumerate().rev();
        let mut steps = steps.filter(|(at, pc)| **pc == from && !self.returned.contains(at));
        let at = steps.next().map(|(at, _)| at);
        self.path.truncate(at.map_or(0, |at| at + 1));
        self.returned.retain(|index| Some(*index) < at);
        self.returned.extend(at);
        let list = rest.split_once(": ").map_or("", |(_, list)| list);
        self.state(if list.trim() == "safe" { "" } else { list });
    }
}

/// Splits the text of an instruction from the state behind it: `r1 = 12  ; R1=12`, or the state
/// of the next instruction that Linux 6.1 puts in the same line.
fn split_state(text: &str) -> (&str, Option<&str>) {
    if let Some((text, state)) = text.split_once("; ") {
        return (text, Some(state));
    }
    if let Some(at) = text.find(": R").or_else(|| text.find(": frame")) {
        let (before, state) = text.split_at(at);
        let text = before.trim_end_matches(|c: char| c.is_ascii_digit());
        if text.ends_with(' ') {
            return (text, state.get(2..));
        }
    }
    (text, None)
}

fn source(text: &str) -> Source {
    let place = text.rsplit_once(" @ ").and_then(|(text, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some((text, file, line.parse().ok()?))
    });
    let (text, file, line) = place.unwrap_or((text, "", 0));
    Source {
        file: file.to_owned(),
        line,
        text: text.trim().to_owned(),
    }
}

/// `7: …`
fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.split_once(": ")?;
    Some((number.parse().ok()?, rest))
}

/// Whether this is a line of the statistics.
fn is_count(line: &str) -> bool {
    line.starts_with("stack depth ")
        || line.starts_with("insns processed ")
        || line.starts_with("subprog ") && line.contains(" insns_self ")
}

/// Whether this is a remark on the function's arguments, which rejects nothing.
fn is_remark(line: &str) -> bool {
    line.starts_with("Unrecognized arg#")
        || line.starts_with("arg#")
            && (line.contains("size cannot be") || line.contains("is not a"))
        || line.starts_with("reg type unsupported for arg#")
}

/// Whether the verifier prints this line on its way: backtracking, live registers, frames.
fn is_trace(line: &str) -> bool {
    const STARTS: [&str; 16] = [
        "mark_precise: ",
        "regs=",
        "last_idx ",
        "parent ",
        "propagating ",
        "frame ",
        "caller:",
        "callee:",
        "returning from callee:",
        "to caller at ",
        "Live regs before insn:",
        "old state:",
        "cur state:",
        "Func#",
        "subprog#",
        "Func ",
    ];
    let live = |(_, rest): (u32, &str)| {
        rest.trim_start()
            .starts_with(|c: char| c == '.' || c.is_ascii_digit())
            || rest == "safe"
    };
    STARTS.iter().any(|start| line.starts_with(start))
        || numbered(line.trim_start()).is_some_and(live)
}
