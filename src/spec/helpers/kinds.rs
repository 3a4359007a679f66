//! Argument and result kinds of helpers in the kernel's notation, and the preconditions that
//! they stand for.

use crate::btf::FieldKind;
use crate::spec::call::{
    Access, ArgSpec, DynptrUse, Extent, Precondition, Preconditions, RegTypes, Region, ResultKind,
    ResultSpec, TypeFlags,
};

/// Required kind of a helper's argument (`enum bpf_arg_type`, `include/linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum ArgKind {
    /// A map, referred to by a 64-bit immediate.
    ConstMapPtr = 1,
    /// Memory of the map's key size.
    PtrToMapKey = 2,
    /// Memory of the map's value size.
    PtrToMapValue = 3,
    /// Memory whose size is in the next argument, or in [`Detail::Size`].
    PtrToMem = 4,
    /// A pointer into an arena.
    PtrToArena = 5,
    /// The size, above 0, of the memory in the previous argument.
    ConstSize = 6,
    /// The size of the memory in the previous argument.
    ConstSizeOrZero = 7,
    /// The program's context, unmodified.
    PtrToCtx = 8,
    /// Any initialised register.
    Anything = 9,
    /// A `struct bpf_spin_lock` in a map's value.
    PtrToSpinLock = 10,
    /// A socket of any kind.
    PtrToSockCommon = 11,
    /// A full socket.
    PtrToSocket = 12,
    /// A kernel object of a type in BTF: [`Detail::Struct`].
    PtrToBtfId = 13,
    /// A record of a ring buffer.
    PtrToRingbufMem = 14,
    /// The size, a known constant, of memory that the helper returns.
    ConstAllocSizeOrZero = 15,
    /// A socket of any kind, or a kernel object that begins with
    /// `struct sock_common`.
    PtrToBtfIdSockCommon = 16,
    /// A per-CPU kernel object.
    PtrToPercpuBtfId = 17,
    /// A subprogram.
    PtrToFunc = 18,
    /// A pointer into the program's stack.
    PtrToStack = 19,
    /// A NUL-terminated string in a read-only map.
    PtrToConstStr = 20,
    /// A `struct bpf_timer` in a map's value.
    PtrToTimer = 21,
    /// A kptr field: in a map's value or an allocated object.
    KptrXchgDest = 22,
    /// A dynptr.
    PtrToDynptr = 23,
}

impl ArgKind {
    /// The types of registers that may be passed (`compatible_reg_types`).
    const fn types(self) -> RegTypes {
        match self {
            Self::PtrToMapKey | Self::PtrToMapValue | Self::PtrToMem => RegTypes::MEMORY,
            Self::ConstSize | Self::ConstSizeOrZero | Self::ConstAllocSizeOrZero => {
                RegTypes::SCALAR
            }
            Self::ConstMapPtr => RegTypes::MAP_PTR,
            Self::PtrToCtx => RegTypes::CTX,
            Self::PtrToSockCommon => RegTypes::SOCK_COMMON,
            Self::PtrToBtfIdSockCommon => RegTypes::SOCK_COMMON_OR_OBJECT,
            Self::PtrToSocket => RegTypes::SOCKET,
            Self::PtrToBtfId => RegTypes::OBJECT,
            Self::PtrToSpinLock | Self::KptrXchgDest => RegTypes::HOLDS_FIELDS,
            Self::PtrToRingbufMem => RegTypes::RINGBUF_MEM,
            Self::PtrToPercpuBtfId => RegTypes::PERCPU_OBJECT,
            Self::PtrToFunc => RegTypes::FUNC,
            Self::PtrToStack => RegTypes::STACK,
            Self::PtrToDynptr => RegTypes::DYNPTR,
            Self::PtrToConstStr | Self::PtrToTimer => RegTypes::MAP_VALUE,
            Self::Anything | Self::PtrToArena => RegTypes::NONE,
        }
    }

    const fn is_memory(self) -> bool {
        matches!(
            self,
            Self::PtrToMapKey | Self::PtrToMapValue | Self::PtrToMem
        )
    }

