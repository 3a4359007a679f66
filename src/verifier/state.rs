//! Where a walk stands: the frames of the calls, the references held, and the way
//! back to where it forked (`struct bpf_verifier_state`).

use super::reg::{MapRef, RegState};
use super::stack::{SLOT, Slot};
use crate::isa::Reg;
use crate::spec::limits::{MAX_CALL_FRAMES, STACK_SIZE};
use crate::util::{HelperId, Pc};

/// The most slots of a frame.
pub(crate) const MAX_SLOTS: usize = STACK_SIZE / SLOT;

/// A kept state, by its place in the [`Arena`](super::prune::Arena).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateId(pub u32);

/// No instruction: what was walked before a walk's first one.
pub(crate) const NO_PC: Pc = Pc(u32::MAX);

/// The values that may be in `r0` at an exit (`struct bpf_retval_range`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReturnRange {
    pub min: i32,
    pub max: i32,
}

/// Why a frame was entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// The main program, a global function verified on its own, or a call.
    Call,
    /// A helper that calls back before it returns.
    Callback,
    /// A helper that has it called later; with the count of such entries.
    AsyncCallback(u32),
}

/// The registers and the stack of a function that is being walked
/// (`struct bpf_func_state`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub regs: [RegState; Reg::COUNT],
    /// The slots that were touched so far; more are as if never written.
    pub stack: Vec<Slot>,
    /// The call that led here; none for the main function.
    pub callsite: Option<Pc>,
    /// The function's number.
    pub subprogram: u32,
    /// Why it was entered.
    pub entry: Entry,
    /// What a callback has to return.
    pub callback_range: ReturnRange,
    /// How often a callback was simulated by the call in this frame.
    pub callback_depth: u32,
    /// The helper that the callback is for, where the rules of its context need it.
    pub callback_of: Option<HelperId>,
}

impl Frame {
    /// A frame that begins with nothing in its registers.
    pub(crate) fn new(callsite: Option<Pc>, subprogram: u32, number: u8) -> Self {
        let mut regs = [RegState::NOT_INIT; Reg::COUNT];
        let frame_pointer = super::reg::Kind::Stack { frame: number };
        regs[Reg::FP.index()] = RegState::pointer(frame_pointer, Default::default());
        Self {
            regs,
            stack: Vec::new(),
            callsite,
            subprogram,
            entry: Entry::Call,
            callback_range: ReturnRange { min: 0, max: 0 },
            callback_depth: 0,
            callback_of: None,
        }
    }

    pub(crate) const fn in_callback(&self) -> bool {
        !matches!(self.entry, Entry::Call)
    }

    /// Makes slots up to and with this one.
    pub(crate) fn grow(&mut self, slot: usize) {
        if self.stack.len() <= slot && slot < MAX_SLOTS {
            self.stack.resize(slot + 1, Slot::EMPTY);
        }
    }

    /// Every register and every spilled one.
    pub(crate) fn all_regs_mut(&mut self) -> impl Iterator<Item = &mut RegState> {
        let spilled = self.stack.iter_mut().filter(|slot| slot.is_spill());
        self.regs
            .iter_mut()
            .chain(spilled.map(|slot| &mut slot.reg))
    }
}

/// Something acquired and to be given back (`struct bpf_reference_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The number that pointers to it carry in `ref_id`.
    pub id: u32,
    /// The call that acquired it.
    pub pc: Pc,
    /// What it is.
    pub held: Held,
}

/// What is held (`enum ref_state_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// An object, to be given back.
    Object,
    /// The `bpf_spin_lock` in a value of this map; the reference's number is that of the
    /// pointer to the value.
    SpinLock(MapRef),
}

/// One step back on the path to a state (`struct bpf_jmp_history_entry`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The instruction that was walked.
    pub pc: Pc,
    /// The one before it.
    pub prev: Pc,
    /// The slot that it spilled to or filled from through any pointer: frame and slot.
    pub stack: Option<(u8, u8)>,
    /// Whether the operands of its comparison, destination and source, are pointers to
    /// the stack.
    pub stack_operands: (bool, bool),
    /// The registers and slots that its comparison bounded together.
    pub linked: LinkedSet,
}

/// A register or slot of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Linked {
    pub frame: u8,
    /// Number of a register or of a slot.
    pub at: u8,
    pub is_reg: bool,
}

/// Up to six of them (`linked_regs_pack`: what fits in a history entry).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LinkedSet {
    packed: u64,
}

impl LinkedSet {
    /// How many fit (`LINKED_REGS_MAX`).
    pub(crate) const MAX: usize = 6;
    /// Bits of an entry: 3 of the frame, 6 of the number, 1 of the sort.
    const BITS: u32 = 10;

