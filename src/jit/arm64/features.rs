//! Optional extensions of arm64.

/// The extensions that generated code uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::jit) struct Features {
    /// Atomic instructions that need no loop (FEAT_LSE).
    pub lse: bool,
}

impl Features {
    /// The extensions of this host; on another kind of host none.
    #[cfg(target_arch = "aarch64")]
    pub(in crate::jit) fn of_host() -> Self {
        Self {
            lse: std::arch::is_aarch64_feature_detected!("lse"),
        }
    }

    /// The extensions of this host; on another kind of host none.
    #[cfg(not(target_arch = "aarch64"))]
    pub(in crate::jit) fn of_host() -> Self {
        Self::default()
    }
}