    const fn is_number(self) -> bool {
        matches!(
            self,
            Self::ConstSize | Self::ConstSizeOrZero | Self::ConstAllocSizeOrZero
        )
    }
}

/// What a helper returns (`enum bpf_return_type`, `include/linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum RetKind {
    /// A number.
    Integer = 0,
    /// Nothing: `r0` can't be read.
    Void = 1,
    /// A value of the map in the first argument.
    PtrToMapValue = 2,
    /// A full socket.
    PtrToSocket = 3,
    /// A TCP socket (`struct bpf_tcp_sock`).
    PtrToTcpSock = 4,
    /// A socket of any kind.
    PtrToSockCommon = 5,
    /// Memory; its size is the [`ArgKind::ConstAllocSizeOrZero`] argument.
    PtrToMem = 6,
    /// Memory or a kernel object, by the type of the per-CPU object asked for.
    PtrToMemOrBtfId = 7,
    /// A kernel object of a type in BTF.
    PtrToBtfId = 8,
}

/// Parameter of an argument or result kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Detail {
    /// Nothing.
    None,
    /// The memory's size in bytes.
    Size(u32),
    /// The structure's name in the kernel's BTF.
    Struct(&'static str),
}

/// An argument of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Arg {
    /// Its required kind.
    pub kind: ArgKind,
    /// Its flags.
    pub flags: TypeFlags,
    /// Its size or structure.
    pub detail: Detail,
}

impl Arg {
    /// Whether null may be passed.
    #[must_use]
    pub const fn nullable(&self) -> bool {
        self.flags.contains(TypeFlags::PTR_MAYBE_NULL)
    }

    /// The argument in the kernel's notation: the bits of `arg_type`.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.kind as u32 | self.flags.bits()
    }

    /// The preconditions, in the order of `check_func_arg`, `kernel/bpf/verifier.c`;
    /// `packet`: whether the prototype allows packet memory.
    pub(super) const fn preconditions(self, packet: bool) -> Preconditions {
        let list = Preconditions::NONE.and(Precondition::Initialised);
        if matches!(self.kind, ArgKind::Anything) {
            return list;
        }
        let list = list.and(Precondition::PacketAccess(packet));
        match self.kind {
            ArgKind::PtrToMapValue => self.of_value(list.and(Precondition::MapDecides)),
            _ => self.of_value(list),
        }
    }

    /// Adds the preconditions on the value.
    const fn of_value(self, list: Preconditions) -> Preconditions {
        let list = list
            .and(Precondition::Is(self.types()))
            .and_some(self.object());
        let list = if self.kind.is_number() {
            list
        } else {
            self.of_pointer(list)
        };
        list.and_some(self.target())
    }

    /// Adds the preconditions on a pointer's offset and references.
    const fn of_pointer(self, list: Preconditions) -> Preconditions {
        let is_dynptr = matches!(self.kind, ArgKind::PtrToDynptr);
        let list = if self.flags.contains(TypeFlags::OBJ_RELEASE) && !is_dynptr {
            list.and(Precondition::NoOffset).and(Precondition::Released)
        } else {
            list.and(Precondition::OffsetOfType)
        };
        match self.kind {
            ArgKind::KptrXchgDest => list,
            _ => list.and(Precondition::OnlyReference),
        }
    }

    const fn types(self) -> RegTypes {
        let flags = TypeFlags::MEM_RDONLY.union(TypeFlags::PTR_MAYBE_NULL);
        let types = self.kind.types().ignoring(self.flags.intersection(flags));
        match self.kind {
            ArgKind::PtrToMem => types.ignoring(TypeFlags::DYNPTR_TYPES),
            _ => types,
        }
    }

    /// The precondition on a pointer to a kernel object.
    const fn object(self) -> Option<Precondition> {
        match (self.kind, self.detail) {
            (ArgKind::PtrToBtfIdSockCommon, _) => Some(Precondition::Object(Some("sock_common"))),
            (ArgKind::PtrToBtfId, Detail::Struct(name)) => Some(Precondition::Object(Some(name))),
            (
                ArgKind::PtrToBtfId
                | ArgKind::PtrToPercpuBtfId
                | ArgKind::PtrToSpinLock
                | ArgKind::KptrXchgDest,
                _,
            ) => Some(Precondition::Object(None)),
            (kind, _) if kind.is_memory() && !self.flags.contains(TypeFlags::MEM_RDONLY) => {
                Some(Precondition::NotObject)
            }
            _ => None,
        }
    }

    /// The precondition on the number, or on what the pointer points to.
    const fn target(self) -> Option<Precondition> {
        Some(match self.kind {
            ArgKind::ConstMapPtr => Precondition::Map,
            ArgKind::PtrToMapKey => self.region(Extent::Key),
            ArgKind::PtrToMapValue => self.region(Extent::Value),
            ArgKind::PtrToMem => match self.detail {
                Detail::Size(size) => self.region(Extent::Bytes(size)),
                _ => self.region(Extent::Next),
            },
            ArgKind::ConstSize => Precondition::Size { zero: false },
            ArgKind::ConstSizeOrZero => Precondition::Size { zero: true },
            ArgKind::ConstAllocSizeOrZero => Precondition::ResultSize,
            ArgKind::PtrToFunc => Precondition::Callback,
            ArgKind::PtrToConstStr => Precondition::ConstString,
            ArgKind::PtrToSpinLock => Precondition::Field(FieldKind::SpinLock),
            ArgKind::PtrToTimer => Precondition::Field(FieldKind::Timer),
            ArgKind::KptrXchgDest => Precondition::Field(FieldKind::KptrRef),
            ArgKind::PtrToDynptr => {
                Precondition::Dynptr(if self.flags.contains(TypeFlags::MEM_UNINIT) {
                    DynptrUse::Initialises
                } else if self.flags.contains(TypeFlags::OBJ_RELEASE) {
                    DynptrUse::Releases
                } else {
                    DynptrUse::Keeps
                })
            }
            _ => return None,
        })
    }

    const fn region(self, extent: Extent) -> Precondition {
        Precondition::Memory(Region {
            extent,
            access: if self.flags.contains(TypeFlags::MEM_WRITE) {
                Access::Write
            } else {
                Access::Read
            },
            uninit: self.flags.contains(TypeFlags::MEM_UNINIT),
            aligned: self.flags.contains(TypeFlags::MEM_ALIGNED),
        })
    }
}

