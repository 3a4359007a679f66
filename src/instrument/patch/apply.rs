//! Applies the changes: builds the patched program.

use super::edits::Patch;
use super::layout::Layout;
use crate::instrument::error::Reason;
use crate::isa::Code;
use crate::program::Program;
use crate::util::Pc;

impl Patch {
    /// Returns the program with all changes.
    ///
    /// # Errors
    /// [`Reason::Jump`] if a jump would be too far, [`Reason::NoInstruction`] if the program
    /// has invalid instructions, whose jumps can't be adjusted.
    pub(in crate::instrument) fn apply(
        &self,
        program: &Program,
        code: &Code,
    ) -> Result<Program, Reason> {
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
        // An instruction may have been removed: then the line of the next one counts.
        patched.lines.dedup_by(|next, line| {
            let same = next.insn_off == line.insn_off;
            if same {
                *line = *next;
            }
            same
        });
        patched.accesses.retain_mut(|access| {
            let at = layout.original(access.pc);
            access.pc = at.unwrap_or(access.pc);
            at.is_some()
        });
        Ok(patched)
    }

    /// For each original instruction, where its code begins in the patched program, including
    /// what was inserted before it; for slots without an instruction, the position of the one
    /// before.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub(in crate::instrument) fn positions(
        &self,
        program: &Program,
        code: &Code,
    ) -> Result<Vec<Pc>, Reason> {
        let layout = Layout::new(self, program, code)?;
        let mut last = Pc(0);
        let slots = 0..code.len();
        let positions = slots.map(Pc::from_index).map(|pc| {
            last = layout.target(pc).unwrap_or(last);
            last
        });
        Ok(positions.collect())
    }
}
