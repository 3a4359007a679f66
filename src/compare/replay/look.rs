//! A firing once more, on the checked engine and before someone's eyes: what registers hold
//! where it differs.

use super::player::Deck;
use super::programs::Form;
use crate::instrument::Firing;
use crate::interp::{Step, Watch};
use crate::isa::Reg;
use crate::util::Pc;
use crate::vm::events::Event;

/// Registers before the `nth` time that the instruction at `pc` of a program (that of `form`)
/// is executed, in a firing of the `running` one; none where the run does not come there.
pub(super) fn look(
    deck: &mut Deck,
    running: usize,
    form: &Form,
    firing: &Firing<'_>,
    pc: Pc,
    nth: usize,
) -> Vec<(Reg, u64)> {
    let handle = deck.programs.get(running).map(|(handle, _)| *handle);
    let Some(handle) = handle else {
        return Vec::new();
    };
    let places = form.places(pc);
    let places: Vec<_> = places
        .map(|(running, at)| (&*running.program.name, at))
        .collect();
    let mut context = firing.context.to_vec();
    context.resize(context.len().max(deck.context_len(running)), 0);
    deck.cue(firing);
    let mut watcher = Watcher {
        places: &places,
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

struct Watcher<'a> {
    /// In which programs, and where in each.
    places: &'a [(&'a str, Pc)],
    left: usize,
    registers: Option<[u64; Reg::COUNT]>,
}

impl Watch for Watcher<'_> {
    fn before(&mut self, step: &Step<'_>) {
        let is_there =
            |(name, at): &(&str, Pc)| step.pc == *at && step.image.program().name == *name;
        if self.registers.is_some() || !self.places.iter().any(is_there) {
            return;
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.registers = step.frames.last().map(|frame| frame.regs),
        }
    }
}
