//! How far back the way from the last kept state has been followed already.
//!
//! The kernel goes back from each instruction that needs a number, through every
//! instruction since the last kept state: the square of their number, on a long
//! straight line. But the way back from an instruction depends only on what is wanted
//! there, and more wanted never leads to less; so if all of it was wanted there
//! before, the way has been gone. What is found is the same.

use super::marks::Marks;
use crate::util::Pc;

/// What was wanted at an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// When: [`Trodden::epoch`].
    epoch: u32,
    /// Steps of the history before it. With the instruction, it names a place on the
    /// way: between two steps lie instructions in a row.
    steps: u32,
    regs: u16,
    slots: u64,
}

/// What was wanted where, on the way that the walk has come since the last kept state.
#[derive(Debug, Default)]
pub(crate) struct Trodden {
    entries: Vec<Entry>,
    epoch: u32,
}

impl Trodden {
    /// The walk goes on elsewhere, or from a new kept state.
    pub(crate) fn forget(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.entries.clear();
        }
    }

    /// Whether these were all wanted behind this instruction before, in a program of so
    /// many slots. They are from now on.
    pub(super) fn visit(&mut self, pc: Pc, steps: usize, marks: &Marks, slots: usize) -> bool {
        let Some((regs, stack)) = marks.only_here() else {
            return false;
        };
        if self.entries.len() < slots {
            self.entries.resize(slots, Entry::default());
            self.epoch = self.epoch.max(1);
        }
        let (epoch, steps) = (self.epoch, u32::try_from(steps).unwrap_or(u32::MAX));
        let Some(entry) = self.entries.get_mut(pc.index()) else {
            return false;
        };
        if (entry.epoch, entry.steps) != (epoch, steps) {
            *entry = Entry {
                epoch,
                steps,
                regs,
                slots: stack,
            };
            return false;
        }
        let known = regs & !entry.regs == 0 && stack & !entry.slots == 0;
        entry.regs |= regs;
        entry.slots |= stack;
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(slots: &[usize]) -> Marks {
        let mut marks = Marks::new(0);
        for slot in slots {
            marks.set_slot(0, *slot);
        }
        marks
    }

    #[test]
    fn a_way_is_gone_once() {
        let mut trodden = Trodden::default();
        assert!(!trodden.visit(Pc(3), 1, &marks(&[1]), 9));
        assert!(trodden.visit(Pc(3), 1, &marks(&[1]), 9));
        assert!(
            !trodden.visit(Pc(3), 1, &marks(&[1, 2]), 9),
            "more is wanted"
        );
        assert!(trodden.visit(Pc(3), 1, &marks(&[2]), 9));
        assert!(!trodden.visit(Pc(3), 2, &marks(&[2]), 9), "another time");
        trodden.forget();
        assert!(!trodden.visit(Pc(3), 2, &marks(&[2]), 9), "another way");
    }
}
