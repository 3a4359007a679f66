//! Features that a program uses and bpflab's verifier does not model.

use serde::Serialize;

use crate::program::Program;
use crate::verifier::Missing;
use crate::verifier::diagnose::Refused;

/// A use of a feature that is not modelled. Its fields are the keys of `missing[]` in `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MissingRow {
    /// The feature: `kfunc`, `kernel_btf`, `struct_ops`.
    pub feature: &'static str,
    /// The name of the kfunc, helper or symbol; null if it has none.
    pub name: Option<String>,
    /// The instruction and its line of C; null if the program as a whole uses it.
    #[serde(flatten)]
    pub place: Refused,
}

impl MissingRow {
    /// The row of a use by a program.
    #[must_use]
    pub fn new(missing: &Missing, program: &Program) -> Self {
        Self {
            feature: missing.feature.key(),
            name: missing.name.clone(),
            place: Refused::at(missing.pc, program),
        }
    }
}
