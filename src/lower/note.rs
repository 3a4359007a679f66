//! Facts about single operations.

use bitflags::bitflags;

bitflags! {
    /// What is known of one operation, whenever it is executed. Nothing needs to be made
    /// of it; without the pass that proves it ([`Passes::RANGES`](super::Passes::RANGES))
    /// nothing is known.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Notes: u8 {
        /// Of a division or remainder: the divisor (its low half, if the operation or
        /// its [`NARROW`](Self::NARROW) form has 32 bits) is not zero.
        const DIVISOR_NOT_ZERO = 1 << 0;
        /// Of a signed division or remainder: the divisor is not -1 or the dividend not
        /// the least number, so that the host's own division does not overflow.
        const NO_OVERFLOW = 1 << 1;
        /// Of a 64-bit [`Op::Alu`](super::Op::Alu), [`Op::Neg`](super::Op::Neg),
        /// [`Op::MovSx`](super::Op::MovSx) or [`Op::JumpIf`](super::Op::JumpIf): the
        /// 32-bit form of it does the same.
        const NARROW = 1 << 2;
        /// Of an operation that sets a register: the register holds that value already.
        /// So nothing is to be done but to count it: `w1 = w1` where the upper half is
        /// zero.
        const NO_EFFECT = 1 << 3;
        /// Of an access: the address is a multiple of its size, the machine's and the
        /// host's.
        const ALIGNED = 1 << 4;
    }
}
