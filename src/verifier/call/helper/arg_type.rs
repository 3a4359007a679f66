//! Register types allowed for each argument type (`compatible_reg_types`,
//! `check_reg_type`), and their offsets (`check_func_arg_reg_off`).

use super::call_state::{Call, Named};
use crate::isa::Reg;
use crate::spec::helpers::{Arg, ArgKind, TypeFlags};
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::log::name::{TypeName, type_name};
use crate::verifier::missing::Feature;
use crate::verifier::reg::{Kind, MapRef, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// Placeholder for any map, object or frame in the tables: only kinds are compared.
const MAP: MapRef = MapRef {
    id: crate::util::MapId(0),
    inner: false,
};
const BTF: Kind = Kind::BtfId { id: TypeId(0) };
const NONE: TypeFlags = TypeFlags::empty();
const TRUSTED: TypeFlags = TypeFlags::PTR_TRUSTED;
const PERCPU: TypeFlags = TypeFlags::MEM_PERCPU;

const fn a(kind: Kind, flags: TypeFlags) -> TypeName {
    TypeName { kind, flags }
}

const SCALAR: TypeName = a(Kind::Scalar, NONE);
const STACK: TypeName = a(Kind::Stack { frame: 0 }, NONE);
const MAP_VALUE: TypeName = a(Kind::MapValue { map: MAP, uid: 0 }, NONE);
const SOCK_COMMON: TypeName = a(Kind::SockCommon, NONE);
const SOCKET: TypeName = a(Kind::Socket, NONE);
const TCP_SOCK: TypeName = a(Kind::TcpSock, NONE);
const XDP_SOCK: TypeName = a(Kind::XdpSock, NONE);
const RINGBUF_MEM: TypeName = a(Kind::Mem { size: 0 }, TypeFlags::MEM_RINGBUF);

const MAP_PTR: TypeName = a(Kind::MapPtr { map: MAP, uid: 0 }, NONE);
const CTX: TypeName = a(Kind::Ctx, NONE);
const FUNC: TypeName = a(Kind::Func { subprogram: 0 }, NONE);
const OBJECT: TypeName = a(BTF, NONE);
const TRUSTED_OBJECT: TypeName = a(BTF, TRUSTED);
const RCU_OBJECT: TypeName = a(BTF, TypeFlags::MEM_RCU);
const OWN_OBJECT: TypeName = a(BTF, TypeFlags::MEM_ALLOC);
const PERCPU_OBJECT: TypeName = a(BTF, PERCPU);
const PERCPU_RCU_OBJECT: TypeName = a(BTF, PERCPU.union(TypeFlags::MEM_RCU));
const PERCPU_TRUSTED_OBJECT: TypeName = a(BTF, PERCPU.union(TRUSTED));

const MEMORY: &[TypeName] = &[
    STACK,
    a(Kind::Packet { range: 0 }, NONE),
    a(Kind::PacketMeta { range: 0 }, NONE),
    a(Kind::MapKey { map: MAP, uid: 0 }, NONE),
    MAP_VALUE,
    a(Kind::Mem { size: 0 }, NONE),
    RINGBUF_MEM,
    a(Kind::Buf, NONE),
    TRUSTED_OBJECT,
];

/// The register types for an argument type, in the order of the kernel's message. Flags
/// that the argument allows were removed from the register's.
const fn compatible(kind: ArgKind) -> &'static [TypeName] {
    match kind {
        ArgKind::PtrToMapKey | ArgKind::PtrToMapValue | ArgKind::PtrToMem => MEMORY,
        ArgKind::ConstSize | ArgKind::ConstSizeOrZero | ArgKind::ConstAllocSizeOrZero => &[SCALAR],
        ArgKind::ConstMapPtr => &[MAP_PTR],
        ArgKind::PtrToCtx => &[CTX],
        ArgKind::PtrToSockCommon => &[SOCK_COMMON, SOCKET, TCP_SOCK, XDP_SOCK],
        ArgKind::PtrToBtfIdSockCommon => &[
            SOCK_COMMON,
            SOCKET,
            TCP_SOCK,
            XDP_SOCK,
            OBJECT,
            TRUSTED_OBJECT,
        ],
        ArgKind::PtrToSocket => &[SOCKET],
        ArgKind::PtrToBtfId => &[OBJECT, TRUSTED_OBJECT, RCU_OBJECT],
        ArgKind::PtrToSpinLock | ArgKind::KptrXchgDest => &[MAP_VALUE, OWN_OBJECT],
        ArgKind::PtrToRingbufMem => &[RINGBUF_MEM],
        ArgKind::PtrToPercpuBtfId => &[PERCPU_OBJECT, PERCPU_RCU_OBJECT, PERCPU_TRUSTED_OBJECT],
        ArgKind::PtrToFunc => &[FUNC],
        ArgKind::PtrToStack | ArgKind::PtrToDynptr => &[STACK],
        ArgKind::PtrToConstStr | ArgKind::PtrToTimer => &[MAP_VALUE],
        ArgKind::Anything | ArgKind::PtrToArena => &[],
    }
}

