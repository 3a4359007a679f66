//! Argument and result kinds of helpers, for the verifier.

use bitflags::bitflags;

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
    /// Whether this is the size of the memory in the previous argument.
    #[must_use]
    pub const fn is_size(self) -> bool {
        matches!(self, Self::ConstSize | Self::ConstSizeOrZero)
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

bitflags! {
    /// Flags of a pointer (`enum bpf_type_flag`, `include/linux/bpf.h`), with the kernel's
    /// names and bits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct TypeFlags: u32 {
        /// It may be null.
        const PTR_MAYBE_NULL = 1 << 8;
        /// An argument: the memory is only read; a result: it is read-only.
        const MEM_RDONLY = 1 << 9;
        /// A ring buffer's record.
        const MEM_RINGBUF = 1 << 10;
        /// User memory.
        const MEM_USER = 1 << 11;
        /// Per-CPU memory.
        const MEM_PERCPU = 1 << 12;
        /// The call releases the reference.
        const OBJ_RELEASE = 1 << 13;
        /// The pointer can't be trusted.
        const PTR_UNTRUSTED = 1 << 14;
        /// The memory need not be initialised.
        const MEM_UNINIT = 1 << 15;
        /// A dynptr to the program's own memory.
        const DYNPTR_TYPE_LOCAL = 1 << 16;
        /// A dynptr to a ring buffer's record.
        const DYNPTR_TYPE_RINGBUF = 1 << 17;
        /// The memory's size is fixed, in [`Detail::Size`].
        const MEM_FIXED_SIZE = 1 << 18;
        /// Memory that the program allocated.
        const MEM_ALLOC = 1 << 19;
        /// The object is known to be alive.
        const PTR_TRUSTED = 1 << 20;
        /// The object is valid inside the RCU read section.
        const MEM_RCU = 1 << 21;
        /// The reference is non-owning: the program need not release it.
        const NON_OWN_REF = 1 << 22;
        /// A dynptr to a packet.
        const DYNPTR_TYPE_SKB = 1 << 23;
        /// A dynptr to an XDP packet.
        const DYNPTR_TYPE_XDP = 1 << 24;
        /// The memory has to be aligned to its size.
        const MEM_ALIGNED = 1 << 25;
        /// The helper writes to the memory.
        const MEM_WRITE = 1 << 26;
        /// A dynptr to a packet's metadata.
        const DYNPTR_TYPE_SKB_META = 1 << 27;
    }
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

    /// Whether the helper overwrites the memory without reading it (`arg_type_is_raw_mem`,
    /// `kernel/bpf/verifier.c`).
    #[must_use]
    pub const fn is_raw_memory(&self) -> bool {
        matches!(self.kind, ArgKind::PtrToMem | ArgKind::PtrToMapValue)
            && self.flags.contains(TypeFlags::MEM_UNINIT)
    }

    /// The argument in the kernel's notation: the bits of `arg_type`.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.kind as u32 | self.flags.bits()
    }
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

    /// The result in the kernel's notation: the bits of `ret_type`.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.kind as u32 | self.flags.bits()
    }
}
