//! Which accesses go to map values that are certainly still in the map.
//!
//! A program may keep a pointer to a value while it deletes or replaces the element. Later
//! accesses are allowed, but must be reported, which only a checked access does. A pointer
//! is *fresh* while no call since the look-up may have removed the element: accesses
//! through it need no check.

use std::convert::Infallible;

use super::access::removes_elements;
use super::effect::writes;
use super::flow::solve;
use super::lowered::{Callee, Helper, Lowered};
use super::op::{MemRef, Op, Target};
use crate::analysis::{Meeting, Problem, Solver};
use crate::isa::{AluOp, Operand, Reg, Width};
use crate::spec::helpers::{self, Effects};

/// For each register the map to whose value it is a fresh pointer: an index of
/// [`Lowered::maps`].
type State = [Option<u16>; Reg::COUNT];

/// Turns deferred accesses, each an operation and a map, into direct ones where the pointer
/// is fresh.
pub(super) fn fresh(program: &mut Lowered, deferred: &[(Target, u16)]) {
    let mut finder = Finder {
        program,
        deferred,
        is_fresh: vec![false; deferred.len()],
    };
    let Ok(()) = solve(program, &mut finder, &State::default());
    let is_fresh = finder.is_fresh;
    for (&(at, map), _) in deferred.iter().zip(is_fresh).filter(|(_, fresh)| *fresh) {
        let mem = program.ops.get_mut(at as usize).and_then(Op::mem_mut);
        if let Some(mem) = mem
            && let MemRef::Checked { base, off } = *mem
        {
            *mem = MemRef::MapValue { base, off, map };
        }
    }
}

struct Finder<'a> {
    program: &'a Lowered,
    deferred: &'a [(Target, u16)],
    is_fresh: Vec<bool>,
}

impl Finder<'_> {
    /// Whether an operation may remove elements of maps.
    fn removes_elements(&self, op: Op) -> bool {
        match op {
            Op::CallHelper { helper } => {
                let helper = self.program.helpers.get(usize::from(helper));
                helper.is_none_or(may_remove_elements)
            }
            Op::CallFunction { .. } => true,
            _ => false,
        }
    }
}

fn may_remove_elements(helper: &Helper) -> bool {
    let calls = |helper: &helpers::Helper| helper.effects.intersects(Effects::CALLS_BACK);
    match helper.callee {
        Callee::Helper(id) => removes_elements(id) || helper.spec().is_none_or(calls),
        Callee::Kfunc(_) | Callee::Attached(_) => true,
    }
}

impl Problem for Finder<'_> {
    type State = State;
    type Stop = Infallible;

    fn join(&self, known: &mut State, other: &State, _: Meeting) -> bool {
        let before = *known;
        for (mine, theirs) in known.iter_mut().zip(other) {
            if mine != theirs {
                *mine = None;
            }
        }
        *known != before
    }

    fn step(
        &mut self,
        _: &mut Solver<'_, State>,
        state: &mut State,
        at: Target,
    ) -> Result<bool, Infallible> {
        let Some(&op) = self.program.ops.get(at as usize) else {
            return Ok(false);
        };
        if let Ok(index) = self.deferred.binary_search_by_key(&at, |(at, _)| *at)
            && let (Some((_, map)), Some(fresh)) =
                (self.deferred.get(index), self.is_fresh.get_mut(index))
        {
            let base = op.mem().and_then(MemRef::base);
            *fresh = base.is_some_and(|base| state[base.index()] == Some(*map));
        }
        if self.removes_elements(op) {
            *state = State::default();
        }
        let kept = match op {
            Op::Lookup { map, .. } => Some((Reg::R0, Some(map))),
            Op::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Reg(src),
            } => Some((dst, state[src.index()])),
            Op::Alu {
                op: AluOp::Add | AluOp::Sub,
                width: Width::W64,
                dst,
                ..
            } => Some((dst, state[dst.index()])),
            _ => None,
        };
        for reg in writes(op).iter() {
            state[reg.index()] = None;
        }
        if let Some((reg, value)) = kept {
            state[reg.index()] = value;
        }
        Ok(true)
    }
}