/// The flags of a register that are ignored for an argument.
fn folded(arg: Arg) -> TypeFlags {
    let mut flags = arg.flags & (TypeFlags::MEM_RDONLY | TypeFlags::PTR_MAYBE_NULL);
    if arg.kind == ArgKind::PtrToMem {
        flags |= TypeFlags::DYNPTR_TYPE_LOCAL
            | TypeFlags::DYNPTR_TYPE_RINGBUF
            | TypeFlags::DYNPTR_TYPE_SKB
            | TypeFlags::DYNPTR_TYPE_XDP
            | TypeFlags::DYNPTR_TYPE_SKB_META;
    }
    flags
}

fn same_kind(a: Kind, b: Kind) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

impl Verifier<'_> {
    /// Checks that the register's type is allowed for the argument.
    pub(super) fn check_argument_type(&self, call: &Call, reg: Reg, arg: Arg) -> VerifyResult {
        let state = self.reg(reg);
        let flags = state.flags - folded(arg);
        let allowed = compatible(arg.kind);
        let fits = |one: &TypeName| same_kind(one.kind, state.kind) && one.flags == flags;
        let number = reg.number();
        if let Some(feature) = Feature::of_argument(arg.kind)
            && state.kind == Kind::Dynptr
        {
            return Err(Reject::unmodelled(feature));
        }
        if !allowed.iter().any(fits) {
            let mut names: Vec<_> = allowed.iter().map(TypeName::to_string).collect();
            if arg.kind == ArgKind::PtrToDynptr {
                names.push("dynptr_ptr".into());
            }
            reject!(
                EACCES,
                "R{number} type={} expected={}",
                type_name(state),
                names.join(", ")
            );
        }
        if !matches!(state.kind, Kind::BtfId { .. }) {
            return Ok(());
        }
        if matches!(
            arg.kind,
            ArgKind::PtrToMem | ArgKind::PtrToMapKey | ArgKind::PtrToMapValue
        ) {
            if arg.flags.contains(TypeFlags::MEM_RDONLY) {
                return Ok(());
            }
            let name = Named(call.id).to_string();
            let name = name.split('#').next().unwrap_or_default();
            reject!(
                EACCES,
                "{name}() may write into memory pointed by R{number} type={}",
                type_name(state)
            );
        }
        self.check_object(call, reg, arg)
    }

    /// Checks that the register's offset is allowed for the argument.
    pub(super) fn check_argument_offset(
        &mut self,
        state: &RegState,
        reg: Reg,
        arg: Arg,
    ) -> VerifyResult {
        if arg.flags.contains(TypeFlags::OBJ_RELEASE) {
            if arg.kind == ArgKind::PtrToDynptr && matches!(state.kind, Kind::Stack { .. }) {
                return Ok(());
            }
            if state.off != 0 {
                reject!(
                    EINVAL,
                    "R{} must have zero offset when passed to release func or trusted arg to kfunc",
                    reg.number()
                );
            }
            return self.check_pointer_offset(state, reg, false);
        }
        let flags = state.flags;
        let read_only = flags == TypeFlags::MEM_RDONLY;
        match state.kind {
            Kind::Stack { .. }
            | Kind::Packet { .. }
            | Kind::PacketMeta { .. }
            | Kind::MapKey { .. }
            | Kind::MapValue { .. }
            | Kind::Scalar
                if flags.is_empty() =>
            {
                Ok(())
            }
            Kind::Mem { .. }
                if flags.is_empty() || read_only || flags == TypeFlags::MEM_RINGBUF =>
            {
                Ok(())
            }
            Kind::Buf if flags.is_empty() || read_only => Ok(()),
            Kind::BtfId { .. } => {
                let fixed_ok = flags.is_empty()
                    || flags == TypeFlags::PTR_TRUSTED
                    || flags == TypeFlags::MEM_RCU
                    || flags == TypeFlags::MEM_ALLOC;
                self.check_pointer_offset(state, reg, fixed_ok)
            }
            _ => self.check_pointer_offset(state, reg, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::helpers::helpers;

    #[test]
    fn every_argument_of_the_table_has_registers_that_pass() {
        for helper in helpers() {
            for arg in helper
                .prototypes
                .iter()
                .flat_map(|prototype| prototype.args)
            {
                assert_eq!(
                    compatible(arg.kind).is_empty(),
                    arg.kind == ArgKind::Anything,
                    "{}",
                    helper.name
                );
            }
        }
    }

    #[test]
    fn memory_is_listed_as_the_kernel_lists_it() {
        let names: Vec<_> = MEMORY.iter().map(TypeName::to_string).collect();
        assert_eq!(
            names.join(", "),
            "fp, pkt, pkt_meta, map_key, map_value, mem, ringbuf_mem, buf, trusted_ptr_"
        );
    }
}
