//! What a verification proves, for the engines.
//!
//! A fact is kept only if pruning can't make it false: it holds for every path that
//! was walked and for those that were cut off because a kept state covers them.

use rustc_hash::FxHashMap;

use crate::util::Pc;

/// Facts about instructions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Instructions that some path walks; the others are dead.
    seen: Vec<bool>,
    /// For each call of `bpf_loop` that was walked, the function that it calls, if that
    /// is the same on all paths and the flags are 0 on all.
    loops: FxHashMap<Pc, Option<u32>>,
}

impl Facts {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            seen: vec![false; slots],
            loops: FxHashMap::default(),
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
}
