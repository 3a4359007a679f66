//! Versions of the instruction set.

use std::fmt;

/// The version that introduced an instruction, named as in clang's `-mcpu=v1` to
/// `-mcpu=v4`. A 6.18 kernel supports all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum IsaVersion {
    /// The base: 64-bit arithmetic, loads, stores, jumps, calls.
    V1,
    /// Jumps on "less than", signed and unsigned.
    V2,
    /// 32-bit arithmetic and jumps, atomics that fetch.
    V3,
    /// Sign extension, byte swap, signed division, long jumps, acquire and release.
    V4,
}

impl fmt::Display for IsaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
        })
    }
}
