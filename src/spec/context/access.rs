//! Accesses to a context, and their results.

use bitflags::bitflags;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A zero-extending load.
    Read,
    /// A sign-extending load (`MEMSX`).
    ReadSigned,
    /// A store.
    Write,
}

/// Kind of register contents after a load (`info->reg_type` of the kernel's
/// `is_valid_access` functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Yield {
    /// A number.
    Scalar,
    /// The first byte of the packet, or of the option's value.
    Packet,
    /// The byte after the last one.
    PacketEnd,
    /// The first byte of the packet's metadata.
    PacketMeta,
    /// A full socket.
    Socket,
    /// A full socket or null.
    SocketOrNull,
    /// A socket of any kind, or null.
    SockCommonOrNull,
    /// `struct bpf_flow_keys`.
    FlowKeys,
    /// The buffer of a writable raw tracepoint.
    TracepointBuffer,
    /// A trusted pointer to this kernel structure.
    Kernel(&'static str),
    /// An argument of the function in BTF, by number, or its result.
    Argument(u32),
}

bitflags! {
    /// The loads or stores that a field allows. All have 1, 2, 4 or 8 bytes and natural
    /// alignment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Parts: u8 {
        /// The whole field, or a whole element of an array.
        const WHOLE = 1 << 0;
        /// Parts at the start of an element.
        const LOW = 1 << 1;
        /// Parts of two bytes or more.
        const HALVES = 1 << 2;
        /// Every part.
        const ALL = 1 << 3;
        /// Two elements at once, if eight bytes are aligned.
        const PAIRS = 1 << 4;
        /// Four bytes at the start of a field of two.
        const AND_PADDING = 1 << 5;
        /// Every part of four bytes from the start of a field of two.
        const PADDING_PARTS = 1 << 6;
        /// The upper half alone (the kernel checks for the whole field only at its start).
        const UPPER_HALF = 1 << 7;
    }
}

/// The accesses to a field that programs of one column may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The allowed loads.
    pub read: Parts,
    /// The allowed stores.
    pub write: Parts,
    /// Result of a load; pointers cannot be loaded with sign extension.
    pub yields: Yield,
}

impl Access {
    pub(super) const NONE: Self = Self {
        read: Parts::empty(),
        write: Parts::empty(),
        yields: Yield::Scalar,
    };

    pub(super) const fn read(read: Parts) -> Self {
        Self { read, ..Self::NONE }
    }

    pub(super) const fn write(mut self, write: Parts) -> Self {
        self.write = write;
        self
    }

    pub(super) const fn pointer(yields: Yield) -> Self {
        Self {
            read: Parts::WHOLE,
            yields,
            ..Self::NONE
        }
    }

    /// Whether no access to the field is allowed.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}
