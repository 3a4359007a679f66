//! The changes to a program.

use std::collections::BTreeMap;

use super::block::{Block, Label};
use crate::util::Pc;

/// Changes to a program, applied all at once.
#[derive(Debug, Clone, Default)]
pub(in crate::instrument) struct Patch {
    /// By the function's first instruction, as is `end`.
    pub(super) entry: BTreeMap<Pc, Block>,
    pub(super) end: BTreeMap<Pc, Block>,
    /// By the instruction, as are those below.
    pub(super) before: BTreeMap<Pc, Block>,
    pub(super) last_before: BTreeMap<Pc, Block>,
    pub(super) instead: BTreeMap<Pc, Block>,
    pub(super) after: BTreeMap<Pc, Block>,
    labels: u32,
}

impl Patch {
    /// Creates a label, to be bound in a block of the function that jumps to it.
    pub(in crate::instrument) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Inserts at the entry of the function that starts at `start`, after earlier insertions
    /// there. Jumps within the function do not lead here.
    pub(in crate::instrument) fn entry(&mut self, start: Pc, block: Block) {
        self.entry.entry(start).or_default().append(block);
    }

    /// Inserts before an instruction, after earlier insertions there.
    pub(in crate::instrument) fn before(&mut self, pc: Pc, block: Block) {
        self.before.entry(pc).or_default().append(block);
    }

    /// Inserts before an instruction, after everything that [`before`](Self::before) inserts.
    pub(in crate::instrument) fn last_before(&mut self, pc: Pc, block: Block) {
        self.last_before.entry(pc).or_default().append(block);
    }

    /// Replaces an instruction, or appends to its replacement.
    pub(in crate::instrument) fn instead(&mut self, pc: Pc, block: Block) {
        self.instead.entry(pc).or_default().append(block);
    }

    /// Inserts after an instruction, after earlier insertions there. Not executed if the
    /// instruction jumps.
    pub(in crate::instrument) fn after(&mut self, pc: Pc, block: Block) {
        self.after.entry(pc).or_default().append(block);
    }

    /// Inserts after the last instruction of the function that starts at `start`; only jumps
    /// lead there.
    pub(in crate::instrument) fn end(&mut self, start: Pc, block: Block) {
        self.end.entry(start).or_default().append(block);
    }
}
