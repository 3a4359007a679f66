//! Facts about single operations.

use bitflags::bitflags;

bitflags! {
    /// Facts that hold each time an operation is executed. An engine may ignore them;
    /// without the pass that proves them ([`Passes::RANGES`](super::Passes::RANGES)) there
    /// are none.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Notes: u8 {
        /// A division or remainder: the divisor (its low half, if the operation or its
        /// [`NARROW`](Self::NARROW) form has 32 bits) is not zero.
        const DIVISOR_NOT_ZERO = 1 << 0;
        /// A signed division or remainder: the divisor is not -1 or the dividend not the
        /// minimum, so that the host's own division does not overflow.
        const NO_OVERFLOW = 1 << 1;
        /// A 64-bit [`Op::Alu`](super::Op::Alu), [`Op::Neg`](super::Op::Neg),
        /// [`Op::MovSx`](super::Op::MovSx) or [`Op::JumpIf`](super::Op::JumpIf): its 32-bit
        /// form has the same result.
        const NARROW = 1 << 2;
        /// An operation that sets a register to the value that it already has, such as `w1
        /// = w1` with a zero upper half. Only the instruction count changes.
        const NO_EFFECT = 1 << 3;
        /// An access: the address is a multiple of its size, both the machine's and the
        /// host's.
        const ALIGNED = 1 << 4;
    }
}
