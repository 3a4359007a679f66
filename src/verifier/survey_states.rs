//! Notes states for a [`Survey`] while the verifier explores.

use std::sync::Arc;

use super::diagnose::{Location, Path};
use super::env::Verifier;
use super::log::{StateText, Touched};
use super::stack::SLOT;
use super::survey::{Seen, Survey};
use crate::isa::Reg;
use crate::util::Pc;

/// How far back the origin of a value is looked for, in instructions.
const FARTHEST: usize = 1 << 12;

impl Verifier<'_> {
    /// Notes the state before the current instruction.
    pub(super) fn note_state(&mut self, pruned: bool) {
        let pc = self.pc();
        let wants = |survey: &mut Box<Survey>| survey.wants(pc, pruned);
        if !self.survey.as_mut().is_some_and(wants) {
            return;
        }
        let text = StateText {
            program: self.program,
            maps: &self.maps,
            state: &self.state,
            frame: self.state.current(),
            touched: Touched::ALL,
        };
        let seen = Seen {
            text: text.to_string().trim_start().to_owned(),
            pruned,
            origins: self.origins(),
        };
        if let Some(survey) = &mut self.survey {
            survey.keep(pc, seen);
        }
    }

    /// The instruction that made each value of the innermost frame.
    fn origins(&self) -> Vec<(String, Pc)> {
        let steps = self.path(FARTHEST);
        let code = Arc::clone(&self.structure.code);
        let path = Path::with_code(self.program, code, Some(&steps), self.pc());
        let end = steps.len().saturating_sub(1);
        let frame = self.state.frame();
        let regs = Reg::ALL.into_iter().zip(&frame.regs);
        let regs = regs.filter(|(_, reg)| reg.is_init());
        let regs = regs.map(|(reg, _)| (format!("R{}", reg.number()), Location::Reg(reg)));
        let slots = (1..=frame.stack.len()).filter_map(|number| {
            let off = number * SLOT;
            let slot = Location::Slot(i16::try_from(off).ok()?.checked_neg()?);
            Some((format!("fp-{off}"), slot))
        });
        let all = regs.chain(slots);
        all.filter_map(|(name, location)| Some((name, path.origin(end, location)?.1)))
            .collect()
    }
}
