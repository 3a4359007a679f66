//! A survey of an exploration: how often each instruction was processed, where paths were pruned,
//! and the first states at each instruction. It has no influence on verdicts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnose::{Location, Path};
use crate::isa::{Code, Reg};
use crate::program::Program;
use crate::util::Pc;

/// How many states a survey keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At one instruction.
    pub states_per_insn: usize,
    /// In all.
    pub states: usize,
}

/// What exploration did at each instruction.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    insns: BTreeMap<Pc, Visits>,
    left: usize,
    per_insn: usize,
}

/// What exploration did at an instruction.
#[derive(Debug, Clone, Default)]
pub struct Visits {
    /// How often the instruction was processed, paths that were pruned there included.
    pub processed: u64,
    /// How many paths were pruned there.
    pub pruned: u64,
    /// The first states before the instruction.
    pub states: Vec<Seen>,
}

/// A state before an instruction.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The innermost frame in the log's notation: `R1=ctx() R10=fp0`.
    pub text: String,
    /// Whether the path was pruned.
    pub pruned: bool,
    /// The instruction that made each value, by the value's name: `R1`, `fp-8`. Arguments have
    /// none.
    pub origins: Vec<(String, Pc)>,
}

impl Survey {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            insns: BTreeMap::new(),
            left: limits.states,
            per_insn: limits.states_per_insn,
        }
    }

    /// The instructions that were processed.
    #[must_use]
    pub fn insns(&self) -> &BTreeMap<Pc, Visits> {
        &self.insns
    }

    /// Whether states are missing that would have been kept, had the sum of all been larger.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Counts an instruction.
    pub(super) fn count(&mut self, pc: Pc) {
        self.insns.entry(pc).or_default().processed += 1;
    }

    /// Notes a pruned path; returns whether the state at an instruction is to be kept.
    pub(super) fn wants(&mut self, pc: Pc, pruned: bool) -> bool {
        let visits = self.insns.entry(pc).or_default();
        visits.pruned += u64::from(pruned);
        let wants = self.left > 0 && visits.states.len() < self.per_insn;
        self.left -= usize::from(wants);
        wants
    }

    /// Keeps a state before an instruction.
    pub(super) fn keep(&mut self, pc: Pc, seen: Seen) {
        self.insns.entry(pc).or_default().states.push(seen);
    }
}

/// The origins of the values that a path's instructions read.
pub struct PathOrigins<'p>(Path<'p>);

impl<'p> PathOrigins<'p> {
    /// Of a path, as [`Trail`](super::Trail) has it; `None` without an instruction.
    #[must_use]
    pub fn new(program: &'p Program, path: &[Pc]) -> Option<Self> {
        let code = Arc::new(Code::new(&program.insns));
        Some(Self(Path::with_code(
            program,
            code,
            Some(path),
            *path.last()?,
        )))
    }

    /// The step of the path that made the value of a register before a step; `None` for an
    /// argument.
    #[must_use]
    pub fn of(&self, step: usize, reg: Reg) -> Option<usize> {
        Some(self.0.origin(step, Location::Reg(reg))?.0)
    }
}
