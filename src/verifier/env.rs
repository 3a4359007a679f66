//! What a verification holds (`struct bpf_verifier_env`). The rooms beside this one
//! are its methods: `explore` drives the walk, the others judge one thing each.

use std::sync::Arc;

use super::attach_target::AttachTarget;
use super::call::signature::Signatures;
use super::facts::Facts;
use super::liveness::{CallChain, StackLiveness};
use super::log::Log;
use super::maps::Maps;
use super::options::Options;
use super::oracle::record::Recorder;
use super::prune::Arena;
use super::reg::{Kind, MapRef, RegState};
use super::reject::Checked;
use super::requirements::Requirements;
use super::state::{Frame, NO_PC, State};
use super::structure::{self, InsnInfo, Structure, SubprogramInfo, Usage};
use super::verdict::Statistics;
use crate::isa::{Code, Reg};
use crate::program::{MapDef, Program};
use crate::spec::AttachType;
use crate::spec::helpers::{Caller, TypeFlags};
use crate::util::Pc;

/// A fork of the walk that waits for its turn (`struct bpf_verifier_stack_elem`).
#[derive(Debug)]
pub(crate) struct Pending {
    pub state: State,
    /// Where it goes on.
    pub pc: Pc,
    /// Where it forked.
    pub prev: Pc,
    /// How long the log was then.
    pub log_len: usize,
}

/// The numbers of the walk.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Instructions walked (`insn_processed`).
    pub processed: u64,
    /// Jumps walked.
    pub jumps: u64,
    /// Both when the last state was kept.
    pub processed_before: u64,
    pub jumps_before: u64,
    /// States kept in all, at most at once, and at most at one instruction.
    pub total_states: u64,
    pub peak_states: u64,
    pub max_states_per_insn: u64,
}

/// What the log shows after an instruction: registers and slots of the innermost frame
/// that it touched (`scratched_regs`, `scratched_stack_slots`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Touched {
    pub regs: u16,
    pub slots: u64,
}

/// A verification under way.
pub(crate) struct Verifier<'p> {
    pub program: &'p Program,
    pub maps: Maps<'p>,
    /// What the program attaches to, if it says so by a type in the kernel's BTF.
    pub attach: Option<AttachTarget<'p>>,
    /// What it asks of the one who attaches or runs it.
    pub requires: Requirements,
    pub options: Options,
    /// What is known before the walk.
    pub structure: Arc<Structure>,
    pub log: Log,
    /// Where the walk stands.
    pub state: State,
    /// The instruction under way, and the one walked before it.
    pub pc: Pc,
    pub prev: Pc,
    /// Forks that wait, the next one last.
    pub pending: Vec<Pending>,
    /// The states that were kept for pruning.
    pub arena: Arena,
    pub liveness: StackLiveness,
    /// The last id given out.
    pub last_id: u32,
    pub counts: Counts,
    pub touched: Touched,
    /// Whether the instruction under way has a step in the history (`cur_hist_ent`).
    pub step_noted: bool,
    /// What the walk finds out about each function.
    pub usage: Vec<Usage>,
    /// What the program is to helpers.
    pub caller: Caller<'p>,
    /// For each load and store, what it goes through (`ptr_type`).
    pub pointers: Vec<Option<(Kind, TypeFlags)>>,
    /// What is proved for the engines.
    pub facts: Facts,
    /// Who records the states of the walk; the walk then goes on where a verdict's
    /// would be cut off.
    pub recorder: Option<Box<Recorder>>,
    /// The types of the functions' arguments, as far as they were asked for.
    pub signatures: Signatures,
    /// Which global functions were called, and so are to be verified on their own.
    pub called: Vec<bool>,
}

impl<'p> Verifier<'p> {
    /// A verification that is about to begin.
    pub(super) fn new(
        program: &'p Program,
        caller: Caller<'p>,
        attach: Option<AttachTarget<'p>>,
        structure: Structure,
        log: Log,
        options: Options,
    ) -> Self {
        let subprograms = structure.subprograms.len();
        let slots = structure.code.len();
        Self {
            program,
            attach,
            requires: Requirements::default(),
            maps: Maps::new(program),
            options,
            log,
            state: State::new(Frame::new(None, 0, 0)),
            pc: Pc(0),
            prev: NO_PC,
            pending: Vec::new(),
            arena: Arena::new(slots),
            liveness: StackLiveness::new(&structure),
            last_id: 0,
            counts: Counts::default(),
            touched: Touched::default(),
            step_noted: false,
            usage: structure.subprograms.iter().map(Usage::of).collect(),
            caller,
            pointers: vec![None; slots],
            facts: Facts::new(slots),
            recorder: None,
            called: vec![false; subprograms],
            signatures: Signatures::new(subprograms),
            structure: Arc::new(structure),
        }
    }

