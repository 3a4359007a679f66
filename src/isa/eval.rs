//! Results of instructions, as pure functions expanded from the tables.
//!
//! Registers are `u64`. A 32-bit operation uses the low halves and zeroes the upper half of
//! its result. All functions are total: no division traps, no shift is too wide (RFC 9669,
//! section 4.1).

use super::insn::{Insn, Operand};
use super::reg::Reg;
use super::table::{
    AluOp, AtomicOp, EndianOp, EndianSize, JumpOp, SignedSize, Width, for_each_alu_op,
    for_each_atomic_op, for_each_endian_op, for_each_jump_op,
};

/// The low 32 bits.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "cutting is its purpose")]
pub const fn low32(value: u64) -> u32 {
    value as u32
}

/// An immediate as 64-bit operand: sign-extended.
#[must_use]
pub const fn sign_extend32(imm: i32) -> u64 {
    (imm as i64).cast_unsigned()
}

macro_rules! alu {
    ($($name:ident $doc:literal {
        $code:literal, $off:literal, $symbol:literal, $since:ident, |$a:ident, $b:ident| $value:expr
    })*) => {
        impl AluOp {
            /// The result over 64-bit operands.
            #[must_use]
            #[inline]
            pub const fn eval64(self, dst: u64, src: u64) -> u64 {
                match self {
                    $(Self::$name => {
                        let ($a, $b): (u64, u64) = (dst, src);
                        $value
                    })*
                }
            }

            /// The result over 32-bit operands.
            #[must_use]
            #[inline]
            pub const fn eval32(self, dst: u32, src: u32) -> u32 {
                match self {
                    $(Self::$name => {
                        let ($a, $b): (u32, u32) = (dst, src);
                        $value
                    })*
                }
            }
        }
    };
}
for_each_alu_op!(alu);

impl AluOp {
    /// The new value of the destination register.
    ///
    /// ```
    /// use bpflab::isa::{AluOp, Width};
    ///
    /// assert_eq!(AluOp::Div.eval(Width::W64, 7, 0), 0);
    /// assert_eq!(AluOp::Mod.eval(Width::W32, 1 << 40 | 7, 0), 7);
    /// assert_eq!(AluOp::Lsh.eval(Width::W32, 1, 33), 2);
    /// ```
    #[must_use]
    #[inline]
    pub const fn eval(self, width: Width, dst: u64, src: u64) -> u64 {
        match width {
            Width::W64 => self.eval64(dst, src),
            Width::W32 => self.eval32(low32(dst), low32(src)) as u64,
        }
    }
}

macro_rules! jump {
    ($($name:ident $doc:literal {
        $code:literal, $symbol:literal, $since:ident, $negated:ident, $swapped:ident,
        |$a:ident, $b:ident| $value:expr
    })*) => {
        impl JumpOp {
            /// Whether the condition holds for 64-bit operands.
            #[must_use]
            #[inline]
            pub const fn eval64(self, dst: u64, src: u64) -> bool {
                match self {
                    $(Self::$name => {
                        let ($a, $b): (u64, u64) = (dst, src);
                        $value
                    })*
                }
            }

            /// Whether the condition holds for 32-bit operands.
            #[must_use]
            #[inline]
            pub const fn eval32(self, dst: u32, src: u32) -> bool {
                match self {
                    $(Self::$name => {
                        let ($a, $b): (u32, u32) = (dst, src);
                        $value
                    })*
                }
            }
        }
    };
}
for_each_jump_op!(jump);

impl JumpOp {
    /// Whether the condition holds for two registers.
    #[must_use]
    #[inline]
    pub const fn eval(self, width: Width, dst: u64, src: u64) -> bool {
        match width {
            Width::W64 => self.eval64(dst, src),
            Width::W32 => self.eval32(low32(dst), low32(src)),
        }
    }
}

macro_rules! atomic {
    ($($name:ident $doc:literal {
        $imm:literal, $fetch:ident, $kernel:literal, $llvm64:literal, $llvm32:literal, $since:ident,
        |$old:ident, $src:ident, $expected:ident| $value:expr
    })*) => {
        impl AtomicOp {
            /// The new value of 64-bit memory that contained `old`; `expected` is `r0`.
            #[must_use]
            #[inline]
            pub const fn eval64(self, old: u64, src: u64, expected: u64) -> u64 {
                match self {
                    $(Self::$name => {
                        let ($old, $src, $expected): (u64, u64, u64) = (old, src, expected);
                        $value
                    })*
                }
            }

            /// The new value of 32-bit memory that contained `old`; `expected` is `w0`.
            #[must_use]
            #[inline]
            pub const fn eval32(self, old: u32, src: u32, expected: u32) -> u32 {
                match self {
                    $(Self::$name => {
                        let ($old, $src, $expected): (u32, u32, u32) = (old, src, expected);
                        $value
                    })*
                }
            }
        }
    };
}
for_each_atomic_op!(atomic);

