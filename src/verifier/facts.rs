//! Facts that a verification proves, for the engines.
//!
//! A fact is recorded only if pruning can't make it false: it must hold for every explored
//! path and for the paths that were pruned because an explored state subsumes them.

use rustc_hash::FxHashMap;

use crate::util::{MapId, Pc};

/// The memory that a load, store or atomic accesses, the same on every path that executes
/// it.
///
/// Pruning preserves this: a state subsumes another only if their pointers have the same
/// kind and the same map, and, for the stack and the context, the same offset (`regsafe`,
/// `kernel/bpf/verifier.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Through {
    /// The function's own stack, at this offset from the frame pointer, including the
    /// instruction's offset.
    Stack {
        /// Negative.
        off: i32,
    },
    /// The context at this offset, including the instruction's offset.
    Context {
        /// From the start of the context.
        off: i32,
    },
    /// A value of this map, at any offset.
    MapValue {
        /// The index of the program's map.
        map: MapId,
    },
    /// The packet, at any offset.
    Packet,
    /// A kernel object, or memory that may not be there, on some path at least: a load from
    /// an invalid address reads 0 (`BPF_PROBE_MEM`).
    Kernel,
    /// An arena, at any address.
    Arena,
    /// Values of several maps, or a value on one path and other memory on another.
    Values,
    /// Other memory, or not the same on all paths.
    Other,
}

/// Facts about instructions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Instructions that some path executes; the others are dead code.
    seen: Vec<bool>,
    /// For each explored call of `bpf_loop`, the callback, if it is the same on all paths
    /// and the flags are always 0.
    loops: FxHashMap<Pc, Option<u32>>,
    /// The memory that each load and store accesses.
    through: Vec<Option<Through>>,
    /// For each helper call that takes a map, the map if it is the same on all paths.
    maps: FxHashMap<Pc, Option<MapId>>,
    /// For each function, in ascending order: its first instruction, and the bytes of its
    /// stack that are touched by it or through pointers that it passes on.
    stacks: Vec<(Pc, u32)>,
    /// For each tail call, the index into the array if it is the same on all paths.
    tail_calls: FxHashMap<Pc, Option<u32>>,
    /// Whether some path loads a pointer to user memory (`__uptr`).
    user_pointers: bool,
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
            user_pointers: false,
        }
    }

    /// Records a load of a pointer to user memory.
    pub(crate) const fn see_user_pointer(&mut self) {
        self.user_pointers = true;
    }

    /// Whether some path loads a pointer to user memory.
    pub(crate) const fn has_user_pointers(&self) -> bool {
        self.user_pointers
    }

    /// Records that a path executes this instruction.
    pub(crate) fn see(&mut self, pc: Pc) {
        if let Some(seen) = self.seen.get_mut(pc.index()) {
            *seen = true;
        }
    }

    /// Whether a path executes it.
    pub(crate) fn is_seen(&self, pc: Pc) -> bool {
        self.seen.get(pc.index()).copied().unwrap_or(false)
    }

    /// Whether this call of `bpf_loop` has one callback and flags 0 on all paths so far.
    pub(crate) fn may_be_plain_loop(&self, pc: Pc) -> bool {
        self.loops.get(&pc).is_none_or(Option::is_some)
    }

    /// Records a call of `bpf_loop`, with its callback if the flags are 0. The callback and
    /// the flags are precise, so pruning preserves them.
    pub(crate) fn see_loop(&mut self, pc: Pc, callback: Option<u32>) {
        let known = self.loops.entry(pc).or_insert(callback);
        if *known != callback {
            *known = None;
        }
    }

    /// Records a load or store of this memory.
    pub(crate) fn see_access(&mut self, pc: Pc, through: Through) {
        if let Some(known) = self.through.get_mut(pc.index()) {
            let known = known.get_or_insert(through);
            if *known != through {
                let are_values = |it| matches!(it, Through::MapValue { .. } | Through::Values);
                *known = match (*known, through) {
                    (Through::Kernel, _) | (_, Through::Kernel) => Through::Kernel,
                    (one, other) if are_values(one) || are_values(other) => Through::Values,
                    _ => Through::Other,
                };
            }
        }
    }

    /// The memory that a load or store accesses; `None` if no path executes it.
    pub(crate) fn through(&self, pc: Pc) -> Option<Through> {
        self.through.get(pc.index()).copied().flatten()
    }

    /// Records a helper call with this map. (A state subsumes another only if their map
    /// pointers refer to the same map.)
    pub(crate) fn see_map(&mut self, pc: Pc, map: Option<MapId>) {
        let known = self.maps.entry(pc).or_insert(map);
        if *known != map {
            *known = None;
        }
    }

    /// Sets the stack depths, after exploration.
    pub(crate) fn set_stacks(&mut self, stacks: impl Iterator<Item = (Pc, u32)>) {
        self.stacks = stacks.collect();
    }

    /// The first instruction and the stack depth of each function.
    pub(crate) fn stacks(&self) -> &[(Pc, u32)] {
        &self.stacks
    }

    /// Records a tail call to this index, if it is known. (The index is precise then, so
    /// pruning preserves it.)
    pub(crate) fn see_tail_call(&mut self, pc: Pc, key: Option<u32>) {
        let known = self.tail_calls.entry(pc).or_insert(key);
        if *known != key {
            *known = None;
        }
    }

    /// The number of tail calls that always use one index of one array.
    pub(crate) fn direct_tail_calls(&self) -> usize {
        let direct =
            |(pc, key): &(&Pc, &Option<u32>)| key.is_some() && self.map_of_call(**pc).is_some();
        self.tail_calls.iter().filter(direct).count()
    }

    /// The map that this helper call gets on every path.
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
        facts.see_access(Pc(0), Through::MapValue { map: MapId(0) });
        facts.see_access(Pc(0), Through::Packet);
        assert_eq!(facts.through(Pc(0)), Some(Through::Values));
        facts.see_access(Pc(0), Through::Kernel);
        facts.see_access(Pc(0), Through::Packet);
        assert_eq!(facts.through(Pc(0)), Some(Through::Kernel));
        facts.see_map(Pc(1), Some(MapId(3)));
        assert_eq!(facts.map_of_call(Pc(1)), Some(MapId(3)));
        facts.see_map(Pc(1), None);
        facts.see_access(Pc(0), Through::Kernel);
        facts.see_access(Pc(0), Through::Packet);
        assert_eq!(facts.through(Pc(0)), Some(Through::Kernel));
        facts.see_map(Pc(1), Some(MapId(3)));
        assert_eq!(facts.map_of_call(Pc(1)), None);
    }
}