    /// Walks the program, then each global function that is called, and holds their
    /// stacks against the limits.
    pub(super) fn verify(&mut self) -> Checked {
        self.walk_subprogram(0)?;
        self.walk_called_globals()?;
        let starts = self.structure.subprograms.iter().map(|sub| sub.start);
        let depths = self.usage.iter().map(|usage| usage.stack_depth);
        self.facts.set_stacks(starts.zip(depths));
        self.structure.final_stack_depths(&mut self.usage);
        structure::check_max_stack_depth(self.program, &self.structure, &self.usage)?;
        self.check_rewrite()
    }

    /// The numbers of the walk so far.
    pub(super) fn statistics(&self) -> Statistics {
        let counts = &self.counts;
        Statistics {
            processed: counts.processed,
            total_states: counts.total_states,
            peak_states: counts.peak_states,
            max_states_per_insn: counts.max_states_per_insn,
            time_us: None,
            stack_depth: self.usage.iter().map(|usage| usage.stack_depth).collect(),
        }
    }

    /// The stack of each function as the statistics of an accepted program show it.
    pub(super) fn reported_depths(&self) -> Vec<u32> {
        let seen = |pc| self.facts.is_seen(pc);
        let plain_loop = |pc| self.facts.may_be_plain_loop(pc);
        self.structure
            .reported_depths(&self.usage, seen, plain_loop)
    }

    /// The program's instructions.
    pub(crate) fn code(&self) -> &Code {
        &self.structure.code
    }

    /// The attach type that the program is verified for: the one that it names, or that
    /// the kernel takes for it.
    pub(crate) fn attach_type(&self) -> Option<AttachType> {
        self.caller.attach_type
    }

    /// A new id (`++env->id_gen`).
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// What is known of the instruction at `pc` before the walk.
    pub(crate) fn insn_info(&self, pc: Pc) -> &InsnInfo {
        &self.structure.insns[pc.index()]
    }

    /// The function of this number.
    pub(crate) fn subprogram(&self, number: u32) -> &SubprogramInfo {
        &self.structure.subprograms[number as usize]
    }

    /// The number of the function that begins at `pc`.
    pub(crate) fn subprogram_at(&self, pc: Pc) -> Option<u32> {
        u32::try_from(self.structure.subprogram_at(pc)?).ok()
    }

    /// The definition of a map that a register points to.
    pub(crate) fn map(&self, map: MapRef) -> Option<&'p MapDef> {
        self.maps.def(map)
    }

    pub(crate) fn reg(&self, reg: Reg) -> &RegState {
        self.state.reg(reg)
    }

    /// A register that is about to change.
    pub(crate) fn reg_mut(&mut self, reg: Reg) -> &mut RegState {
        self.state.reg_mut(reg)
    }

    /// Sets a register and shows it in the log.
    pub(crate) fn set_reg(&mut self, reg: Reg, state: RegState) {
        self.touch(reg);
        *self.state.reg_mut(reg) = state;
    }

    pub(crate) fn frame(&self) -> &Frame {
        self.state.frame()
    }

    /// The log shows this register next.
    pub(crate) fn touch(&mut self, reg: Reg) {
        self.touched.regs |= 1 << reg.number();
    }

    /// The log shows this slot of the innermost frame next.
    pub(crate) fn touch_slot(&mut self, slot: usize) {
        self.touched.slots |= 1 << slot;
    }

    /// The way that led to frame number `frame`, for the liveness of the stack.
    pub(crate) fn chain(state: &State, structure: &Structure, frame: usize) -> CallChain {
        CallChain::new((0..=frame).filter_map(|number| {
            let this = state.frames.get(number)?;
            let start = structure.subprograms.get(this.subprogram as usize)?.start;
            let callsite = state.frames.get(number + 1).and_then(|next| next.callsite);
            Some((start, callsite))
        }))
    }

    /// Says that the instruction under way reads these slots of a frame.
    pub(crate) fn stack_read(&mut self, frame: u8, slots: u64) {
        let (state, structure) = (&self.state, &self.structure);
        let chain = || Self::chain(state, structure, state.current());
        self.liveness.read(chain, frame.into(), self.pc, slots);
    }

    /// Says that the instruction under way overwrites these slots of a frame.
    pub(crate) fn stack_write(&mut self, frame: u8, slots: u64) {
        self.liveness.write(frame.into(), slots);
    }
}
