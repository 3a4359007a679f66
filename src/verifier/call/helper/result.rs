//! The value of `r0` after a call.

use super::call_state::{Call, Named};
use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::MapType;
use crate::spec::helpers::{Detail, Effects, RetKind, TypeFlags, helper, id};
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::missing::Feature;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};
use crate::verifier::scalar::Scalar;

/// The lowest error code that a helper returns (`MAX_ERRNO`).
const LOWEST_ERROR: i32 = -4095;

impl Verifier<'_> {
    /// Sets `r0` to the helper's return value.
    pub(super) fn set_result(&mut self, call: &Call) -> VerifyResult {
        let ret = call.prototype.ret;
        let kind = match ret.kind {
            RetKind::Integer => {
                let number = RegState::scalar(self.result_range(call));
                self.set_reg(Reg::R0, number);
                return Ok(());
            }
            RetKind::Void => {
                self.set_reg(Reg::R0, RegState::NOT_INIT);
                return Ok(());
            }
            RetKind::PtrToMapValue => {
                let (map, uid) = match call.map {
                    Some(map) => map,
                    None => reject!(EFAULT, "unexpected null map_ptr"),
                };
                Kind::MapValue { map, uid }
            }
            RetKind::PtrToSocket => Kind::Socket,
            RetKind::PtrToSockCommon => Kind::SockCommon,
            RetKind::PtrToTcpSock => Kind::TcpSock,
            RetKind::PtrToMem => Kind::Mem {
                size: call.allocated,
            },
            RetKind::PtrToMemOrBtfId => {
                let (kind, flags) = self.instance(call)?;
                return self.set_pointer(call, RegState::pointer(kind, flags));
            }
            RetKind::PtrToBtfId => match call.kptr {
                Some(field) => {
                    let (kind, flags) = self.exchanged(&field)?;
                    let result = RegState::pointer(kind, ret.flags | flags);
                    return self.set_pointer(call, result);
                }
                None => Kind::BtfId {
                    ty: ObjectType::kernel(self.result_type(call)?),
                },
            },
        };
        self.set_pointer(call, RegState::pointer(kind, ret.flags))
    }

    /// Sets `r0` to a pointer, with its id and its reference.
    fn set_pointer(&mut self, call: &Call, mut result: RegState) -> VerifyResult {
        if self.finds_element(call)? {
            result.flags -= TypeFlags::PTR_MAYBE_NULL;
        }
        if result.maybe_null() || self.maps.may_hold_lock(&result) {
            result.id = self.new_id();
        }
        let effects = helper(call.id).map_or(Effects::empty(), |helper| helper.effects);
        result.dynptr_id = call.dynptr_id;
        if effects.contains(Effects::CASTS) || call.dynptr_id != 0 {
            result.ref_id = call.ref_id;
        } else if effects.contains(Effects::ACQUIRES) || self.finds_socket(call)? {
            // The register's id is the reference's: a null check of one copy holds for all.
            let id = self.acquire();
            result.id = id;
            result.ref_id = id;
        }
        self.set_reg(Reg::R0, result);
        Ok(())
    }

    /// One CPU's instance of a per-CPU object or variable (`RET_PTR_TO_MEM_OR_BTF_ID`).
    fn instance(&self, call: &Call) -> VerifyResult<(Kind, TypeFlags)> {
        let flags = call.prototype.ret.flags;
        let Some((ty, is_kptr)) = call.percpu else {
            reject!(EFAULT, "the result of {} has no type", Named(call.id));
        };
        let (own, kernel) = (&self.program.btf, &self.program.kernel_btf);
        let Some(btf) = (if ty.own { own } else { kernel }) else {
            unmodelled!(KernelBtf);
        };
        let is_object = |kind: BtfKind| kind.is_composite();
        if is_kptr {
            if !is_object(btf.ty(ty.id).kind()) {
                reject!(EFAULT, "Helper has invalid btf/btf_id in R1");
            }
            return Ok((
                Kind::BtfId { ty },
                TypeFlags::MEM_ALLOC | TypeFlags::MEM_RCU,
            ));
        }
        if btf.resolve(ty.id).is_ok_and(|ty| is_object(ty.kind())) {
            return Ok((Kind::BtfId { ty }, flags - TypeFlags::MEM_RDONLY));
        }
        match btf.size_of(ty.id) {
            Ok(size) => Ok((Kind::Mem { size }, flags)),
            Err(_) => reject!(
                EINVAL,
                "unable to resolve the size of type '{}': -22",
                btf.ty(ty.id).name()
            ),
        }
    }

    /// Whether the call looks up a constant index that is always in the array.
    fn finds_element(&self, call: &Call) -> VerifyResult<bool> {
        let (id::map_lookup_elem, Some(key)) = (call.id, call.key) else {
            return Ok(false);
        };
        Ok(key < u64::from(self.call_map(call)?.1.max_entries))
    }

    /// Whether the call looks up a socket, which acquires a reference.
    fn finds_socket(&self, call: &Call) -> VerifyResult<bool> {
        Ok(call.id == id::map_lookup_elem
            && matches!(
                self.call_map(call)?.1.map_type,
                MapType::Sockmap | MapType::Sockhash
            ))
    }

    /// The range of the return value (`do_refine_retval_range`).
    fn result_range(&self, call: &Call) -> Scalar {
        match call.id {
            id::get_stack
            | id::get_task_stack
            | id::probe_read_str
            | id::probe_read_kernel_str
            | id::probe_read_user_str => {
                // Bounded by the size argument, which was checked to be below 2^29.
                let most = u32::try_from(call.size_max).unwrap_or(u32::MAX);
                Scalar {
                    smin: LOWEST_ERROR.into(),
                    smax: most.into(),
                    smin32: LOWEST_ERROR,
                    smax32: most.cast_signed(),
                    ..Scalar::UNKNOWN
                }
                .synced()
            }
            id::get_smp_processor_id => {
                let last = self.options.cpus().saturating_sub(1);
                Scalar::range(0, last.into())
            }
            _ => Scalar::UNKNOWN,
        }
    }

    /// The BTF type of the kernel object that the helper returns.
    fn result_type(&self, call: &Call) -> VerifyResult<TypeId> {
        if let Some(feature) = Feature::of_result(self.program, call.prototype.ret.kind) {
            return Err(Reject::unmodelled(feature));
        }
        let found = match (call.prototype.ret.detail, &self.program.kernel_btf) {
            (Detail::Struct(name), Some(btf)) => btf.find(name, BtfKind::Struct),
            _ => None,
        };
        match found {
            Some(found) => Ok(found.id()),
            // Not the kernel's BTF, or not all of it.
            None => unmodelled!(KernelBtf),
        }
    }
}
