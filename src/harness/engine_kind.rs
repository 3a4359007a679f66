//! The default engine.

use crate::vm::EngineKind;

impl Default for EngineKind {
    /// The fastest engine that this build has for the host.
    fn default() -> Self {
        if HAS_JIT { Self::Jit } else { Self::Interp }
    }
}

/// Whether this build can generate machine code for the host.
#[cfg(feature = "jit")]
const HAS_JIT: bool = crate::jit::RUNS_HERE;
#[cfg(not(feature = "jit"))]
const HAS_JIT: bool = false;
