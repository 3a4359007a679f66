//! The stack that all engines of a machine share: the frames of all functions that can be
//! under way at once, one behind the other, so that entering a function is a subtraction.
//!
//! ```text
//! low addresses                                                       high addresses
//! │ frame 7 │ head │ …… │ frame 1 (512 bytes) │ head 1 │ frame 0 (512 bytes) │ head 0 │
//!                                             ▲                              ▲        ▲
//!                                   end of frame 1                 end of frame 0   rest
//! ```
//!
//! An engine goes by the host address of the end of the frame under way, where its head
//! begins; the callee's is [`STRIDE`] bytes below. Before and after a run it is at
//! `rest`.
//!
//! Each frame is a region of the machine's memory, so that programs and helpers reach it
//! by the number in r10. That number stays the same from function to function until one
//! has been there that [lends](crate::lower::Lenders) its frame: when such a function ends,
//! the region goes by another number, and pointers to the frame are stale. Who does not
//! lend its frame leaves nobody with such a pointer.

use std::sync::Arc;

use super::image::Image;
use crate::spec::limits::{MAX_CALL_FRAMES, MAX_MAY_GOTO, STACK_SIZE};
use crate::vm::Machine;
use crate::vm::memory::{Address, Region, SharedBytes, SpaceFull};

/// What lies behind a frame's end. Programs don't reach it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    /// What r10 holds in this frame.
    pub number: u64,
    /// How many loops `may_goto` still grants; set by who enters a function that asks.
    pub loops_left: u32,
    /// How many bytes below the frame's end are zero or the frame's own; those below may
    /// hold what an earlier function left. Set by who enters a function that may leave
    /// the frame to another program.
    pub clean: u32,
}

/// Bytes from a frame's end to its callee's.
pub(crate) const STRIDE: usize = STACK_SIZE + size_of::<Head>();

/// Where a number of a frame's head is, from the frame's end.
macro_rules! in_head {
    ($field:ident) => {
        std::mem::offset_of!($crate::interp::Head, $field)
    };
}
pub(crate) use in_head;

/// The frames of a machine, made when the first function is entered.
#[derive(Debug, Default)]
pub struct Stack {
    frames: Option<Frames>,
}

#[derive(Debug)]
pub(crate) struct Frames {
    /// All of them, the outermost last.
    bytes: Arc<SharedBytes>,
    /// Their regions, the outermost first.
    regions: [Address; MAX_CALL_FRAMES],
    /// What messages call them.
    names: [Arc<str>; MAX_CALL_FRAMES],
    /// The host address of `rest`.
    rest: u64,
}

/// Frames that nobody is to use: machine code does not look how many functions are under
/// way, only who enters it does.
const RESERVE: usize = MAX_CALL_FRAMES;

/// Where in the block the frame at a depth begins.
const fn start(depth: usize) -> usize {
    (RESERVE + MAX_CALL_FRAMES - 1).saturating_sub(depth) * STRIDE
}

impl Stack {
    /// The frames, in the memory of `machine`, which is the same each time.
    pub(super) fn frames(&mut self, machine: &mut Machine) -> Result<&mut Frames, SpaceFull> {
        match &mut self.frames {
            Some(frames) => Ok(frames),
            none => Ok(none.insert(Frames::new(machine)?)),
        }
    }

    /// Takes the frames out of the memory of `machine`.
    pub(super) fn remove(self, machine: &mut Machine) {
        for region in self.frames.iter().flat_map(|frames| frames.regions) {
            machine.space.remove(region);
        }
    }
}

impl Frames {
    fn new(machine: &mut Machine) -> Result<Self, SpaceFull> {
        let bytes = Arc::new(SharedBytes::zeroed((RESERVE + MAX_CALL_FRAMES) * STRIDE));
        let name: Arc<str> = Arc::from("stack");
        let mut regions = [Address::new(0, 0); MAX_CALL_FRAMES];
        for (depth, region) in regions.iter_mut().enumerate() {
            let window = start(depth)..start(depth) + STACK_SIZE;
            let frame = Region::window(name.clone(), bytes.clone(), window);
            *region = machine.space.insert(frame)?;
        }
        let rest = bytes.host_address() + (start(0) + STACK_SIZE + STRIDE) as u64;
        let mut frames = Self {
            bytes,
            regions,
            names: std::array::from_fn(|_| name.clone()),
            rest,
        };
        for depth in 0..MAX_CALL_FRAMES {
            frames.tell(depth);
        }
        Ok(frames)
    }

    /// The end of the frame that would be around the outermost one, as a host address.
    pub(super) const fn rest(&self) -> u64 {
        self.rest
    }

    /// How many frames are under way when this is the end of the innermost.
    pub(super) const fn depth(&self, frame_end: u64) -> usize {
        // At most as many as there are.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let bytes = self.rest.wrapping_sub(frame_end) as usize;
        bytes / STRIDE
    }

    /// What r10 holds in the frame at a depth.
    pub(super) fn number(&self, depth: usize) -> u64 {
        let region = self.regions.get(depth);
        region.map_or(0, |at| at.plus((start(depth) + STACK_SIZE) as u64))
    }

    /// The address of the first byte of the frame at a depth.
    pub(super) fn first_byte(&self, depth: usize) -> Option<Address> {
        let region = self.regions.get(depth)?;
        Address::from_register(region.plus(start(depth) as u64))
    }

    /// Makes the bytes of the frame at a depth zero.
    pub(super) fn clear(&self, depth: usize) {
        let first = start(depth) / 8;
        self.bytes.clear_words(first..first + STACK_SIZE / 8);
    }

