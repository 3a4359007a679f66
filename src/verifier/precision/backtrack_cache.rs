//! A cache of backtracking since the last checkpoint.
//!
//! The kernel goes back from each instruction that needs a precise scalar, through every
//! instruction since the last checkpoint, which is quadratic on a long straight line. But
//! the result at an instruction depends only on the set of wanted registers and slots
//! there, and is the union of the results for its elements. So if each element was wanted
//! there before, going back further finds nothing new.
//!
//! ```text
//!    r6 = *(u8 *)(r1 + 0)
//!    r6 &= 7
//!    r2 = r10
//!    r2 += r6                    ; wants r6: goes back to the load
//!    r3 = r10
//!    r3 += r6                    ; wants r6 again: stops where the first one began
//! ```
//!
//! Remembered are the registers and slots wanted at each step of the history (a loop has
//! one in each iteration), and at each instruction since the last step, which are
//! consecutive.

use super::marks::Marks;
use crate::util::Pc;
use crate::verifier::state::Step;

/// The registers and slots that were wanted at an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// [`BacktrackCache::epoch`] at that time.
    epoch: u32,
    /// The number of history steps before it.
    steps: u32,
    regs: u16,
    slots: u64,
}

/// The registers and slots wanted at each instruction since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct BacktrackCache {
    /// By the number of history steps, for the instructions of steps.
    at_steps: Vec<Entry>,
    /// By instruction, for those after the last step.
    at_insns: Vec<Entry>,
    epoch: u32,
}

impl BacktrackCache {
    /// Clears the cache: another path continues, or a checkpoint was created.
    pub(crate) fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.at_steps.clear();
            self.at_insns.clear();
        }
    }

    /// Whether each of `marks` was wanted after this instruction before; adds them.
    /// `earlier` are the history steps before it, out of `all`.
    #[inline]
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
        // Epoch 0 marks an unused entry.
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
        let mut cache = BacktrackCache::default();
        let steps = steps(&[2]);
        let mut visit = |wanted: &[usize]| cache.visit(Pc(3), &steps, 1, &marks(wanted));
        assert!(!visit(&[1]) && visit(&[1]));
        assert!(!visit(&[1, 2]), "more is wanted");
        assert!(visit(&[2]));
        cache.clear();
        assert!(!cache.visit(Pc(3), &steps, 1, &marks(&[2])), "another way");
    }

    /// A loop from 2 to 5: every iteration counts separately.
    #[test]
    fn rounds_are_told_apart() {
        let mut cache = BacktrackCache::default();
        let steps = steps(&[2, 2, 2]);
        let wanted = marks(&[1]);
        for round in 1..=3 {
            assert!(!cache.visit(Pc(2), &steps[..round], 3, &wanted));
        }
        for round in 1..=3 {
            assert!(cache.visit(Pc(2), &steps[..round], 3, &wanted));
        }
        assert!(!cache.visit(Pc(4), &steps, 3, &wanted));
        assert!(
            !cache.visit(Pc(4), &steps[..2], 3, &wanted),
            "not in the last row"
        );
        assert!(cache.visit(Pc(4), &steps, 3, &wanted));
    }
}
