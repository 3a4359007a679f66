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
//! one in each iteration), and at instructions since the last step, which are consecutive: at
//! those where backtracking begins or changes something, and at every sixteenth.

use super::marks::Marks;
use crate::util::Pc;
use crate::verifier::history::Steps;

/// Registers and slots of one frame that were wanted.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    regs: u16,
    slots: u64,
}

impl Wanted {
    /// Adds registers and slots; returns whether all were there.
    fn add(&mut self, more: Self) -> bool {
        let known = more.regs & !self.regs == 0 && more.slots & !self.slots == 0;
        self.regs |= more.regs;
        self.slots |= more.slots;
        known
    }
}

/// What was wanted at an instruction after the last step.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// [`BacktrackCache::epoch`] at that time; 0 if it is unused.
    epoch: u32,
    /// The number of history steps before it.
    steps: u32,
    wanted: Wanted,
}

/// The registers and slots wanted at each instruction since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct BacktrackCache {
    /// By the number of history steps, for the instructions of steps.
    at_steps: Vec<Wanted>,
    /// By instruction, for those after the last step.
    at_insns: Vec<Entry>,
    /// The number of paths and checkpoints so far.
    epoch: u32,
}

impl BacktrackCache {
    /// Clears the cache: another path continues, or a checkpoint was created.
    pub(crate) fn clear(&mut self) {
        self.at_steps.clear();
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.at_insns.clear();
        }
    }

    /// Whether backtracking may not skip this instruction: so it meets the way of an earlier one
    /// after a few instructions.
    #[inline]
    pub(super) const fn has_to_see(pc: Pc) -> bool {
        pc.0.is_multiple_of(16)
    }

    /// Whether each of `marks` was wanted after this instruction before; adds them.
    /// `earlier` are the history steps before it, out of `all`.
    #[inline]
    pub(super) fn visit(&mut self, pc: Pc, earlier: Steps<'_>, all: usize, marks: &Marks) -> bool {
        let at_step = earlier.last_at(pc).is_some();
        if !at_step && earlier.len() != all {
            return false;
        }
        let Some((regs, slots)) = marks.only_here() else {
            return false;
        };
        let more = Wanted { regs, slots };
        if at_step {
            return entry(&mut self.at_steps, earlier.len()).add(more);
        }
        let epoch = self.epoch.wrapping_add(1);
        let steps = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
        let entry = entry(&mut self.at_insns, pc.index());
        if (entry.epoch, entry.steps) != (epoch, steps) {
            *entry = Entry {
                epoch,
                steps,
                wanted: Wanted::default(),
            };
        }
        entry.wanted.add(more)
    }
}

/// An entry of a list that grows as needed.
fn entry<T: Copy + Default>(entries: &mut Vec<T>, at: usize) -> &mut T {
    if entries.len() <= at {
        entries.resize(at + 1, T::default());
    }
    &mut entries[at]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::history::History;

    fn marks(slots: &[usize]) -> Marks {
        let mut marks = Marks::new(0);
        for slot in slots {
            marks.set_slot(0, *slot);
        }
        marks
    }

    /// The history of steps to these instructions.
    fn history(pcs: &[u32]) -> History {
        let mut history = History::default();
        pcs.iter().for_each(|pc| history.push(Pc(*pc), Pc(0)));
        history
    }

    #[test]
    fn a_way_is_gone_once() {
        let mut cache = BacktrackCache::default();
        let history = history(&[2]);
        let steps = history.steps();
        let mut visit = |wanted: &[usize]| cache.visit(Pc(3), steps, 1, &marks(wanted));
        assert!(!visit(&[1]) && visit(&[1]));
        assert!(!visit(&[1, 2]), "more is wanted");
        assert!(visit(&[2]));
        cache.clear();
        assert!(!cache.visit(Pc(3), steps, 1, &marks(&[2])), "another way");
    }

    /// A loop from 2 to 5: every iteration counts separately.
    #[test]
    fn rounds_are_told_apart() {
        let mut cache = BacktrackCache::default();
        let rounds = [1, 2, 3].map(|rounds| history(&[2; 3][..rounds]));
        let steps = |round: usize| rounds[round - 1].steps();
        let wanted = marks(&[1]);
        for round in 1..=3 {
            assert!(!cache.visit(Pc(2), steps(round), 3, &wanted));
        }
        for round in 1..=3 {
            assert!(cache.visit(Pc(2), steps(round), 3, &wanted));
        }
        assert!(!cache.visit(Pc(4), steps(3), 3, &wanted));
        assert!(
            !cache.visit(Pc(4), steps(2), 3, &wanted),
            "not in the last row"
        );
        assert!(cache.visit(Pc(4), steps(3), 3, &wanted));
    }
}
