//! What one function does to the stack, called through one chain of calls.

use super::chain::CallChain;
use crate::spec::limits::MAX_CALL_FRAMES;
use crate::util::Pc;

/// What an instruction does to the slots of one frame: a bit for each slot of eight
/// bytes, bit 0 that at `fp-8`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// Slots that it may read; grows.
    pub may_read: u64,
    /// Slots that it writes each time; shrinks.
    pub must_write: u64,
    /// Slots that are written from here to the function's end on each path.
    pub must_write_acc: u64,
    /// Slots that may be read from here on before they are written.
    pub live_before: u64,
}

/// A function as reached through one call chain.
#[derive(Debug)]
pub(super) struct Instance {
    pub chain: CallChain,
    /// Something was marked since the masks were last propagated.
    pub updated: bool,
    /// One of the `must_write` became smaller since then.
    pub must_write_dropped: bool,
    /// The masks of each instruction, for each frame that is touched.
    frames: [Option<Box<[Masks]>>; MAX_CALL_FRAMES],
    /// Whether an instruction's writes were ever committed.
    committed: Box<[bool]>,
}

impl Instance {
    /// The function of `len` slots that `chain` leads to, of which nothing is known.
    pub(super) fn new(chain: CallChain, len: usize) -> Self {
        Self {
            chain,
            updated: false,
            must_write_dropped: false,
            frames: Default::default(),
            committed: vec![false; len].into(),
        }
    }

    /// The position of `pc` in the function.
    fn relative(&self, pc: Pc) -> usize {
        pc.0.wrapping_sub(self.chain.start().0) as usize
    }

    /// Whether something is known of the slots of a frame.
    pub(super) fn touches(&self, frame: usize) -> bool {
        matches!(self.frames.get(frame), Some(Some(_)))
    }

    /// The masks of an instruction; zeros where nothing is known.
    pub(super) fn masks(&self, frame: usize, pc: Pc) -> Masks {
        let masks = self.frames.get(frame).and_then(Option::as_deref);
        let masks = masks.and_then(|masks| masks.get(self.relative(pc)));
        masks.copied().unwrap_or_default()
    }

    /// The same to be changed. An instruction or a frame that does not exist has none.
    pub(super) fn masks_mut(&mut self, frame: usize, pc: Pc) -> Option<&mut Masks> {
        let (at, len) = (self.relative(pc), self.committed.len());
        let masks = self.frames.get_mut(frame)?;
        masks
            .get_or_insert_with(|| vec![Masks::default(); len].into())
            .get_mut(at)
    }

    /// `pc` may read these slots.
    pub(super) fn read(&mut self, frame: usize, pc: Pc, slots: u64) {
        let Some(masks) = self.masks_mut(frame, pc) else {
            return;
        };
        let more = slots & !masks.may_read;
        masks.may_read |= slots;
        if more != 0 && masks.may_read & !masks.live_before != 0 {
            self.updated = true;
        }
    }

    /// `pc` was walked once and wrote these slots of each frame. The first time they
    /// are what it writes; later, no more than was written each time.
    pub(super) fn commit(&mut self, pc: Pc, written: &[u64; MAX_CALL_FRAMES]) {
        let at = self.relative(pc);
        let Some(committed) = self.committed.get_mut(at) else {
            return;
        };
        let again = std::mem::replace(committed, true);
        for (frame, &slots) in written.iter().enumerate().take(self.chain.frame() + 1) {
            if slots == 0 && !again {
                continue;
            }
            let Some(masks) = self.masks_mut(frame, pc) else {
                continue;
            };
            let old = masks.must_write;
            let new = if again { slots & old } else { slots };
            masks.must_write = new;
            self.updated |= old != new;
            self.must_write_dropped |= old & !new != 0;
        }
    }

    /// Forgets what is written on the way to the end, to be found again.
    pub(super) fn forget_accumulated(&mut self) {
        for masks in self.frames.iter_mut().flatten().flatten() {
            masks.must_write_acc = 0;
        }
    }
}
