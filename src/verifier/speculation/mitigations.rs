//! What is done against speculative execution, by instruction.

use rustc_hash::FxHashMap;

use crate::util::Pc;

/// How the operand of an instruction is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    /// Not at all: both operands are numbers.
    Number,
    /// To at most this distance.
    Distance(Distance),
}

/// The distance that a pointer is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) struct Distance {
    /// Whether the number is negative.
    pub(super) negative: bool,
    /// Whether the number is constant.
    pub(super) constant: bool,
    /// Whether the source is masked, not the destination.
    pub(super) masks_source: bool,
    /// The maximum, in bytes.
    pub(super) limit: u32,
    /// Whether the pointer moves towards the start of the object. It follows from the others.
    pub(super) to_left: bool,
}

/// What is done about an instruction (`struct bpf_insn_aux_data`).
#[derive(Debug, Clone, Copy, Default)]
struct Mitigation {
    /// A barrier before it (`nospec`).
    before: bool,
    /// A barrier after it (`nospec_result`).
    after: bool,
    /// How the operand of an addition or subtraction is masked (`alu_state`, `alu_limit`).
    mask: Option<Mask>,
}

/// What is done against speculative execution, by instruction.
#[derive(Debug, Default)]
pub(crate) struct Speculation {
    at: FxHashMap<Pc, Mitigation>,
    /// Whether scalars are compared exactly from now on, so that every path with another mask
    /// is found (`explore_alu_limits`).
    exact_scalars: bool,
}

impl Speculation {
    /// Whether no speculative path executes this instruction.
    pub(crate) fn has_barrier_before(&self, pc: Pc) -> bool {
        self.at.get(&pc).is_some_and(|done| done.before)
    }

    /// Whether no speculative path continues after it.
    pub(crate) fn has_barrier_after(&self, pc: Pc) -> bool {
        self.at.get(&pc).is_some_and(|done| done.after)
    }

    /// Puts a barrier before an instruction, which makes a mask needless.
    pub(crate) fn put_barrier_before(&mut self, pc: Pc) {
        let done = self.at.entry(pc).or_default();
        (done.before, done.mask) = (true, None);
    }

    /// Puts a barrier after a store.
    pub(crate) fn put_barrier_after(&mut self, pc: Pc) {
        self.at.entry(pc).or_default().after = true;
    }

    /// Records the mask of an instruction (`update_alu_sanitation_state`).
    ///
    /// # Errors
    /// The mask that another path needs.
    pub(super) fn set_mask(&mut self, pc: Pc, mask: Mask) -> Result<(), Mask> {
        let known = *self.at.entry(pc).or_default().mask.get_or_insert(mask);
        if known == mask { Ok(()) } else { Err(known) }
    }

    /// Makes a state subsume only states with the same scalars.
    pub(super) const fn compare_scalars_exactly(&mut self) {
        self.exact_scalars = true;
    }

    /// Whether a state subsumes only states with the same scalars.
    pub(crate) const fn compares_scalars_exactly(&self) -> bool {
        self.exact_scalars
    }
}
