//! Atomic read-modify-write: `old = *mem; *mem = f(old, src)` as one step.

use super::memory::Width;
use super::version::IsaVersion;
use crate::isa::reg::Reg;

/// Passes the table of atomic operations to a macro.
///
/// Columns: name, documentation, immediate field, destination of the old value (`drop`,
/// `src`: the source register, `r0`: `r0`, which is also compared), the kernel's text (an
/// operator if the old value is dropped, otherwise the name after `atomic_` or
/// `atomic64_`), LLVM's keywords for 64 and 32 bits, version, and the new value over the
/// old one, the source and the expected one (in `r0`), all of one unsigned type.
macro_rules! for_each_atomic_op {
    ($expand:ident $(, $argument:tt)*) => {
        $expand! {
            $($argument)*
            Add "`*mem += src`." {
                0x00, drop, "+=", "+=", "+=", V1, |old, src, _expected| old.wrapping_add(src)
            }
            Or "`*mem |= src`." {
                0x40, drop, "|=", "|=", "|=", V3, |old, src, _expected| old | src
            }
            And "`*mem &= src`." {
                0x50, drop, "&=", "&=", "&=", V3, |old, src, _expected| old & src
            }
            Xor "`*mem ^= src`." {
                0xa0, drop, "^=", "^=", "^=", V3, |old, src, _expected| old ^ src
            }
            FetchAdd "`*mem += src`; `src` becomes the old value." {
                0x01, src, "fetch_add", "atomic_fetch_add", "atomic_fetch_add", V3,
                |old, src, _expected| old.wrapping_add(src)
            }
            FetchOr "`*mem |= src`; `src` becomes the old value." {
                0x41, src, "fetch_or", "atomic_fetch_or", "atomic_fetch_or", V3,
                |old, src, _expected| old | src
            }
            FetchAnd "`*mem &= src`; `src` becomes the old value." {
                0x51, src, "fetch_and", "atomic_fetch_and", "atomic_fetch_and", V3,
                |old, src, _expected| old & src
            }
            FetchXor "`*mem ^= src`; `src` becomes the old value." {
                0xa1, src, "fetch_xor", "atomic_fetch_xor", "atomic_fetch_xor", V3,
                |old, src, _expected| old ^ src
            }
            Xchg "`*mem = src`; `src` becomes the old value." {
                0xe1, src, "xchg", "xchg_64", "xchg32_32", V3, |_old, src, _expected| src
            }
            Cmpxchg "`if *mem == r0 { *mem = src }`; `r0` becomes the old value." {
                0xf1, r0, "cmpxchg", "cmpxchg_64", "cmpxchg32_32", V3,
                |old, src, expected| if old == expected { src } else { old }
            }
        }
    };
}
pub(crate) use for_each_atomic_op;

/// Destination of an atomic operation's old value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fetch {
    Drop,
    Src,
    R0,
}

macro_rules! fetch {
    (drop) => {
        Fetch::Drop
    };
    (src) => {
        Fetch::Src
    };
    (r0) => {
        Fetch::R0
    };
}

macro_rules! define {
    ($($name:ident $doc:literal {
        $imm:literal, $fetch:ident, $kernel:literal, $llvm64:literal, $llvm32:literal, $since:ident,
        |$old:ident, $src:ident, $expected:ident| $value:expr
    })*) => {
        /// An atomic read-modify-write of 32 or 64 bits.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum AtomicOp {
            $(#[doc = $doc] $name,)*
        }

        impl AtomicOp {
            /// Every operation, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The immediate field.
            #[must_use]
            pub const fn imm(self) -> i32 {
                match self { $(Self::$name => $imm,)* }
            }

            const fn fetch(self) -> Fetch {
                match self { $(Self::$name => fetch!($fetch),)* }
            }

            /// The operator (`+=`) if the old value is dropped, otherwise the kernel's name
            /// of the operation without `atomic_` or `atomic64_`.
            #[must_use]
            pub const fn kernel_name(self) -> &'static str {
                match self { $(Self::$name => $kernel,)* }
            }

            /// The operator or function in LLVM's text.
            #[must_use]
            pub const fn llvm_name(self, width: Width) -> &'static str {
                match width {
                    Width::W64 => match self { $(Self::$name => $llvm64,)* },
                    Width::W32 => match self { $(Self::$name => $llvm32,)* },
                }
            }

            /// The version that introduced the operation.
            #[must_use]
            pub const fn since(self) -> IsaVersion {
                match self { $(Self::$name => IsaVersion::$since,)* }
            }

            /// The operation with this immediate.
            #[must_use]
            pub const fn from_imm(imm: i32) -> Option<Self> {
                match imm {
                    $($imm => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_atomic_op!(define);

impl AtomicOp {
    /// Whether the old value is returned in a register.
    #[must_use]
    pub const fn fetches(self) -> bool {
        !matches!(self.fetch(), Fetch::Drop)
    }

    /// The register that receives the old value, if one does.
    #[must_use]
    pub const fn old(self, src: Reg) -> Option<Reg> {
        match self.fetch() {
            Fetch::R0 => Some(Reg::R0),
            Fetch::Drop => None,
            Fetch::Src => Some(src),
        }
    }

    /// Whether `r0` is compared and receives the old value.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self.fetch(), Fetch::R0)
    }
}

/// Immediate of a load with acquire ordering (`BPF_LOAD_ACQ`).
pub(crate) const LOAD_ACQUIRE: i32 = 0x100;
/// Immediate of a store with release ordering (`BPF_STORE_REL`).
pub(crate) const STORE_RELEASE: i32 = 0x110;
