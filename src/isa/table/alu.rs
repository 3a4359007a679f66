//! Arithmetic on two operands: `dst = dst op src`.

use super::version::IsaVersion;

/// Passes the table of two-operand arithmetic to a macro.
///
/// Columns: name, documentation, operation bits of the opcode, offset field (selects a
/// variant), symbol in the kernel's and LLVM's text, version, value. The value is an
/// expression over two operands of one unsigned type, `u32` or `u64`: division by zero is
/// 0, its remainder is the dividend, shift counts are modulo the width (RFC 9669, section
/// 4.1).
macro_rules! for_each_alu_op {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            Add "`dst += src`, wrapping." { 0x00, 0, "+=", V1, |a, b| a.wrapping_add(b) }
            Sub "`dst -= src`, wrapping." { 0x10, 0, "-=", V1, |a, b| a.wrapping_sub(b) }
            Mul "`dst *= src`, wrapping." { 0x20, 0, "*=", V1, |a, b| a.wrapping_mul(b) }
            Div "`dst /= src`, unsigned; 0 if `src` is 0." {
                0x30, 0, "/=", V1, |a, b| if b == 0 { 0 } else { a / b }
            }
            Sdiv "`dst s/= src`, signed, towards zero; 0 if `src` is 0, wrapping." {
                0x30, 1, "s/=", V4,
                |a, b| if b == 0 { 0 } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
            }
            Or "`dst |= src`." { 0x40, 0, "|=", V1, |a, b| a | b }
            And "`dst &= src`." { 0x50, 0, "&=", V1, |a, b| a & b }
            Lsh "`dst <<= src`, counted modulo the width." {
                0x60, 0, "<<=", V1, |a, b| a.wrapping_shl((b & 63) as u32)
            }
            Rsh "`dst >>= src`, filled with zeros, counted modulo the width." {
                0x70, 0, ">>=", V1, |a, b| a.wrapping_shr((b & 63) as u32)
            }
            Mod "`dst %= src`, unsigned; `dst` unchanged if `src` is 0." {
                0x90, 0, "%=", V1, |a, b| if b == 0 { a } else { a % b }
            }
            Smod "`dst s%= src`, with the sign of `dst`; `dst` unchanged if `src` is 0." {
                0x90, 1, "s%=", V4,
                |a, b| if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
            }
            Xor "`dst ^= src`." { 0xa0, 0, "^=", V1, |a, b| a ^ b }
            Mov "`dst = src`." { 0xb0, 0, "=", V1, |_a, b| b }
            Arsh "`dst s>>= src`, filled with the sign, counted modulo the width." {
                0xc0, 0, "s>>=", V1,
                |a, b| a.cast_signed().wrapping_shr((b & 63) as u32).cast_unsigned()
            }
        }
    };
}
pub(crate) use for_each_alu_op;

macro_rules! define {
    ($($name:ident $doc:literal {
        $code:literal, $off:literal, $symbol:literal, $since:ident, |$a:ident, $b:ident| $value:expr
    })*) => {
        /// An operation with two operands. A 32-bit operation uses only the low halves and
        /// zeroes the upper half of the result.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum AluOp {
            $(#[doc = $doc] $name,)*
        }

        impl AluOp {
            /// Every operation, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The high four bits of the opcode.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            /// The offset field, which distinguishes signed from unsigned variants.
            #[must_use]
            pub const fn off(self) -> i16 {
                match self { $(Self::$name => $off,)* }
            }

            /// The operator in the kernel's text and in LLVM's.
            #[must_use]
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }

            /// The version that introduced the 64-bit operation.
            #[must_use]
            pub const fn since(self) -> IsaVersion {
                match self { $(Self::$name => IsaVersion::$since,)* }
            }

            /// The operation with these bits of the opcode and this offset field.
            #[must_use]
            pub const fn from_code(code: u8, off: i16) -> Option<Self> {
                match (code, off) {
                    $(($code, $off) => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The operation with this operator.
            #[must_use]
            pub fn from_symbol(symbol: &str) -> Option<Self> {
                match symbol {
                    $($symbol => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_alu_op!(define);
