//! Accesses to a context, and what each gives.

use bitflags::bitflags;

/// How a program touches bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A load that fills the upper bits with zero.
    Read,
    /// A load that copies the sign into the upper bits (`MEMSX`).
    ReadSigned,
    /// A store.
    Write,
}

/// What a register holds after a load (`info->reg_type` of the kernel's
/// `is_valid_access` functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Yield {
    /// A number.
    Scalar,
    /// The first byte of the packet, or of the option's value.
    Packet,
    /// The byte after the last.
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
    /// A trusted pointer to this structure of the kernel.
    Kernel(&'static str),
    /// Argument number so-and-so of the function in BTF, or its result.
    Argument(u32),
}

bitflags! {
    /// Which loads or stores a field allows. All are of 1, 2, 4 or 8 bytes and
    /// aligned to their own size.
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
        /// Two elements at once, where eight bytes are aligned.
        const PAIRS = 1 << 4;
        /// Four bytes at the start of a field of two.
        const AND_PADDING = 1 << 5;
        /// Every part of four bytes from the start of a field of two.
        const PADDING_PARTS = 1 << 6;
        /// The upper half by itself (the kernel looks at the whole only where it
        /// begins).
        const UPPER_HALF = 1 << 7;
    }
}

/// What programs of one kind may do with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The loads.
    pub read: Parts,
    /// The stores.
    pub write: Parts,
    /// What a load gives; a pointer cannot be loaded with its sign.
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

    /// Whether a field can be touched at all.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}
