//! Solves the analysis: iterates over blocks and functions until no state changes.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::{Kind, MapRef};
use super::state::State;
use crate::instrument::calls::{self, Callback, Callee, Extent, Passed, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::isa::{BlockId, CallTarget, Cfg, Code, Insn, Reg, RegSet};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::util::Pc;

/// A tail call, which only returns if it fails.
const TAIL_CALL: Insn = Insn::Call(CallTarget::Helper(id::tail_call));

/// The solution for a whole program.
#[derive(Debug)]
pub(in crate::instrument) struct Dataflow<'p> {
    program: &'p Program,
    code: &'p Code,
    cfg: &'p Cfg,
    /// The state before each reached block.
    blocks: BTreeMap<BlockId, State>,
    /// The joined state at the exits of each function.
    exits: BTreeMap<Pc, State>,
    /// The state at the entry of each function.
    entries: BTreeMap<Pc, State>,
    /// Functions that helpers call back.
    callbacks: BTreeSet<Pc>,
    /// Functions to be analysed (again).
    open: BTreeSet<Pc>,
    /// The callers of each function.
    callers: BTreeMap<Pc, BTreeSet<Pc>>,
}

impl<'p> Dataflow<'p> {
    /// Analyses a program.
    ///
    /// # Errors
    /// The call that can't be recorded, with the reason.
    pub(in crate::instrument) fn new(
        program: &'p Program,
        code: &'p Code,
        cfg: &'p Cfg,
    ) -> Result<Self, (Pc, Reason)> {
        let mut flow = Self {
            program,
            code,
            cfg,
            blocks: BTreeMap::new(),
            exits: BTreeMap::new(),
            entries: BTreeMap::from([(Pc(0), State::of_main())]),
            callbacks: BTreeSet::new(),
            open: BTreeSet::from([Pc(0)]),
            callers: BTreeMap::new(),
        };
        while let Some(function) = flow.open.pop_last() {
            flow.solve(function)?;
        }
        Ok(flow)
    }

    /// Whether a helper calls this function.
    pub(in crate::instrument) fn is_callback(&self, function: Pc) -> bool {
        self.callbacks.contains(&function)
    }

    /// Whether a helper calls this function or one of its callers.
    pub(in crate::instrument) fn is_in_callback(&self, function: Pc) -> bool {
        let mut known = BTreeSet::from([function]);
        let mut open = vec![function];
        while let Some(function) = open.pop() {
            if self.is_callback(function) {
                return true;
            }
            let callers = self.callers.get(&function).into_iter().flatten();
            open.extend(callers.filter(|caller| known.insert(**caller)));
        }
        false
    }

    /// The state at a function's entry.
    pub(in crate::instrument) fn entry(&self, function: Pc) -> Option<&State> {
        self.entries.get(&function)
    }

    /// Passes each reached instruction to `see`, with the states before and after it.
    ///
    /// # Errors
    /// The visitor's.
    pub(in crate::instrument) fn visit<E>(
        &self,
        mut see: impl FnMut(Pc, Insn, &State, &State) -> Result<(), E>,
    ) -> Result<(), E> {
        for (id, state) in &self.blocks {
            let Some(block) = self.cfg.block(*id) else {
                continue;
            };
            let mut state = state.clone();
            let mut pc = block.start;
            while pc < block.end {
                let Some(insn) = self.code.insn(pc) else {
                    break;
                };
                let mut after = state.clone();
                // All calls have been checked by now.
                let goes_on = self.execute(&mut after, insn, pc).unwrap_or(false);
                see(pc, insn, &state, &after)?;
                if !goes_on {
                    break;
                }
                state = after;
                pc = self.code.next(pc);
            }
        }
        Ok(())
    }

    /// Iterates over a function's blocks until no state changes.
    fn solve(&mut self, function: Pc) -> Result<(), (Pc, Reason)> {
        let (Some(entry), Some(start)) = (self.entries.get(&function), self.cfg.block_at(function))
        else {
            return Ok(());
        };
        let entry = entry.clone();
        let mut open = BTreeSet::new();
        if arrive(&mut self.blocks, start, &entry) {
            open.insert(start);
        }
        // A callee's result may have changed, so revisit the blocks that call it.
        let Self { blocks, cfg, .. } = self;
        open.extend(blocks.keys().filter(|id| {
            let block = cfg.block(**id);
            block.is_some_and(|block| {
                cfg.subprograms()
                    .get(block.subprogram as usize)
                    .is_some_and(|sub| sub.start == function)
            })
        }));
        while let Some(id) = open.pop_first() {
            let (Some(block), Some(state)) = (self.cfg.block(id).cloned(), self.blocks.get(&id))
            else {
                continue;
            };
            let mut state = state.clone();
            let mut pc = block.start;
            let mut reached = true;
            while pc < block.end && reached {
                let Some(insn) = self.code.insn(pc) else {
                    break;
                };
                self.call(&state, insn, pc, function)
                    .map_err(|reason| (pc, reason))?;
                if insn == Insn::Exit {
                    self.leave(function, &state);
                }
                if insn == TAIL_CALL && function != Pc(0) {
                    // The target program returns in the function's place.
                    let mut returned = state.clone();
                    returned.set(Reg::R0, Kind::NUMBER);
                    self.leave(function, &returned);
                }
                reached = self
                    .execute(&mut state, insn, pc)
                    .map_err(|reason| (pc, reason))?;
                pc = self.code.next(pc);
            }
            for next in block.successors.iter().filter(|_| reached) {
                if arrive(&mut self.blocks, *next, &state) {
                    open.insert(*next);
                }
            }
        }
        Ok(())
    }

