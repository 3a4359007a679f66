//! What each site of a program does to the maps whose contents are compared.

use std::sync::Arc;

use crate::instrument::{Moment, Plan, Site, Source};
use crate::isa::{AtomicOp, CallTarget, Insn, Pseudo, decode, decode_all};
use crate::program::Program;
use crate::spec::helpers::{self, id};
use crate::util::{HelperId, MapId, Pc};
use crate::verifier::{Options, Through, Verified, verify};

/// What a site does to a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    /// The map; none where it may be any that the program uses.
    pub map: Option<MapId>,
    /// What is done.
    pub does: Does,
}

/// What is done to a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// An element is looked at: its bytes, or whether it is there.
    Reads,
    /// An element of this key (the memory given with the second argument) is looked up.
    LooksUp,
    /// Bytes of an element are replaced.
    Sets,
    /// An atomic operation whose order among others of its kind makes no difference.
    Combines(Combining),
    /// The element of a key is replaced or made, if the result is 0.
    Updates,
    /// The element of a key goes, if the result is 0.
    Deletes,
    /// Something else changes it.
    Changes,
}

/// Operations that come to the same in any order, each among its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Combining {
    Add,
    Or,
    And,
    Xor,
}

impl Does {
    /// Whether the map holds something else afterwards.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Reads | Self::LooksUp)
    }
}

/// The touches of a program's sites, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Touches {
    sites: Vec<Option<Touch>>,
    /// The maps that its instructions name.
    used: Vec<MapId>,
}

impl Touches {
    /// Those of a plan of `program`.
    pub fn of(program: &Arc<Program>, plan: &Plan) -> Self {
        let verified = verify(program, &Options::default()).outcome.ok();
        let of = |site: &Site| of_site(program, verified.as_ref(), site, plan.sites());
        Self {
            sites: plan.sites().iter().map(of).collect(),
            used: maps_named(program),
        }
    }

    /// What a site does, if it is about a map.
    #[inline]
    pub fn get(&self, site: u16) -> Option<Touch> {
        *self.sites.get(usize::from(site))?
    }

    /// All of them, with the numbers of their sites.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Touch)> {
        let numbered = (0..).zip(&self.sites);
        numbered.filter_map(|(number, touch)| Some((number, (*touch)?)))
    }

    /// The maps that a touch may be about.
    pub fn maps(&self, touch: Touch) -> impl Iterator<Item = MapId> {
        let any = touch.map.is_none();
        let used = self.used.iter().copied().filter(move |_| any);
        touch.map.into_iter().chain(used)
    }
}

/// The maps that a program's instructions name.
pub(super) fn maps_named(program: &Program) -> Vec<MapId> {
    let insns = decode_all(&program.insns);
    let mut named: Vec<_> = insns
        .filter_map(|(_, insn)| match insn {
            Ok(Insn::LoadPseudo {
                source: Pseudo::MapIdx { index } | Pseudo::MapIdxValue { index, .. },
                ..
            }) => Some(MapId(index)),
            _ => None,
        })
        .collect();
    named.sort_unstable();
    named.dedup();
    named
}

fn of_site(
    program: &Program,
    verified: Option<&Verified>,
    site: &Site,
    all: &[Site],
) -> Option<Touch> {
    let insn = decode(program.insns.get(site.pc.index()..)?, site.pc).ok()?;
    let value = || match verified?.through(site.pc)? {
        Through::MapValue { map } => Some(map),
        _ => None,
    };
    // What a call or an atomic gives says what it does; what it takes comes after it.
    let is_second = site.moment == Moment::After && has_earlier(site, all);
    let does = match insn {
        Insn::Load { .. } | Insn::LoadSx { .. } | Insn::LoadAcquire { .. } => Does::Reads,
        Insn::Store { .. } | Insn::StoreRelease { .. } => Does::Sets,
        Insn::Atomic { .. } if is_second => Does::Reads,
        Insn::Atomic { op, .. } => combining(op).map_or(Does::Changes, Does::Combines),
        Insn::Call(CallTarget::Helper(helper)) if is_second => {
            // Whether it is there, and with which value; or how changing it ended.
            let touch = of_call(verified, site.pc, helper)?;
            let does = Does::Reads;
            return Some(Touch { does, ..touch });
        }
        Insn::Call(CallTarget::Helper(helper)) => return of_call(verified, site.pc, helper),
        _ => return None,
    };
    let is_world = site.source == Source::World;
    (!is_world).then(|| Touch { map: value(), does })
}

fn has_earlier(site: &Site, all: &[Site]) -> bool {
    let before = all.iter().filter(|other| other.pc == site.pc);
    { before }.any(|other| other.moment == Moment::Before)
}

const fn combining(op: AtomicOp) -> Option<Combining> {
    Some(match op {
        AtomicOp::Add | AtomicOp::FetchAdd => Combining::Add,
        AtomicOp::Or | AtomicOp::FetchOr => Combining::Or,
        AtomicOp::And | AtomicOp::FetchAnd => Combining::And,
        AtomicOp::Xor | AtomicOp::FetchXor => Combining::Xor,
        AtomicOp::Xchg | AtomicOp::Cmpxchg => return None,
    })
}

/// What a helper does to a map.
fn of_call(verified: Option<&Verified>, pc: Pc, helper: HelperId) -> Option<Touch> {
    let does = match helper {
        id::map_lookup_elem => Does::LooksUp,
        id::map_update_elem => Does::Updates,
        id::map_delete_elem => Does::Deletes,
        id::map_push_elem | id::map_pop_elem => Does::Changes,
        id::map_lookup_percpu_elem | id::map_peek_elem => Does::Reads,
        _ => {
            // Others that take a map neither read nor change what is compared.
            helpers::helper(helper)?;
            return None;
        }
    };
    let map = verified.and_then(|verified| verified.map_of_call(pc));
    Some(Touch { map, does })
}
