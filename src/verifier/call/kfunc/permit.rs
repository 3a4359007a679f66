//! Whether a program may call a kfunc at all at this instruction (`fetch_kfunc_meta`).

use super::Call;
use crate::btf::Kind as BtfKind;
use crate::spec::kfuncs::{self, KfuncFlags};
use crate::util::TypeId;
use crate::verifier::env::Verifier;
use crate::verifier::missing::Feature;
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};

/// Kfuncs that may be called while a lock is held (`kfunc_spin_allowed`).
const UNDER_LOCK: &[&str] = &[
    "bpf_iter_num_new",
    "bpf_iter_num_next",
    "bpf_iter_num_destroy",
    "bpf_list_push_front_impl",
    "bpf_list_push_back_impl",
    "bpf_list_pop_front",
    "bpf_list_pop_back",
    "bpf_list_front",
    "bpf_list_back",
    "bpf_rbtree_remove",
    "bpf_rbtree_add_impl",
    "bpf_rbtree_first",
    "bpf_rbtree_root",
    "bpf_rbtree_left",
    "bpf_rbtree_right",
    "bpf_refcount_acquire_impl",
    "bpf_res_spin_lock",
    "bpf_res_spin_unlock",
    "bpf_res_spin_lock_irqsave",
    "bpf_res_spin_unlock_irqrestore",
];

impl<'p> Verifier<'p> {
    /// Rejects calls while a lock is held, except for those that need it.
    pub(super) fn check_kfunc_under_lock(&self, id: TypeId, fd_index: i16) -> VerifyResult {
        if self.held_lock().is_none() {
            return Ok(());
        }
        let btf = self.program.kernel_btf.as_ref().filter(|_| fd_index == 0);
        let function = btf.and_then(|btf| btf.get(id));
        if !function.is_some_and(|ty| UNDER_LOCK.contains(&ty.name())) {
            reject!(
                EINVAL,
                "function calls are not allowed while holding a lock"
            );
        }
        Ok(())
    }

    /// The kfunc with this id in the kernel's BTF, if the program may call it.
    pub(super) fn kfunc_call(&self, id: TypeId) -> VerifyResult<Call<'p>> {
        let Some(btf) = &self.program.kernel_btf else {
            unmodelled!(KernelBtf);
        };
        let function = btf.get(id).filter(|ty| ty.kind() == BtfKind::Func);
        let Some((function, prototype)) = function.and_then(|ty| Some((ty, ty.target()?))) else {
            reject!(EINVAL, "kernel btf_id {id} is not a function");
        };
        let name = function.name();
        let kfunc = kfuncs::by_name(name).map(kfuncs::KfuncId::row);
        if kfunc.is_none()
            && let Some(feature) = Feature::of_unknown_kfunc(self.program, id)
        {
            return Err(Reject::unmodelled(feature));
        }
        let Some(kfunc) = kfunc.filter(|row| row.allows(self.caller)) else {
            reject!(EACCES, "calling kernel function {name} is not allowed");
        };
        if kfunc.parameters.len() != prototype.params().len() {
            // A kernel with another interface.
            unmodelled!(Kfunc);
        }
        Ok(Call {
            kfunc,
            id,
            btf,
            prototype,
            map: None,
            ref_id: 0,
            released: None,
            constant: None,
            result_size: 0,
            result_read_only: false,
            context: None,
            callback: None,
            root: None,
            object: None,
            owns: false,
            dynptr: None,
            iterator: None,
        })
    }

    /// Checks requirements on the place of the call.
    pub(super) fn check_kfunc_permitted(&self, call: &Call<'_>) -> VerifyResult {
        let name = call.kfunc.name;
        if call.is("__bpf_trap") {
            reject!(
                EFAULT,
                "unexpected __bpf_trap() due to uninitialized variable?"
            );
        }
        if call.has(KfuncFlags::SLEEPABLE) && !self.state.sleepable {
            reject!(
                EACCES,
                "program must be sleepable to call sleepable kfunc {name}"
            );
        }
        Ok(())
    }
}
