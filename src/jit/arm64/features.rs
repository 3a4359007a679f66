//! What the host can do that not every arm64 machine can.

/// Extensions that code is made for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::jit) struct Features {
    /// Atomic instructions that need no loop (FEAT_LSE).
    pub lse: bool,
}

impl Features {
    /// Those of this machine; where it is none, only what all have.
    #[cfg(target_arch = "aarch64")]
    pub(in crate::jit) fn of_host() -> Self {
        Self {
            lse: std::arch::is_aarch64_feature_detected!("lse"),
        }
    }

    /// Those of this machine; where it is none, only what all have.
    #[cfg(not(target_arch = "aarch64"))]
    pub(in crate::jit) fn of_host() -> Self {
        Self::default()
    }
}
