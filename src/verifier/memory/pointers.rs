//! The kind of pointer that each load and store uses.

use crate::spec::helpers::TypeFlags;
use crate::util::Pc;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};

/// For each load and store, the kind of pointer that it uses (`ptr_type`).
#[derive(Debug)]
pub(crate) struct Pointers {
    kinds: Vec<Option<(Kind, TypeFlags)>>,
}

impl Pointers {
    /// For a program with `slots` slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            kinds: vec![None; slots],
        }
    }

    /// Rejects an instruction that accesses the context on one path and other memory on
    /// another: the kernel rewrites it for only one of them (`save_aux_ptr_type`). A plain
    /// load (`mixes_trust`) may use trusted objects on one path and untrusted ones on another.
    pub(super) fn check(&mut self, pc: Pc, reg: &RegState, mixes_trust: bool) -> VerifyResult {
        let converted = |reg: &RegState| {
            matches!(
                reg.kind,
                Kind::Ctx
                    | Kind::Socket
                    | Kind::SockCommon
                    | Kind::TcpSock
                    | Kind::XdpSock
                    | Kind::BtfId { .. }
                    | Kind::Arena
            )
        };
        let Some(before) = self.kinds.get_mut(pc.index()) else {
            return Ok(());
        };
        match before {
            None => *before = Some((reg.kind, reg.flags)),
            Some((kind, flags)) => {
                let before = RegState::pointer(*kind, *flags);
                if before.same_type(reg) || !converted(&before) && !converted(reg) {
                    return Ok(());
                }
                let checked =
                    |reg: &RegState| matches!(reg.kind, Kind::BtfId { .. } | Kind::Mem { .. });
                if !(mixes_trust && checked(&before) && checked(reg)) {
                    reject!(EINVAL, "same insn cannot be used with different pointers");
                }
                if matches!(reg.kind, Kind::Mem { .. }) {
                    *kind = reg.kind;
                }
                let merged = TypeFlags::PTR_UNTRUSTED | TypeFlags::MEM_RDONLY;
                *flags = (*flags | reg.flags) & merged;
            }
        }
        Ok(())
    }
}