    /// Joins a state at a function's exit; if it changes, the callers are analysed again.
    fn leave(&mut self, function: Pc, state: &State) {
        let changed = match self.exits.get_mut(&function) {
            Some(exit) => exit.join(state),
            None => {
                self.exits.insert(function, state.clone());
                true
            }
        };
        if changed && let Some(callers) = self.callers.get(&function) {
            self.open.extend(callers.iter().copied());
        }
    }

    /// Passes the arguments on if the instruction calls functions of the program.
    fn call(&mut self, state: &State, insn: Insn, pc: Pc, caller: Pc) -> Result<(), Reason> {
        let (callee, entry) = match insn {
            Insn::Call(CallTarget::Subprogram { .. }) => {
                let Some(callee) = target(insn, pc) else {
                    return Ok(());
                };
                (callee, state.passed())
            }
            Insn::Call(call) => {
                let Some((callback, signature)) = self.callback(call)? else {
                    return Ok(());
                };
                let Kind::Function(callee) = state.reg(callback.function) else {
                    return Err(Reason::Instruction("unknown callback function"));
                };
                self.callbacks.insert(callee);
                let mut entry = state.passed_back(self.program, callback, &signature);
                // A callback may run again, after its own changes to the caller's frame.
                if let Some(exit) = self.exits.get(&callee) {
                    entry.caller.clone_from(&exit.caller);
                    entry.caller_join(&state.passed());
                }
                (callee, entry)
            }
            _ => return Ok(()),
        };
        self.callers.entry(callee).or_default().insert(caller);
        let changed = match self.entries.get_mut(&callee) {
            Some(known) => known.join(&entry),
            None => {
                self.entries.insert(callee, entry);
                true
            }
        };
        if changed {
            self.open.insert(callee);
        }
        Ok(())
    }

    fn callback(&self, call: CallTarget) -> Result<Option<(Callback, Signature)>, Reason> {
        Ok(match calls::callee(self.program, call)? {
            Callee::Outside(signature) => signature.callback.map(|it| (it, signature)),
            Callee::Function | Callee::Nobody => None,
        })
    }

    /// Executes an instruction; returns whether the next one is reachable.
    fn execute(&self, state: &mut State, insn: Insn, pc: Pc) -> Result<bool, Reason> {
        match insn {
            Insn::Call(CallTarget::Subprogram { .. }) => {
                let exit = target(insn, pc).and_then(|callee| self.exits.get(&callee));
                let Some(exit) = exit else {
                    return Ok(false);
                };
                state.returned(exit);
            }
            Insn::Call(call) => {
                let Callee::Outside(signature) = calls::callee(self.program, call)? else {
                    return Ok(false);
                };
                let callback = signature.callback.map(|it| state.reg(it.function));
                let exit = match callback {
                    Some(Kind::Function(callee)) => self.exits.get(&callee),
                    _ => None,
                };
                state.called(self.program, &signature, exit);
            }
            Insn::CallReg { .. } => {
                return Err(Reason::Instruction("unknown call target"));
            }
            insn => state.step(self.program, insn, pc),
        }
        Ok(true)
    }
}

/// Joins the state at the start of a block; returns whether it changed.
fn arrive(blocks: &mut BTreeMap<BlockId, State>, block: BlockId, state: &State) -> bool {
    match blocks.get_mut(&block) {
        Some(known) => known.join(state),
        None => {
            blocks.insert(block, state.clone());
            true
        }
    }
}

/// The function of the program that an instruction calls.
fn target(insn: Insn, pc: Pc) -> Option<Pc> {
    let to = insn.subprogram_target(pc)?;
    u32::try_from(to).ok().map(Pc)
}

