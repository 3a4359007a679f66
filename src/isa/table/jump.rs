//! Jump conditions: `if dst op src goto …`.

use super::version::IsaVersion;

/// Passes the table of conditions to a macro.
///
/// Columns: name, documentation, operation bits of the opcode, symbol in the kernel's and
/// LLVM's text, version, the negated condition (or `none`), the condition with operands
/// swapped, and the value over two operands of one unsigned type, `u32` or `u64`.
macro_rules! for_each_jump_op {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            Eq "Equal." { 0x10, "==", V1, Ne, Eq, |a, b| a == b }
            Gt "Greater, unsigned." { 0x20, ">", V1, Le, Lt, |a, b| a > b }
            Ge "Greater or equal, unsigned." { 0x30, ">=", V1, Lt, Le, |a, b| a >= b }
            Set "Some bit is set in both." { 0x40, "&", V1, none, Set, |a, b| (a & b) != 0 }
            Ne "Not equal." { 0x50, "!=", V1, Eq, Ne, |a, b| a != b }
            Sgt "Greater, signed." {
                0x60, "s>", V1, Sle, Slt, |a, b| a.cast_signed() > b.cast_signed()
            }
            Sge "Greater or equal, signed." {
                0x70, "s>=", V1, Slt, Sle, |a, b| a.cast_signed() >= b.cast_signed()
            }
            Lt "Less, unsigned." { 0xa0, "<", V2, Ge, Gt, |a, b| a < b }
            Le "Less or equal, unsigned." { 0xb0, "<=", V2, Gt, Ge, |a, b| a <= b }
            Slt "Less, signed." {
                0xc0, "s<", V2, Sge, Sgt, |a, b| a.cast_signed() < b.cast_signed()
            }
            Sle "Less or equal, signed." {
                0xd0, "s<=", V2, Sgt, Sge, |a, b| a.cast_signed() <= b.cast_signed()
            }
        }
    };
}
pub(crate) use for_each_jump_op;

macro_rules! condition {
    (none) => {
        None
    };
    ($name:ident) => {
        Some(Self::$name)
    };
}

macro_rules! define {
    ($($name:ident $doc:literal {
        $code:literal, $symbol:literal, $since:ident, $negated:ident, $swapped:ident,
        |$a:ident, $b:ident| $value:expr
    })*) => {
        /// The comparison of a conditional jump.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum JumpOp {
            $(#[doc = $doc] $name,)*
        }

        impl JumpOp {
            /// Every condition, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The high four bits of the opcode.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            /// The operator in the kernel's text and in LLVM's.
            #[must_use]
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }

            /// The version that introduced the 64-bit jump.
            #[must_use]
            pub const fn since(self) -> IsaVersion {
                match self { $(Self::$name => IsaVersion::$since,)* }
            }

            /// The negated condition; [`Set`](Self::Set) has none.
            #[must_use]
            pub const fn negated(self) -> Option<Self> {
                match self { $(Self::$name => condition!($negated),)* }
            }

            /// The condition with its operands swapped: `a < b` is `b > a`.
            #[must_use]
            pub const fn swapped(self) -> Self {
                match self { $(Self::$name => Self::$swapped,)* }
            }

            /// The condition with these bits of the opcode.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The condition with this operator.
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
for_each_jump_op!(define);
