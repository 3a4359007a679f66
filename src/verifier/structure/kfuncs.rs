//! The checks of kfunc calls before exploration (`add_kfunc_call`,
//! `kernel/bpf/verifier.c`).
//!
//! Calls with BTF id 0 are ignored: libbpf writes them for unresolved weak kfuncs, and they
//! are allowed in dead code.

use super::license::is_gpl_compatible;
use crate::btf::Kind;
use crate::program::Program;
use crate::spec::kfuncs::{self, Filter, KfuncId};
use crate::spec::limits::MAX_KFUNCS;
use crate::util::{Errno, TypeId};
use crate::verifier::reject::{Reject, VerifyResult, reject, unmodelled};

/// The kernel's last line if the BTF of the kfunc's module is missing.
const NOT_FOUND: &str = "failed to find BTF for kernel function";

/// The functions called so far.
pub(super) struct Kfuncs<'a> {
    program: &'a Program,
    known: Vec<(TypeId, i16)>,
}

impl<'a> Kfuncs<'a> {
    /// Without any calls.
    pub(super) fn new(program: &'a Program) -> Self {
        Self {
            program,
            known: Vec::new(),
        }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, id: TypeId, fd_index: i16) -> VerifyResult {
        if !is_gpl_compatible(&self.program.license) {
            reject!(
                EINVAL,
                "cannot call kernel function from non-GPL compatible program"
            );
        }
        if (id, fd_index) == (TypeId(0), 0) || self.known.contains(&(id, fd_index)) {
            return Ok(());
        }
        if self.known.len() >= MAX_KFUNCS {
            reject!(E2BIG, "too many different kernel function calls");
        }
        if fd_index < 0 {
            let text = "negative offset disallowed for kernel module function call";
            return Err(Reject::new(Errno::EINVAL, text).and(NOT_FOUND));
        }
        if fd_index > 0 && self.program.maps.is_empty() {
            let text = "kfunc offset > 0 without fd_array is invalid";
            return Err(Reject::new(Errno::EPROTO, text).and(NOT_FOUND));
        }
        if fd_index > 0 {
            unmodelled!(Kfunc);
        }
        if let Some(btf) = &self.program.kernel_btf {
            let Some(function) = btf.get(id).filter(|ty| ty.kind() == Kind::Func) else {
                reject!(EINVAL, "kernel btf_id {id} is not a function");
            };
            // Programs for a device are not verified here.
            let kfunc = kfuncs::by_name(function.name()).map(KfuncId::row);
            if kfunc.is_some_and(|kfunc| kfunc.set.filter == Some(Filter::DeviceBound)) {
                reject!(EINVAL, "metadata kfuncs require device-bound program");
            }
        }
        self.known.push((id, fd_index));
        Ok(())
    }
}
