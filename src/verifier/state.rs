//! The verifier state: call frames, acquired references and the link to the parent
//! checkpoint (`struct bpf_verifier_state`).

use std::mem::take;

use super::history::{History, NO_PC, Steps};
use super::references::References;
use super::reg::RegState;
use super::stack::{SLOT, Slot};
use crate::isa::Reg;
use crate::spec::limits::{MAX_CALL_FRAMES, STACK_SIZE};
use crate::util::{HelperId, Pc};

/// The maximum number of slots of a frame.
pub(crate) const MAX_SLOTS: usize = STACK_SIZE / SLOT;

/// The index of a checkpoint in the [`Arena`](super::prune::Arena).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateId(pub u32);

/// The index of a register or slot of a checkpoint in its [`Pool`](super::pool::Pool).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ValueId(pub u32);

/// The values allowed in `r0` at an exit (`struct bpf_retval_range`).
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
    /// A callback that the helper calls before it returns.
    Callback,
    /// A callback that the helper schedules for later, with the number of such entries so
    /// far.
    AsyncCallback(u32),
}

/// The registers and the stack of a function call (`struct bpf_func_state`).
///
/// A state that is being explored owns them. Checkpoints [share](SavedState) them.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Frame<R = RegState, S = Slot> {
    pub regs: [R; Reg::COUNT],
    /// The slots touched so far; slots beyond them were never written.
    pub stack: Vec<S>,
    /// The call instruction; `None` for the main function.
    pub callsite: Option<Pc>,
    /// The function's number.
    pub subprogram: u32,
    /// Why it was entered.
    pub entry: Entry,
    /// The values that a callback may return.
    pub callback_range: ReturnRange,
    /// How many times the call in this frame has simulated its callback.
    pub callback_depth: u32,
    /// The helper that calls this callback, if context rules depend on it.
    pub callback_of: Option<HelperId>,
}

impl Frame {
    /// A frame with uninitialised registers, except for the frame pointer.
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

    /// Extends the stack up to and including this slot.
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

impl<R, S> Frame<R, S> {
    pub(crate) const fn in_callback(&self) -> bool {
        !matches!(self.entry, Entry::Call)
    }

    /// The same call with other registers and another stack.
    pub(crate) const fn with<R2, S2>(
        &self,
        regs: [R2; Reg::COUNT],
        stack: Vec<S2>,
    ) -> Frame<R2, S2> {
        Frame {
            regs,
            stack,
            callsite: self.callsite,
            subprogram: self.subprogram,
            entry: self.entry,
            callback_range: self.callback_range,
            callback_depth: self.callback_depth,
            callback_of: self.callback_of,
        }
    }
}

impl<R: Copy, S: Copy> Clone for Frame<R, S> {
    fn clone(&self) -> Self {
        self.with(self.regs, self.stack.clone())
    }

    /// The registers are copied once: they are large.
    fn clone_from(&mut self, from: &Self) {
        let Self {
            regs,
            stack,
            callsite,
            subprogram,
            entry,
            callback_range,
            callback_depth,
            callback_of,
        } = self;
        *regs = from.regs;
        stack.clone_from(&from.stack);
        *callsite = from.callsite;
        *subprogram = from.subprogram;
        *entry = from.entry;
        *callback_range = from.callback_range;
        *callback_depth = from.callback_depth;
        *callback_of = from.callback_of;
    }
}

/// A verifier state.
#[derive(Debug)]
pub(crate) struct State<R = RegState, S = Slot> {
    /// The calls, the outermost first; never empty.
    pub frames: Vec<Frame<R, S>>,
    /// The references acquired and not yet released.
    pub refs: References,
    /// The checkpoint that this state descends from.
    pub parent: Option<StateId>,
    /// The number of paths from here that are not yet explored to their end.
    pub branches: u32,
    /// The instruction at which it was checkpointed.
    pub pc: Pc,
    /// The first instruction since the parent.
    pub first: Pc,
    /// The last instruction before the checkpoint.
    pub last: Pc,
    /// The steps since the parent that the code alone doesn't determine.
    pub history: History,
    /// The number of checkpoints above it.
    pub depth: u32,
    pub callback_unroll_depth: u32,
    pub may_goto_depth: u32,
    /// Whether a program that may sleep does so here.
    pub sleepable: bool,
    /// Whether only speculative execution reaches it.
    pub speculative: bool,
    /// The RCU read sections that the program has entered (`active_rcu_locks`).
    pub rcu_locks: u32,
    /// How often it has disabled preemption (`active_preempt_locks`).
    pub preempt_locks: u32,
    /// The reference of the innermost saved interrupt state, or 0 (`active_irq_id`).
    pub irq_id: u32,
    /// Whether dead registers and slots were removed.
    pub cleaned: bool,
    /// For a back edge: the checkpoint that subsumes it.
    pub equal_to: Option<StateId>,
    /// The first instruction on the way here that left no number to some register: no run comes
    /// here.
    pub contradiction: Option<Pc>,
}

/// A state that is not explored any further: a checkpoint. Most registers and slots are as
/// they were at the checkpoint before it; such a register is stored once, for both.
pub(crate) type SavedState = State<ValueId, ValueId>;
/// A frame of a checkpoint.
pub(crate) type SavedFrame = Frame<ValueId, ValueId>;

/// The way from the parent checkpoint to a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub parent: Option<StateId>,
    /// The first and the last instruction.
    pub first: Pc,
    pub last: Pc,
    /// The steps that the code alone doesn't determine.
    pub history: Steps<'a>,
}

