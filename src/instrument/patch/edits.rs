//! What is to be inserted where.

use std::collections::BTreeMap;

use super::block::{Block, Label};
use crate::util::Pc;

/// Changes to a program, which are made all at once.
#[derive(Debug, Clone, Default)]
pub(in crate::instrument) struct Patch {
    /// By the function's first instruction.
    pub(super) entry: BTreeMap<Pc, Block>,
    pub(super) end: BTreeMap<Pc, Block>,
    /// By the instruction.
    pub(super) before: BTreeMap<Pc, Block>,
    pub(super) last_before: BTreeMap<Pc, Block>,
    pub(super) instead: BTreeMap<Pc, Block>,
    pub(super) after: BTreeMap<Pc, Block>,
    labels: u32,
}

impl Patch {
    /// A label that is still to be bound, in a block of the function that jumps to it.
    pub(in crate::instrument) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Inserts where the function that begins at `start` is entered, behind what was
    /// inserted there already. No jump inside of the function leads here.
    pub(in crate::instrument) fn entry(&mut self, start: Pc, block: Block) {
        self.entry.entry(start).or_default().append(block);
    }

    /// Inserts before an instruction, behind what was inserted there already.
    pub(in crate::instrument) fn before(&mut self, pc: Pc, block: Block) {
        self.before.entry(pc).or_default().append(block);
    }

    /// Inserts before an instruction, behind all that [`before`](Self::before) inserts.
    pub(in crate::instrument) fn last_before(&mut self, pc: Pc, block: Block) {
        self.last_before.entry(pc).or_default().append(block);
    }

    /// Puts something in an instruction's place, in addition to what was put there already.
    pub(in crate::instrument) fn instead(&mut self, pc: Pc, block: Block) {
        self.instead.entry(pc).or_default().append(block);
    }

    /// Inserts after an instruction, behind what was inserted there already. Where it
    /// jumps, nothing of this is executed.
    pub(in crate::instrument) fn after(&mut self, pc: Pc, block: Block) {
        self.after.entry(pc).or_default().append(block);
    }

    /// Inserts behind the last instruction of the function that begins at `start`: what
    /// only jumps lead to.
    pub(in crate::instrument) fn end(&mut self, start: Pc, block: Block) {
        self.end.entry(start).or_default().append(block);
    }
}
