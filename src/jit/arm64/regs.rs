//! The host registers of BPF registers, and the use of the other host registers.
//!
//! Calls clobber the host's x0 to x17 and preserve x19 to x28; x18 is the platform's.

use crate::isa::Reg;

/// The number of a host register.
pub(super) type Host = u8;

/// The first argument and the result of the host's functions.
pub(super) const X0: Host = 0;
/// The second argument.
pub(super) const X1: Host = 1;
/// The third argument.
pub(super) const X2: Host = 2;
/// The fourth argument.
pub(super) const X3: Host = 3;
/// The fifth argument.
pub(super) const X4: Host = 4;
/// A constant within the code of an instruction; see `Emitter::add`.
pub(super) const CONSTANT: Host = 9;
/// Within one operation: the address of an access.
pub(super) const FIRST: Host = 10;
/// The same, second part.
pub(super) const SECOND: Host = 11;
/// Within one operation: a number.
pub(super) const THIRD: Host = 12;
/// Within one operation: a constant operand.
pub(super) const RIGHT: Host = 13;
/// Within one operation: a partial result.
pub(super) const PARTIAL: Host = 14;
/// An argument of shared code.
pub(super) const SHARED: Host = 16;
/// The second argument of shared code.
pub(super) const SHARED_TOO: Host = 17;
/// The host address of the start of the frame.
pub(super) const FRAME: Host = 25;
/// The run.
pub(super) const RUN: Host = 26;
/// The number of instructions left; see [`Counts`](crate::jit::count::Counts).
pub(super) const LEFT: Host = 27;
/// The host address of the table of deltas.
pub(super) const DELTAS: Host = 28;
/// The host address of the context.
pub(super) const CONTEXT: Host = 24;
/// Reads as zero; writes to it are ignored.
pub(super) const ZERO: Host = 31;

/// The host register of a BPF register. Host calls preserve r6 to r10, too.
pub(super) const fn host(reg: Reg) -> Host {
    match reg {
        Reg::R0 => 7,
        Reg::R1 => 0,
        Reg::R2 => 1,
        Reg::R3 => 2,
        Reg::R4 => 3,
        Reg::R5 => 4,
        Reg::R6 => 19,
        Reg::R7 => 20,
        Reg::R8 => 21,
        Reg::R9 => 22,
        Reg::R10 => 23,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_register_has_two_uses() {
        let mut used: Vec<_> = Reg::ALL.into_iter().map(host).collect();
        used.extend([CONSTANT, FIRST, SECOND, THIRD, RIGHT, PARTIAL]);
        used.extend([SHARED, SHARED_TOO]);
        used.extend([FRAME, RUN, LEFT, DELTAS, CONTEXT, ZERO]);
        // The platform's register, the frame pointer and the link register.
        used.extend([18, 29, 30]);
        let different: BTreeSet<_> = used.iter().collect();
        assert_eq!(used.len(), different.len());
    }
}
