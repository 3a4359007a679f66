//! The walk: every path of the program, one instruction at a time.

use super::env::{Pending, Verifier};
use super::reject::{Checked, Reject};
use super::state::{LinkedSet, State, Step};
use crate::spec::limits::MAX_JUMP_SEQUENCE;
use crate::util::{Errno, Pc};

impl Verifier<'_> {
    /// Forks the walk: a copy of the current state waits to go on at `pc`
    /// (`push_stack`). The copy is given back to be changed.
    pub(crate) fn fork(&mut self, pc: Pc, prev: Pc) -> Checked<&mut State> {
        let state = self.state.clone();
        if self.pending.len() >= MAX_JUMP_SEQUENCE {
            let text = format!(
                "The sequence of {} jumps is too complex.",
                self.pending.len() + 1
            );
            return Err(Reject::new(Errno::E2BIG, text));
        }
        if let Some(parent) = state.parent {
            self.arena.get_mut(parent).branches += 1;
        }
        self.pending.push(Pending {
            state,
            pc,
            prev,
            log_len: self.log.len(),
        });
        let at = self.pending.len() - 1;
        Ok(&mut self.pending[at].state)
    }

    /// Notes that the instruction under way is a step that can't be told from the code
    /// alone (`push_jmp_history`); what an instruction notes twice is combined.
    pub(crate) fn note_step(&mut self, stack: Option<(u8, u8)>, linked: LinkedSet) {
        let (pc, prev) = (self.pc, self.prev);
        if self.step_noted
            && let Some(step) = self.state.history.last_mut()
        {
            step.stack = step.stack.or(stack);
            step.linked = linked;
            return;
        }
        self.state.history.push(Step {
            pc,
            prev,
            stack,
            linked,
        });
        self.step_noted = true;
    }
}
