//! Optional extensions of x86-64.

/// The extensions that generated code uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// BMI2: shifts by any register, rotation and multiplication into other registers.
    pub bmi2: bool,
}

impl Features {
    /// The extensions of this host; on another kind of host none.
    #[must_use]
    pub fn of_host() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self {
            bmi2: std::arch::is_x86_feature_detected!("bmi2"),
        };
        #[cfg(not(target_arch = "x86_64"))]
        Self::default()
    }
}
