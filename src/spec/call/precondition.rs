//! Preconditions: what a call demands of an argument.

use std::fmt;

use super::iterator::IteratorKind;
use super::register::RegTypes;
use crate::btf::FieldKind;

/// A condition on an argument's register, or on what it points to.
///
/// The verifier checks the preconditions of an argument in their order, which decides the
/// error of an argument that violates several. Each has its check in `verifier::call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The register was written.
    Initialised,
    /// A packet pointer may be passed: if the flag is set (`pkt_access`), and the program may
    /// read the packet.
    PacketAccess(bool),
    /// The map in the arguments may replace the preconditions that follow
    /// (`resolve_map_arg_type`).
    MapDecides,
    /// It is not null and can't be.
    NotNull,
    /// The object is known to be alive (`KF_TRUSTED_ARGS`).
    Trusted,
    /// The object is known to be alive, or protected by an RCU read section (`KF_RCU`).
    TrustedOrRcu,
    /// The register has one of these types (`check_reg_type`).
    Is(RegTypes),
    /// It does not point to a kernel object: the call may write to the memory.
    NotObject,
    /// The kernel object is of this structure, or has one at the pointer's offset. `None`:
    /// the call determines the structure.
    Object(Option<&'static str>),
    /// The pointer's offset is one that its type allows (`check_func_arg_reg_off`).
    OffsetOfType,
    /// The pointer has no offset.
    NoOffset,
    /// It is an acquired reference, which the call releases.
    Released,
    /// It is the call's only argument with an acquired reference.
    OnlyReference,
    /// A map, to which other arguments and the result refer.
    Map,
    /// Memory that the call accesses.
    Memory(Region),
    /// The size of the memory in the previous argument.
    Size {
        /// Whether it may be 0.
        zero: bool,
    },
    /// A known constant.
    Constant,
    /// The size, a known constant, of memory that the call returns.
    ResultSize,
    /// A subprogram that the call runs or schedules.
    Callback,
    /// A NUL-terminated string in a read-only map.
    ConstString,
    /// A special field of an object.
    Field(FieldKind),
    /// A dynptr.
    Dynptr(DynptrUse),
    /// An iterator on the stack; `None` for any kind.
    Iterator(Option<IteratorKind>),
    /// A stack slot for the interrupt state.
    IrqFlag,
}

impl Precondition {
    /// Whether null that may be passed has to meet it, too.
    #[must_use]
    pub const fn applies_to_null(&self) -> bool {
        matches!(
            self,
            Self::Initialised | Self::PacketAccess(_) | Self::MapDecides
        )
    }
}

/// Memory that a call accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its size.
    pub extent: Extent,
    /// Whether the call reads or writes it.
    pub access: Access,
    /// Whether the call overwrites it without reading it, so that it need not be
    /// initialised.
    pub uninit: bool,
    /// Whether it has to be aligned to its size.
    pub aligned: bool,
}

/// The type of a memory access (`enum bpf_access_type`, `include/linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It may be written.
    Write,
}

/// What a call does to a dynptr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynptrUse {
    /// It initialises the dynptr.
    Initialises,
    /// It uses the dynptr, which stays valid.
    Keeps,
    /// It releases the dynptr.
    Releases,
}

/// The size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A key of the map in the arguments.
    Key,
    /// A value of that map.
    Value,
    /// This number of bytes.
    Bytes(u32),
    /// The number of bytes in the next argument.
    Next,
    /// That of this C type.
    Type(&'static str),
}

/// What is expected, in a report: `one of: fp, map_value`.
impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialised => f.write_str("a value"),
            Self::PacketAccess(_) => f.write_str("no packet pointer"),
            Self::MapDecides => f.write_str("what the map's values are"),
            Self::NotNull => f.write_str("a pointer that can't be null"),
            Self::Trusted => f.write_str("an object that is known to be alive"),
            Self::TrustedOrRcu => {
                f.write_str("an object that is known to be alive, or inside an RCU read section")
            }
            Self::Is(types) => write!(f, "one of: {types}"),
            Self::NotObject => f.write_str("memory that is not a kernel object"),
            Self::Object(Some(name)) => write!(f, "a struct {name}"),
            Self::Object(None) => f.write_str("a kernel object"),
            Self::OffsetOfType => f.write_str("an offset that the pointer's type allows"),
            Self::NoOffset => f.write_str("a pointer without offset"),
            Self::Released => f.write_str("a reference, which the call releases"),
            Self::OnlyReference => f.write_str("no other argument with a reference"),
            Self::Map => f.write_str("a map"),
            Self::Memory(region) => region.fmt(f),
            Self::Size { zero: true } => f.write_str("the size of the memory before it"),
            Self::Size { zero: false } => f.write_str("the size of the memory before it, above 0"),
            Self::Constant => f.write_str("a constant"),
            Self::ResultSize => f.write_str("the constant size of the memory that is returned"),
            Self::Callback => f.write_str("a function of the program"),
            Self::ConstString => f.write_str("a string in a read-only map"),
            Self::Field(kind) => write!(f, "a {}", kind.name()),
            Self::Dynptr(DynptrUse::Initialises) => f.write_str("space for a dynptr"),
            Self::Dynptr(DynptrUse::Keeps) => f.write_str("a dynptr"),
            Self::Dynptr(DynptrUse::Releases) => f.write_str("a dynptr, which the call releases"),
            Self::Iterator(Some(kind)) => write!(f, "a struct {}", kind.structure()),
            Self::Iterator(None) => f.write_str("an iterator"),
            Self::IrqFlag => f.write_str("a stack slot for the interrupt state"),
        }
    }
}

/// `memory of the map's key size that is read`.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.extent {
            Extent::Key => f.write_str("memory of the map's key size")?,
            Extent::Value => f.write_str("memory of the map's value size")?,
            Extent::Bytes(size) => write!(f, "{size} bytes of memory")?,
            Extent::Next => f.write_str("memory of the size in the next argument")?,
            Extent::Type(name) => write!(f, "memory of the size of {name}")?,
        }
        f.write_str(match (self.access, self.uninit) {
            (Access::Read, _) => " that is read",
            (Access::Write, false) => " that may be written",
            (Access::Write, true) => " that is overwritten",
        })?;
        if self.aligned {
            f.write_str(", aligned to its size")?;
        }
        Ok(())
    }
}

/// The preconditions of an argument while they are collected.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Preconditions {
    all: [Precondition; Self::MAX],
    len: usize,
}

impl Preconditions {
    /// The most preconditions of one argument; more do not compile.
    const MAX: usize = 8;

    pub(in crate::spec) const NONE: Self = Self {
        all: [Precondition::Initialised; Self::MAX],
        len: 0,
    };

    /// Adds a precondition.
    pub(in crate::spec) const fn and(mut self, one: Precondition) -> Self {
        self.all[self.len] = one;
        self.len += 1;
        self
    }

    /// Adds a precondition, if there is one.
    pub(in crate::spec) const fn and_some(self, one: Option<Precondition>) -> Self {
        match one {
            Some(one) => self.and(one),
            None => self,
        }
    }

    pub(in crate::spec) const fn as_slice(&self) -> &[Precondition] {
        self.all.split_at(self.len).0
    }
}
