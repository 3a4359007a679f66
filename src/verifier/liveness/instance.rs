//! The stack accesses of one function, called through one call chain.

use super::chain::CallChain;
use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;

/// The effects of an instruction on the slots of one frame: a bit for each slot of eight
/// bytes, bit 0 for the one at `fp-8`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// Slots that it may read; only grows.
    pub may_read: u64,
    /// Slots that it always writes; only shrinks.
    pub must_write: u64,
    /// Slots that are written on each path from here to the function's end.
    pub must_write_acc: u64,
    /// Live slots: those that may be read from here on before they are written.
    pub live_before: u64,
}

/// A function with the call chain that reaches it.
#[derive(Debug)]
pub(super) struct Instance {
    pub chain: CallChain,
    /// Whether a mark was added since the last propagation.
    pub updated: bool,
    /// Whether a `must_write` lost a slot since the last propagation.
    pub must_write_dropped: bool,
    /// The masks of each instruction, for each frame that is accessed.
    frames: [Option<Box<[Masks]>>; MAX_CALL_FRAMES],
    /// The instructions and frames with marks that changed since the last propagation.
    pub changed: Vec<(usize, Pc)>,
    /// Whether an instruction's writes were ever committed.
    committed: Box<[bool]>,
}

impl Instance {
    /// The function of `len` slots that `chain` leads to, without any masks.
    pub(super) fn new(chain: CallChain, len: usize) -> Self {
        Self {
            chain,
            updated: false,
            must_write_dropped: false,
            frames: Default::default(),
            changed: Vec::new(),
            committed: vec![false; len].into(),
        }
    }

    /// The position of `pc` in the function.
    fn relative(&self, pc: Pc) -> usize {
        pc.0.wrapping_sub(self.chain.start().0) as usize
    }

    /// Whether any slots of a frame are marked.
    pub(super) fn touches(&self, frame: usize) -> bool {
        matches!(self.frames.get(frame), Some(Some(_)))
    }

    /// The masks of an instruction; zeros if there are none.
    pub(super) fn masks(&self, frame: usize, pc: Pc) -> Masks {
        let masks = self.frames.get(frame).and_then(Option::as_deref);
        let masks = masks.and_then(|masks| masks.get(self.relative(pc)));
        masks.copied().unwrap_or_default()
    }

    /// The masks of an instruction, mutable; `None` for an invalid instruction or frame.
    pub(super) fn masks_mut(&mut self, frame: usize, pc: Pc) -> Option<&mut Masks> {
        let (at, len) = (self.relative(pc), self.committed.len());
        let masks = self.frames.get_mut(frame)?;
        masks
            .get_or_insert_with(|| vec![Masks::default(); len].into())
            .get_mut(at)
    }

    /// Marks these slots as possibly read by `pc`.
    pub(super) fn read(&mut self, frame: usize, pc: Pc, slots: u64) {
        let Some(masks) = self.masks_mut(frame, pc) else {
            return;
        };
        let more = slots & !masks.may_read;
        masks.may_read |= slots;
        if more != 0 {
            self.updated |= masks.may_read & !masks.live_before != 0;
            self.changed.push((frame, pc));
        }
    }

    /// Commits one execution of `pc`, which wrote these slots of each frame. The first
    /// commit sets the slots that it always writes, later ones intersect them.
    pub(super) fn commit(&mut self, pc: Pc, written: &[u64; MAX_CALL_FRAMES]) {
        let at = self.relative(pc);
        let Some(committed) = self.committed.get_mut(at) else {
            return;
        };
        let again = std::mem::replace(committed, true);
        for (frame, &slots) in written.iter().enumerate().take(self.chain.frame() + 1) {
            // A frame without masks has nothing to lose.
            let matters = if again {
                self.touches(frame)
            } else {
                slots != 0
            };
            if !matters {
                continue;
            }
            let Some(masks) = self.masks_mut(frame, pc) else {
                continue;
            };
            let old = masks.must_write;
            let new = if again { slots & old } else { slots };
            masks.must_write = new;
            if old != new {
                self.updated = true;
                self.changed.push((frame, pc));
            }
            self.must_write_dropped |= old & !new != 0;
        }
    }

    /// Clears the accumulated writes, so that they are computed again.
    pub(super) fn forget_accumulated(&mut self) {
        for masks in self.frames.iter_mut().flatten().flatten() {
            masks.must_write_acc = 0;
        }
    }
}
