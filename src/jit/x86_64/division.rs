//! What is divided how.

use super::regs::Host;
use crate::isa::Width;

/// What a division is to give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    pub is_signed: bool,
    pub wants_remainder: bool,
    pub width: Width,
    pub dst: Host,
}

/// A divisor that needs no division.
#[derive(Debug, Clone, Copy)]
pub(super) enum Special {
    Zero,
    MinusOne,
}