    /// Says what messages call the frame at a depth.
    pub(super) fn name(&mut self, machine: &mut Machine, depth: usize, name: &Arc<str>) {
        if let Some(known) = self.names.get_mut(depth)
            && let Some(region) = self.regions.get(depth)
            // Naming costs more than entering.
            && !Arc::ptr_eq(known, name)
            && let Some(mut region) = machine.space.region_mut(*region)
        {
            region.name = name.clone().into();
            *known = name.clone();
        }
    }

    /// Pointers to the frame at this depth are stale from now on.
    pub(super) fn renew(&mut self, machine: &mut Machine, depth: usize) {
        if let Some(region) = self.regions.get_mut(depth) {
            *region = machine.space.renew(*region);
            self.tell(depth);
        }
    }

    /// A run stopped in the middle: pointers to any frame are stale from now on.
    pub(super) fn renew_all(&mut self, machine: &mut Machine) {
        for depth in 0..MAX_CALL_FRAMES {
            self.renew(machine, depth);
        }
    }

    /// Tells a frame's head its number.
    fn tell(&mut self, depth: usize) {
        let at = start(depth) + STACK_SIZE + in_head!(number);
        // In bounds: each frame has a head.
        let _ = self.bytes.store(at, 8, self.number(depth));
    }
}

/// A function under way in the checked interpreter: what its caller gets back when it
/// ends.
#[derive(Debug, Clone)]
pub(super) struct Frame<'a> {
    /// Its first instruction's slot.
    pub start: i64,
    /// The slot of the call that led here.
    pub from: i64,
    /// The program that the caller runs.
    pub caller: &'a Image,
    /// The slot where the caller goes on.
    pub return_to: i64,
    /// The caller's r6 to r9.
    pub saved: [u64; 4],
    /// The caller's r10.
    pub frame_pointer: u64,
    /// What is left for `may_goto`.
    pub loops_left: u32,
    /// Whether the function lends its frame.
    pub lends: bool,
}

impl<'a> Frame<'a> {
    /// The frame of the function at `start` of the program that `caller` runs, called at
    /// `from`.
    pub(super) fn new(
        start: i64,
        from: i64,
        return_to: i64,
        caller: &'a Image,
        regs: &[u64; 11],
    ) -> Self {
        let [.., r6, r7, r8, r9, r10] = *regs;
        Self {
            start,
            from,
            caller,
            return_to,
            saved: [r6, r7, r8, r9],
            frame_pointer: r10,
            loops_left: MAX_MAY_GOTO,
            lends: caller.lends(start),
        }
    }

    /// Leaves the frame to the program `image`; whether its function lent it.
    pub(super) fn leave_to(&mut self, image: &Image) -> bool {
        self.start = 0;
        self.loops_left = MAX_MAY_GOTO;
        std::mem::replace(&mut self.lends, image.lends(0))
    }

    /// Gives the caller its registers back.
    pub(super) const fn restore(&self, regs: &mut [u64; 11]) {
        let [.., r6, r7, r8, r9, r10] = regs;
        [*r6, *r7, *r8, *r9] = self.saved;
        *r10 = self.frame_pointer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::World;

    fn machine() -> Machine {
        Machine::new(World::default())
    }

    #[test]
    fn frames_lie_one_behind_the_other() {
        let (mut machine, mut stack) = (machine(), Stack::default());
        let frames = stack.frames(&mut machine).unwrap();
        assert_eq!(frames.depth(frames.rest()), 0);
        for depth in 0..MAX_CALL_FRAMES {
            let end = frames.rest() - ((depth + 1) * STRIDE) as u64;
            assert_eq!(frames.depth(end), depth + 1);
            let number = frames.number(depth);
            // Its bytes are the program's, and what is around them is not.
            assert_eq!(machine.space.store(number - 512, 8, 7), Ok(()));
            assert_eq!(machine.space.store(number - 8, 8, 9), Ok(()));
            assert!(machine.space.load(number - 520, 8).is_err());
            assert!(machine.space.load(number, 1).is_err());
            let host = end - frames.bytes.host_address();
            let host = usize::try_from(host).unwrap();
            assert_eq!(frames.bytes.load(host - 512, 8), Some(7));
            assert_eq!(frames.bytes.load(host - 8, 8), Some(9));
            assert_eq!(frames.bytes.load(host + in_head!(number), 8), Some(number));
            frames.clear(depth);
            assert_eq!(machine.space.load(number - 512, 8), Ok(0));
            assert_eq!(machine.space.load(number - 8, 8), Ok(0));
        }
    }

    #[test]
    fn pointers_to_a_frame_that_was_renewed_are_stale() {
        let (mut machine, mut stack) = (machine(), Stack::default());
        let frames = stack.frames(&mut machine).unwrap();
        let (old, other) = (frames.number(1), frames.number(0));
        frames.name(&mut machine, 1, &Arc::from("stack of f"));
        frames.renew(&mut machine, 1);
        assert_eq!(
            machine.space.load(old - 8, 8).unwrap_err().to_string(),
            "reads 8 bytes at stack of f+504, which is gone"
        );
        assert_eq!(machine.space.load(frames.number(1) - 8, 8), Ok(0));
        assert_eq!(machine.space.load(other - 8, 8), Ok(0));
        frames.renew_all(&mut machine);
        assert!(machine.space.load(other - 8, 8).is_err());
        // Again the same frames.
        let again = stack.frames(&mut machine).unwrap().number(0);
        assert_eq!(machine.space.load(again - 8, 8), Ok(0));
    }
}
