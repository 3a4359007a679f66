//! Types of registers, as preconditions and messages name them.

use std::fmt;

use bitflags::bitflags;

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
        /// The memory's size is fixed.
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

impl TypeFlags {
    /// What a dynptr refers to.
    pub(in crate::spec) const DYNPTR_TYPES: Self = Self::DYNPTR_TYPE_LOCAL
        .union(Self::DYNPTR_TYPE_RINGBUF)
        .union(Self::DYNPTR_TYPE_SKB)
        .union(Self::DYNPTR_TYPE_XDP)
        .union(Self::DYNPTR_TYPE_SKB_META);
}

/// Declares [`RegKind`] with the kernel's names.
macro_rules! kinds {
    ($($variant:ident $name:literal $doc:literal,)+) => {
        /// Type of a register without flags and attributes (`enum bpf_reg_type`,
        /// `include/linux/bpf.h`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum RegKind {
            $(#[doc = $doc] $variant,)+
        }

        impl RegKind {
            /// Its name in messages (`reg_type_str`, `kernel/bpf/log.c`).
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

kinds! {
    NotInit "?" "Uninitialised.",
    Scalar "scalar" "A number.",
    Ctx "ctx" "The program's context.",
    MapPtr "map_ptr" "A map.",
    MapValue "map_value" "A value in a map.",
    MapKey "map_key" "A key in a map.",
    Stack "fp" "The stack of a frame.",
    PacketMeta "pkt_meta" "The metadata before a packet.",
    Packet "pkt" "A packet.",
    PacketEnd "pkt_end" "The end of a packet.",
    FlowKeys "flow_keys" "`struct bpf_flow_keys`.",
    Socket "sock" "A full socket.",
    SockCommon "sock_common" "A socket of any kind.",
    TcpSock "tcp_sock" "A TCP socket.",
    TpBuffer "tp_buffer" "The buffer of a writable raw tracepoint.",
    XdpSock "xdp_sock" "An AF_XDP socket.",
    BtfId "ptr_" "A kernel object; the name of its structure follows.",
    Mem "mem" "Memory.",
    Buf "buf" "A buffer of an iterator.",
    Func "func" "A subprogram.",
    Dynptr "dynptr_ptr" "A dynptr that a callback gets.",
    Arena "arena" "A pointer into an arena.",
}

/// Type of a register: `map_value_or_null`, `rdonly_mem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegType {
    /// The type without flags.
    pub kind: RegKind,
    /// The flags.
    pub flags: TypeFlags,
}

impl RegType {
    /// A type with these flags.
    #[must_use]
    pub const fn new(kind: RegKind, flags: TypeFlags) -> Self {
        Self { kind, flags }
    }

    const fn plain(kind: RegKind) -> Self {
        Self::new(kind, TypeFlags::empty())
    }
}

/// The flags that are printed before the type, in this order.
const PREFIXES: [(TypeFlags, &str); 7] = [
    (TypeFlags::MEM_RDONLY, "rdonly_"),
    (TypeFlags::MEM_RINGBUF, "ringbuf_"),
    (TypeFlags::MEM_USER, "user_"),
    (TypeFlags::MEM_PERCPU, "percpu_"),
    (TypeFlags::MEM_RCU, "rcu_"),
    (TypeFlags::PTR_UNTRUSTED, "untrusted_"),
    (TypeFlags::PTR_TRUSTED, "trusted_"),
];

/// The name in the kernel's messages.
impl fmt::Display for RegType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, prefix) in PREFIXES {
            if self.flags.contains(flag) {
                f.write_str(prefix)?;
            }
        }
        f.write_str(self.kind.name())?;
        match (self.flags.contains(TypeFlags::PTR_MAYBE_NULL), self.kind) {
            (false, _) => Ok(()),
            (true, RegKind::BtfId) => f.write_str("or_null_"),
            (true, _) => f.write_str("_or_null"),
        }
    }
}

/// A set of register types, in the order in which a message lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegTypes {
    /// The types.
    pub types: &'static [RegType],
    /// Flags of a register that are ignored.
    pub ignored: TypeFlags,
}

impl RegTypes {
    /// Whether a register of this type is in the set.
    #[must_use]
    pub fn contains(&self, reg: RegType) -> bool {
        let reg = RegType::new(reg.kind, reg.flags.difference(self.ignored));
        self.types.contains(&reg)
    }

    /// The same types; these flags of a register are ignored.
    #[must_use]
    pub const fn ignoring(self, flags: TypeFlags) -> Self {
        Self {
            ignored: self.ignored.union(flags),
            ..self
        }
    }

    const fn of(types: &'static [RegType]) -> Self {
        Self {
            types,
            ignored: TypeFlags::empty(),
        }
    }
}

/// `fp, pkt, pkt_meta`.
impl fmt::Display for RegTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ty) in self.types.iter().enumerate() {
            let separator = if number > 0 { ", " } else { "" };
            write!(f, "{separator}{ty}")?;
        }
        Ok(())
    }
}

