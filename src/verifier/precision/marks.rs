//! The registers and slots wanted as precise during backtracking (`struct
//! backtrack_state`).

use super::affected::Affected;
use crate::isa::Reg;
use crate::spec::limits::MAX_CALL_FRAMES;
use crate::verifier::history::Linked;

/// Sets of registers and slots, one for each frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    /// The frame that backtracking is in.
    pub frame: usize,
    /// The frames whose sets are not empty, as a bit mask.
    wanted: u8,
    /// The frames of which slots are wanted, as a bit mask.
    wanted_slots: u8,
    regs: [u16; MAX_CALL_FRAMES],
    slots: [u64; MAX_CALL_FRAMES],
}

impl Marks {
    /// The argument registers: `r1` to `r5`.
    pub(super) const ARGUMENTS: u16 = 0x3e;

    /// Empty sets, in this frame.
    pub(crate) fn new(frame: usize) -> Self {
        Self {
            frame,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wanted == 0
    }

    /// The sets of the current frame, if those of the others are empty.
    pub(super) fn only_here(&self) -> Option<(u16, u64)> {
        let elsewhere = self.wanted & !(1 << self.frame) != 0;
        (!elsewhere).then(|| (self.regs(self.frame), self.slots(self.frame)))
    }

    /// What is wanted, to be held against what an instruction affects.
    #[inline]
    pub(super) fn wanted(&self) -> Affected {
        Affected::wanted(self.regs(self.frame), self.wanted_slots != 0)
    }

    /// The registers of a frame, as a bit mask.
    pub(super) fn regs(&self, frame: usize) -> u16 {
        self.regs.get(frame).copied().unwrap_or(0)
    }

    /// The slots of a frame, as a bit mask.
    pub(super) fn slots(&self, frame: usize) -> u64 {
        self.slots.get(frame).copied().unwrap_or(0)
    }

    pub(crate) fn set_reg(&mut self, frame: usize, reg: usize) {
        if let Some(regs) = self.regs.get_mut(frame) {
            *regs |= 1 << reg;
            self.wanted |= 1 << frame;
        }
    }

    pub(super) fn clear_reg(&mut self, frame: usize, reg: usize) {
        if let Some(regs) = self.regs.get_mut(frame) {
            *regs &= !(1 << reg);
            self.note_cleared(frame);
        }
    }

    pub(crate) fn set_slot(&mut self, frame: usize, slot: usize) {
        if let Some(slots) = self.slots.get_mut(frame) {
            *slots |= 1 << slot;
            self.wanted |= 1 << frame;
            self.wanted_slots |= 1 << frame;
        }
    }

    pub(super) fn clear_slot(&mut self, frame: usize, slot: usize) {
        if let Some(slots) = self.slots.get_mut(frame) {
            *slots &= !(1 << slot);
            self.note_cleared(frame);
        }
    }

    /// Updates the mask of frames after a register or slot of this one was removed.
    fn note_cleared(&mut self, frame: usize) {
        if self.slots(frame) == 0 {
            self.wanted_slots &= !(1 << frame);
            if self.regs(frame) == 0 {
                self.wanted &= !(1 << frame);
            }
        }
    }

    /// Whether a register of the current frame is wanted.
    pub(super) fn wants(&self, reg: Reg) -> bool {
        self.regs(self.frame) >> reg.index() & 1 == 1
    }

    /// Adds a register of the current frame.
    pub(super) fn want(&mut self, reg: Reg) {
        self.set_reg(self.frame, reg.index());
    }

    /// Removes a register of the current frame; returns whether it was wanted.
    pub(super) fn take(&mut self, reg: Reg) -> bool {
        let wanted = self.wants(reg);
        if wanted {
            self.clear_reg(self.frame, reg.index());
        }
        wanted
    }

    /// Removes a slot; returns whether it was wanted.
    pub(super) fn take_slot(&mut self, frame: usize, slot: usize) -> bool {
        let wanted = self.slots(frame) >> slot & 1 == 1;
        if wanted {
            self.clear_slot(frame, slot);
        }
        wanted
    }

    /// If one of these is wanted, adds all: a comparison bounded them together
    /// (`bt_sync_linked_regs`).
    pub(super) fn sync(&mut self, linked: impl Iterator<Item = Linked> + Clone) {
        let wanted = linked.clone().any(|link| {
            let (frame, at) = (usize::from(link.frame), link.at);
            if link.is_reg {
                self.regs(frame) >> at & 1 == 1
            } else {
                self.slots(frame) >> at & 1 == 1
            }
        });
        if !wanted {
            return;
        }
        for link in linked {
            let (frame, at) = (usize::from(link.frame), usize::from(link.at));
            if link.is_reg {
                self.set_reg(frame, at);
            } else {
                self.set_slot(frame, at);
            }
        }
    }
}

/// The numbers of the set bits.
pub(super) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_other_frames_are_told_apart() {
        let mut marks = Marks::new(1);
        marks.want(Reg::R6);
        assert_eq!(marks.only_here(), Some((1 << 6, 0)));
        marks.set_slot(0, 3);
        assert_eq!(marks.only_here(), None);
        assert!(marks.take(Reg::R6) && marks.take_slot(0, 3) && marks.is_empty());
        assert!(!marks.take(Reg::R6) && !marks.take_slot(0, 3));
    }

    #[test]
    fn of_linked_registers_all_or_none_are_wanted() {
        let link = |frame, at, is_reg| Linked { frame, at, is_reg };
        let links = [link(0, 6, true), link(1, 2, false)];
        let mut marks = Marks::new(1);
        marks.sync(links.into_iter());
        assert!(marks.is_empty());
        marks.set_slot(1, 2);
        marks.sync(links.into_iter());
        assert_eq!((marks.regs(0), marks.slots(1)), (1 << 6, 1 << 2));
    }
}
