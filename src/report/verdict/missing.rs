//! What a program uses that our verifier does not model.

use serde::Serialize;

use crate::program::Program;
use crate::verifier::Missing;
use crate::verifier::diagnose::Refused;

/// A use of what is not modelled. Its fields are the keys of `missing[]` in `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingRow {
    /// The feature: `kfunc`, `arena`, `typed_pointer`.
    pub feature: &'static str,
    /// What is used: the name of the kfunc, helper or symbol; null where there is none.
    pub name: Option<String>,
    /// The instruction and its line of C; null if the program as a whole uses it.
    #[serde(flatten)]
    pub place: Refused,
}

impl MissingRow {
    /// A use by a program.
    #[must_use]
    pub fn new(missing: &Missing, program: &Program) -> Self {
        Self {
            feature: missing.feature.key(),
            name: missing.name.clone(),
            place: Refused::at(missing.pc, program),
        }
    }
}
