//! Addresses of functions that no path runs.
//!
//! When a program has passed, the kernel takes out what no path walked, whole functions
//! included. An instruction that loads the address of such a function then names the
//! function behind it; where none is behind it, the program can't be compiled any more,
//! and the kernel refuses it. (`opt_remove_dead_code`, `jit_subprogs`.)

use crate::isa::{Insn, Pseudo};
use crate::verifier::env::Verifier;
use crate::verifier::reject::{Checked, reject};

impl Verifier<'_> {
    /// Whether each address of a function still names one when dead code is gone.
    pub(crate) fn check_addresses_of_functions(&self) -> Checked {
        let starts = self.structure.subprograms.iter().map(|sub| sub.start);
        let mut alive = starts.filter(|start| self.facts.is_seen(*start));
        // With one function left, nothing is looked up.
        let (Some(_), Some(last)) = (alive.next(), alive.last()) else {
            return Ok(());
        };
        let walked = || {
            let insns = self.code().iter();
            let valid = insns.filter_map(|(pc, insn)| Some((pc, insn.ok()?)));
            valid.filter(|(pc, _)| self.facts.is_seen(*pc))
        };
        let mut targets = walked().filter_map(|(pc, insn)| match insn {
            Insn::LoadPseudo {
                source: Pseudo::Func { rel },
                ..
            } => Some(i64::from(pc.0) + 1 + i64::from(rel)),
            _ => None,
        });
        if targets.any(|target| target > i64::from(last.0)) {
            let slots: u32 = walked().map(|(_, insn)| insn.slots()).sum();
            // The kernel counts what it has put in for helpers and fields, too.
            reject!(
                EFAULT,
                "verifier bug: No program to jit at insn {slots} (subprog < 0)"
            );
        }
        Ok(())
    }
}
