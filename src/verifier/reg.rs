//! The state of one register, or of an 8-byte stack slot that holds a spilled register
//! (`struct bpf_reg_state`, `include/linux/bpf_verifier.h`).
//!
//! A register is uninitialised, a scalar or a pointer. A pointer has a kind with its
//! attributes, a fixed offset (`off`) and a variable one (`var`): its address is `object +
//! off + var`. A scalar has only `var`; its `off` is the distance from the register that it
//! is linked to (`id` with [`ADD_CONST`]).

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::scalar::Scalar;
use crate::btf::Btf;
use crate::isa::low32;
use crate::program::Program;
use crate::spec::call::{IteratorKind, RegKind, RegType, TypeFlags};
use crate::util::{MapId, TypeId};

/// A map that a register refers to: one of the program's maps, or the inner map of a map of
/// maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapRef {
    /// The program's map.
    pub id: MapId,
    /// Whether this is the inner map.
    pub inner: bool,
}

/// A type of an object: in the kernel's BTF, or in the program's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ObjectType {
    /// The type's id.
    pub id: TypeId,
    /// Whether it is in the program's BTF: an object that the program allocates.
    pub own: bool,
}

impl ObjectType {
    /// A type in the kernel's BTF.
    pub(crate) const fn kernel(id: TypeId) -> Self {
        Self { id, own: false }
    }

    /// The BTF that has the type, if the program has it.
    pub(crate) const fn btf(self, program: &Program) -> Option<&Btf> {
        if self.own {
            program.btf.as_ref()
        } else {
            program.kernel_btf.as_ref()
        }
    }
}

/// What a dynptr refers to (`enum bpf_dynptr_type`, `include/linux/bpf.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DynptrKind {
    /// The program's own memory.
    Local,
    /// A ring buffer's record.
    Ringbuf,
    /// A socket buffer.
    Skb,
    /// An XDP packet.
    Xdp,
    /// A socket buffer's metadata.
    SkbMeta,
}

/// The state of an iterator (`enum bpf_iter_state`, `include/linux/bpf_verifier.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IterState {
    /// It may have further elements.
    Active,
    /// It has none: the last step gave null.
    Drained,
}

/// Bits in an id: the register equals the register with the plain id plus the constant in
/// `off` (`BPF_ADD_CONST`).
pub(crate) const ADD_CONST: u32 = ADD_CONST64 | ADD_CONST32;
/// The constant was added in 64 bits.
pub(crate) const ADD_CONST64: u32 = 1 << 31;
/// The constant was added in 32 bits: the upper half is zero.
pub(crate) const ADD_CONST32: u32 = 1 << 30;

/// The type of a register (`enum bpf_reg_type`), with the attributes of that type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Uninitialised: it must not be read.
    NotInit,
    /// A scalar.
    Scalar,
    /// The program's context.
    Ctx,
    /// A map itself; `uid` distinguishes maps that were looked up in a map of maps.
    MapPtr { map: MapRef, uid: u32 },
    /// A value in a map.
    MapValue { map: MapRef, uid: u32 },
    /// A key in a map, as a callback gets it.
    MapKey { map: MapRef, uid: u32 },
    /// The stack of a frame.
    Stack { frame: u8 },
    /// The metadata before a packet, bounds checked up to `range`.
    PacketMeta { range: i32 },
    /// A packet, bounds checked up to `range`; negative: [`AT_END`] or [`BEYOND_END`].
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
    /// A kernel object, or one that the program allocated.
    BtfId { ty: ObjectType },
    /// Memory of this many bytes.
    Mem { size: u32 },
    /// A buffer passed by an iterator.
    Buf,
    /// A subprogram, by number.
    Func { subprogram: u32 },
    /// A dynptr that a callback or a global function gets (`CONST_PTR_TO_DYNPTR`); in a
    /// stack slot, one half of a dynptr: `first` is the half at the lower address. The register's
    /// `id` is the dynptr's.
    Dynptr { kind: DynptrKind, first: bool },
    /// In a stack slot: a part of an iterator. `depth` counts the steps so far.
    Iter {
        kind: IteratorKind,
        state: IterState,
        depth: u32,
    },
    /// In a stack slot: an interrupt state, saved by a lock (`bpf_res_spin_lock_irqsave`) or on
    /// its own.
    IrqFlag { by_lock: bool },
    /// A pointer into an arena, whose value is not known.
    Arena,
}

