//! Objects that programs allocate: creating and dropping them, counting their references
//! (`bpf_obj_new`, `bpf_percpu_obj_new`, `bpf_obj_drop`, `bpf_refcount_acquire`).

use super::Call;
use super::argument::is_allocated;
use super::pointer::{Fault, plain_fault};
use crate::btf::{FieldKind, Kind as BtfKind, SpecialFields};
use crate::isa::Reg;
use crate::spec::call::TypeFlags;
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reg::{Kind, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject};

/// The largest per-CPU object (`BPF_GLOBAL_PERCPU_MA_MAX_SIZE`).
const MAX_PERCPU: u32 = 512;

impl Verifier<'_> {
    /// Checks the object to drop, which the program must own.
    pub(super) fn check_dropped(&self, call: &Call<'_>, at: usize, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        let percpu = TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU;
        let wanted = if is_allocated(state) {
            "bpf_obj_drop_impl"
        } else if matches!(state.kind, Kind::BtfId { .. }) && state.flags == percpu {
            "bpf_percpu_obj_drop_impl"
        } else {
            reject!(EINVAL, "arg#{at} expected pointer to allocated object");
        };
        if !call.is(wanted) {
            reject!(EINVAL, "arg#{at} expected for {wanted}()");
        }
        if state.ref_id == 0 {
            reject!(EINVAL, "allocated object must be referenced");
        }
        Ok(())
    }

    /// Checks an object whose references are counted, and records its type.
    pub(super) fn check_refcounted(
        &self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
    ) -> VerifyResult {
        let state = self.reg(reg);
        let (Kind::BtfId { ty }, true) = (state.kind, state.flags.contains(TypeFlags::MEM_ALLOC))
        else {
            reject!(EINVAL, "arg#{at} is neither owning or non-owning ref");
        };
        call.owns = !state.flags.contains(TypeFlags::NON_OWN_REF);
        let fields = self.maps.fields_of(state);
        if fields.find(FieldKind::Refcount).is_none() {
            reject!(
                EINVAL,
                "arg#{at} doesn't point to a type with bpf_refcount field"
            );
        }
        call.object = Some(ty);
        Ok(())
    }

    /// A new object of the type in the first argument, as the result.
    pub(super) fn new_object(&mut self, call: &Call<'_>) -> VerifyResult<RegState> {
        let Ok(id) = u32::try_from(call.constant.unwrap_or_default()) else {
            reject!(
                EINVAL,
                "local type ID argument must be in range [0, U32_MAX]"
            );
        };
        // The kernel ties a program to its types only by these records.
        let program = self.program;
        let tied = !program.func_info.is_empty() || !program.lines.is_empty();
        let Some(btf) = program.btf.as_ref().filter(|_| tied) else {
            reject!(EINVAL, "bpf_obj_new/bpf_percpu_obj_new requires prog BTF");
        };
        let found = btf.get(TypeId(id));
        let Some(ty) = found.filter(|ty| ty.kind() == BtfKind::Struct) else {
            reject!(
                EINVAL,
                "bpf_obj_new/bpf_percpu_obj_new type ID argument must be of a struct"
            );
        };
        let mut flags = TypeFlags::MEM_ALLOC;
        if call.is("bpf_percpu_obj_new_impl") {
            flags |= TypeFlags::MEM_PERCPU;
            let size = ty.size().unwrap_or_default();
            if size > MAX_PERCPU {
                reject!(
                    EINVAL,
                    "bpf_percpu_obj_new type size ({}) is greater than {MAX_PERCPU}",
                    size.cast_signed()
                );
            }
            if let Some(fault) = plain_fault(btf, ty, 0) {
                if matches!(fault, Fault::TooDeep) {
                    log!(self, "max struct nesting depth exceeded\n");
                }
                reject!(
                    EINVAL,
                    "bpf_percpu_obj_new type ID argument must be of a struct of scalars"
                );
            }
            if !SpecialFields::of(btf, TypeId(id)).is_empty() {
                reject!(
                    EINVAL,
                    "bpf_percpu_obj_new type ID argument must not contain special fields"
                );
            }
        }
        let ty = ObjectType {
            id: TypeId(id),
            own: true,
        };
        Ok(RegState::pointer(Kind::BtfId { ty }, flags))
    }
}
