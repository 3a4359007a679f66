//! Dynptrs as arguments of kfuncs, and slices as results.

use super::Call;
use crate::isa::{Reg, low32};
use crate::spec::call::{DynptrUse, TypeFlags};
use crate::verifier::env::Verifier;
use crate::verifier::memory::Access;
use crate::verifier::reg::{DynptrKind, Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack_object::dynptr::DynptrArgument;

impl DynptrKind {
    /// The flag that slices have (`get_dynptr_type_flag`).
    const fn flag(self) -> TypeFlags {
        match self {
            Self::Local => TypeFlags::DYNPTR_TYPE_LOCAL,
            Self::Ringbuf => TypeFlags::DYNPTR_TYPE_RINGBUF,
            Self::Skb => TypeFlags::DYNPTR_TYPE_SKB,
            Self::Xdp => TypeFlags::DYNPTR_TYPE_XDP,
            Self::SkbMeta => TypeFlags::DYNPTR_TYPE_SKB_META,
        }
    }
}

impl Verifier<'_> {
    /// Checks a dynptr, and records an initialised one: a clone is of its kind, a slice is a
    /// part of it.
    pub(super) fn check_kfunc_dynptr(
        &mut self,
        call: &mut Call<'_>,
        reg: Reg,
        step: DynptrUse,
    ) -> VerifyResult {
        let of_packet = match call.kfunc.name {
            "bpf_dynptr_from_skb" => Some(DynptrKind::Skb),
            "bpf_dynptr_from_skb_meta" => Some(DynptrKind::SkbMeta),
            "bpf_dynptr_from_xdp" => Some(DynptrKind::Xdp),
            _ => None,
        };
        let is_constant = matches!(self.reg(reg).kind, Kind::Dynptr { .. });
        if step != DynptrUse::Initialises {
            let wanted = DynptrArgument::Use {
                kind: of_packet,
                constant: is_constant,
            };
            self.process_dynptr_argument(reg, wanted)?;
            call.dynptr = self.dynptr_of(self.reg(reg))?;
            return Ok(());
        }
        if is_constant {
            reject!(
                EFAULT,
                "verifier bug: misconfigured dynptr helper type flags"
            );
        }
        let (kind, parent_ref) = match (of_packet, call.dynptr) {
            (Some(kind), _) => (kind, 0),
            (None, Some(parent)) if call.is("bpf_dynptr_clone") => (parent.kind, parent.ref_id),
            _ => reject!(EFAULT, "verifier bug: no dynptr type for parent of clone"),
        };
        self.process_dynptr_argument(reg, DynptrArgument::New { kind, parent_ref })
    }

    /// The result of `bpf_dynptr_slice` and `bpf_dynptr_slice_rdwr`: memory of the constant
    /// size that was passed.
    pub(super) fn slice_result(&self, call: &Call<'_>) -> VerifyResult<RegState> {
        let Some(size) = call.constant else {
            reject!(
                EFAULT,
                "verifier bug: bpf_dynptr_slice(_rdwr) no constant size"
            );
        };
        let Some(dynptr) = call.dynptr else {
            reject!(EFAULT, "verifier bug: no dynptr id");
        };
        let mut flags = dynptr.kind.flag();
        if call.is("bpf_dynptr_slice") {
            flags |= TypeFlags::MEM_RDONLY;
        } else if !self.may_access_packet(Access::Write) {
            reject!(EINVAL, "the prog does not allow writes to packet data");
        }
        // The kernel truncates the size.
        let size = low32(size);
        let mut slice = RegState::pointer(Kind::Mem { size }, flags);
        slice.dynptr_id = dynptr.id;
        Ok(slice)
    }
}
