//! Which bits of a result are undefined: 1 is an undefined bit.

use crate::isa::{AluOp, Width, low32};

/// A register or constant: its value, and its undefined bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub value: u64,
    pub undefined: u64,
}

impl Known {
    /// The low half, if the operation is a 32-bit one.
    fn cut(self, width: Width) -> Self {
        match width {
            Width::W64 => self,
            Width::W32 => Self {
                value: low32(self.value).into(),
                undefined: low32(self.undefined).into(),
            },
        }
    }
}

/// The undefined bits of `a op b`. A bit that is the same whatever the undefined bits of the
/// operands are is defined: programs set bitfields by masks.
pub(super) fn alu(op: AluOp, width: Width, a: Known, b: Known) -> u64 {
    let (a, b) = (a.cut(width), b.cut(width));
    let (x, y) = (a.undefined, b.undefined);
    if x | y == 0 {
        return 0;
    }
    let result = match op {
        AluOp::Mov => y,
        AluOp::And => x & (b.value | y) | y & (a.value | x),
        AluOp::Or => x & (!b.value | y) | y & (!a.value | x),
        AluOp::Xor => x | y,
        AluOp::Add | AluOp::Sub | AluOp::Mul => upwards(x | y),
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh if y == 0 => op.eval(width, x, b.value),
        _ => u64::MAX,
    };
    match width {
        Width::W64 => result,
        Width::W32 => low32(result).into(),
    }
}

/// The undefined bits of a negated number.
pub(super) fn neg(width: Width, undefined: u64) -> u64 {
    match width {
        Width::W64 => upwards(undefined),
        Width::W32 => low32(upwards(low32(undefined).into())).into(),
    }
}

/// All bits from the lowest that is set: a carry goes upwards.
const fn upwards(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(value: u64, undefined: u64) -> Known {
        Known { value, undefined }
    }

    #[test]
    fn a_bitfield_that_is_set_is_defined() {
        // r &= ~7; r |= 5
        let garbage = known(0xdead, u64::MAX);
        let cleared = alu(AluOp::And, Width::W64, garbage, known(!7, 0));
        assert_eq!(cleared, !7);
        let value = AluOp::And.eval(Width::W64, 0xdead, !7);
        let set = alu(AluOp::Or, Width::W64, known(value, cleared), known(5, 0));
        assert_eq!(set, !7);
        assert_eq!(alu(AluOp::And, Width::W32, garbage, known(0xff, 0)), 0xff);
        assert_eq!(
            alu(AluOp::Mov, Width::W32, known(0, 0), garbage),
            0xffff_ffff
        );
        assert_eq!(alu(AluOp::Lsh, Width::W64, known(1, 1), known(8, 0)), 0x100);
        assert_eq!(
            alu(AluOp::Add, Width::W64, known(0, 0x80), known(1, 0)),
            !0x7f
        );
        assert_eq!(neg(Width::W32, 0x80), 0xffff_ff80);
    }

    proptest! {
        /// Whatever the undefined bits of the operands are, the defined bits of the result are
        /// the same.
        #[test]
        fn defined_bits_do_not_depend_on_undefined_ones(
            op in prop::sample::select(AluOp::ALL),
            wide: bool,
            a: u64, b: u64, x: u64, y in prop_oneof![Just(0), any::<u64>()],
            other_a: u64, other_b: u64,
        ) {
            let width = if wide { Width::W64 } else { Width::W32 };
            let undefined = alu(op, width, known(a, x), known(b, y));
            let result = op.eval(width, a, b);
            let other = op.eval(width, a & !x | other_a & x, b & !y | other_b & y);
            prop_assert_eq!((result ^ other) & !undefined, 0);
        }
    }
}
