//! Errors in BTF bytes, with section and offset.

use thiserror::Error;

use super::kind::Kind;
use crate::util::{ReadError, TypeId};

/// An error in a `.BTF` or `.BTF.ext` section.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{section} offset {offset:#x}: {problem}")]
#[non_exhaustive]
pub struct BtfError {
    /// `.BTF` or `.BTF.ext`.
    pub section: &'static str,
    /// Start of the invalid data, in bytes from the start of the section.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with BTF at an offset.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The section ends inside its header.
    #[error("section ends inside the header: {wanted} bytes wanted, {left} left")]
    Header {
        /// Bytes that the header needs.
        wanted: usize,
        /// Bytes available.
        left: usize,
    },
    /// The magic number is that of a big-endian machine.
    #[error("big-endian BTF; only little-endian objects (-target bpfel) are supported")]
    BigEndian,
    /// The magic number is wrong.
    #[error("magic number is {0:#06x}, not 0xeb9f: this is not BTF")]
    Magic(u16),
    /// A version that this library doesn't support.
    #[error("unsupported BTF version {0}: version 1 expected")]
    Version(u8),
    /// Header flags are reserved.
    #[error("header flags {0:#x} are reserved")]
    Flags(u8),
    /// An invalid header length.
    #[error("invalid header length {0}")]
    HeaderLen(u32),
    /// A part extends beyond the section.
    #[error("{part} ({len} bytes from {start:#x}) extends beyond the section of {size} bytes")]
    OutOfSection {
        /// Which part.
        part: &'static str,
        /// Its start, in bytes from the start of the section.
        start: u64,
        /// Its length.
        len: u32,
        /// Size of the section.
        size: usize,
    },
    /// A part must start at a multiple of 4.
    #[error("{0} is not aligned to 4 bytes")]
    Unaligned(&'static str),
    /// Types and strings overlap or are in the wrong order.
    #[error("types and strings overlap")]
    Overlap,
    /// The string table must start with an empty string and end with a NUL.
    #[error("string table must start and end with a NUL byte")]
    Strings,
    /// More types than an id can count, or a blob above 4 GiB.
    #[error("more than 2^31 bytes of BTF")]
    TooBig,
    /// A split BTF's base can't be combined with it.
    #[error("type ids or string offsets overflow on top of the base BTF")]
    BaseTooBig,
    /// A type that was built has more items, or larger member offsets, than the format can
    /// represent.
    #[error("type {0} has too many items, or bitfields too far from its start")]
    Unrepresentable(TypeId),
    /// A type record is wrong.
    #[error("type {id}: {fault}")]
    Type {
        /// Which type.
        id: TypeId,
        /// What is wrong with it.
        fault: TypeFault,
    },
    /// `.BTF.ext`: a record size smaller than the record.
    #[error("{part} records of {size} bytes; at least {least} and a multiple of 4 expected")]
    RecordSize {
        /// Which part.
        part: &'static str,
        /// Size in the section.
        size: u32,
        /// Minimum size.
        least: u32,
    },
    /// `.BTF.ext`: a part ends inside a record.
    #[error("{part} ends inside a record: {wanted} bytes wanted, {left} left")]
    Records {
        /// Which part.
        part: &'static str,
        /// Bytes that the records need.
        wanted: u64,
        /// Bytes available.
        left: usize,
    },
    /// `.BTF.ext`: a section's list is empty.
    #[error("{0} lists a section without records")]
    NoRecords(&'static str),
    /// A string offset outside of the string table.
    #[error("string offset {0:#x} is outside of the string table")]
    NameOffset(u32),
}

/// What is wrong with a type record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TypeFault {
    /// The type table ends inside the record.
    #[error("the type table ends inside the record: {wanted} bytes wanted, {left} left")]
    Truncated {
        /// Bytes that the record needs.
        wanted: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// An unknown kind, or 0.
    #[error("unknown kind {0}")]
    Kind(u8),
    /// Reserved bits of the info word are set.
    #[error("info word {0:#010x} has reserved bits set")]
    Info(u32),
    /// A field that the kind doesn't use is set.
    #[error("{kind} has {field} {value}, which must be 0")]
    Unused {
        /// The type's kind.
        kind: Kind,
        /// `vlen`, `kind flag` or `type`.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A string offset outside of the string table.
    #[error("string offset {0:#x} is outside of the string table")]
    Name(u32),
    /// A name longer than 4096 bytes.
    #[error("the name at string offset {0:#x} has more than 4096 bytes")]
    LongName(u32),
    /// A reference to a type that doesn't exist.
    #[error("refers to type {to}, but there are only {count} types")]
    Reference {
        /// The missing type.
        to: u32,
        /// Number of types, `void` included.
        count: u32,
    },
    /// Refers to a type of a kind that is invalid there.
    #[error("{kind} refers to type {to}, which is {found}")]
    Target {
        /// The type's kind.
        kind: Kind,
        /// The type that it refers to.
        to: TypeId,
        /// That type's kind.
        found: Kind,
    },
    /// The bits of an integer exceed its size.
    #[error("integer of {bits} bits at bit {offset} in {size} bytes")]
    IntBits {
        /// Number of bits.
        bits: u8,
        /// First bit.
        offset: u8,
        /// Size in bytes.
        size: u32,
    },
    /// Reserved bits of an integer's encoding.
    #[error("integer word {0:#010x} has reserved bits set")]
    IntEncoding(u32),
    /// A size that this kind can't have.
    #[error("{kind} of {size} bytes")]
    Size {
        /// The type's kind.
        kind: Kind,
        /// The size.
        size: u32,
    },
    /// A member starts beyond the end of its struct.
    #[error("member {index} at bit {bit} is outside of the type's {size} bytes")]
    Member {
        /// Index of the member.
        index: usize,
        /// Its first bit.
        bit: u32,
        /// Size of struct or union in bytes.
        size: u32,
    },
    /// Linkage above `extern`.
    #[error("unknown linkage {0}")]
    Linkage(u32),
    /// A component index below -1.
    #[error("invalid component {0} of a declaration tag")]
    Component(i32),
}

/// Name of the section of types and strings.
pub(super) const BTF: &str = ".BTF";
/// Name of the section of lines and relocations.
pub(super) const BTF_EXT: &str = ".BTF.ext";

impl BtfError {
    /// An error in `.BTF`.
    pub(super) const fn btf(offset: usize, problem: Problem) -> Self {
        Self {
            section: BTF,
            offset,
            problem,
        }
    }

    /// An error in `.BTF.ext`.
    pub(super) const fn ext(offset: usize, problem: Problem) -> Self {
        Self {
            section: BTF_EXT,
            offset,
            problem,
        }
    }

    /// A truncated header.
    pub(super) const fn header(section: &'static str, error: ReadError) -> Self {
        let problem = Problem::Header {
            wanted: error.wanted,
            left: error.left,
        };
        Self {
            section,
            offset: error.offset,
            problem,
        }
    }
}
