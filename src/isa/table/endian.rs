//! Byte order: `dst = op(dst)` on the low 16, 32 or 64 bits.

use super::version::IsaVersion;

/// Passes the table of byte-order operations to a macro.
///
/// Columns: name, documentation, class and source bit of the opcode, keyword in the
/// kernel's and LLVM's text (followed by the width), version, and the value over one
/// operand of an unsigned type of the width. BPF programs here are little-endian on every
/// host.
macro_rules! for_each_endian_op {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            ToLe "To little endian: cuts to the width." { 0x04, "le", V1, |x| x }
            ToBe "To big endian: cuts to the width and swaps its bytes." {
                0x0c, "be", V1, |x| x.swap_bytes()
            }
            Bswap "Cuts to the width and swaps its bytes." {
                0x07, "bswap", V4, |x| x.swap_bytes()
            }
        }
    };
}
pub(crate) use for_each_endian_op;

macro_rules! define {
    ($($name:ident $doc:literal {
        $code:literal, $keyword:literal, $since:ident, |$x:ident| $value:expr
    })*) => {
        /// A conversion of byte order.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum EndianOp {
            $(#[doc = $doc] $name,)*
        }

        impl EndianOp {
            /// Every operation, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The class and the source bit of the opcode.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            /// The word before the width in the kernel's text and in LLVM's.
            #[must_use]
            pub const fn keyword(self) -> &'static str {
                match self { $(Self::$name => $keyword,)* }
            }

            /// The version that introduced the operation.
            #[must_use]
            pub const fn since(self) -> IsaVersion {
                match self { $(Self::$name => IsaVersion::$since,)* }
            }

            /// The operation with this class and source bit of the opcode.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_endian_op!(define);

/// The widths of byte-order conversions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EndianSize {
    /// The low 16 bits.
    B16,
    /// The low 32 bits.
    B32,
    /// All 64 bits.
    B64,
}

impl EndianSize {
    /// Every width.
    pub const ALL: &[Self] = &[Self::B16, Self::B32, Self::B64];

    /// Number of bits, which is also the immediate field.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::B16 => 16,
            Self::B32 => 32,
            Self::B64 => 64,
        }
    }

    /// The width of this many bits.
    #[must_use]
    pub const fn from_bits(bits: i32) -> Option<Self> {
        match bits {
            16 => Some(Self::B16),
            32 => Some(Self::B32),
            64 => Some(Self::B64),
            _ => None,
        }
    }
}
