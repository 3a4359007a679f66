//! Functions that helpers call back (`push_callback_call`, `set_…_callback_state`).

use crate::util::HelperId;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    pub(crate) fn push_callback(&mut self, _id: HelperId, _subprogram: u32) -> Checked {
        reject!(ENOTSUPP, "callbacks are not supported by bpflab yet")
    }
}
