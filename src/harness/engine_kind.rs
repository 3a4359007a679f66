//! Which engine runs a program.

use std::fmt;

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EngineKind {
    /// The checked interpreter: runs any program and judges every access.
    Checked,
    /// The fast interpreter: runs verified programs, without the checks that the
    /// verifier proved to hold. What can't run on it runs on the checked one.
    #[default]
    Interp,
}

impl EngineKind {
    /// Its name, as `bpflab run --engine` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Interp => "interp",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
