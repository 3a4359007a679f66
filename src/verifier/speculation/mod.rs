//! Speculative execution (Spectre), for loaders without `CAP_PERFMON`.
//!
//! A CPU may execute the branch that a comparison rules out, and may load from the stack what a
//! store has just replaced, until it notices. So exploration also follows such *speculative*
//! paths. An error on one of them is no reject: the kernel puts a barrier before the
//! instruction, which speculation does not pass, and the path ends there. A store to the stack
//! that may replace a pointer gets a barrier after it. Arithmetic on pointers is masked
//! (`mask`).
//!
//! ```text
//!    0: r6 = 0
//!    1: if r6 == 0 goto +1     ; always taken, but speculation may fall through
//!    2: r7 = *(u64 *)(r6 + 0)  ; an error on the speculative path only: a barrier
//!    3: r0 = 0
//!    4: exit
//! ```

mod mask;

use rustc_hash::FxHashMap;

use self::mask::Mask;
use super::env::Verifier;
use super::reject::{Reject, VerifyResult};
use super::state::State;
use crate::util::{Errno, Pc};

pub(super) use self::mask::PointerSum;

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

    /// Whether a state subsumes only states with the same scalars.
    pub(crate) const fn compares_scalars_exactly(&self) -> bool {
        self.exact_scalars
    }
}

/// Whether a barrier takes care of an error on a speculative path
/// (`error_recoverable_with_nospec`).
pub(crate) fn is_recoverable(reject: &Reject) -> bool {
    let errors = [Errno::EPERM, Errno::EACCES, Errno::EINVAL];
    reject.feature().is_none() && errors.contains(&reject.errno())
}

impl Verifier<'_> {
    /// Pushes a copy of the current state that only speculation reaches
    /// (`sanitize_speculative_path`); see [`push_branch`](Self::push_branch).
    pub(super) fn push_speculative(&mut self, pc: Pc, full: Errno) -> VerifyResult<&mut State> {
        let state = self.push_branch(pc, self.pc(), full)?;
        state.speculative = true;
        Ok(state)
    }
}

#[cfg(test)]
mod tests;
