//! Why a relocation fails; every error contains the access in C.

use thiserror::Error;

use super::kind::RelocationKind;
use crate::btf::LayoutError;
use crate::util::Pc;

/// A CO-RE relocation that fails. A missing target is not an error: the instruction is
/// poisoned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("CO-RE relocation {} of {access} at instruction {insn}: {fault}", .kind.map_or("of unknown kind", RelocationKind::name))]
#[non_exhaustive]
pub struct CoreError {
    /// The instruction.
    pub insn: Pc,
    /// Its kind, if known.
    pub kind: Option<RelocationKind>,
    /// The access in C; for an invalid record, as much as is known.
    pub access: String,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a relocation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// An unknown kind.
    #[error("unknown relocation kind {0}")]
    Kind(u32),
    /// The access string is outside of the string table.
    #[error("string offset {0:#x} is outside of the string table")]
    String(u32),
    /// The access string doesn't fit the type.
    #[error("access string `{0}` doesn't fit the type")]
    AccessString(String),
    /// The access, or a type along it, is nested too deeply.
    #[error("the access is nested too deeply")]
    TooDeep,
    /// A type along the access has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The type has no name to look up.
    #[error("an anonymous type can't be looked up in the target")]
    Anonymous,
    /// A relocation of an array element that only applies to members.
    #[error("only offset and size of an array's element can be relocated")]
    Element,
    /// A bitfield that no load of up to 8 bytes reads.
    #[error("the bitfield can't be read with one load of up to 8 bytes")]
    Bitfield,
    /// Candidates in the target disagree.
    #[error("ambiguous: the target has {}; rename or remove one", .0)]
    Ambiguous(Box<Ambiguity>),
    /// There is no such instruction.
    #[error("the program has no such instruction")]
    NoInsn,
    /// An instruction that can't be relocated.
    #[error(
        "instruction with opcode {0:#04x} can't be relocated; only ALU with an immediate, loads, stores and 64-bit immediates can"
    )]
    Opcode(u8),
    /// An invalid 64-bit immediate load.
    #[error("64-bit immediate load has an unexpected form")]
    Imm64,
    /// The instruction doesn't contain the compiler's value for this access.
    #[error("the instruction contains {found}, but the object's own BTF says {expected}")]
    Unexpected {
        /// The value in the instruction.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// An offset that doesn't fit the instruction.
    #[error("offset {0} doesn't fit the 16 bits of a load or store")]
    Offset(u64),
    /// The size of a load or store differs from the field's.
    #[error("the instruction accesses {found} bytes, but the field has {expected}")]
    AccessSize {
        /// Bytes that the instruction accesses.
        found: u32,
        /// Bytes of the field in the object's BTF.
        expected: u32,
    },
    /// A field size that no load or store supports.
    #[error("no load or store of {0} bytes exists")]
    NewSize(u32),
}

/// Two candidates that disagree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} ({}) and {} ({})", first.0, first.1, second.0, second.1)]
#[non_exhaustive]
pub struct Ambiguity {
    /// One candidate's access and value.
    pub first: (String, String),
    /// Another candidate's access and value.
    pub second: (String, String),
}
