//! Making the changes: a patched program.

use super::edits::Patch;
use super::layout::Layout;
use crate::instrument::error::Reason;
use crate::isa::Code;
use crate::program::Program;
use crate::util::Pc;

impl Patch {
    /// The program with all changes.
    ///
    /// # Errors
    /// [`Reason::Jump`] when a jump would lead too far, [`Reason::NoInstruction`] when the
    /// program has slots that are no instructions, and whose jumps nobody can mend.
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
    pub(in crate::instrument) fn places(
        &self,
        program: &Program,
        code: &Code,
    ) -> Result<Vec<Pc>, Reason> {
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
