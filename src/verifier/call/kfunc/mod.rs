//! Calls of kfuncs (`check_kfunc_call`, `kernel/bpf/verifier.c`).
//!
//! The types of parameters and results are those of the kernel's BTF; flags, name suffixes and
//! permitted callers come from a table ([`spec::kfuncs`](crate::spec::kfuncs)). The checks have
//! the kernel's order, which decides the error of a program with several faults:
//!
//! | step | file |
//! |---|---|
//! | may this program call the kfunc here? | `permit` |
//! | each argument, by the parameter's type | `argument`, `pointer`, `object`, `allocated`, `graph`, `lock`, `irq_flag`, `dynptr`, `iterator` |
//! | callbacks, RCU read sections, disabled preemption and interrupts | `section` |
//! | released references, the value of `r0` | `result` |

mod allocated;
mod argument;
mod dynptr;
mod graph;
mod irq_flag;
mod iterator;
mod lock;
mod object;
mod permit;
mod pointer;
mod result;
mod section;

use std::fmt;

use super::callback::CallbackArguments;
use crate::btf::{Btf, SpecialField, Type};
use crate::isa::Reg;
use crate::spec::Backports;
use crate::spec::call::Effects;
use crate::spec::kfuncs::{Kfunc, KfuncFlags, THROW};
use crate::util::{Pc, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::reg::{MapRef, ObjectType};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};
use crate::verifier::stack_object::dynptr::Dynptr;
use crate::verifier::stack_object::iterator::IteratorPlace;

/// A kfunc call whose arguments are being checked (`struct bpf_kfunc_call_arg_meta`).
#[derive(Debug)]
struct Call<'p> {
    /// The kfunc.
    kfunc: &'static Kfunc,
    /// Its BTF id.
    id: TypeId,
    /// The kernel's BTF.
    btf: &'p Btf,
    /// Its prototype there.
    prototype: Type<'p>,
    /// The map, and the id of an inner map.
    map: Option<(MapRef, u32)>,
    /// The reference id of an argument, or 0.
    ref_id: u32,
    /// The argument that is released.
    released: Option<Reg>,
    /// The value of a constant argument.
    constant: Option<u64>,
    /// The size of the memory that is returned; 0 if the result's type has it.
    result_size: u64,
    /// Whether this memory is read-only.
    result_read_only: bool,
    /// The kernel's type of the context that the call casts to.
    context: Option<TypeId>,
    /// The callback.
    callback: Option<u32>,
    /// The list head or tree root in the arguments.
    root: Option<SpecialField>,
    /// The type of the object whose reference is copied.
    object: Option<ObjectType>,
    /// Whether the program owns this object.
    owns: bool,
    /// The initialised dynptr that the call uses.
    dynptr: Option<Dynptr>,
    /// The iterator that the call uses.
    iterator: Option<IteratorPlace>,
}

impl Call<'_> {
    fn has(&self, flag: KfuncFlags) -> bool {
        self.kfunc.flags.contains(flag)
    }

    /// Whether the kfunc has this name.
    fn is(&self, name: &str) -> bool {
        self.kfunc.name == name
    }
}

/// The kfunc in a message: `bpf_wq_start#1234`.
impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kfunc.name, self.id)
    }
}

impl Verifier<'_> {
    /// Whether pointers have to be trusted; `KF_RELEASE` implies `KF_TRUSTED_ARGS`.
    fn trusts(&self, call: &Call<'_>) -> bool {
        let flags = KfuncFlags::TRUSTED_ARGS.union(KfuncFlags::RELEASE);
        self.trusts_by_default() || call.kfunc.flags.intersects(flags)
    }

    /// Whether kfuncs without flags have `KF_TRUSTED_ARGS`, as in later kernels.
    fn trusts_by_default(&self) -> bool {
        let backports = self.options.kernel.backports;
        backports.contains(Backports::KFUNC_ARGUMENTS_TRUSTED)
    }

    /// Checks a kfunc call. Returns where exploration continues.
    pub(crate) fn check_kfunc_call(
        &mut self,
        id: TypeId,
        fd_index: i16,
        next: Pc,
    ) -> VerifyResult<Pc> {
        self.check_kfunc_under_lock(id, fd_index)?;
        // An unresolved weak function. If this call is not dead code, the kernel reports it
        // when it rewrites the program.
        if id == TypeId(0) {
            return Ok(next);
        }
        if fd_index != 0 {
            unmodelled!(Kfunc);
        }
        let mut call = self.kfunc_call(id)?;
        self.push_failed_lock(&call, next)?;
        self.check_kfunc_permitted(&call)?;
        self.check_kfunc_arguments(&mut call)?;
        self.push_kfunc_callback(&call)?;
        self.change_sections(&call)?;
        self.release_kfunc_argument(&call)?;
        if call.inserts() {
            self.lend_inserted(&call)?;
        }
        if call.is(THROW) {
            self.check_thrown()?;
        }
        self.forget_caller_saved();
        self.set_kfunc_result(&call)?;
        if call.kfunc.effects.contains(Effects::CHANGES_PACKET) {
            self.forget_packet_pointers();
        }
        if let Some(place) = call.iterator
            && call.has(KfuncFlags::ITER_NEXT)
        {
            self.process_iterator_next(place, next)?;
        }
        Ok(next)
    }

    /// Pushes a state for the callback that the kfunc schedules.
    fn push_kfunc_callback(&mut self, call: &Call<'_>) -> VerifyResult {
        let Some(subprogram) = call.callback else {
            return Ok(());
        };
        let failed =
            |why: Reject| why.and(format_args!("kfunc {call} failed callback verification"));
        if call.inserts() {
            let node = self.borrowed_node(call)?;
            return self.push_comparison(subprogram, node).map_err(failed);
        }
        let (reg, range) = match call.kfunc.name {
            "bpf_wq_set_callback_impl" => (Reg::R1, CallbackArguments::NOTHING),
            "bpf_task_work_schedule_signal_impl" | "bpf_task_work_schedule_resume_impl" => {
                (Reg::R3, CallbackArguments::ANYTHING)
            }
            _ => unmodelled!(Kfunc),
        };
        let Some((map, uid)) = self.reg(reg).map_and_uid() else {
            reject!(EFAULT, "{call} has no map for its callback");
        };
        let arguments = CallbackArguments { map, uid, range };
        self.push_work(subprogram, arguments).map_err(failed)
    }

    /// Releases the reference of the argument that the call releases.
    fn release_kfunc_argument(&mut self, call: &Call<'_>) -> VerifyResult {
        let Some(reg) = call.released else {
            return Ok(());
        };
        let id = self.reg(reg).ref_id;
        if !self.release(id) {
            reject!(
                EINVAL,
                "kfunc {call} reference has not been acquired before"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