/// Sets that arguments take (`compatible_reg_types`, `kernel/bpf/verifier.c`).
impl RegTypes {
    /// No type.
    pub const NONE: Self = Self::of(&[]);
    /// A number.
    pub const SCALAR: Self = Self::of(&[RegType::plain(RegKind::Scalar)]);
    /// The context.
    pub const CTX: Self = Self::of(&[RegType::plain(RegKind::Ctx)]);
    /// A map.
    pub const MAP_PTR: Self = Self::of(&[RegType::plain(RegKind::MapPtr)]);
    /// A value in a map.
    pub const MAP_VALUE: Self = Self::of(&[RegType::plain(RegKind::MapValue)]);
    /// The stack.
    pub const STACK: Self = Self::of(&[RegType::plain(RegKind::Stack)]);
    /// A subprogram.
    pub const FUNC: Self = Self::of(&[RegType::plain(RegKind::Func)]);
    /// A dynptr: on the stack, or one that a callback gets.
    pub const DYNPTR: Self = Self::of(&[
        RegType::plain(RegKind::Stack),
        RegType::plain(RegKind::Dynptr),
    ]);
    /// A record of a ring buffer.
    pub const RINGBUF_MEM: Self = Self::of(&[RINGBUF_MEM]);
    /// Memory.
    pub const MEMORY: Self = Self::of(&[
        RegType::plain(RegKind::Stack),
        RegType::plain(RegKind::Packet),
        RegType::plain(RegKind::PacketMeta),
        RegType::plain(RegKind::MapKey),
        RegType::plain(RegKind::MapValue),
        RegType::plain(RegKind::Mem),
        RINGBUF_MEM,
        RegType::plain(RegKind::Buf),
        TRUSTED_OBJECT,
    ]);
    /// A full socket.
    pub const SOCKET: Self = Self::of(&[RegType::plain(RegKind::Socket)]);
    /// A socket of any kind.
    pub const SOCK_COMMON: Self = Self::of(SOCKETS.split_at(4).0);
    /// A socket of any kind, or a kernel object.
    pub const SOCK_COMMON_OR_OBJECT: Self = Self::of(SOCKETS);
    /// A kernel object.
    pub const OBJECT: Self = Self::of(&[
        RegType::plain(RegKind::BtfId),
        TRUSTED_OBJECT,
        RegType::new(RegKind::BtfId, TypeFlags::MEM_RCU),
    ]);
    /// A per-CPU kernel object.
    pub const PERCPU_OBJECT: Self = Self::of(&[
        RegType::new(RegKind::BtfId, TypeFlags::MEM_PERCPU),
        RegType::new(
            RegKind::BtfId,
            TypeFlags::MEM_PERCPU.union(TypeFlags::MEM_RCU),
        ),
        RegType::new(
            RegKind::BtfId,
            TypeFlags::MEM_PERCPU.union(TypeFlags::PTR_TRUSTED),
        ),
    ]);
    /// An object that the program allocated.
    pub const ALLOCATED: Self = Self::of(HOLDS_FIELDS.split_at(1).1);
    /// An object with special fields: a value in a map, or one that the program allocated.
    pub const HOLDS_FIELDS: Self = Self::of(HOLDS_FIELDS);
}

const RINGBUF_MEM: RegType = RegType::new(RegKind::Mem, TypeFlags::MEM_RINGBUF);
const TRUSTED_OBJECT: RegType = RegType::new(RegKind::BtfId, TypeFlags::PTR_TRUSTED);
const SOCKETS: &[RegType] = &[
    RegType::plain(RegKind::SockCommon),
    RegType::plain(RegKind::Socket),
    RegType::plain(RegKind::TcpSock),
    RegType::plain(RegKind::XdpSock),
    RegType::plain(RegKind::BtfId),
    TRUSTED_OBJECT,
];
const HOLDS_FIELDS: &[RegType] = &[
    RegType::plain(RegKind::MapValue),
    RegType::new(RegKind::BtfId, TypeFlags::MEM_ALLOC),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stand_before_and_behind_the_kind() {
        let name = |kind, flags| RegType::new(kind, flags).to_string();
        let null = TypeFlags::PTR_MAYBE_NULL;
        assert_eq!(name(RegKind::Scalar, TypeFlags::empty()), "scalar");
        assert_eq!(name(RegKind::NotInit, TypeFlags::empty()), "?");
        assert_eq!(name(RegKind::Stack, TypeFlags::empty()), "fp");
        assert_eq!(name(RegKind::TcpSock, null), "tcp_sock_or_null");
        let record = TypeFlags::MEM_RINGBUF | null;
        assert_eq!(name(RegKind::Mem, record), "ringbuf_mem_or_null");
        let frozen = TypeFlags::MEM_RDONLY | TypeFlags::PTR_UNTRUSTED;
        assert_eq!(name(RegKind::Mem, frozen), "rdonly_untrusted_mem");
        let trusted = TypeFlags::PTR_TRUSTED | null;
        assert_eq!(name(RegKind::BtfId, trusted), "trusted_ptr_or_null_");
    }

    #[test]
    fn memory_is_listed_as_the_kernel_lists_it() {
        assert_eq!(
            RegTypes::MEMORY.to_string(),
            "fp, pkt, pkt_meta, map_key, map_value, mem, ringbuf_mem, buf, trusted_ptr_"
        );
        assert_eq!(
            RegTypes::SOCK_COMMON.to_string(),
            "sock_common, sock, tcp_sock, xdp_sock"
        );
    }

    #[test]
    fn ignored_flags_are_those_of_the_register() {
        let maybe = RegType::new(RegKind::MapValue, TypeFlags::PTR_MAYBE_NULL);
        assert!(!RegTypes::MEMORY.contains(maybe));
        let nullable = RegTypes::MEMORY.ignoring(TypeFlags::PTR_MAYBE_NULL);
        assert!(nullable.contains(maybe) && nullable.contains(RegType::plain(RegKind::MapValue)));
    }
}
