//! Kinds of divisions.

use super::regs::Host;
use crate::isa::Width;

/// What a division computes, and its destination.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    pub is_signed: bool,
    pub wants_remainder: bool,
    pub width: Width,
    pub dst: Host,
}

/// A divisor that needs no host division.
#[derive(Debug, Clone, Copy)]
pub(super) enum Special {
    Zero,
    MinusOne,
}
