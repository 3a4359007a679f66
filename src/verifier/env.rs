//! The verifier's environment (`struct bpf_verifier_env`). The other modules implement its
//! methods: `explore` has the main loop, each of the others checks one thing.

use super::attach_target::AttachTarget;
use super::call::Functions;
use super::explore::counts::Counts;
use super::explore::position::Position;
use super::explore::worklist::Worklist;
use super::facts::Facts;
use super::id::IdGenerator;
use super::liveness::{CallChain, StackLiveness};
use super::log::Log;
use super::maps::Maps;
use super::memory::pointers::Pointers;
use super::options::Options;
use super::oracle::record::Recorder;
use super::precision::backtrack_cache::BacktrackCache;
use super::privileges::Privileges;
use super::prune::Arena;
use super::reg::{MapRef, RegState};
use super::reject::VerifyResult;
use super::requirements::Required;
use super::speculation::mitigations::Speculation;
use super::state::{Frame, State};
use super::struct_ops::ArgumentReferences;
use super::structure::{self, InsnInfo, Structure, SubprogramInfo, Usage};
use super::survey::Survey;
use super::verdict::Statistics;
use crate::isa::{Code, Operand, Reg};
use crate::program::{MapDef, Program};
use crate::spec::AttachType;
use crate::spec::helpers::Caller;
use crate::util::Pc;

/// The state of one verification.
///
/// The first group of fields is only read. Each other field but `state` is of a type whose
/// module alone sees its content; the other modules call its methods.
pub(crate) struct Verifier<'p> {
    pub program: &'p Program,
    pub options: &'p Options,
    /// How the helper tables see the program.
    pub caller: &'p Caller<'p>,
    /// The attach target, if the program names a type in the kernel's BTF.
    pub attach: Option<&'p AttachTarget<'p>>,
    /// The results of the checks before exploration.
    pub structure: &'p Structure,
    pub maps: Maps<'p>,
    /// What the loader may do.
    pub privileges: Privileges,

    /// The current state. Every check changes it.
    pub state: State,
    /// The current instruction.
    pub position: Position,
    /// The states that wait to be explored.
    pub worklist: Worklist,
    pub counts: Counts,
    pub ids: IdGenerator,
    pub log: Log,
    /// The explored states, for pruning.
    pub arena: Arena,
    /// What backtracking found on the path since the last checkpoint.
    pub backtrack_cache: BacktrackCache,
    pub liveness: StackLiveness,
    /// The kind of pointer that each load and store uses.
    pub pointers: Pointers,
    /// The signatures of the functions, and which ones are called.
    pub functions: Functions,
    /// The arguments of a struct_ops program that are references.
    pub argument_references: ArgumentReferences,
    /// What is done against speculative execution.
    pub speculation: Speculation,

    /// What exploration finds out about each function.
    pub usage: Usage,
    /// What the program requires of its context and buffers.
    pub requires: Required,
    /// What is proved for the engines.
    pub facts: Facts,
    /// Records the explored states, if set. Pruning is stricter then: states must be
    /// subsumed for dead registers, too.
    pub recorder: Option<Box<Recorder>>,
    /// Notes what exploration does at each instruction, if set.
    pub survey: Option<Box<Survey>>,
}

impl<'p> Verifier<'p> {
    /// Prepares a verification.
    pub(super) fn new(
        program: &'p Program,
        caller: &'p Caller<'p>,
        attach: Option<&'p AttachTarget<'p>>,
        structure: &'p Structure,
        mut log: Log,
        options: &'p Options,
    ) -> Self {
        let privileges = Privileges::of(caller.capabilities, options.token.is_some(), program.arch);
        log.show_addresses(privileges.allow_ptr_leaks);
        let slots = structure.code.len();
        Self {
            program,
            options,
            caller,
            attach,
            structure,
            maps: Maps::new(program),
            privileges,
            state: State::new(Frame::new(None, 0, 0)),
            position: Position::START,
            worklist: Worklist::default(),
            counts: Counts::default(),
            ids: IdGenerator::default(),
            log,
            arena: Arena::new(slots),
            backtrack_cache: BacktrackCache::default(),
            liveness: StackLiveness::new(structure),
            pointers: Pointers::new(slots),
            functions: Functions::new(structure.subprograms.len()),
            argument_references: ArgumentReferences::default(),
            speculation: Speculation::default(),
            usage: Usage::new(structure),
            requires: Required::default(),
            facts: Facts::new(slots),
            recorder: None,
            survey: None,
        }
    }

