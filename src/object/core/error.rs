//! Why a relocation can't be done; every error names the access in C.

use thiserror::Error;

use super::kind::RelocationKind;
use crate::btf::LayoutError;
use crate::util::Pc;

/// A CO-RE relocation that can't be done. (One whose target is merely missing is no
/// error: its instruction is poisoned.)
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("CO-RE relocation {} of {access} at instruction {insn}: {fault}", .kind.map_or("of unknown kind", RelocationKind::name))]
pub struct CoreError {
    /// The instruction.
    pub insn: Pc,
    /// What was asked, if the kind is known.
    pub kind: Option<RelocationKind>,
    /// The access as C writes it; of a broken record, as much as is known of it.
    pub access: String,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a relocation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A kind above the known ones.
    #[error("relocation kind {0} is unknown")]
    Kind(u32),
    /// The access string is out of the string table.
    #[error("string offset {0:#x} is outside of the string table")]
    String(u32),
    /// The access string doesn't fit the type.
    #[error("access string `{0}` doesn't fit the type")]
    AccessString(String),
    /// The access, or a type on the way, is nested too deeply.
    #[error("the access is nested too deeply")]
    TooDeep,
    /// A type on the way has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The type has no name, so nothing can be looked for.
    #[error("an anonymous type can't be looked up in the target")]
    Anonymous,
    /// An element was asked for what only a member has.
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
    /// An instruction that has nothing to relocate.
    #[error(
        "instruction of opcode {0:#04x} can't be relocated; only ALU with an immediate, loads, stores and 64-bit immediates can"
    )]
    Opcode(u8),
    /// A 64-bit immediate that is none.
    #[error("64-bit immediate load has an unexpected form")]
    Imm64,
    /// The instruction doesn't hold what the compiler wrote for this access.
    #[error("the instruction holds {found}, but the object's own BTF says {expected}")]
    Unexpected {
        /// What the instruction holds.
        found: u64,
        /// What it should hold.
        expected: u64,
    },
    /// An offset that doesn't fit the instruction.
    #[error("offset {0} doesn't fit the 16 bits of a load or store")]
    Offset(u64),
    /// A load or store of another size than the field's.
    #[error("the instruction accesses {found} bytes, but the field has {expected}")]
    AccessSize {
        /// Bytes that the instruction accesses.
        found: u32,
        /// Bytes of the field in the object's BTF.
        expected: u32,
    },
    /// A field of a size that no load or store has.
    #[error("no load or store has {0} bytes")]
    NewSize(u32),
}

/// Two candidates that disagree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} ({}) and {} ({})", first.0, first.1, second.0, second.1)]
pub struct Ambiguity {
    /// One candidate's access, and what it gives.
    pub first: (String, String),
    /// Another candidate's access, and what that gives.
    pub second: (String, String),
}
