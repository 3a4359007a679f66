//! Names of register types (`reg_type_str`, `kernel/bpf/log.c`): `scalar`,
//! `map_value_or_null`, `rdonly_mem`.

use std::fmt;

use crate::spec::helpers::TypeFlags;
use crate::verifier::reg::{Kind, RegState};

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

/// The name of a register's type, without the structure of a kernel object.
pub(crate) fn type_name(reg: &RegState) -> TypeName {
    TypeName {
        kind: reg.kind,
        flags: reg.flags,
    }
}

/// The name of a type with flags, made by [`type_name`] or from the types that a check
/// allows. Attributes (a map, a size) are not in the name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeName {
    pub kind: Kind,
    pub flags: TypeFlags,
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, prefix) in PREFIXES {
            if self.flags.contains(flag) {
                f.write_str(prefix)?;
            }
        }
        f.write_str(base(self.kind))?;
        match (self.flags.contains(TypeFlags::PTR_MAYBE_NULL), self.kind) {
            (false, _) => Ok(()),
            // The structure's name follows.
            (true, Kind::BtfId { .. }) => f.write_str("or_null_"),
            (true, _) => f.write_str("_or_null"),
        }
    }
}

const fn base(kind: Kind) -> &'static str {
    match kind {
        Kind::NotInit => "?",
        Kind::Scalar => "scalar",
        Kind::Ctx => "ctx",
        Kind::MapPtr { .. } => "map_ptr",
        Kind::MapValue { .. } => "map_value",
        Kind::MapKey { .. } => "map_key",
        Kind::Stack { .. } => "fp",
        Kind::PacketMeta { .. } => "pkt_meta",
        Kind::Packet { .. } => "pkt",
        Kind::PacketEnd => "pkt_end",
        Kind::FlowKeys => "flow_keys",
        Kind::Socket => "sock",
        Kind::SockCommon => "sock_common",
        Kind::TcpSock => "tcp_sock",
        Kind::TpBuffer => "tp_buffer",
        Kind::XdpSock => "xdp_sock",
        Kind::BtfId { .. } => "ptr_",
        Kind::Mem { .. } => "mem",
        Kind::Buf => "buf",
        Kind::Func { .. } => "func",
        Kind::Dynptr => "dynptr_ptr",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::TypeId;

    #[test]
    fn flags_stand_before_and_behind_the_kind() {
        let name = |kind, flags| type_name(&RegState::pointer(kind, flags)).to_string();
        let null = TypeFlags::PTR_MAYBE_NULL;
        assert_eq!(type_name(&RegState::UNKNOWN).to_string(), "scalar");
        assert_eq!(type_name(&RegState::NOT_INIT).to_string(), "?");
        assert_eq!(name(Kind::Stack { frame: 1 }, TypeFlags::empty()), "fp");
        assert_eq!(name(Kind::TcpSock, null), "tcp_sock_or_null");
        let record = TypeFlags::MEM_RINGBUF | null;
        assert_eq!(name(Kind::Mem { size: 8 }, record), "ringbuf_mem_or_null");
        let frozen = TypeFlags::MEM_RDONLY | TypeFlags::PTR_UNTRUSTED;
        assert_eq!(name(Kind::Mem { size: 8 }, frozen), "rdonly_untrusted_mem");
        let task = Kind::BtfId { id: TypeId(7) };
        let trusted = TypeFlags::PTR_TRUSTED | null;
        assert_eq!(name(task, trusted), "trusted_ptr_or_null_");
    }
}
