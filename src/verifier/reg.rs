//! What the verifier knows of one register, or of eight bytes of stack that hold one.
//!
//! A register holds nothing yet, a number, or a pointer. A pointer has a kind with
//! what belongs to it, a fixed offset (`off`) and a variable one (`var`), so that
//! its address is `object + off + var`. Of a number, `var` is all there is, and `off`
//! counts from the register that it is linked to (`id` with [`ADD_CONST`]).
//! (`struct bpf_reg_state`, `include/linux/bpf_verifier.h`.)

use super::scalar::Scalar;
use crate::spec::helpers::TypeFlags;
use crate::util::{MapId, TypeId};

/// A map that a register may point to: one of the program's, or the shape of those
/// that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapRef {
    /// The program's map.
    pub id: MapId,
    /// Whether what is meant is a map inside it.
    pub inner: bool,
}

/// In an id: the register is the one of that id plus a constant, which is in `off`
/// (`BPF_ADD_CONST`).
pub(crate) const ADD_CONST: u32 = ADD_CONST64 | ADD_CONST32;
/// The constant was added in 64 bits.
pub(crate) const ADD_CONST64: u32 = 1 << 31;
/// The constant was added in 32 bits: what is above them is zero.
pub(crate) const ADD_CONST32: u32 = 1 << 30;

/// What a register holds (`enum bpf_reg_type`), with what belongs to the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nothing that may be read.
    NotInit,
    /// A number.
    Scalar,
    /// The program's context.
    Ctx,
    /// A map itself; `uid` tells apart maps found in a map of maps.
    MapPtr { map: MapRef, uid: u32 },
    /// A value in a map.
    MapValue { map: MapRef, uid: u32 },
    /// A key in a map, as a callback gets it.
    MapKey { map: MapRef, uid: u32 },
    /// The stack of a frame.
    Stack { frame: u8 },
    /// The metadata before a packet, checked up to `range`.
    PacketMeta { range: i32 },
    /// A packet, checked up to `range`; below zero [`AT_END`] and [`BEYOND_END`].
    Packet { range: i32 },
    /// The end of the packet.
    PacketEnd,
    /// `struct bpf_flow_keys`.
    FlowKeys,
    /// A full socket.
    Socket,
    /// A socket of any kind.
    SockCommon,
    /// A TCP socket.
    TcpSock,
    /// The buffer of a writable raw tracepoint.
    TpBuffer,
    /// An AF_XDP socket.
    XdpSock,
    /// A kernel object of a type in the kernel's BTF.
    BtfId { id: TypeId },
    /// Memory of so many bytes.
    Mem { size: u32 },
    /// Memory that an iterator hands out.
    Buf,
    /// A subprogram, by number.
    Func { subprogram: u32 },
    /// A dynamic pointer that a callback gets.
    Dynptr,
}

/// The range of a packet pointer that is known to be at the end
/// (`AT_PKT_END`, negative in the kernel as here).
pub(crate) const AT_END: i32 = -1;
/// The range of a packet pointer that is known to be past the end (`BEYOND_PKT_END`).
pub(crate) const BEYOND_END: i32 = -2;

/// What is known of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegState {
    /// What it holds.
    pub kind: Kind,
    /// What else is true of a pointer.
    pub flags: TypeFlags,
    /// The fixed part of a pointer's offset, in bytes.
    pub off: i32,
    /// The number, or the variable part of a pointer's offset.
    pub var: Scalar,
    /// Registers of one id came from one another: null for one is null for all, a
    /// bound of one bounds all. 0 is none.
    pub id: u32,
    /// The reference that a pointer stands for, or 0.
    pub ref_id: u32,
    /// Whether the path's safety rests on this number.
    pub precise: bool,
}

impl RegState {
    /// A register that was never written.
    pub(crate) const NOT_INIT: Self = Self::of(Kind::NotInit, Scalar::UNKNOWN);
    /// Any number (`__mark_reg_unknown_imprecise`).
    pub(crate) const UNKNOWN: Self = Self::of(Kind::Scalar, Scalar::UNKNOWN);

    const fn of(kind: Kind, var: Scalar) -> Self {
        Self {
            kind,
            flags: TypeFlags::empty(),
            off: 0,
            var,
            id: 0,
            ref_id: 0,
            precise: false,
        }
    }

    /// A known number.
    pub(crate) const fn constant(value: u64) -> Self {
        Self::of(Kind::Scalar, Scalar::constant(value))
    }

