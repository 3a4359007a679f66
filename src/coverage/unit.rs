//! A program as the reports need it, without its object.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::isa::{Code, Insn};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::Verified;

/// A program whose instructions are counted. Two loads of the same program have equal units.
/// Positions are slots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// The program's name.
    pub program: String,
    /// The number of slots.
    pub slots: u32,
    /// The slots that are the second half of an instruction.
    pub second: Vec<u32>,
    /// The functions: first slot and name, in ascending order.
    pub functions: Vec<(u32, String)>,
    /// The files that lines refer to, as the compiler was given them.
    pub files: Vec<String>,
    /// Where another line begins, in ascending order.
    pub lines: Vec<UnitLine>,
    /// The conditional jumps, in ascending order.
    pub jumps: Vec<UnitJump>,
    /// The slots that no path executes, by the verifier's proof: first slot and number of slots.
    pub dead: Vec<(u32, u32)>,
}

/// A line of C whose instructions begin at a slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitLine {
    /// The first slot.
    pub at: u32,
    /// Index in [`Unit::files`].
    pub file: u32,
    /// Line, from 1; 0 for instructions that belong to none.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// The line's text with its indentation; may be empty.
    pub text: String,
}

/// A conditional jump.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitJump {
    /// Its slot.
    pub at: u32,
    /// The slot to which it jumps.
    pub to: u32,
    /// Its condition's operator, such as `==`.
    pub op: String,
}

/// The operator of a conditional jump.
pub(super) fn condition(insn: &Insn) -> Option<String> {
    match insn {
        Insn::JumpIf { op, .. } => Some(format!("{op:?}").to_lowercase()),
        Insn::MayGoto { .. } => Some("may_goto".to_owned()),
        _ => None,
    }
}

/// The name of a file without `.` folders, which a compiler puts in front of what a file of its
/// own folder includes: one file has one name.
fn plain(file: &str) -> Cow<'_, str> {
    let file = file.strip_prefix("./").unwrap_or(file);
    match file.contains("/./") {
        true => Cow::Owned(file.replace("/./", "/")),
        false => Cow::Borrowed(file),
    }
}

impl Unit {
    /// The unit of a program; with dead code if the verifier accepts the program. `None` if its
    /// object has no line information.
    #[must_use]
    pub fn of(program: &Program, verified: Option<&Verified>) -> Option<Self> {
        let btf = program.btf.as_ref()?;
        let mut files: Vec<String> = Vec::new();
        let mut lines = Vec::with_capacity(program.lines.len());
        for info in &program.lines {
            let source = info.source(btf);
            let name = plain(source.file);
            let known = files.iter().position(|file| *file == name);
            let file = known.unwrap_or_else(|| {
                files.push(name.into_owned());
                files.len() - 1
            });
            lines.push(UnitLine {
                at: info.insn_off,
                file: u32::try_from(file).ok()?,
                line: source.line,
                column: source.column,
                text: source.text.to_owned(),
            });
        }
        if !lines.iter().any(|line| line.line > 0) {
            return None;
        }
        let mut jumps = Vec::new();
        let mut second = Vec::new();
        let mut dead: Vec<(u32, u32)> = Vec::new();
        for (pc, insn) in Code::new(&program.insns).iter() {
            let Ok(insn) = insn else { continue };
            if insn.slots() == 2 {
                second.push(pc.0 + 1);
            }
            if let Some((op, off)) = condition(&insn).zip(insn.jump_off()) {
                jumps.push(UnitJump {
                    at: pc.0,
                    to: (pc.0 + 1).wrapping_add_signed(off),
                    op,
                });
            }
            if verified.is_some_and(|verified| !verified.is_reachable(pc)) {
                match dead.last_mut() {
                    Some((start, len)) if *start + *len == pc.0 => *len += insn.slots(),
                    _ => dead.push((pc.0, insn.slots())),
                }
            }
        }
        let functions = program.subprograms.iter();
        Some(Self {
            program: program.name.clone(),
            slots: u32::try_from(program.insns.len()).ok()?,
            second,
            functions: functions
                .map(|function| (function.start.0, function.name.clone()))
                .collect(),
            files,
            lines,
            jumps,
            dead,
        })
    }

