//! The host registers of BPF registers, and the use of the other host registers.

use crate::isa::Reg;

/// The number of a host register.
pub(super) type Host = u8;

pub(super) const RAX: Host = 0;
pub(super) const RCX: Host = 1;
pub(super) const RDX: Host = 2;
pub(super) const RBX: Host = 3;
/// The host address of the end of the frame, to which BPF's r10 points.
pub(super) const FRAME: Host = 5;
pub(super) const RSI: Host = 6;
pub(super) const RDI: Host = 7;
pub(super) const R8: Host = 8;
/// The number of instructions left; see [`Counts`](crate::jit::count::Counts).
pub(super) const LEFT: Host = 9;
/// Second spare register within one operation.
pub(super) const SECOND: Host = 10;
/// First spare register within one operation.
pub(super) const FIRST: Host = 11;
/// The run.
pub(super) const RUN: Host = 12;
pub(super) const R13: Host = 13;
pub(super) const R14: Host = 14;
pub(super) const R15: Host = 15;

/// The host register of a BPF register; none for r10, whose value is in the frame's head.
/// Host calls preserve r6 to r9, too.
pub(super) const fn host(reg: Reg) -> Option<Host> {
    Some(match reg {
        Reg::R0 => RAX,
        Reg::R1 => RDI,
        Reg::R2 => RSI,
        Reg::R3 => RDX,
        Reg::R4 => RCX,
        Reg::R5 => R8,
        Reg::R6 => RBX,
        Reg::R7 => R13,
        Reg::R8 => R14,
        Reg::R9 => R15,
        Reg::R10 => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_register_has_two_uses() {
        let mut used: Vec<_> = Reg::ALL.into_iter().filter_map(host).collect();
        used.extend([FRAME, LEFT, SECOND, FIRST, RUN, 4]);
        let different: BTreeSet<_> = used.iter().collect();
        assert_eq!((used.len(), different.len()), (16, 16));
    }
}
