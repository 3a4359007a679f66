//! Sizes of memory accesses and widths of operations.

use super::version::IsaVersion;

/// Passes the table of sizes to a macro.
///
/// Columns: name, documentation, size bits of the opcode, bytes, the type's name
/// in text, and the Rust type.
macro_rules! for_each_size {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            B "One byte." { 0x10, 1, "u8", u8 }
            H "A half word, 2 bytes." { 0x08, 2, "u16", u16 }
            W "A word, 4 bytes." { 0x00, 4, "u32", u32 }
            Dw "A double word, 8 bytes." { 0x18, 8, "u64", u64 }
        }
    };
}
pub(crate) use for_each_size;

/// Passes the table of sign-extended sizes to a macro.
///
/// Columns: name, documentation, the size in [`Size`], the type's name in text,
/// and the Rust type.
macro_rules! for_each_signed_size {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            S8 "One signed byte." { B, "s8", i8 }
            S16 "A signed half word." { H, "s16", i16 }
            S32 "A signed word." { W, "s32", i32 }
        }
    };
}
pub(crate) use for_each_signed_size;

macro_rules! define_size {
    ($($name:ident $doc:literal { $code:literal, $bytes:literal, $text:literal, $type:ty })*) => {
        /// Size of a memory access, by the kernel's names (`BPF_B`, …, `BPF_DW`).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Size {
            $(#[doc = $doc] $name,)*
        }

        impl Size {
            /// Every size, smallest first.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The size bits of the opcode.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$name => $code,)* }
            }

            /// The number of bytes.
            #[must_use]
            pub const fn bytes(self) -> u8 {
                match self { $(Self::$name => $bytes,)* }
            }

            /// The size with this number of bytes.
            #[must_use]
            pub const fn of_bytes(bytes: usize) -> Option<Self> {
                match bytes {
                    $($bytes => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The type in text: `u8`, `u16`, `u32`, `u64`.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The size of this type's name.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The size of an opcode: every value of the two size bits is valid.
            #[must_use]
            pub const fn of_opcode(opcode: u8) -> Self {
                $(if opcode & 0x18 == $code {
                    return Self::$name;
                })*
                Self::Dw
            }
        }
    };
}
for_each_size!(define_size);

macro_rules! define_signed_size {
    ($($name:ident $doc:literal { $size:ident, $text:literal, $type:ty })*) => {
        /// Size of a value that a load or move sign-extends.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum SignedSize {
            $(#[doc = $doc] $name,)*
        }

        impl SignedSize {
            /// Every size, smallest first.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The size without the sign.
            #[must_use]
            pub const fn size(self) -> Size {
                match self { $(Self::$name => Size::$size,)* }
            }

            /// The type in text: `s8`, `s16`, `s32`.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The size of this type's name.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The signed form of a size; `None` for a double word.
            #[must_use]
            pub const fn from_size(size: Size) -> Option<Self> {
                match size {
                    $(Size::$size => Some(Self::$name),)*
                    Size::Dw => None,
                }
            }

            /// The version that introduced sign extension.
            #[must_use]
            pub const fn since(self) -> IsaVersion {
                IsaVersion::V4
            }
        }
    };
}
for_each_signed_size!(define_signed_size);

impl Size {
    /// The number of bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.bytes() * 8
    }

    /// The greatest value of this size.
    #[must_use]
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

impl SignedSize {
    /// The number of bits, which is also the offset field of a sign-extending move.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.size().bits()
    }
}

/// Width of an operation: on whole registers (`r1`), or on their low halves with
/// the upper half of the result zeroed (`w1`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
}

impl Width {
    /// Both widths.
    pub const ALL: &[Self] = &[Self::W32, Self::W64];

    /// The number of bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::W32 => 32,
            Self::W64 => 64,
        }
    }

    /// The letter before a register's number.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::W32 => 'w',
            Self::W64 => 'r',
        }
    }

    /// The memory size of this width.
    #[must_use]
    pub const fn size(self) -> Size {
        match self {
            Self::W32 => Size::W,
            Self::W64 => Size::Dw,
        }
    }
}