impl AtomicOp {
    /// The new value of memory of this width that contained `old` (zero-extended).
    #[must_use]
    #[inline]
    pub const fn eval(self, width: Width, old: u64, src: u64, expected: u64) -> u64 {
        match width {
            Width::W64 => self.eval64(old, src, expected),
            Width::W32 => self.eval32(low32(old), low32(src), low32(expected)) as u64,
        }
    }
}

macro_rules! endian {
    ($($name:ident $doc:literal {
        $code:literal, $keyword:literal, $since:ident, |$x:ident| $value:expr
    })*) => {
        impl EndianOp {
            /// The new value of the register.
            #[must_use]
            #[inline]
            #[expect(clippy::cast_possible_truncation, reason = "it cuts to the width")]
            pub const fn eval(self, size: EndianSize, value: u64) -> u64 {
                match self {
                    $(Self::$name => match size {
                        EndianSize::B16 => {
                            let $x = value as u16;
                            $value as u64
                        }
                        EndianSize::B32 => {
                            let $x = value as u32;
                            $value as u64
                        }
                        EndianSize::B64 => {
                            let $x = value;
                            $value
                        }
                    },)*
                }
            }
        }
    };
}
for_each_endian_op!(endian);

impl SignedSize {
    /// The low bits of this size, sign-extended to 64 bits.
    #[must_use]
    #[inline]
    pub const fn extend(self, value: u64) -> u64 {
        let unused = 64 - self.bits() as u32;
        ((value << unused).cast_signed() >> unused).cast_unsigned()
    }
}

/// The value of a register after negation.
#[must_use]
#[inline]
pub const fn neg(width: Width, value: u64) -> u64 {
    match width {
        Width::W64 => value.wrapping_neg(),
        Width::W32 => low32(value).wrapping_neg() as u64,
    }
}

/// The value of a register after a sign-extending move.
#[must_use]
#[inline]
pub const fn movsx(width: Width, from: SignedSize, value: u64) -> u64 {
    match width {
        Width::W64 => from.extend(value),
        Width::W32 => low32(from.extend(value)) as u64,
    }
}

impl Insn {
    /// The value that the instruction assigns to its destination, if it uses only registers
    /// and constants; `None` for all other instructions (memory, control, casts and pseudo
    /// sources). For constant folding and tests.
    ///
    /// ```
    /// use bpflab::isa::{AluOp, Insn, Operand, Reg, Width};
    ///
    /// let (dst, src) = (Reg::R1, Operand::Imm(-1));
    /// let insn = Insn::Alu { op: AluOp::Add, width: Width::W32, dst, src };
    /// assert_eq!(insn.fold(|_| 0), Some(0xffff_ffff));
    /// ```
    #[must_use]
    pub fn fold(&self, value_of: impl Fn(Reg) -> u64) -> Option<u64> {
        let operand = |src| match src {
            Operand::Reg(src) => value_of(src),
            Operand::Imm(imm) => sign_extend32(imm),
        };
        Some(match *self {
            Self::Alu {
                op,
                width,
                dst,
                src,
            } => op.eval(width, value_of(dst), operand(src)),
            Self::MovSx {
                width, from, src, ..
            } => movsx(width, from, value_of(src)),
            Self::Neg { width, dst } => neg(width, value_of(dst)),
            Self::Endian { op, size, dst } => op.eval(size, value_of(dst)),
            Self::LoadImm64 { value, .. } => value,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Boundary values and arbitrary ones, equally often.
    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            any::<u32>().prop_map(u64::from),
            0u64..=65,
            (0u64..=65).prop_map(u64::wrapping_neg),
            (0u32..64, -1i64..=1).prop_map(|(bit, d)| (1u64 << bit).wrapping_add_signed(d)),
        ]
    }

    /// A number of `bits` bits, as unsigned and as signed in 128 bits.
    fn wide(value: u64, bits: u32) -> (i128, i128) {
        let unsigned = i128::from(value) & ((1 << bits) - 1);
        let sign = unsigned >> (bits - 1);
        (unsigned, unsigned - (sign << bits))
    }

    /// The operation on integers, reduced to the width at the end.
    fn alu_in_integers(op: AluOp, bits: u32, dst: u64, src: u64) -> u64 {
        let ((a, sa), (b, sb)) = (wide(dst, bits), wide(src, bits));
        let shift = u32::try_from(b % i128::from(bits)).unwrap();
        let exact = match op {
            AluOp::Add => a + b,
            AluOp::Sub => a - b,
            // Up to 2^128: the wrapped product has the right low bits.
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => a.checked_div(b).unwrap_or(0),
            AluOp::Sdiv => sa.checked_div(sb).unwrap_or(0),
            AluOp::Mod => a.checked_rem(b).unwrap_or(a),
            AluOp::Smod => sa.checked_rem(sb).unwrap_or(a),
            AluOp::Or => a + b - (a & b),
            AluOp::And => !(!a | !b),
            AluOp::Xor => (a | b) - (a & b),
            AluOp::Lsh => a.wrapping_mul(1 << shift),
            AluOp::Rsh => a / (1 << shift),
            AluOp::Arsh => sa.div_euclid(1 << shift),
            AluOp::Mov => b,
        };
        u64::try_from(exact & ((1 << bits) - 1)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::sample::cases(20_000)))]

