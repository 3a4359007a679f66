//! The value of `r0` after a kfunc call.

use super::Call;
use super::pointer::is_number;
use crate::btf::Kind as BtfKind;
use crate::isa::Reg;
use crate::spec::call::TypeFlags;
use crate::spec::kfuncs::KfuncFlags;
use crate::util::TypeId;
use crate::verifier::attach_target::kind_name;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

impl Verifier<'_> {
    /// Sets `r0` to the kfunc's result.
    pub(super) fn set_kfunc_result(&mut self, call: &Call<'_>) -> VerifyResult {
        let btf = call.btf;
        let result = call.prototype.target_id().unwrap_or_default();
        let ty = btf.resolve(result).unwrap_or(btf.ty(TypeId(0)));
        if is_number(ty) {
            // A lock that was not taken is another state.
            let number = match call.takes_lock() {
                true => RegState::constant(0),
                false => RegState::UNKNOWN,
            };
            self.set_reg(Reg::R0, number);
            return Ok(());
        }
        match ty.kind() {
            BtfKind::Void => return Ok(()),
            BtfKind::Ptr => {}
            _ => unmodelled!(Kfunc),
        }
        let mut pointer = self.kfunc_pointer_result(call, ty.target_id().unwrap_or_default())?;
        // A reference that the program has can be copied always.
        let nullable = call.has(KfuncFlags::RET_NULL) && !call.owns;
        if nullable {
            pointer.flags |= TypeFlags::PTR_MAYBE_NULL;
            pointer.id = self.new_id();
        }
        if call.has(KfuncFlags::ACQUIRE) {
            let id = self.acquire();
            if nullable {
                pointer.id = id;
            }
            pointer.ref_id = id;
        }
        if pointer.id == 0 && self.maps.may_hold_lock(&pointer) {
            pointer.id = self.new_id();
        }
        self.set_reg(Reg::R0, pointer);
        Ok(())
    }

    /// The pointer to `pointed` that the kfunc returns.
    fn kfunc_pointer_result(&mut self, call: &Call<'_>, pointed: TypeId) -> VerifyResult<RegState> {
        let btf = call.btf;
        let pointed = btf.resolve(pointed).unwrap_or(btf.ty(TypeId(0)));
        let object = |id, flags| {
            let ty = ObjectType::kernel(id);
            Ok(RegState::pointer(Kind::BtfId { ty }, flags))
        };
        match call.kfunc.name {
            "bpf_cast_to_kern_ctx" => {
                let Some(id) = call.context else {
                    reject!(EFAULT, "{call} without a context");
                };
                return object(id, TypeFlags::PTR_TRUSTED);
            }
            "bpf_rdonly_cast" => return rdonly_cast(call),
            "bpf_obj_new_impl" | "bpf_percpu_obj_new_impl" => return self.new_object(call),
            "bpf_refcount_acquire_impl" => {
                let Some(ty) = call.object else {
                    reject!(EFAULT, "{call} without an object");
                };
                return Ok(RegState::pointer(Kind::BtfId { ty }, TypeFlags::MEM_ALLOC));
            }
            "bpf_dynptr_slice" | "bpf_dynptr_slice_rdwr" => return self.slice_result(call),
            _ => {}
        }
        if matches!(pointed.name(), "bpf_list_node" | "bpf_rb_node") {
            // An element that is not removed belongs to its list or tree.
            return if call.has(KfuncFlags::ACQUIRE) {
                self.graph_node(call)
            } else {
                self.borrowed_node(call)
            };
        }
        if pointed.kind() == BtfKind::Void {
            // As a number: programs have to cast it.
            return Ok(RegState::UNKNOWN);
        }
        if pointed.kind().is_composite() {
            let flags = if let Some(place) = call.iterator
                && call.has(KfuncFlags::ITER_NEXT)
            {
                // An element lives as long as the iterator, or the section that protects it.
                if place.in_rcu {
                    TypeFlags::MEM_RCU
                } else {
                    TypeFlags::PTR_TRUSTED
                }
            } else if call.is("bpf_get_kmem_cache") {
                TypeFlags::PTR_UNTRUSTED
            } else if call.has(KfuncFlags::RCU_PROTECTED) {
                TypeFlags::MEM_RCU
            } else {
                TypeFlags::empty()
            };
            return object(pointed.id(), flags);
        }
        let (mut size, mut read_only) = (call.result_size, call.result_read_only);
        if call.is("bpf_session_cookie") {
            (size, read_only) = (8, false);
        }
        if size == 0
            && let Ok(own) = btf.size_of(pointed.id())
        {
            (size, read_only) = (own.into(), true);
        }
        let size = match u32::try_from(size) {
            Ok(0) => reject!(
                EINVAL,
                "kernel function {} returns pointer type {} {} is not supported",
                call.kfunc.name,
                kind_name(pointed.kind()),
                pointed.name()
            ),
            Ok(size) => size,
            Err(_) => unmodelled!(Kfunc),
        };
        let mut flags = TypeFlags::empty();
        flags.set(TypeFlags::MEM_RDONLY, read_only);
        flags.set(TypeFlags::MEM_RCU, call.has(KfuncFlags::RCU_PROTECTED));
        let mut memory = RegState::pointer(Kind::Mem { size }, flags);
        memory.ref_id = call.ref_id;
        Ok(memory)
    }
}

/// The result of a cast to a type with a constant id: a kernel structure that loads read
/// at run time, or memory of any size.
fn rdonly_cast(call: &Call<'_>) -> VerifyResult<RegState> {
    let value = call.constant.unwrap_or_default();
    // The kernel truncates the number, too.
    let id = TypeId(crate::isa::low32(value));
    let Some(ty) = call.btf.get(id) else {
        reject!(
            EINVAL,
            "Unknown type ID {} passed to kfunc bpf_rdonly_cast",
            value.cast_signed()
        );
    };
    if ty.kind().is_composite() {
        let ty = ObjectType::kernel(id);
        return Ok(RegState::pointer(
            Kind::BtfId { ty },
            TypeFlags::PTR_UNTRUSTED,
        ));
    }
    if ty.kind() == BtfKind::Void {
        let flags = TypeFlags::MEM_RDONLY | TypeFlags::PTR_UNTRUSTED;
        return Ok(RegState::pointer(Kind::Mem { size: 0 }, flags));
    }
    reject!(
        EINVAL,
        "kfunc bpf_rdonly_cast type ID argument must be of a struct or void"
    );
}
