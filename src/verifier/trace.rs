//! What the walk knows when it refuses: the way back to its start, and the registers.

use super::env::Verifier;
use super::log::RegText;
use super::precision::before;
use super::state::NO_PC;
use super::trail::Trail;
use crate::isa::Reg;
use crate::util::Pc;

/// The most instructions of a path that are noted, so that a loop with a million rounds
/// is not.
const LONGEST: usize = 1 << 14;

impl Verifier<'_> {
    /// The trail to the instruction under way.
    pub(super) fn trail(&self) -> Trail {
        Trail {
            path: self.path(),
            registers: self.registers(),
        }
    }

    /// Back through the kept states, as the marking of precise numbers goes.
    fn path(&self) -> Vec<Pc> {
        let code = &self.structure.code;
        let mut path = Vec::new();
        let mut state = &self.state;
        let mut pc = self.pc;
        loop {
            let mut steps = state.history.as_slice();
            loop {
                // The second slot of an instruction is none.
                if code.insn(pc).is_some() {
                    path.push(pc);
                }
                match before(state.first, pc, &mut steps) {
                    Some(before) if path.len() < LONGEST && before.index() < code.len() => {
                        pc = before;
                    }
                    _ => break,
                }
            }
            match state.parent {
                Some(parent) if path.len() < LONGEST => state = self.arena.get(parent),
                _ => break,
            }
            if state.last == NO_PC {
                break;
            }
            pc = state.last;
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