impl State {
    /// The entry state of a function that is called now.
    fn passed(&self) -> Self {
        let arguments = RegSet::arguments(5);
        let mut entry = Self::entry(RegSet::EMPTY);
        for reg in arguments.iter().filter(|reg| self.defined.contains(*reg)) {
            entry.set(reg, self.reg(reg).inwards());
        }
        entry.caller = self.own_from_inside();
        entry
    }

    /// The entry state of a callback.
    fn passed_back(&self, program: &Program, callback: Callback, signature: &Signature) -> Self {
        let mut entry = Self::entry(RegSet::EMPTY);
        let map = self.map(signature);
        for (reg, passed) in Reg::ARGUMENTS.into_iter().zip(callback.passes) {
            let kind = match (passed, map) {
                (Passed::Number, _) => Kind::NUMBER,
                (Passed::Argument(argument), _) => self.reg(*argument).inwards(),
                (Passed::Map, Some(map)) => Kind::Map(map),
                (Passed::Value, Some(map)) => Kind::value(program, map),
                (Passed::Key, _) => Kind::Private,
                (Passed::Map | Passed::Value, None) => Kind::Unknown,
            };
            entry.set(reg, kind);
        }
        entry.caller = self.own_from_inside();
        entry
    }

    fn caller_join(&mut self, other: &Self) {
        let mut with = self.clone();
        with.caller.clone_from(&other.caller);
        self.join(&with);
    }

    /// Updates the state after the return of a function of the program.
    fn returned(&mut self, exit: &Self) {
        self.take_back(exit);
        if self.lends_caller() {
            self.lose_caller();
        }
        let result = exit.reg(Reg::R0).outwards();
        self.forget(RegSet::CALLER_SAVED);
        if exit.defined.contains(Reg::R0) {
            self.set(Reg::R0, result);
        }
    }

    /// The map in the arguments of a call.
    pub(in crate::instrument) fn map(&self, signature: &Signature) -> Option<MapRef> {
        let at = signature.roles.iter().position(|role| *role == Role::Map)?;
        match self.reg(*Reg::ARGUMENTS.get(at)?) {
            Kind::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The size of the memory in an argument of a call, if it is known.
    pub(in crate::instrument) fn extent(
        &self,
        program: &Program,
        signature: &Signature,
        argument: Reg,
        extent: Extent,
    ) -> Option<u32> {
        let map = || self.map(signature)?.definition(program);
        match extent {
            Extent::Key => Some(map()?.key_size),
            Extent::Value => Some(map()?.value_size),
            Extent::Fixed(bytes) => Some(bytes),
            Extent::Next => {
                let next = Reg::from_number(argument.number() + 1)?;
                match self.reg(next) {
                    Kind::Scalar(Some(bytes)) => u32::try_from(bytes).ok(),
                    _ => None,
                }
            }
        }
    }

    /// Updates the state after the return of a helper or kfunc.
    fn called(&mut self, program: &Program, signature: &Signature, exit: Option<&Self>) {
        if let Some(exit) = exit {
            self.take_back(exit);
            if self.lends_caller() {
                self.lose_caller();
            }
        }
        for (reg, role) in Reg::ARGUMENTS.into_iter().zip(&signature.roles) {
            let len = match role {
                Role::Filled(extent) => self.extent(program, signature, reg, *extent),
                // Dynptrs and iterators are on the stack, too.
                Role::Silent | Role::Number => None,
                Role::Map | Role::Given(_) | Role::Submitted => continue,
            };
            if let Kind::Frame { owner, off } = self.reg(reg) {
                self.store(owner, off, len, Kind::NUMBER);
            }
        }
        let map = self.map(signature);
        let result = match (signature.returns, map) {
            (Returns::Nothing, _) => None,
            (Returns::Number, _) => Some(Kind::NUMBER),
            (Returns::Value, Some(map)) => {
                let holds_maps = program
                    .map(map.id)
                    .is_some_and(|it| it.map_type.holds_maps());
                Some(if holds_maps && !map.inner {
                    Kind::Map(MapRef { inner: true, ..map })
                } else {
                    Kind::value(program, map)
                })
            }
            (Returns::Value, None) => Some(Kind::Unknown),
            (Returns::Record, _) => Some(Kind::Record {
                size: match self.reg(Reg::R2) {
                    Kind::Scalar(Some(size)) => u32::try_from(size).ok(),
                    _ => None,
                },
                off: Some(0),
            }),
            (Returns::Memory, _) => Some(Kind::Own),
            (Returns::Private, _) => Some(Kind::Private),
            (Returns::Kernel, _) => Some(Kind::Kernel),
        };
        self.forget(RegSet::CALLER_SAVED);
        if let Some(kind) = result {
            self.set(Reg::R0, kind);
        }
    }
}