    /// Explores the program, then each called global function, and checks the stack limits.
    pub(super) fn verify(&mut self) -> VerifyResult {
        self.explore_subprogram(0)?;
        self.explore_called_globals()?;
        let starts = self.structure.subprograms.iter().map(|sub| sub.start);
        self.facts.set_stacks(starts.zip(self.usage.stack_depths()));
        self.structure.final_stack_depths(&mut self.usage);
        let is_extension = self.is_extension();
        structure::check_max_stack_depth(self.program, self.structure, &self.usage, is_extension)?;
        self.check_rewrite()
    }

    /// The counters so far.
    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            processed: self.counts.processed(),
            total_states: self.arena.total(),
            peak_states: self.arena.peak(),
            max_states_per_insn: self.arena.max_per_insn(),
            time_us: None,
            stack_depth: self.usage.stack_depths().collect(),
        }
    }

    /// The stack depth of each function as the statistics of an accepted program show it.
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

    /// The attach type that the program is verified for: the one it names, or the kernel's
    /// default for it.
    pub(crate) fn attach_type(&self) -> Option<AttachType> {
        self.caller.attach_type
    }

    /// The current instruction.
    pub(crate) const fn pc(&self) -> Pc {
        self.position.pc()
    }

    /// A new id (`++env->id_gen`).
    pub(crate) fn new_id(&mut self) -> u32 {
        self.ids.assign()
    }

    /// What the structure checks found about the instruction at `pc`.
    pub(crate) fn insn_info(&self, pc: Pc) -> &InsnInfo {
        &self.structure.insns[pc.index()]
    }

    /// The function with this number.
    pub(crate) fn subprogram(&self, number: u32) -> &SubprogramInfo {
        &self.structure.subprograms[number as usize]
    }

    /// The number of the function that begins at `pc`.
    pub(crate) fn subprogram_at(&self, pc: Pc) -> Option<u32> {
        u32::try_from(self.structure.subprogram_at(pc)?).ok()
    }

    /// The definition of a map that a register refers to.
    pub(crate) fn map(&self, map: MapRef) -> Option<&'p MapDef> {
        self.maps.def(map)
    }

    pub(crate) fn reg(&self, reg: Reg) -> &RegState {
        self.state.reg(reg)
    }

    /// The value of an operand.
    pub(crate) fn operand(&self, operand: Operand) -> RegState {
        match operand {
            Operand::Reg(reg) => *self.reg(reg),
            Operand::Imm(value) => RegState::constant(i64::from(value).cast_unsigned()),
        }
    }

    /// Mutable access to a register.
    pub(crate) fn reg_mut(&mut self, reg: Reg) -> &mut RegState {
        self.state.reg_mut(reg)
    }

    /// Sets a register and marks it for the log.
    pub(crate) fn set_reg(&mut self, reg: Reg, state: RegState) {
        self.log.touch(reg);
        *self.state.reg_mut(reg) = state;
    }

    pub(crate) fn frame(&self) -> &Frame {
        self.state.frame()
    }

    /// Records that the current instruction reads these slots of a frame.
    pub(crate) fn stack_read(&mut self, frame: u8, slots: u64) {
        let (state, structure) = (&self.state, self.structure);
        let chain = || CallChain::of(state, structure, state.current());
        self.liveness.read(chain, frame.into(), self.pc(), slots);
    }

    /// Records that the current instruction overwrites these slots of a frame.
    pub(crate) fn stack_write(&mut self, frame: u8, slots: u64) {
        self.liveness.write(frame.into(), slots);
    }
}