    pub(crate) const fn len(self) -> usize {
        (self.packed & 0xf) as usize
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.packed == 0
    }

    /// Adds one; `false` if there is no room.
    pub(crate) fn push(&mut self, linked: Linked) -> bool {
        let len = self.len();
        if len >= Self::MAX {
            return false;
        }
        let entry =
            u64::from(linked.frame) | u64::from(linked.at) << 3 | u64::from(linked.is_reg) << 9;
        let shift = 4 + Self::BITS * u32::try_from(len).unwrap_or(0);
        self.packed = (self.packed & !0xf) | entry << shift | (len as u64 + 1);
        true
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Linked> + Clone {
        (0..self.len()).map(move |n| {
            let entry = self.packed >> (4 + Self::BITS as usize * n);
            Linked {
                frame: (entry & 7) as u8,
                at: (entry >> 3 & 0x3f) as u8,
                is_reg: entry >> 9 & 1 == 1,
            }
        })
    }
}

/// Where a walk stands.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The calls, the outermost first; never empty.
    pub frames: Vec<Frame>,
    /// What is held.
    pub refs: Vec<Reference>,
    /// The kept state that this one came from.
    pub parent: Option<StateId>,
    /// How many paths from here are still to be walked.
    pub branches: u32,
    /// The instruction at which it was kept.
    pub pc: Pc,
    /// The first instruction since the parent.
    pub first: Pc,
    /// The last one walked.
    pub last: Pc,
    /// The steps since the parent that can't be told from the code alone.
    pub history: Vec<Step>,
    /// Kept states above it.
    pub depth: u32,
    pub callback_unroll_depth: u32,
    pub may_goto_depth: u32,
    /// Whether a program that may sleep does so here.
    pub sleepable: bool,
    /// Whether what is dead was removed from it.
    pub cleaned: bool,
    /// The kept state that it was found equal to.
    pub equal_to: Option<StateId>,
}

impl State {
    /// A walk that begins in this frame.
    pub(crate) fn new(frame: Frame) -> Self {
        Self {
            frames: vec![frame],
            refs: Vec::new(),
            parent: None,
            branches: 0,
            pc: NO_PC,
            first: NO_PC,
            last: NO_PC,
            history: Vec::new(),
            depth: 0,
            callback_unroll_depth: 0,
            may_goto_depth: 0,
            sleepable: false,
            cleaned: false,
            equal_to: None,
        }
    }

    /// The number of the innermost frame.
    pub(crate) fn current(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// The innermost frame.
    #[expect(
        clippy::expect_used,
        reason = "a state has a frame from its making to its end"
    )]
    pub(crate) fn frame(&self) -> &Frame {
        self.frames.last().expect("a state has a frame")
    }

    /// The innermost frame.
    #[expect(
        clippy::expect_used,
        reason = "a state has a frame from its making to its end"
    )]
    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a state has a frame")
    }

    pub(crate) fn reg(&self, reg: Reg) -> &RegState {
        &self.frame().regs[reg.index()]
    }

    pub(crate) fn reg_mut(&mut self, reg: Reg) -> &mut RegState {
        &mut self.frame_mut().regs[reg.index()]
    }

    /// Every register of every frame, spilled ones included.
    pub(crate) fn all_regs_mut(&mut self) -> impl Iterator<Item = &mut RegState> {
        self.frames.iter_mut().flat_map(Frame::all_regs_mut)
    }

    /// Where a frame stands: the innermost at `pc`, the others at their calls
    /// (`frame_insn_idx`).
    pub(crate) fn frame_pc(&self, frame: usize) -> Pc {
        self.frames
            .get(frame + 1)
            .and_then(|next| next.callsite)
            .unwrap_or(self.pc)
    }

    /// Whether both came by the same calls (`same_callsites`).
    pub(crate) fn same_callsites(&self, other: &Self) -> bool {
        self.frames.len() == other.frames.len()
            && std::iter::zip(&self.frames, &other.frames).all(|(a, b)| a.callsite == b.callsite)
    }

    /// Whether one more frame may be entered.
    pub(crate) fn can_enter(&self) -> bool {
        self.frames.len() < MAX_CALL_FRAMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_links_fit_into_a_step() {
        let mut set = LinkedSet::default();
        let link = |n: u8| Linked {
            frame: n % 8,
            at: 63 - n,
            is_reg: n % 2 == 0,
        };
        for n in 0..6 {
            assert!(set.push(link(n)));
        }
        assert!(!set.push(link(6)));
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            (0..6).map(link).collect::<Vec<_>>()
        );
    }
}
