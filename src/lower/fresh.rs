//! Which accesses to a map's values go to elements that are there.
//!
//! A program may hold on to a value while it deletes or replaces the element. That is
//! allowed, but told of, which only a checked access does. A value is *fresh* as long as
//! no call since the look-up may have taken it away: an access to it needs no check.

use super::effect::writes;
use super::flow::{Domain, walk};
use super::lowered::Lowered;
use super::op::{Op, Place, Target};
use super::place::takes_elements;
use crate::isa::{AluOp, Operand, Reg, Width};
use crate::spec::helpers::{self, Effects};
use crate::util::HelperId;

/// For each register the map, if it holds a fresh value of one: an index of
/// [`Lowered::maps`].
type State = [Option<u16>; Reg::COUNT];

/// Lets the accesses go to the values of maps that were put off, each an operation and
/// the map: those through values that are fresh.
pub(super) fn fresh(program: &mut Lowered, put_off: &[(Target, u16)]) {
    let mut finder = Finder {
        program,
        put_off,
        is_fresh: vec![false; put_off.len()],
    };
    walk(&mut finder, &program.ops, &program.functions);
    let is_fresh = finder.is_fresh;
    for (&(at, map), _) in put_off.iter().zip(is_fresh).filter(|(_, fresh)| *fresh) {
        let place = program.ops.get_mut(at as usize).and_then(Op::place_mut);
        if let Some(place) = place
            && let Place::Checked { base, off } = *place
        {
            *place = Place::MapValue { base, off, map };
        }
    }
}

struct Finder<'a> {
    program: &'a Lowered,
    put_off: &'a [(Target, u16)],
    is_fresh: Vec<bool>,
}

impl Finder<'_> {
    /// Whether an operation may take elements of maps away.
    fn takes_away(&self, op: Op) -> bool {
        match op {
            Op::CallHelper { helper } => {
                let helper = self.program.helpers.get(usize::from(helper));
                helper.is_none_or(|helper| may_take_away(helper.id))
            }
            Op::CallFunction { .. } => true,
            _ => false,
        }
    }
}

fn may_take_away(helper: HelperId) -> bool {
    let calls = |helper: &helpers::Helper| helper.effects.intersects(Effects::CALLS_BACK);
    takes_elements(helper) || helpers::helper(helper).is_none_or(calls)
}

impl Domain for Finder<'_> {
    type State = State;

    fn at_entry(&self) -> State {
        State::default()
    }

    fn join(&self, known: &mut State, other: &State) -> bool {
        let before = *known;
        for (mine, theirs) in known.iter_mut().zip(other) {
            if mine != theirs {
                *mine = None;
            }
        }
        *known != before
    }

    fn step(&mut self, state: &mut State, at: Target, op: Op) {
        if let Ok(index) = self.put_off.binary_search_by_key(&at, |(at, _)| *at)
            && let (Some((_, map)), Some(fresh)) =
                (self.put_off.get(index), self.is_fresh.get_mut(index))
        {
            let base = op.place().and_then(Place::base);
            *fresh = base.is_some_and(|base| state[base.index()] == Some(*map));
        }
        if self.takes_away(op) {
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
    }
}
