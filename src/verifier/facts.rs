//! What a verification proves, for the engines.
//!
//! A fact is kept only if pruning can't make it false: it holds for every path that
//! was walked and for those that were cut off because a kept state covers them.

use rustc_hash::FxHashMap;

use crate::util::{MapId, Pc};

/// What a load, store or atomic goes through, the same on every path that executes it.
///
/// Pruning preserves it: a kept state covers another only where pointers are of one
/// kind, into one map, and those to a stack or the context have one offset
/// (`regsafe`, `kernel/bpf/verifier.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// The stack of the function itself, at this offset from the frame pointer, the
    /// instruction's own included.
    Stack {
        /// Below zero.
        off: i32,
    },
    /// The context at this offset, the instruction's own included.
    Context {
        /// From the context's start.
        off: i32,
    },
    /// A value of this map, at any offset.
    MapValue {
        /// One of the program's maps.
        map: MapId,
    },
    /// The packet, at any offset.
    Packet,
    /// Something else, or not the same on all paths.
    Other,
}

/// Facts about instructions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Instructions that some path walks; the others are dead.
    seen: Vec<bool>,
    /// For each call of `bpf_loop` that was walked, the function that it calls, if that
    /// is the same on all paths and the flags are 0 on all.
    loops: FxHashMap<Pc, Option<u32>>,
    /// What each load and store goes through.
    through: Vec<Option<Through>>,
    /// For each call of a helper that takes a map, which one if it is always the same.
    maps: FxHashMap<Pc, Option<MapId>>,
    /// The first instruction of each function, in rising order, and the bytes of stack
    /// that it and those who get pointers to it touch.
    stacks: Vec<(Pc, u32)>,
    /// For each tail call, to which place in the array if that is always the same.
    tail_calls: FxHashMap<Pc, Option<u32>>,
}

impl Facts {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            seen: vec![false; slots],
            loops: FxHashMap::default(),
            through: vec![None; slots],
            maps: FxHashMap::default(),
            stacks: Vec::new(),
            tail_calls: FxHashMap::default(),
        }
    }

    /// A path walks this instruction.
    pub(crate) fn see(&mut self, pc: Pc) {
        if let Some(seen) = self.seen.get_mut(pc.index()) {
            *seen = true;
        }
    }

    /// Whether a path walks it.
    pub(crate) fn is_seen(&self, pc: Pc) -> bool {
        self.seen.get(pc.index()).copied().unwrap_or(false)
    }

    /// Whether the paths so far leave it open that this call of `bpf_loop` is plain.
    pub(crate) fn may_be_plain_loop(&self, pc: Pc) -> bool {
        self.loops.get(&pc).is_none_or(Option::is_some)
    }

    /// A path walks a call of `bpf_loop`, with this callback if the flags are 0. The
    /// callback and the zero are precise, so that pruning preserves them.
    pub(crate) fn see_loop(&mut self, pc: Pc, callback: Option<u32>) {
        let known = self.loops.entry(pc).or_insert(callback);
        if *known != callback {
            *known = None;
        }
    }

    /// A path walks a load or store that goes through this.
    pub(crate) fn see_access(&mut self, pc: Pc, through: Through) {
        if let Some(known) = self.through.get_mut(pc.index()) {
            let known = known.get_or_insert(through);
            if *known != through {
                *known = Through::Other;
            }
        }
    }

    /// What a load or store goes through; none for one that no path executes.
    pub(crate) fn through(&self, pc: Pc) -> Option<Through> {
        self.through.get(pc.index()).copied().flatten()
    }

    /// A path walks a call of a helper with this map. (Two pointers to maps are equal
    /// states only if they are to the same map.)
    pub(crate) fn see_map(&mut self, pc: Pc, map: Option<MapId>) {
        let known = self.maps.entry(pc).or_insert(map);
        if *known != map {
            *known = None;
        }
    }

    /// Keeps how deep the functions' stacks are, after the walk.
    pub(crate) fn set_stacks(&mut self, stacks: impl Iterator<Item = (Pc, u32)>) {
        self.stacks = stacks.collect();
    }

    /// Where functions begin and how deep their stacks are.
    pub(crate) fn stacks(&self) -> &[(Pc, u32)] {
        &self.stacks
    }

    /// A path walks a tail call to this place, if it is known. (It is precise then, so
    /// that pruning preserves it.)
    pub(crate) fn see_tail_call(&mut self, pc: Pc, key: Option<u32>) {
        let known = self.tail_calls.entry(pc).or_insert(key);
        if *known != key {
            *known = None;
        }
    }

    /// How many tail calls always go to one place of one array.
    pub(crate) fn direct_tail_calls(&self) -> usize {
        let direct =
            |(pc, key): &(&Pc, &Option<u32>)| key.is_some() && self.map_of_call(**pc).is_some();
        self.tail_calls.iter().filter(direct).count()
    }

    /// The map that a call of a helper always gets.
    pub(crate) fn map_of_call(&self, pc: Pc) -> Option<MapId> {
        self.maps.get(&pc).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_paths_is_no_fact() {
        let mut facts = Facts::new(2);
        facts.see_access(Pc(0), Through::Stack { off: -8 });
        assert_eq!(facts.through(Pc(0)), Some(Through::Stack { off: -8 }));
        facts.see_access(Pc(0), Through::Stack { off: -16 });
        facts.see_access(Pc(0), Through::Stack { off: -16 });
        assert_eq!(facts.through(Pc(0)), Some(Through::Other));
        assert_eq!(facts.through(Pc(1)), None);
        facts.see_map(Pc(1), Some(MapId(3)));
        assert_eq!(facts.map_of_call(Pc(1)), Some(MapId(3)));
        facts.see_map(Pc(1), None);
        facts.see_map(Pc(1), Some(MapId(3)));
        assert_eq!(facts.map_of_call(Pc(1)), None);
    }
}