        #[test]
        fn arithmetic_is_that_of_the_integers(dst in value(), src in value()) {
            for &op in AluOp::ALL {
                for &width in Width::ALL {
                    let expected = alu_in_integers(op, u32::from(width.bits()), dst, src);
                    prop_assert_eq!(op.eval(width, dst, src), expected, "{:?} {:?}", op, width);
                }
            }
        }

        #[test]
        fn conditions_are_those_of_the_integers(dst in value(), src in value()) {
            for &width in Width::ALL {
                let bits = u32::from(width.bits());
                let ((a, sa), (b, sb)) = (wide(dst, bits), wide(src, bits));
                for &op in JumpOp::ALL {
                    let expected = match op {
                        JumpOp::Eq => a == b,
                        JumpOp::Ne => a != b,
                        JumpOp::Gt => a > b,
                        JumpOp::Ge => a >= b,
                        JumpOp::Lt => a < b,
                        JumpOp::Le => a <= b,
                        JumpOp::Sgt => sa > sb,
                        JumpOp::Sge => sa >= sb,
                        JumpOp::Slt => sa < sb,
                        JumpOp::Sle => sa <= sb,
                        JumpOp::Set => (0..bits).any(|bit| a >> bit & 1 == 1 && b >> bit & 1 == 1),
                    };
                    prop_assert_eq!(op.eval(width, dst, src), expected);
                    prop_assert_eq!(op.swapped().eval(width, src, dst), expected);
                    if let Some(negated) = op.negated() {
                        prop_assert_eq!(negated.eval(width, dst, src), !expected);
                    }
                }
            }
        }

        #[test]
        fn bytes_are_reversed_or_cut(value in value()) {
            for &size in EndianSize::ALL {
                let bytes = usize::from(size.bits() / 8);
                let mut low = value.to_le_bytes();
                low[bytes..].fill(0);
                prop_assert_eq!(EndianOp::ToLe.eval(size, value), u64::from_le_bytes(low));
                low[..bytes].reverse();
                let swapped = u64::from_le_bytes(low);
                prop_assert_eq!(EndianOp::ToBe.eval(size, value), swapped);
                prop_assert_eq!(EndianOp::Bswap.eval(size, value), swapped);
            }
        }

        #[test]
        fn signs_are_extended(value in value()) {
            for &from in SignedSize::ALL {
                let (_, signed) = wide(value, u32::from(from.bits()));
                let expected = i64::try_from(signed).unwrap().cast_unsigned();
                prop_assert_eq!(movsx(Width::W64, from, value), expected);
                prop_assert_eq!(movsx(Width::W32, from, value), u64::from(low32(expected)));
            }
            prop_assert_eq!(neg(Width::W64, value).wrapping_add(value), 0);
            prop_assert_eq!(low32(neg(Width::W32, value)), low32(value.wrapping_neg()));
        }

        #[test]
        fn atomics_do_what_arithmetic_does(old in value(), src in value(), r0 in value()) {
            let pairs = [
                (AtomicOp::Add, AtomicOp::FetchAdd, AluOp::Add),
                (AtomicOp::Or, AtomicOp::FetchOr, AluOp::Or),
                (AtomicOp::And, AtomicOp::FetchAnd, AluOp::And),
                (AtomicOp::Xor, AtomicOp::FetchXor, AluOp::Xor),
                (AtomicOp::Xchg, AtomicOp::Xchg, AluOp::Mov),
            ];
            for &width in Width::ALL {
                for (plain, fetching, alu) in pairs {
                    let expected = alu.eval(width, old, src);
                    prop_assert_eq!(plain.eval(width, old, src, r0), expected);
                    prop_assert_eq!(fetching.eval(width, old, src, r0), expected);
                }
                let cut = |value| AluOp::Mov.eval(width, 0, value);
                prop_assert_eq!(AtomicOp::Cmpxchg.eval(width, old, src, old), cut(src));
                if cut(r0) != cut(old) {
                    prop_assert_eq!(AtomicOp::Cmpxchg.eval(width, old, src, r0), cut(old));
                }
            }
        }
    }

    /// Cases that trap or differ on hardware.
    #[test]
    fn nothing_traps() {
        let min = 1u64 << 63;
        assert_eq!(AluOp::Sdiv.eval(Width::W64, min, u64::MAX), min);
        assert_eq!(AluOp::Smod.eval(Width::W64, min, u64::MAX), 0);
        assert_eq!(AluOp::Sdiv.eval(Width::W32, 1 << 31, u64::MAX), 1 << 31);
        assert_eq!(AluOp::Smod.eval(Width::W32, 1 << 31, u64::MAX), 0);
        assert_eq!(AluOp::Smod.eval(Width::W32, u64::MAX, 1 << 32), 0xffff_ffff);
        assert_eq!(AluOp::Arsh.eval(Width::W32, 1 << 31, 63), 0xffff_ffff);
    }
}
