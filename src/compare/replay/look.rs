//! A firing once more, on the checked engine and before someone's eyes: what registers hold
//! where it differs.

use super::player::Deck;
use super::programs::Form;
use crate::instrument::Firing;
use crate::interp::{Step, Watch};
use crate::isa::Reg;
use crate::util::Pc;
use crate::vm::events::Event;

/// Registers before the `nth` time that the instruction at `pc` of the original program is
/// executed; none where the run does not come there.
pub(super) fn look(
    deck: &mut Deck,
    running: usize,
    form: &Form,
    firing: &Firing<'_>,
    pc: Pc,
    nth: usize,
) -> Vec<(Reg, u64)> {
    let handle = deck.programs.get(running).map(|(handle, _)| *handle);
    let (Some(handle), Some(at)) = (handle, form.place(pc)) else {
        return Vec::new();
    };
    let mut context = firing.context.to_vec();
    context.resize(context.len().max(deck.context_len(running)), 0);
    deck.cue(firing);
    let mut watcher = Watcher {
        at,
        left: nth,
        registers: None,
    };
    // That it may stop at a fault is known already.
    let _ = deck
        .vm
        .run_watched(handle, &Event::bytes(context), &mut watcher);
    let registers = watcher.registers.unwrap_or_default();
    let all = Reg::ALL.into_iter().zip(registers);
    all.collect()
}

struct Watcher {
    at: Pc,
    left: usize,
    registers: Option<[u64; Reg::COUNT]>,
}

impl Watch for Watcher {
    fn before(&mut self, step: &Step<'_>) {
        if step.pc != self.at || self.registers.is_some() {
            return;
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.registers = step.frames.last().map(|frame| frame.regs),
        }
    }
}
