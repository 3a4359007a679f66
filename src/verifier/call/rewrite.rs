//! What the kernel finds out only when it rewrites a program that has passed.
//!
//! It takes out what no path walked, whole functions included. An instruction that loads
//! the address of such a function then names the function behind it; where none is
//! behind it, the program can't be compiled any more. And it keeps a list of the tail
//! calls that it compiles to jumps, which is limited. (`opt_remove_dead_code`,
//! `do_misc_fixups`, `jit_subprogs`.)

use crate::isa::{CallTarget, Insn, Pseudo};
use crate::util::{Errno, Pc, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, Reject, reject};

/// The most tail calls with a constant index (`bpf_jit_add_poke_descriptor`,
/// `kernel/bpf/core.c`).
const MAX_DIRECT_TAIL_CALLS: usize = 1024;

impl Verifier<'_> {
    /// Whether the program can be rewritten.
    pub(crate) fn check_rewrite(&self) -> Checked {
        self.check_missing_functions()?;
        if self.facts.direct_tail_calls() > MAX_DIRECT_TAIL_CALLS {
            reject!(ENOSPC, "adding tail call poke descriptor failed");
        }
        self.check_addresses_of_functions()
    }

    /// Whether a call of a kernel function that is missing is alive
    /// (`fixup_kfunc_call`).
    fn check_missing_functions(&self) -> Checked {
        let missing = |insn| {
            let Insn::Call(CallTarget::Kfunc { id, .. }) = insn else {
                return false;
            };
            id == TypeId(0)
        };
        let mut alive = self.walked().filter(|(_, insn)| missing(*insn));
        match alive.next() {
            None => Ok(()),
            Some((pc, _)) => {
                let text = "invalid kernel function call not eliminated in verifier pass";
                Err(Reject::new(Errno::EINVAL, text).at(pc))
            }
        }
    }

    /// The instructions that a path walks.
    fn walked(&self) -> impl Iterator<Item = (Pc, Insn)> + '_ {
        let insns = self.code().iter();
        let valid = insns.filter_map(|(pc, insn)| Some((pc, insn.ok()?)));
        valid.filter(|(pc, _)| self.facts.is_seen(*pc))
    }

    /// Whether each address of a function still names one when dead code is gone.
    fn check_addresses_of_functions(&self) -> Checked {
        let starts = self.structure.subprograms.iter().map(|sub| sub.start);
        let mut alive = starts.filter(|start| self.facts.is_seen(*start));
        // With one function left, nothing is looked up.
        let (Some(_), Some(last)) = (alive.next(), alive.next_back()) else {
            return Ok(());
        };
        let mut targets = self.walked().filter_map(|(pc, insn)| match insn {
            Insn::LoadPseudo {
                source: Pseudo::Func { rel },
                ..
            } => Some(i64::from(pc.0) + 1 + i64::from(rel)),
            _ => None,
        });
        if targets.any(|target| target > i64::from(last.0)) {
            let slots: u32 = self.walked().map(|(_, insn)| insn.slots()).sum();
            // The kernel counts what it has put in for helpers and fields, too.
            reject!(
                EFAULT,
                "verifier bug: No program to jit at insn {slots} (subprog < 0)"
            );
        }
        Ok(())
    }
}
