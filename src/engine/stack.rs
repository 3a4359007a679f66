//! The stack that all engines of a machine share: the frames of all functions that can be
//! active at once, consecutive in memory, so that entering a function is a subtraction.
//!
//! ```text
//! low addresses                                                       high addresses
//! │ frame n │ head │ …… │ frame 1 (512 bytes) │ head 1 │ frame 0 (512 bytes) │ head 0 │
//!                                             ▲                              ▲        ▲
//!                                   end of frame 1                 end of frame 0   rest
//! ```
//!
//! One program has at most [`MAX_CALL_FRAMES`] active functions. A tail call from a
//! subprogram replaces only that subprogram's frame: its callers wait below the target
//! program, which has another [`MAX_CALL_FRAMES`] (`emit_bpf_tail_call_indirect`,
//! `arch/x86/net/bpf_jit_comp.c`). So there are [`MAX_FRAMES`]. Their bytes are one block,
//! of which the system maps only the used part. Their regions are created when a program or
//! a callback begins that may reach them, at the same time on every engine.
//!
//! An engine holds the host address of the end of the current frame, where its head begins;
//! the callee's is [`STRIDE`] bytes below. Before and after a run it is `rest`.
//!
//! Each frame is a region of the machine's memory, which programs and helpers access by the
//! number in r10. That number stays the same for all functions until a function whose frame
//! [escapes](crate::lower::EscapingFrames) ends: then the region gets another number, and
//! pointers to the frame are stale. Otherwise nothing can hold such a pointer.

use std::sync::Arc;

use super::attached::TracedCall;
use super::image::Image;
use crate::spec::limits::{MAX_CALL_FRAMES, MAX_MAY_GOTO, MAX_TAIL_CALLS, STACK_SIZE};
use crate::vm::Machine;
use crate::vm::memory::{Address, Region, SharedBytes, SpaceFull};

/// The data after a frame's end. Programs can't access it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    /// The value of r10 in this frame.
    pub number: u64,
    /// The loops that `may_goto` still allows; set on entry to a function that uses it.
    pub loops_left: u32,
    /// How many bytes below the frame's end are zero or the frame's own; those below may
    /// hold what an earlier function left. Set on entry to a function that may hand the
    /// frame over to another program.
    pub clean: u32,
}

/// Bytes from a frame's end to its callee's.
pub(crate) const STRIDE: usize = STACK_SIZE + size_of::<Head>();

/// The offset of a field of a frame's head from the frame's end.
macro_rules! in_head {
    ($field:ident) => {
        std::mem::offset_of!($crate::engine::Head, $field)
    };
}
pub(crate) use in_head;

/// The frames of a machine, created when the first function is entered.
#[derive(Debug, Default)]
pub struct Stack {
    frames: Option<Frames>,
}

#[derive(Debug)]
pub(crate) struct Frames {
    /// All frames, the outermost last.
    bytes: Arc<SharedBytes>,
    /// Their regions, the outermost first: the first [`MAX_CALL_FRAMES`], and more as
    /// needed.
    regions: Vec<Address>,
    /// Their names in messages.
    names: Vec<Arc<str>>,
    /// The host address of `rest`.
    rest: u64,
}

/// The functions that can be active at once: those of a program, and those of the targets
/// of tail calls.
pub(super) const MAX_FRAMES: usize = MAX_CALL_FRAMES * (MAX_TAIL_CALLS as usize + 1);

/// Frames in reserve: machine code does not check the number of active functions, only its
/// entry does.
const RESERVE: usize = MAX_CALL_FRAMES;

/// The offset in the block of the frame at a depth.
const fn start(depth: usize) -> usize {
    (RESERVE + MAX_FRAMES - 1).saturating_sub(depth) * STRIDE
}

impl Stack {
    /// The frames, in the memory of `machine`, which must be the same each time.
    pub(super) fn frames(&mut self, machine: &mut Machine) -> Result<&mut Frames, SpaceFull> {
        match &mut self.frames {
            Some(frames) => Ok(frames),
            none => Ok(none.insert(Frames::new(machine)?)),
        }
    }

    /// Removes the frames from the memory of `machine`.
    pub(super) fn remove(self, machine: &mut Machine) {
        for region in self.frames.iter().flat_map(|frames| &frames.regions) {
            machine.space.remove(*region);
        }
    }
}

impl Frames {
    fn new(machine: &mut Machine) -> Result<Self, SpaceFull> {
        let bytes = Arc::new(SharedBytes::zeroed((RESERVE + MAX_FRAMES) * STRIDE));
        let rest = bytes.host_address() + (start(0) + STACK_SIZE + STRIDE) as u64;
        let mut frames = Self {
            bytes,
            regions: Vec::new(),
            names: Vec::new(),
            rest,
        };
        frames.reach(machine, 0)?;
        Ok(frames)
    }

    /// Creates the regions of the frames that a program or a callback may use, whose first
    /// frame is the one at a depth.
    #[inline]
    pub(super) fn reach(&mut self, machine: &mut Machine, depth: usize) -> Result<(), SpaceFull> {
        let frames = (depth + MAX_CALL_FRAMES).min(RESERVE + MAX_FRAMES);
        match frames > self.regions.len() {
            true => self.grow(machine, frames),
            false => Ok(()),
        }
    }

