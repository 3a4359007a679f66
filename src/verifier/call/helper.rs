//! Calls of helpers (`check_helper_call`).

use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// The call of a helper at the instruction under way. The walk goes on behind it.
    pub(crate) fn check_helper_call(&mut self, _id: HelperId) -> Checked {
        reject!(ENOTSUPP, "helpers are not supported by bpflab yet")
    }

    pub(crate) fn check_leak(&mut self, _exits_program: bool, _prefix: &str) -> Checked {
        Ok(())
    }
}
