//! The trail of a reject: the path back to the start, and the registers.

use super::env::Verifier;
use super::log::RegText;
use super::state::Segment;
use super::trail::Trail;
use crate::isa::Reg;
use crate::util::Pc;

/// The maximum length of a recorded path: a loop may have a million iterations.
const LONGEST: usize = 1 << 14;

impl Verifier<'_> {
    /// The trail to the current instruction.
    pub(super) fn trail(&self) -> Trail {
        Trail {
            path: self.path(LONGEST),
            registers: self.registers(),
            contradiction: self.state.contradiction,
        }
    }

    /// The path's last `longest` instructions, found by going back through the checkpoints as
    /// precision backtracking does.
    pub(super) fn path(&self, longest: usize) -> Vec<Pc> {
        let code = &self.structure.code;
        let mut path = vec![self.pc()];
        let mut segment = self.state.segment();
        // The step to the current instruction may not be in the history yet.
        let noted = segment.history.before(segment.first, self.pc());
        let parent_of = |of: Segment<'_>| Some(self.arena.get(of.parent?).segment());
        let mut pc = self.position.prev();
        if noted.is_none()
            && let Some(parent) = parent_of(segment).filter(|parent| parent.last == pc)
        {
            segment = parent;
        }
        while pc.index() < code.len() && path.len() < longest {
            // The second slot of a 64-bit immediate is not an instruction.
            if code.insn(pc).is_some() {
                path.push(pc);
            }
            if let Some(earlier) = segment.history.before(segment.first, pc) {
                pc = earlier;
                continue;
            }
            let Some(parent) = parent_of(segment) else {
                break;
            };
            segment = parent;
            pc = segment.last;
        }
        path.reverse();
        path
    }

    fn registers(&self) -> Vec<(Reg, String)> {
        let number = self.state.current();
        let Some(frame) = self.state.frames.get(number) else {
            return Vec::new();
        };
        let known = Reg::ALL.into_iter().zip(&frame.regs);
        known
            .filter(|(_, reg)| reg.is_init())
            .map(|(name, reg)| {
                let text = RegText {
                    program: self.program,
                    maps: &self.maps,
                    frame: number,
                    reg,
                };
                (name, text.to_string())
            })
            .collect()
    }
}