    /// A number out of these.
    pub(crate) const fn scalar(var: Scalar) -> Self {
        Self::of(Kind::Scalar, var)
    }

    /// A pointer to the start of an object.
    pub(crate) const fn pointer(kind: Kind, flags: TypeFlags) -> Self {
        let mut reg = Self::of(kind, Scalar::ZERO);
        reg.flags = flags;
        reg
    }

    pub(crate) fn is_init(&self) -> bool {
        self.kind != Kind::NotInit
    }

    pub(crate) fn is_scalar(&self) -> bool {
        self.kind == Kind::Scalar
    }

    /// Whether this is neither a number nor nothing.
    pub(crate) fn is_pointer(&self) -> bool {
        !matches!(self.kind, Kind::Scalar | Kind::NotInit)
    }

    pub(crate) const fn maybe_null(&self) -> bool {
        self.flags.contains(TypeFlags::PTR_MAYBE_NULL)
    }

    /// The constant that it holds.
    pub(crate) fn value(&self) -> Option<u64> {
        if self.is_scalar() {
            self.var.value()
        } else {
            None
        }
    }

    /// Whether it is the number 0 (`register_is_null`).
    pub(crate) fn is_null(&self) -> bool {
        self.value() == Some(0)
    }

    /// Whether both are of one kind, whatever belongs to it, with the same flags: what
    /// the kernel's `rold->type == rcur->type` compares.
    pub(crate) fn same_type(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
            && self.flags == other.flags
    }

    /// Whether it points to the packet or the metadata before it
    /// (`reg_is_pkt_pointer`).
    pub(crate) fn is_packet(&self) -> bool {
        matches!(self.kind, Kind::Packet { .. } | Kind::PacketMeta { .. })
    }

    /// The same or the packet's end (`reg_is_pkt_pointer_any`).
    pub(crate) fn is_packet_any(&self) -> bool {
        self.is_packet() || self.kind == Kind::PacketEnd
    }

    /// The checked bytes of a packet pointer.
    pub(crate) const fn range(&self) -> i32 {
        match self.kind {
            Kind::Packet { range } | Kind::PacketMeta { range } => range,
            _ => 0,
        }
    }

    /// Sets the checked bytes of a packet pointer.
    pub(crate) fn set_range(&mut self, to: i32) {
        if let Kind::Packet { range } | Kind::PacketMeta { range } = &mut self.kind {
            *range = to;
        }
    }

    /// The map that it points to, or into.
    pub(crate) const fn map(&self) -> Option<MapRef> {
        match self.kind {
            Kind::MapPtr { map, .. } | Kind::MapValue { map, .. } | Kind::MapKey { map, .. } => {
                Some(map)
            }
            _ => None,
        }
    }

    /// Whether the pointer is not null for certain (`reg_not_null`).
    pub(crate) fn is_not_null(&self) -> bool {
        if self.maybe_null() {
            return false;
        }
        let trusted = TypeFlags::PTR_TRUSTED.union(TypeFlags::MEM_ALLOC);
        match self.kind {
            Kind::Socket
            | Kind::TcpSock
            | Kind::MapValue { .. }
            | Kind::MapKey { .. }
            | Kind::SockCommon
            | Kind::MapPtr { .. } => true,
            Kind::BtfId { .. } => self.ref_id != 0 || self.flags.intersects(trusted),
            Kind::Mem { .. } => !self.flags.contains(TypeFlags::PTR_UNTRUSTED),
            _ => false,
        }
    }

    /// Whether a spilled register of this kind can be filled again as what it was
    /// (`is_spillable_regtype`).
    pub(crate) fn is_spillable(&self) -> bool {
        !matches!(
            self.kind,
            Kind::NotInit | Kind::Scalar | Kind::TpBuffer | Kind::Dynptr
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States are copied at each branch: a register stays below two cache lines.
    #[test]
    fn a_register_stays_small() {
        assert!(size_of::<RegState>() <= 104, "{}", size_of::<RegState>());
    }

    #[test]
    fn types_are_compared_without_what_belongs_to_them() {
        let near = RegState::pointer(Kind::Packet { range: 4 }, TypeFlags::empty());
        let far = RegState::pointer(Kind::Packet { range: 9 }, TypeFlags::empty());
        let null = RegState::pointer(Kind::Packet { range: 4 }, TypeFlags::PTR_MAYBE_NULL);
        assert!(near.same_type(&far) && near != far);
        assert!(!near.same_type(&null));
    }
}
