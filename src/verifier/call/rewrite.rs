//! Errors that the kernel reports only when it rewrites an accepted program
//! (`opt_remove_dead_code`, `do_misc_fixups`, `jit_subprogs`).
//!
//! It removes instructions that no path executes, including whole functions. A load of the
//! address of a removed function then refers to the next function; if there is none, the
//! program can't be compiled. And the list of tail calls that it compiles to jumps is
//! limited.

use crate::isa::{CallTarget, Insn, Pseudo};
use crate::spec::helpers::id;
use crate::util::{Errno, Pc, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// The maximum number of tail calls with a constant index (`bpf_jit_add_poke_descriptor`,
/// `kernel/bpf/core.c`).
const MAX_DIRECT_TAIL_CALLS: usize = 1024;

impl Verifier<'_> {
    /// Checks that the program can be rewritten.
    pub(crate) fn check_rewrite(&self) -> VerifyResult {
        self.check_missing_functions()?;
        self.check_tail_calls()?;
        if self.privileges.bpf_capable
            && self.privileges.arrays_bypass_spec_v1
            && self.facts.direct_tail_calls() > MAX_DIRECT_TAIL_CALLS
        {
            reject!(ENOSPC, "adding tail call poke descriptor failed");
        }
        self.check_addresses_of_functions()
    }

    /// Rejects a tail call whose array differs between paths, if the array's size is used
    /// against speculation: the array was created without `CAP_PERFMON`.
    fn check_tail_calls(&self) -> VerifyResult {
        if self.privileges.arrays_bypass_spec_v1 {
            return Ok(());
        }
        let is_call = |insn| matches!(insn, Insn::Call(CallTarget::Helper(id::tail_call)));
        let mut calls = self.explored().filter(|(_, insn)| is_call(*insn));
        match calls.find(|(pc, _)| self.facts.map_of_call(*pc).is_none()) {
            None => Ok(()),
            Some((pc, _)) => Err(Reject::new(Errno::EINVAL, "tail_call abusing map_ptr").at(pc)),
        }
    }

    /// Rejects a reachable call of a missing kfunc (`fixup_kfunc_call`).
    fn check_missing_functions(&self) -> VerifyResult {
        let missing = |insn| {
            let Insn::Call(CallTarget::Kfunc { id, .. }) = insn else {
                return false;
            };
            id == TypeId(0)
        };
        let mut alive = self.explored().filter(|(_, insn)| missing(*insn));
        match alive.next() {
            None => Ok(()),
            Some((pc, _)) => {
                let text = "invalid kernel function call not eliminated in verifier pass";
                Err(Reject::new(Errno::EINVAL, text).at(pc))
            }
        }
    }

    /// The instructions that some path executes.
    fn explored(&self) -> impl Iterator<Item = (Pc, Insn)> + '_ {
        let insns = self.code().iter();
        let valid = insns.filter_map(|(pc, insn)| Some((pc, insn.ok()?)));
        valid.filter(|(pc, _)| self.facts.is_seen(*pc))
    }

    /// Checks that each loaded function address still refers to a function after dead code
    /// is removed.
    fn check_addresses_of_functions(&self) -> VerifyResult {
        let starts = self.structure.subprograms.iter().map(|sub| sub.start);
        let mut alive = starts.filter(|start| self.facts.is_seen(*start));
        // With a single function left, the kernel looks up nothing.
        let (Some(_), Some(last)) = (alive.next(), alive.next_back()) else {
            return Ok(());
        };
        let mut targets = self.explored().filter_map(|(pc, insn)| match insn {
            Insn::LoadPseudo {
                source: Pseudo::Func { rel },
                ..
            } => Some(i64::from(pc.0) + 1 + i64::from(rel)),
            _ => None,
        });
        if targets.any(|target| target > i64::from(last.0)) {
            let slots: u32 = self.explored().map(|(_, insn)| insn.slots()).sum();
            // The kernel also counts the instructions that it inserted for helpers and
            // context accesses.
            reject!(
                EFAULT,
                "verifier bug: No program to jit at insn {slots} (subprog < 0)"
            );
        }
        Ok(())
    }
}