    /// Whether both come from the same program of an object, perhaps relocated for other kernels
    /// or with other facts proved.
    #[must_use]
    pub fn is_same_source(&self, other: &Self) -> bool {
        self.program == other.program && self.files == other.files && self.lines == other.lines
    }

    /// Whether the verifier proved that no path executes the instruction at a slot.
    #[must_use]
    pub fn is_dead(&self, at: u32) -> bool {
        let after = self.dead.partition_point(|(start, _)| *start <= at);
        let range = after.checked_sub(1).and_then(|index| self.dead.get(index));
        range.is_some_and(|(start, len)| at - start < *len)
    }

    /// The line of the instruction at a slot.
    #[must_use]
    pub fn line_at(&self, at: u32) -> Option<&UnitLine> {
        let after = self.lines.partition_point(|line| line.at <= at);
        let line = self.lines.get(after.checked_sub(1)?)?;
        (line.line > 0).then_some(line)
    }

    /// What is wrong with a unit that was read from a file.
    pub(super) fn problem(&self) -> Option<&'static str> {
        /// No program has more: a limit for what a damaged file makes bpflab allocate.
        const MAX_SLOTS: u32 = 1 << 24;
        let files = self.files.len();
        if self.slots > MAX_SLOTS {
            return Some("more instructions than a program can have");
        }
        if self.lines.iter().any(|line| line.file as usize >= files) {
            return Some("a line of a file that is not listed");
        }
        let sorted = self.lines.is_sorted_by_key(|line| line.at)
            && self.second.is_sorted()
            && self.dead.is_sorted();
        (!sorted).then_some("positions out of order")
    }
}

/// The instructions of a replay form that stand for those of the original program.
#[derive(Debug)]
pub(super) struct Originals {
    /// By original slot: the slot to count, and that of the conditional jump.
    places: Vec<(Option<Pc>, Option<Pc>)>,
}

impl Originals {
    /// By the replay form's instructions, and where the code of an original one begins.
    pub fn new(original: &Program, form: &Program, place: impl Fn(Pc) -> Option<Pc>) -> Self {
        let form = Code::new(&form.insns);
        let form: Vec<_> = form.iter().collect();
        let mut places = vec![(None, None); original.insns.len()];
        let code = Code::new(&original.insns);
        let mut code = code.iter().peekable();
        while let Some((pc, insn)) = code.next() {
            let Some(start) = place(pc) else { continue };
            let end = code.peek().and_then(|(next, _)| place(*next));
            let op = insn.ok().and_then(|insn| condition(&insn));
            let within = form
                .iter()
                .filter(|(at, _)| *at >= start && end.is_none_or(|end| *at < end));
            let mut jumps = within.filter(|(_, insn)| {
                let insn = insn.as_ref().ok();
                op.is_some() && insn.and_then(condition) == op
            });
            // What was inserted for an instruction comes before it.
            let jump = jumps.next_back().map(|(at, _)| *at);
            if let Some(slot) = places.get_mut(pc.index()) {
                *slot = (Some(start), jump);
            }
        }
        Self { places }
    }

    /// The counts by original slot.
    pub fn count(&self, executed: &[u64], taken: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let at = |counts: &[u64], pc: Option<Pc>| {
            pc.and_then(|pc| counts.get(pc.index()))
                .copied()
                .unwrap_or(0)
        };
        let places = self.places.iter();
        places
            .map(|(start, jump)| (at(executed, *start), at(taken, *jump)))
            .unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name() {
        assert_eq!(plain("./a/b.c"), "a/b.c");
        assert_eq!(plain("/a/./b.c"), "/a/b.c");
        assert_eq!(plain("a.b/c.c"), "a.b/c.c");
    }
}
