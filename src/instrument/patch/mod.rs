//! Inserting instructions into a program: jumps, calls, references to callbacks, functions,
//! source lines and CO-RE accesses all follow.
//!
//! ```text
//! function:  entry        calls and references to the function lead here
//!            before(pc)   jumps to the instruction lead here
//!            pc           or what stands instead of it
//!            after(pc)    where the instruction falls through
//!            …
//!            end          behind the function's last instruction
//! ```

mod block;
mod layout;

use std::collections::BTreeMap;

pub(super) use block::{Block, Label};
use layout::Layout;

use super::error::Reason;
use crate::isa::Code;
use crate::program::Program;
use crate::util::Pc;

/// Changes to a program, which are made all at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Patch {
    /// By the function's first instruction.
    entry: BTreeMap<Pc, Block>,
    end: BTreeMap<Pc, Block>,
    /// By the instruction.
    before: BTreeMap<Pc, Block>,
    last_before: BTreeMap<Pc, Block>,
    instead: BTreeMap<Pc, Block>,
    after: BTreeMap<Pc, Block>,
    labels: u32,
}

impl Patch {
    /// A label that is still to be bound, in a block of the function that jumps to it.
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Inserts where the function that begins at `start` is entered, behind what was
    /// inserted there already. No jump inside of the function leads here.
    pub(super) fn entry(&mut self, start: Pc, block: Block) {
        self.entry.entry(start).or_default().append(block);
    }

    /// Inserts before an instruction, behind what was inserted there already.
    pub(super) fn before(&mut self, pc: Pc, block: Block) {
        self.before.entry(pc).or_default().append(block);
    }

    /// Inserts before an instruction, behind all that [`before`](Self::before) inserts.
    pub(super) fn last_before(&mut self, pc: Pc, block: Block) {
        self.last_before.entry(pc).or_default().append(block);
    }

    /// Puts something in an instruction's place, in addition to what was put there already.
    pub(super) fn instead(&mut self, pc: Pc, block: Block) {
        self.instead.entry(pc).or_default().append(block);
    }

    /// Inserts after an instruction, behind what was inserted there already. Where it
    /// jumps, nothing of this is executed.
    pub(super) fn after(&mut self, pc: Pc, block: Block) {
        self.after.entry(pc).or_default().append(block);
    }

    /// Inserts behind the last instruction of the function that begins at `start`: what
    /// only jumps lead to.
    pub(super) fn end(&mut self, start: Pc, block: Block) {
        self.end.entry(start).or_default().append(block);
    }

    /// The program with all changes.
    ///
    /// # Errors
    /// [`Reason::Jump`] when a jump would lead too far, [`Reason::NoInstruction`] when the
    /// program has slots that are no instructions, and whose jumps nobody can mend.
    pub(super) fn apply(&self, program: &Program, code: &Code) -> Result<Program, Reason> {
        let layout = Layout::new(self, program, code)?;
        let mut patched = program.clone();
        patched.insns = layout.slots()?;
        for subprogram in &mut patched.subprograms {
            subprogram.start = layout.function(subprogram.start);
        }
        for info in &mut patched.func_info {
            info.insn_off = layout.function(Pc(info.insn_off)).0;
        }
        for line in &mut patched.lines {
            line.insn_off = layout.line(Pc(line.insn_off)).0;
        }
        patched.accesses.retain_mut(|access| {
            let at = layout.original(access.pc);
            access.pc = at.unwrap_or(access.pc);
            at.is_some()
        });
        Ok(patched)
    }

    /// Where what stands for each instruction begins in the patched program, what was
    /// inserted before it included; for slots in which none begins, as for the one before.
    ///
    /// # Errors
    /// As of [`apply`](Self::apply).
    pub(super) fn places(&self, program: &Program, code: &Code) -> Result<Vec<Pc>, Reason> {
        let layout = Layout::new(self, program, code)?;
        let mut last = Pc(0);
        let slots = 0..code.len();
        let places = slots.map(Pc::from_index).map(|pc| {
            last = layout.target(pc).unwrap_or(last);
            last
        });
        Ok(places.collect())
    }
}

#[cfg(test)]
mod tests;