/// Defines an argument that takes the place of a value argument, after
/// [`Precondition::MapDecides`].
macro_rules! instead {
    ($(#[$doc:meta])* $name:ident = $kind:ident) => {
        $(#[$doc])*
        pub const $name: ArgSpec = {
            const ARG: Arg = Arg {
                kind: ArgKind::$kind,
                flags: TypeFlags::empty(),
                detail: Detail::None,
            };
            const LIST: &Preconditions = &ARG.of_value(Preconditions::NONE);
            ArgSpec {
                nullable: false,
                preconditions: LIST.as_slice(),
            }
        };
    };
}

instead! {
    /// The value argument for a map of sockets.
    SOCKET_VALUE = PtrToBtfIdSockCommon
}
instead! {
    /// The value argument of `map_peek_elem` for a Bloom filter: the value to look up.
    FILTER_VALUE = PtrToMapValue
}

/// What a helper returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Ret {
    /// Its kind.
    pub kind: RetKind,
    /// Its flags.
    pub flags: TypeFlags,
    /// Its structure.
    pub detail: Detail,
}

impl Ret {
    /// Whether null may be returned.
    #[must_use]
    pub const fn nullable(&self) -> bool {
        self.flags.contains(TypeFlags::PTR_MAYBE_NULL)
    }

    /// The result of a call.
    pub(super) const fn spec(&self) -> ResultSpec {
        ResultSpec {
            kind: match self.kind {
                RetKind::Integer => ResultKind::Signed,
                RetKind::Void => ResultKind::Nothing,
                RetKind::PtrToMapValue => ResultKind::MapValue,
                RetKind::PtrToMem => ResultKind::Memory,
                _ => ResultKind::Kernel,
            },
            nullable: self.nullable(),
        }
    }

    /// The result in the kernel's notation: the bits of `ret_type`.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.kind as u32 | self.flags.bits()
    }
}