/// The range of a packet pointer that is known to be at the end
/// (`AT_PKT_END`, negative in the kernel as here).
pub(crate) const AT_END: i32 = -1;
/// The range of a packet pointer that is known to be past the end (`BEYOND_PKT_END`).
pub(crate) const BEYOND_END: i32 = -2;

/// The state of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegState {
    /// The type.
    pub kind: Kind,
    /// Flags of a pointer's type.
    pub flags: TypeFlags,
    /// The fixed part of a pointer's offset, in bytes.
    pub off: i32,
    /// The scalar's value, or the variable part of a pointer's offset.
    pub var: Scalar,
    /// Registers with the same id are copies: a null check or a bound of one holds for all.
    /// 0 for none.
    pub id: u32,
    /// The id of the acquired reference that a pointer stands for, or 0.
    pub ref_id: u32,
    /// The id of the dynptr that memory is a slice of, or 0. Of a scalar: what is
    /// [left](Self::leftover) of the pointer that it was.
    pub dynptr_id: u32,
    /// Whether the scalar is precise: the safety of the path depends on its value.
    pub precise: bool,
}

impl Kind {
    /// The kind without its attributes.
    pub(crate) const fn reg_kind(self) -> RegKind {
        match self {
            Self::NotInit => RegKind::NotInit,
            Self::Scalar => RegKind::Scalar,
            Self::Ctx => RegKind::Ctx,
            Self::MapPtr { .. } => RegKind::MapPtr,
            Self::MapValue { .. } => RegKind::MapValue,
            Self::MapKey { .. } => RegKind::MapKey,
            Self::Stack { .. } => RegKind::Stack,
            Self::PacketMeta { .. } => RegKind::PacketMeta,
            Self::Packet { .. } => RegKind::Packet,
            Self::PacketEnd => RegKind::PacketEnd,
            Self::FlowKeys => RegKind::FlowKeys,
            Self::Socket => RegKind::Socket,
            Self::SockCommon => RegKind::SockCommon,
            Self::TcpSock => RegKind::TcpSock,
            Self::TpBuffer => RegKind::TpBuffer,
            Self::XdpSock => RegKind::XdpSock,
            Self::BtfId { .. } => RegKind::BtfId,
            Self::Mem { .. } => RegKind::Mem,
            Self::Buf => RegKind::Buf,
            Self::Func { .. } => RegKind::Func,
            Self::Dynptr { .. } => RegKind::Dynptr,
            // Nothing prints these two.
            Self::Iter { .. } | Self::IrqFlag { .. } => RegKind::Stack,
            Self::Arena => RegKind::Arena,
        }
    }
}

impl RegState {
    /// What the kernel leaves in a pointer that turns out to be null and so becomes the scalar 0: its
    /// map, memory or structure (the union in `struct bpf_reg_state`). Where scalars have to be the
    /// same (`regs_exact`, `explore_alu_limits`), it is compared, too. So this 0 differs from others.
    pub(crate) fn leftover(&self) -> u32 {
        let left = match self.kind {
            Kind::MapPtr { map, uid } | Kind::MapValue { map, uid } | Kind::MapKey { map, uid } => {
                (u32::from(map.inner), map.id.0, uid)
            }
            Kind::Mem { size } if (size, self.dynptr_id) != (0, 0) => (2, size, self.dynptr_id),
            Kind::BtfId { ty } => (3, ty.id.0, u32::from(ty.own)),
            _ => return 0,
        };
        low32(FxBuildHasher.hash_one(left)) | 1
    }

    /// A register that was never written.
    pub(crate) const NOT_INIT: Self = Self::of(Kind::NotInit, Scalar::UNKNOWN);
    /// An unknown, imprecise scalar (`__mark_reg_unknown_imprecise`).
    pub(crate) const UNKNOWN: Self = Self::of(Kind::Scalar, Scalar::UNKNOWN);

    /// A pointer into an arena: any address in it.
    pub(crate) const ARENA: Self = Self::of(Kind::Arena, Scalar::UNKNOWN);