impl State {
    /// The initial state, with this frame.
    pub(crate) fn new(frame: Frame) -> Self {
        Self {
            frames: vec![frame],
            refs: References::default(),
            parent: None,
            branches: 0,
            pc: NO_PC,
            first: NO_PC,
            last: NO_PC,
            history: History::default(),
            depth: 0,
            callback_unroll_depth: 0,
            may_goto_depth: 0,
            sleepable: false,
            speculative: false,
            rcu_locks: 0,
            preempt_locks: 0,
            irq_id: 0,
            cleaned: false,
            equal_to: None,
            contradiction: None,
        }
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

    /// Makes every register precise: precision is not tracked for a loader without `CAP_BPF`.
    pub(crate) fn make_precise(&mut self) {
        for reg in self.all_regs_mut() {
            reg.precise = true;
        }
    }

    /// Whether one more frame may be entered.
    pub(crate) fn can_enter(&self) -> bool {
        self.frames.len() < MAX_CALL_FRAMES
    }
}

impl<R: Copy, S: Copy> Clone for State<R, S> {
    fn clone(&self) -> Self {
        self.with(self.frames.clone(), self.refs.clone(), self.history.clone())
    }

    /// Reuses the memory of frames, references and history.
    fn clone_from(&mut self, from: &Self) {
        self.frames.clone_from(&from.frames);
        self.refs.clone_from(&from.refs);
        self.history.clone_from(&from.history);
        let (frames, refs, history) = (
            take(&mut self.frames),
            take(&mut self.refs),
            take(&mut self.history),
        );
        *self = from.with(frames, refs, history);
    }
}

impl<R, S> State<R, S> {
    /// The same state with other frames, references and history.
    pub(crate) const fn with<R2, S2>(
        &self,
        frames: Vec<Frame<R2, S2>>,
        refs: References,
        history: History,
    ) -> State<R2, S2> {
        State {
            frames,
            refs,
            history,
            parent: self.parent,
            branches: self.branches,
            pc: self.pc,
            first: self.first,
            last: self.last,
            depth: self.depth,
            callback_unroll_depth: self.callback_unroll_depth,
            may_goto_depth: self.may_goto_depth,
            sleepable: self.sleepable,
            speculative: self.speculative,
            rcu_locks: self.rcu_locks,
            preempt_locks: self.preempt_locks,
            irq_id: self.irq_id,
            cleaned: self.cleaned,
            equal_to: self.equal_to,
            contradiction: self.contradiction,
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
    pub(crate) fn frame(&self) -> &Frame<R, S> {
        self.frames.last().expect("a state has a frame")
    }

    /// The function of the outermost frame, and whether exploration began with it and is in
    /// it.
    pub(crate) fn root(&self) -> (u32, bool) {
        let outermost = self.frames.first();
        let alone = outermost.is_some_and(|frame| frame.callsite.is_none());
        let subprogram = outermost.map_or(0, |frame| frame.subprogram);
        (subprogram, alone && self.frames.len() == 1)
    }

    /// The way from the parent checkpoint.
    pub(crate) fn segment(&self) -> Segment<'_> {
        Segment {
            parent: self.parent,
            first: self.first,
            last: self.last,
            history: self.history.steps(),
        }
    }

    /// The current instruction of a frame: `pc` for the innermost one, the call for the
    /// others (`frame_insn_idx`).
    pub(crate) fn frame_pc(&self, frame: usize) -> Pc {
        self.frames
            .get(frame + 1)
            .and_then(|next| next.callsite)
            .unwrap_or(self.pc)
    }

    /// Whether both states have the same call chain (`same_callsites`).
    pub(crate) fn same_callsites<R2, S2>(&self, other: &State<R2, S2>) -> bool {
        self.frames.len() == other.frames.len()
            && std::iter::zip(&self.frames, &other.frames).all(|(a, b)| a.callsite == b.callsite)
    }
}
