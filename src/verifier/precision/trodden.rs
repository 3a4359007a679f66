//! How far back the way from the last kept state has been followed already.
//!
//! The kernel goes back from each instruction that needs a number, through every
//! instruction since the last kept state: the square of their number, on a long
//! straight line. But the way back from an instruction depends only on what is wanted
//! there; and what comes of two things wanted is what comes of the one and what comes
//! of the other. So if each of them was wanted there before, the way has been gone, and
//! what is found is the same.
//!
//! Remembered is what was wanted at the steps of the history, of which a loop has one
//! in each round, and at the instructions since the last step, which stand in a row.

use super::marks::Marks;
use crate::util::Pc;
use crate::verifier::state::Step;

/// What was wanted at an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// When: [`Trodden::epoch`].
    epoch: u32,
    /// How many steps of the history lie before it.
    steps: u32,
    regs: u16,
    slots: u64,
}

/// What was wanted where, on the way that the walk has come since the last kept state.
#[derive(Debug, Default)]
pub(crate) struct Trodden {
    /// At the instruction of each step.
    at_steps: Vec<Entry>,
    /// At each instruction.
    at_insns: Vec<Entry>,
    epoch: u32,
}

impl Trodden {
    /// The walk goes on elsewhere, or from a new kept state.
    pub(crate) fn forget(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.at_steps.clear();
            self.at_insns.clear();
        }
    }

    /// Whether each of these was wanted behind this instruction before; it is from now
    /// on. Before it lie `earlier` steps of `all`.
    pub(super) fn visit(&mut self, pc: Pc, earlier: &[Step], all: usize, marks: &Marks) -> bool {
        let (entries, at) = if earlier.last().is_some_and(|step| step.pc == pc) {
            (&mut self.at_steps, earlier.len())
        } else if earlier.len() == all {
            (&mut self.at_insns, pc.index())
        } else {
            return false;
        };
        let Some((regs, slots)) = marks.only_here() else {
            return false;
        };
        if entries.len() <= at {
            entries.resize(at + 1, Entry::default());
        }
        let Some(entry) = entries.get_mut(at) else {
            return false;
        };
        // An epoch of 0 is that of no entry.
        let epoch = self.epoch.wrapping_add(1);
        let steps = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
        if (entry.epoch, entry.steps) != (epoch, steps) {
            *entry = Entry {
                epoch,
                steps,
                regs,
                slots,
            };
            return false;
        }
        let known = regs & !entry.regs == 0 && slots & !entry.slots == 0;
        entry.regs |= regs;
        entry.slots |= slots;
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::state::LinkedSet;

    fn marks(slots: &[usize]) -> Marks {
        let mut marks = Marks::new(0);
        for slot in slots {
            marks.set_slot(0, *slot);
        }
        marks
    }

    fn steps(pcs: &[u32]) -> Vec<Step> {
        let step = |pc: &u32| Step {
            pc: Pc(*pc),
            prev: Pc(0),
            stack: None,
            stack_operands: (false, false),
            linked: LinkedSet::default(),
        };
        pcs.iter().map(step).collect()
    }

    #[test]
    fn a_way_is_gone_once() {
        let mut trodden = Trodden::default();
        let steps = steps(&[2]);
        let mut visit = |wanted: &[usize]| trodden.visit(Pc(3), &steps, 1, &marks(wanted));
        assert!(!visit(&[1]) && visit(&[1]));
        assert!(!visit(&[1, 2]), "more is wanted");
        assert!(visit(&[2]));
        trodden.forget();
        assert!(
            !trodden.visit(Pc(3), &steps, 1, &marks(&[2])),
            "another way"
        );
    }

    /// A loop from 2 to 5: every round is another place.
    #[test]
    fn rounds_are_told_apart() {
        let mut trodden = Trodden::default();
        let steps = steps(&[2, 2, 2]);
        let wanted = marks(&[1]);
        for round in 1..=3 {
            assert!(!trodden.visit(Pc(2), &steps[..round], 3, &wanted));
        }
        for round in 1..=3 {
            assert!(trodden.visit(Pc(2), &steps[..round], 3, &wanted));
        }
        assert!(!trodden.visit(Pc(4), &steps, 3, &wanted));
        assert!(
            !trodden.visit(Pc(4), &steps[..2], 3, &wanted),
            "not in the last row"
        );
        assert!(trodden.visit(Pc(4), &steps, 3, &wanted));
    }
}