    const fn of(kind: Kind, var: Scalar) -> Self {
        Self {
            kind,
            flags: TypeFlags::empty(),
            off: 0,
            var,
            id: 0,
            ref_id: 0,
            dynptr_id: 0,
            precise: false,
        }
    }

    /// A known constant.
    pub(crate) const fn constant(value: u64) -> Self {
        Self::of(Kind::Scalar, Scalar::constant(value))
    }

    /// A scalar with these bounds.
    pub(crate) const fn scalar(var: Scalar) -> Self {
        Self::of(Kind::Scalar, var)
    }

    /// A pointer to the start of an object.
    pub(crate) const fn pointer(kind: Kind, flags: TypeFlags) -> Self {
        let mut reg = Self::of(kind, Scalar::ZERO);
        reg.flags = flags;
        reg
    }

    /// Its type, which is also its name in messages.
    pub(crate) const fn reg_type(&self) -> RegType {
        RegType::new(self.kind.reg_kind(), self.flags)
    }

    pub(crate) fn is_init(&self) -> bool {
        !matches!(self.kind, Kind::NotInit)
    }

    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self.kind, Kind::Scalar)
    }

    /// Whether this is neither a scalar nor uninitialised.
    pub(crate) fn is_pointer(&self) -> bool {
        !matches!(self.kind, Kind::Scalar | Kind::NotInit)
    }

    pub(crate) const fn maybe_null(&self) -> bool {
        self.flags.contains(TypeFlags::PTR_MAYBE_NULL)
    }

    /// Its value, if it is a known constant.
    pub(crate) fn value(&self) -> Option<u64> {
        if self.is_scalar() {
            self.var.value()
        } else {
            None
        }
    }

    /// Whether it is the constant 0 (`register_is_null`).
    pub(crate) fn is_null(&self) -> bool {
        self.value() == Some(0)
    }

    /// Whether both have the same type and flags, whatever their attributes: the kernel's
    /// `rold->type == rcur->type`.
    pub(crate) fn same_type(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
            && self.flags == other.flags
    }

    /// Whether it points to the packet or its metadata (`reg_is_pkt_pointer`).
    pub(crate) fn is_packet(&self) -> bool {
        matches!(self.kind, Kind::Packet { .. } | Kind::PacketMeta { .. })
    }

    /// Whether it points to the packet, its metadata or its end (`reg_is_pkt_pointer_any`).
    pub(crate) fn is_packet_any(&self) -> bool {
        self.is_packet() || self.kind == Kind::PacketEnd
    }

    /// The bounds-checked bytes of a packet pointer.
    pub(crate) const fn range(&self) -> i32 {
        match self.kind {
            Kind::Packet { range } | Kind::PacketMeta { range } => range,
            _ => 0,
        }
    }

    /// Sets the bounds-checked bytes of a packet pointer.
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

    /// The map that it points to, or into, and the id of an inner map.
    pub(crate) const fn map_and_uid(&self) -> Option<(MapRef, u32)> {
        match self.kind {
            Kind::MapPtr { map, uid } | Kind::MapValue { map, uid } | Kind::MapKey { map, uid } => {
                Some((map, uid))
            }
            _ => None,
        }
    }

    /// Whether the pointer is known not to be null (`reg_not_null`).
    pub(crate) fn is_not_null(&self) -> bool {
        if self.maybe_null() {
            return false;
        }
        match self.kind {
            Kind::Socket
            | Kind::TcpSock
            | Kind::MapValue { .. }
            | Kind::MapKey { .. }
            | Kind::SockCommon
            | Kind::MapPtr { .. } => true,
            Kind::BtfId { .. } => self.is_trusted(),
            Kind::Mem { .. } => !self.flags.contains(TypeFlags::PTR_UNTRUSTED),
            _ => false,
        }
    }

    /// Whether a spill keeps the type of this register (`is_spillable_regtype`).
    pub(crate) fn is_spillable(&self) -> bool {
        !matches!(
            self.kind,
            Kind::NotInit | Kind::Scalar | Kind::TpBuffer | Kind::Dynptr { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States are copied at each branch: a register should stay below two cache lines.
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
