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
pub(super) mod mitigations;

use super::env::Verifier;
use super::reject::{Reject, VerifyResult};
use super::state::State;
use crate::util::{Errno, Pc};

pub(super) use self::mask::PointerSum;

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
