//! Why an access failed, and descriptions of pointers.

use std::fmt;

use thiserror::Error;

use super::address::Address;

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// A load, or a helper reading.
    Read,
    /// A store, or a helper writing.
    Write,
    /// A read-modify-write instruction.
    Atomic,
}

impl AccessKind {
    const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Atomic => "atomically changes",
        }
    }
}

/// A register's value, described by what it points to: `map value hist[12]+4`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pointer {
    /// 0 to 4095.
    Null(u64),
    /// An address in no region: a number, a user-space or an error pointer.
    Wild(u64),
    /// In or near a region.
    Region {
        /// The region's name, with the element: `map value hist[12]`.
        place: String,
        /// Bytes from the start of the region or element.
        offset: i64,
        /// Its accessible size; 0 if it has no bytes.
        len: u64,
        /// Whether the region or the element is still alive.
        live: bool,
    },
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(0) => f.write_str("a null pointer"),
            Self::Null(value) => write!(f, "a null pointer+{value}"),
            Self::Wild(value) => write!(f, "{value:#x} (unmapped)"),
            Self::Region {
                place, offset: 0, ..
            } => f.write_str(place),
            Self::Region { place, offset, .. } => write!(f, "{place}{offset:+}"),
        }
    }
}

/// Why an access is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The address is unmapped.
    Nothing,
    /// The access is out of bounds, at least in part.
    Bounds,
    /// The object was freed.
    Freed,
    /// The object must not be written.
    ReadOnly,
    /// The object must not be read.
    WriteOnly,
    /// The object's first bytes are not accessible to programs.
    Hidden(u32),
    /// An atomic access that is not aligned.
    Misaligned,
    /// The object has no bytes.
    Opaque,
    /// The arena page is not allocated. In Linux a load reads 0 there, and a store does
    /// nothing.
    NoPage,
}

/// An invalid access.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct AccessFault {
    /// The kind of access.
    pub kind: AccessKind,
    /// Number of bytes.
    pub len: u64,
    /// The address.
    pub pointer: Pointer,
    /// Why it is invalid.
    pub problem: Problem,
}

impl fmt::Display for AccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.len == 1 { "" } else { "s" };
        let verb = self.kind.verb();
        write!(f, "{verb} {} byte{plural} at {}", self.len, self.pointer)?;
        match self.problem {
            Problem::Nothing => Ok(()),
            Problem::Bounds => write!(f, ", {}", self.distance()),
            Problem::Freed => f.write_str(", which was freed"),
            Problem::ReadOnly => f.write_str(", which is read-only"),
            Problem::WriteOnly => f.write_str(", which is write-only for programs"),
            Problem::Hidden(n) => write!(f, ", whose first {n} bytes are not for programs"),
            Problem::Misaligned => write!(f, ", which is not a multiple of {}", self.len),
            Problem::NoPage => f.write_str(", on a page that is not allocated"),
            Problem::Opaque => f.write_str(", which has no bytes a program may touch"),
        }
    }
}

impl AccessFault {
    /// Whether the address is unmapped and never was a region: null, a number, a user address,
    /// or kernel memory. The kernel's fault-tolerant loads (`BPF_PROBE_MEM`) read 0 there.
    #[must_use]
    pub fn is_unmapped(&self, address: u64) -> bool {
        let nothing = matches!(self.pointer, Pointer::Null(_) | Pointer::Wild(_));
        nothing || Address::is_kernel_memory(address)
    }

    /// How far out of bounds: `4 bytes past its end`, `starts 8 bytes before it`.
    fn distance(&self) -> String {
        let Pointer::Region { offset, len, .. } = &self.pointer else {
            return String::new();
        };
        let bytes = |n: i128| {
            if n == 1 {
                "1 byte".into()
            } else {
                format!("{n} bytes")
            }
        };
        let (offset, len) = (i128::from(*offset), i128::from(*len));
        let past = offset + i128::from(self.len) - len;
        if offset < 0 {
            format!("{} before its start", bytes(-offset))
        } else {
            format!("{} past its end ({len} bytes)", bytes(past))
        }
    }
}