    #[cold]
    fn grow(&mut self, machine: &mut Machine, frames: usize) -> Result<(), SpaceFull> {
        let name: Arc<str> = Arc::from("stack");
        for depth in self.regions.len()..frames {
            let window = start(depth)..start(depth) + STACK_SIZE;
            let frame = Region::window(name.clone(), self.bytes.clone(), window);
            self.regions.push(machine.space.insert(frame)?);
            self.names.push(name.clone());
            self.store_number(depth);
        }
        Ok(())
    }

    /// The end of the frame that would be around the outermost one, as a host address.
    pub(super) const fn rest(&self) -> u64 {
        self.rest
    }

    /// The number of active frames when this is the end of the innermost.
    pub(super) const fn depth(&self, frame_end: u64) -> usize {
        // The difference is at most the size of the block.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        let bytes = self.rest.wrapping_sub(frame_end) as usize;
        bytes / STRIDE
    }

    /// The value of r10 in the frame at a depth.
    pub(super) fn number(&self, depth: usize) -> u64 {
        let region = self.regions.get(depth);
        region.map_or(0, |at| at.plus((start(depth) + STACK_SIZE) as u64))
    }

    /// The address of the first byte of the frame at a depth.
    pub(super) fn first_byte(&self, depth: usize) -> Option<Address> {
        let region = self.regions.get(depth)?;
        Address::from_register(region.plus(start(depth) as u64))
    }

    /// Zeroes the bytes of the frame at a depth.
    pub(super) fn clear(&self, depth: usize) {
        let first = start(depth) / 8;
        self.bytes.clear_words(first..first + STACK_SIZE / 8);
    }

    /// Sets the name in messages of the frame at a depth.
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

    /// Makes pointers to the frame at this depth stale.
    pub(super) fn renew(&mut self, machine: &mut Machine, depth: usize) {
        if let Some(region) = self.regions.get_mut(depth) {
            *region = machine.space.renew(*region);
            self.store_number(depth);
        }
    }

    /// Makes pointers to the frames of all functions that a main program may have called stale,
    /// after an exception. `depth` is that of the first of them.
    pub(super) fn renew_callees(&mut self, machine: &mut Machine, depth: usize) {
        for depth in depth..depth + MAX_CALL_FRAMES - 1 {
            self.renew(machine, depth);
        }
    }

    /// Makes pointers to all frames stale, after a run that stopped in the middle.
    pub(super) fn renew_all(&mut self, machine: &mut Machine) {
        for depth in 0..self.regions.len() {
            self.renew(machine, depth);
        }
    }

    /// Stores a frame's number in its head.
    fn store_number(&mut self, depth: usize) {
        let at = start(depth) + STACK_SIZE + in_head!(number);
        // In bounds: each frame has a head.
        let _ = self.bytes.store(at, 8, self.number(depth));
    }
}

/// An active function of the checked interpreter, with the state that its caller gets back.
#[derive(Debug, Clone)]
pub(super) struct Frame<'a> {
    /// Its first instruction's slot.
    pub start: i64,
    /// The slot of the call that led here.
    pub from: i64,
    /// The program that the caller runs.
    pub caller: &'a Image,
    /// The slot where the caller continues.
    pub return_to: i64,
    /// The caller's r6 to r9.
    pub saved: [u64; 4],
    /// The caller's r10.
    pub frame_pointer: u64,
    /// The loops left for `may_goto`.
    pub loops_left: u32,
    /// Whether the function's frame escapes.
    pub frame_escapes: bool,
    /// The depth of calls up to this function, since the program or the callback of a
    /// helper began.
    pub chain: usize,
    /// The call's event, if programs at the function's exit are to see it.
    pub traced: Option<TracedCall>,
}

impl<'a> Frame<'a> {
    /// The frame of the function at `start` of the program that `caller` runs, called at
    /// `from`; the first of its chain.
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
            frame_escapes: caller.frame_escapes(start),
            chain: 1,
            traced: None,
        }
    }

    /// Hands the frame over to the program `image`; returns whether the old function's
    /// frame escaped.
    pub(super) fn leave_to(&mut self, image: &Image) -> bool {
        (self.start, self.chain) = (0, 1);
        self.loops_left = MAX_MAY_GOTO;
        std::mem::replace(&mut self.frame_escapes, image.frame_escapes(0))
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
        assert_eq!(frames.regions.len(), MAX_CALL_FRAMES);
        frames
            .reach(&mut machine, MAX_FRAMES - MAX_CALL_FRAMES)
            .unwrap();
        assert_eq!(frames.regions.len(), MAX_FRAMES);
        for depth in 0..MAX_FRAMES {
            let end = frames.rest() - ((depth + 1) * STRIDE) as u64;
            assert_eq!(frames.depth(end), depth + 1);
            let number = frames.number(depth);
            // Its bytes are accessible to the program, and those around it are not.
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
            "reads 8 bytes at stack of f+504, which was freed"
        );
        assert_eq!(machine.space.load(frames.number(1) - 8, 8), Ok(0));
        assert_eq!(machine.space.load(other - 8, 8), Ok(0));
        frames.renew_all(&mut machine);
        assert!(machine.space.load(other - 8, 8).is_err());
        // The same frames again.
        let again = stack.frames(&mut machine).unwrap().number(0);
        assert_eq!(machine.space.load(again - 8, 8), Ok(0));
    }
}
