//! Which engine runs a program.

use std::fmt;
use std::sync::Arc;

use crate::interp::Image;

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// The checked interpreter: runs any program and judges every access.
    Checked,
    /// The fast interpreter: runs verified programs, without the checks that the
    /// verifier proved to hold. What can't run on it runs on the checked one.
    Interp,
    /// Machine code for verified programs: the fast interpreter where the host has none.
    Jit,
}

impl Default for EngineKind {
    /// The fastest that this build has for the host.
    fn default() -> Self {
        if HAS_JIT { Self::Jit } else { Self::Interp }
    }
}

/// Whether this build makes machine code for the host.
#[cfg(feature = "jit")]
const HAS_JIT: bool = crate::jit::RUNS_HERE;
/// Without the feature, none does.
#[cfg(not(feature = "jit"))]
const HAS_JIT: bool = false;

impl EngineKind {
    /// The engine that runs a program where this one was chosen.
    pub(super) fn of(self, image: Option<&Arc<Image>>) -> Self {
        let has_code = image.is_some_and(|image| image.native().is_some());
        match image.and_then(|image| image.lowered()) {
            Some(_) if self == Self::Jit && !has_code => Self::Interp,
            Some(_) => self,
            None => Self::Checked,
        }
    }

    /// Its name, as `bpflab run --engine` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Interp => "interp",
            Self::Jit => "jit",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
