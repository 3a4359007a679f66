//! The engine that runs programs where none is chosen.

use crate::vm::EngineKind;

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
