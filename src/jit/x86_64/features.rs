//! What a host can do beyond the instructions that all of its kind have.

/// Instructions that not every x86-64 has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// BMI2: shifts by any register, rotation and multiplication into other registers.
    pub bmi2: bool,
}

impl Features {
    /// Those of this host; none on another kind of host.
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
