//! Global functions, verified on their own against their types in BTF.

use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// A call of a global function: the arguments are held against its types
    /// (`btf_check_subprog_call`), the result is any number (`check_func_call`).
    pub(crate) fn check_global_call(&mut self, _subprogram: u32) -> Checked {
        reject!(ENOTSUPP, "global functions are not supported by bpflab yet")
    }

    /// Walks the global functions that were called, and those that they call.
    pub(crate) fn walk_called_globals(&mut self) -> Checked {
        Ok(())
    }
}
