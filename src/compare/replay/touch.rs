//! What each site of a program does to the maps whose contents are compared.

use std::sync::Arc;

use smallvec::SmallVec;

use super::elements::Combining;
use crate::instrument::{
    AccessedState, Field, FieldLocation, Length, Moment, Plan, Site, What, Whose,
};
use crate::isa::{AtomicOp, CallTarget, Insn, Pseudo, decode, decode_all};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::util::{HelperId, MapId, Pc};
use crate::verifier::{Options, Through, Verified, verify};

/// What a site does to a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    /// The map; none if it may be any that the program uses.
    pub map: Option<MapId>,
    /// What is done.
    pub does: Does,
}

/// What is done to a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Bytes of an element are read, or whether it exists.
    Reads,
    /// The element of a key (the memory of the second argument) is looked up.
    LooksUp,
    /// Some bytes of an element that was looked up change.
    Changes,
    /// All bytes of an element that was looked up are stored.
    Stores,
    /// An atomic operation whose order among others of its kind makes no difference.
    Combines(Combining),
    /// The element of a key is created or replaced, if the result is 0.
    Updates,
    /// The element of a key is deleted, if the result is 0.
    Deletes,
}

impl Does {
    /// Whether the contents of the map can change.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Reads | Self::LooksUp)
    }

    /// Whether the access goes through a pointer to an element that was looked up.
    pub const fn is_through_pointer(self) -> bool {
        matches!(self, Self::Changes | Self::Stores | Self::Combines(_))
    }

    /// Whether the access takes a key.
    pub const fn is_keyed(self) -> bool {
        matches!(self, Self::LooksUp | Self::Updates | Self::Deletes)
    }
}

/// What each site of a program does to maps, by site number.
#[derive(Debug, Default)]
pub(super) struct Touches {
    sites: Vec<SmallVec<[Touch; 1]>>,
    /// The maps that the program may access.
    used: Vec<MapId>,
    /// The maps for which a log does not always have the key of the accessed element.
    unkeyed: Vec<MapId>,
}

impl Touches {
    /// The touches of `program`, which has this plan.
    pub fn of(program: &Arc<Program>, plan: &Plan) -> Self {
        let verified = verify(program, &Options::default()).outcome.ok();
        let look = Look {
            program,
            verified: verified.as_ref(),
            sites: plan.sites(),
        };
        let mut touches = Self {
            sites: plan.sites().iter().map(|site| look.site(site)).collect(),
            used: maps_used(program),
            unkeyed: Vec::new(),
        };
        let mut unkeyed: Vec<_> = look.unkeyed().collect();
        for (site, all) in plan.sites().iter().zip(&touches.sites) {
            let has_key = site.fields.iter().any(is_key);
            let unknown = all.iter().filter(|touch| {
                let is_known = has_key && touch.map.is_some();
                touch.does.is_keyed() && !is_known
            });
            unkeyed.extend(unknown.map(|touch| touch.map));
        }
        let unkeyed = unkeyed.into_iter().flat_map(|map| touches.maps(map));
        touches.unkeyed = unkeyed.collect();
        touches
    }

    /// What a site does to maps.
    #[inline]
    pub fn get(&self, site: u16) -> &[Touch] {
        self.sites
            .get(usize::from(site))
            .map_or(&[], SmallVec::as_slice)
    }

    /// What each site does, in the order of their numbers.
    pub fn sites(&self) -> impl Iterator<Item = &[Touch]> {
        self.sites.iter().map(SmallVec::as_slice)
    }

    /// All touches, with the numbers of their sites.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Touch)> {
        let numbered = (0..).zip(&self.sites);
        numbered.flat_map(|(number, all)| all.iter().map(move |touch| (number, *touch)))
    }

    /// The maps that a touch of `map` may access.
    pub fn maps(&self, map: Option<MapId>) -> impl Iterator<Item = MapId> {
        let any = map.is_none();
        let used = self.used.iter().copied().filter(move |_| any);
        map.into_iter().chain(used)
    }

    /// The maps for which a log does not always have the key of the accessed element.
    pub fn unkeyed(&self) -> &[MapId] {
        &self.unkeyed
    }
}

/// Whether a field is the key of an element.
pub(super) fn is_key(field: &Field) -> bool {
    field.what == What::Given(2)
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

/// The maps that a program may access: those that it names; all if one of these is a map of
/// maps.
pub(super) fn maps_used(program: &Program) -> Vec<MapId> {
    let named = maps_named(program);
    let holds = |map: &MapId| {
        let map = program.map(*map);
        map.is_some_and(|map| map.map_type.holds_maps())
    };
    match named.iter().any(holds) {
        true => (0..program.maps.len()).map(MapId::from_index).collect(),
        false => named,
    }
}

/// Finds what the sites of a program do.
struct Look<'a> {
    program: &'a Program,
    verified: Option<&'a Verified>,
    sites: &'a [Site],
}

