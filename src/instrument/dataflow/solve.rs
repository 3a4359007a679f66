//! Solves the analysis across functions: a [`Problem`] over the graph of all functions.
//!
//! The state at a function's entry is the join over all calls. The state after a call is the
//! join over the callee's exits: if it changes, the blocks of the calls are processed again.
//! As long as no exit of the callee is reached, nothing after the call is.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::{Kind, MapRef};
use super::state::State;
use crate::analysis::{Cfg, Meeting, Problem, Solver};
use crate::instrument::calls::{self, Callback, Callee, Extent, Passed, Returns, Role, Signature};
use crate::instrument::error::Reason;
use crate::instrument::liveness::called;
use crate::isa::{CallTarget, Code, Insn, Reg, RegSet};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::util::Pc;

/// A tail call, which only returns if it fails.
const TAIL_CALL: Insn = Insn::Call(CallTarget::Helper(id::tail_call));

/// The solution for a whole program.
#[derive(Debug)]
pub(in crate::instrument) struct Dataflow<'p> {
    functions: Functions<'p>,
    /// The state before each block; `None` for unreachable ones.
    blocks: Vec<Option<State>>,
}

/// The states of functions.
#[derive(Debug)]
struct Functions<'p> {
    program: &'p Program,
    code: &'p Code,
    cfg: &'p Cfg,
    /// The joined state at the exits of each function.
    exits: BTreeMap<Pc, State>,
    /// The state at the entry of each function.
    entries: BTreeMap<Pc, State>,
    /// Functions that helpers call back.
    callbacks: BTreeSet<Pc>,
    /// The calls of each function.
    calls: BTreeMap<Pc, BTreeSet<Pc>>,
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
        let main = State::of_main();
        let mut functions = Functions {
            program,
            code,
            cfg,
            exits: BTreeMap::new(),
            entries: BTreeMap::from([(Pc(0), main.clone())]),
            callbacks: BTreeSet::new(),
            calls: BTreeMap::new(),
        };
        let mut solver = Solver::forwards(cfg.graph());
        solver.arrive(&functions, 0, &main);
        solver.run(&mut functions)?;
        Ok(Self {
            blocks: solver.into_states(),
            functions,
        })
    }

    /// Whether a helper calls this function.
    pub(in crate::instrument) fn is_callback(&self, function: Pc) -> bool {
        self.functions.callbacks.contains(&function)
    }

    /// Whether a helper calls this function or one of its callers.
    pub(in crate::instrument) fn is_in_callback(&self, function: Pc) -> bool {
        let mut known = BTreeSet::from([function]);
        let mut open = vec![function];
        while let Some(function) = open.pop() {
            if self.is_callback(function) {
                return true;
            }
            let calls = self.functions.calls.get(&function).into_iter().flatten();
            let callers = calls.filter_map(|call| self.functions.function_of(*call));
            open.extend(callers.filter(|caller| known.insert(*caller)));
        }
        false
    }

    /// The state at a function's entry.
    pub(in crate::instrument) fn entry(&self, function: Pc) -> Option<&State> {
        self.functions.entries.get(&function)
    }

    /// Passes each reached instruction to `see`, with the states before and after it.
    ///
    /// # Errors
    /// The visitor's.
    pub(in crate::instrument) fn visit<E>(
        &self,
        mut see: impl FnMut(Pc, Insn, &State, &State) -> Result<(), E>,
    ) -> Result<(), E> {
        let functions = &self.functions;
        for (block, state) in functions.cfg.graph().blocks().iter().zip(&self.blocks) {
            let Some(mut state) = state.clone() else {
                continue;
            };
            for pc in block.nodes().map(Pc) {
                let Some(insn) = functions.code.insn(pc) else {
                    continue; // a second slot
                };
                let mut after = state.clone();
                // All calls have been checked by now.
                let goes_on = functions.execute(&mut after, insn, pc).unwrap_or(false);
                see(pc, insn, &state, &after)?;
                if !goes_on {
                    break;
                }
                state = after;
            }
        }
        Ok(())
    }
}

impl Problem for Functions<'_> {
    type State = State;
    type Stop = (Pc, Reason);

    fn join(&self, known: &mut State, other: &State, _: Meeting) -> bool {
        known.join(other)
    }

    fn step(
        &mut self,
        solver: &mut Solver<'_, State>,
        state: &mut State,
        node: u32,
    ) -> Result<bool, (Pc, Reason)> {
        let pc = Pc(node);
        let Some(insn) = self.code.insn(pc) else {
            return Ok(true); // a second slot
        };
        self.call(solver, state, insn, pc)
            .map_err(|reason| (pc, reason))?;
        if insn == Insn::Exit {
            self.leave(solver, pc, state);
        }
        if insn == TAIL_CALL && self.function_of(pc) != Some(Pc(0)) {
            // The target program returns in the function's place.
            let mut returned = state.clone();
            returned.set(Reg::R0, Kind::NUMBER);
            self.leave(solver, pc, &returned);
        }
        self.execute(state, insn, pc).map_err(|reason| (pc, reason))
    }
}

impl Functions<'_> {
    /// The first instruction of the function that an instruction is in.
    fn function_of(&self, pc: Pc) -> Option<Pc> {
        self.cfg.function_at(pc).map(|(_, function)| function.start)
    }

    /// Joins a state at the exit of `pc`'s function; if it changes, the calls are processed
    /// again.
    fn leave(&mut self, solver: &mut Solver<'_, State>, pc: Pc, state: &State) {
        let Some(function) = self.function_of(pc) else {
            return;
        };
        let changed = match self.exits.get_mut(&function) {
            Some(exit) => exit.join(state),
            None => {
                self.exits.insert(function, state.clone());
                true
            }
        };
        if changed && let Some(calls) = self.calls.get(&function) {
            for call in calls {
                solver.step_again(call.0);
            }
        }
    }

    /// Passes the arguments on if the instruction calls functions of the program.
    fn call(
        &mut self,
        solver: &mut Solver<'_, State>,
        state: &State,
        insn: Insn,
        pc: Pc,
    ) -> Result<(), Reason> {
        let (callee, entry) = match insn {
            Insn::Call(CallTarget::Subprogram { .. }) => {
                let Some(callee) = called(insn, pc) else {
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
        self.calls.entry(callee).or_default().insert(pc);
        let changed = match self.entries.get_mut(&callee) {
            Some(known) => known.join(&entry),
            None => {
                self.entries.insert(callee, entry);
                true
            }
        };
        if changed && let Some(entry) = self.entries.get(&callee) {
            solver.arrive(self, callee.0, entry);
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
                let exit = called(insn, pc).and_then(|callee| self.exits.get(&callee));
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
            Extent::Bytes(bytes) => Some(bytes),
            Extent::Type(_) => None,
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
