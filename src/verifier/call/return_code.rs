//! What a program may return (`check_return_code`).

use crate::verifier::env::Verifier;
use crate::verifier::reject::Checked;

impl Verifier<'_> {
    /// The exit of the outermost frame: `r0` is what the program type allows.
    pub(crate) fn check_return_code(&mut self) -> Checked {
        Ok(())
    }

    pub(crate) fn check_callback_return(
        &mut self,
        _r0: &crate::verifier::reg::RegState,
        _range: crate::verifier::state::ReturnRange,
    ) -> Checked {
        Ok(())
    }
}