impl Look<'_> {
    fn site(&self, site: &Site) -> SmallVec<[Touch; 1]> {
        let slots = self.program.insns.get(site.pc.index()..);
        let Some(Ok(insn)) = slots.map(|slots| decode(slots, site.pc)) else {
            return SmallVec::new();
        };
        if self.is_dead(site.pc) {
            return SmallVec::new();
        }
        // A call or an atomic may have two sites: the one before has the effect, the one after
        // the result.
        let is_second = site.moment == Moment::After && self.has_earlier(site);
        let does = match insn {
            Insn::Call(target) => {
                let called = match target {
                    CallTarget::Helper(helper) => self.call(site.pc, helper),
                    _ => None,
                };
                // The second site reads: the element, its value or the result of a change.
                let called = called.map(|touch| match is_second {
                    true => Touch {
                        does: Does::Reads,
                        ..touch
                    },
                    false => touch,
                });
                let filled = site.fields.iter().filter_map(|field| self.filled(field));
                return called.into_iter().chain(filled).collect();
            }
            _ if site.accesses == AccessedState::World => return SmallVec::new(),
            Insn::Load { .. } | Insn::LoadSx { .. } | Insn::LoadAcquire { .. } => Does::Reads,
            Insn::Store { size, .. } | Insn::StoreRelease { size, .. } => {
                self.stores(self.value(site.pc), size.bytes().into())
            }
            Insn::Atomic { .. } if is_second => Does::Reads,
            Insn::Atomic { op, .. } => combining(op).map_or(Does::Changes, Does::Combines),
            _ => return SmallVec::new(),
        };
        let map = self.value(site.pc);
        SmallVec::from_slice(&[Touch { map, does }])
    }

    fn has_earlier(&self, site: &Site) -> bool {
        let before = self.sites.iter().filter(|other| other.pc == site.pc);
        { before }.any(|other| other.moment == Moment::Before)
    }

    /// Whether the instruction is unreachable.
    fn is_dead(&self, pc: Pc) -> bool {
        let verified = self.verified;
        verified.is_some_and(|verified| !verified.is_reachable(pc))
    }

    /// The map whose value an instruction accesses.
    fn value(&self, pc: Pc) -> Option<MapId> {
        match self.verified?.through(pc)? {
            Through::MapValue { map } => self.exactly(map),
            _ => None,
        }
    }

    /// The map; none if it is a map of maps, whose inner maps may be meant.
    fn exactly(&self, map: MapId) -> Option<MapId> {
        let def = self.program.map(map)?;
        (!def.map_type.holds_maps()).then_some(map)
    }

    /// The effect of storing this many bytes in a value of a map.
    fn stores(&self, map: Option<MapId>, bytes: u32) -> Does {
        let value = map.and_then(|map| self.program.map(map));
        match value {
            Some(def) if def.value_size == bytes => Does::Stores,
            _ => Does::Changes,
        }
    }

    /// What a helper does to its map argument.
    fn call(&self, pc: Pc, helper: HelperId) -> Option<Touch> {
        let does = match helper {
            id::map_lookup_elem => Does::LooksUp,
            id::map_update_elem => Does::Updates,
            id::map_delete_elem => Does::Deletes,
            id::map_push_elem | id::map_pop_elem => Does::Changes,
            id::map_lookup_percpu_elem | id::map_peek_elem => Does::Reads,
            // Other helpers don't access contents that are compared.
            _ => return None,
        };
        let map = self.verified.and_then(|verified| verified.map_of_call(pc));
        Some(Touch {
            map: map.and_then(|map| self.exactly(map)),
            does,
        })
    }

    /// What a helper does to a value that it fills.
    fn filled(&self, field: &Field) -> Option<Touch> {
        let (What::Filled(_), FieldLocation::Memory { whose, .. }) = (field.what, field.location)
        else {
            return None;
        };
        let map = match whose {
            Whose::Run => return None,
            Whose::Value(map) => self.exactly(map),
            Whose::Unknown => None,
        };
        let does = match field.length {
            Length::Fixed(bytes) => self.stores(map, bytes),
            Length::Counted { .. } => Does::Changes,
        };
        Some(Touch { map, does })
    }

    /// The maps that the program accesses without a logged key: by iteration, values of other
    /// CPUs, queues.
    fn unkeyed(&self) -> impl Iterator<Item = Option<MapId>> {
        let insns = decode_all(&self.program.insns);
        insns.filter_map(|(pc, insn)| match insn {
            Ok(Insn::Call(CallTarget::Helper(
                id::for_each_map_elem
                | id::map_lookup_percpu_elem
                | id::map_push_elem
                | id::map_pop_elem,
            ))) if !self.is_dead(pc) => {
                let map = self.verified.and_then(|verified| verified.map_of_call(pc));
                Some(map.and_then(|map| self.exactly(map)))
            }
            _ => None,
        })
    }
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
