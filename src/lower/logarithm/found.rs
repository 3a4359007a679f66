//! What is found.

use crate::isa::{Reg, Width};
use crate::lower::op::Target;

/// Operations that compute a binary logarithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logarithm {
    /// The first operation.
    pub start: Target,
    /// Where all paths from there meet.
    pub end: Target,
    /// From `start` to here no operation is executed otherwise.
    pub dead: Target,
    /// Gets the position of the input's highest bit, 0 if there is none, plus `plus`.
    pub dst: Reg,
    /// Of which number.
    pub input: Input,
    /// Added to the position.
    pub plus: i32,
    /// Another register that gets the input, and is read later.
    pub copy: Option<Reg>,
    /// Other registers that get a number, and are read later.
    pub numbers: Box<[(Reg, u64)]>,
}

/// The number of which the logarithm is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Input {
    /// The register that has it.
    pub src: Reg,
    /// The register is divided by this number before, unsigned; positive.
    pub divisor: Option<i32>,
    /// How much of it counts: all of a quotient.
    pub width: Width,
}

impl Input {
    /// The greatest number that it may be.
    pub(super) const fn greatest(self) -> u64 {
        match (self.divisor, self.width) {
            (Some(divisor), _) => u64::MAX / divisor.unsigned_abs() as u64,
            (None, Width::W64) => u64::MAX,
            (None, Width::W32) => u32::MAX as u64,
        }
    }
}
