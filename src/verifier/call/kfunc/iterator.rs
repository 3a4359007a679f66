//! Iterators as arguments of kfuncs.

use super::Call;
use crate::isa::Reg;
use crate::spec::call::Precondition;
use crate::spec::kfuncs::KfuncFlags;
use crate::spec::{AttachType, ProgType};
use crate::verifier::env::Verifier;
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::stack_object::iterator::IteratorArgument;

impl Verifier<'_> {
    /// Checks an iterator, and records it for the result.
    pub(super) fn check_kfunc_iterator(
        &mut self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
    ) -> VerifyResult {
        if call.is("bpf_iter_css_task_new") && !self.may_iterate_css_tasks() {
            reject!(
                EINVAL,
                "css_task_iter is only allowed in bpf_lsm, bpf_iter and sleepable progs"
            );
        }
        let argument = call.kfunc.arguments.get(at);
        let mut preconditions = argument.into_iter().flat_map(|one| one.preconditions);
        let kind = preconditions.find_map(|one| match one {
            Precondition::Iterator(kind) => *kind,
            _ => None,
        });
        let Some(kind) = kind else {
            reject!(EINVAL, "expected valid iter pointer as arg #{at}");
        };
        let place = self.process_iterator_argument(&IteratorArgument {
            reg,
            kind,
            step: call.kfunc.call().iterator.map(|(_, step)| step),
            kfunc: call.kfunc.name,
            rcu_protected: call.has(KfuncFlags::RCU_PROTECTED),
        })?;
        if let Some(place) = place {
            call.ref_id = place.ref_id;
        }
        call.iterator = place;
        Ok(())
    }

    /// Whether the program may create iterators over the tasks of a control group
    /// (`check_css_task_iter_allowlist`).
    fn may_iterate_css_tasks(&self) -> bool {
        match (self.program.prog_type, self.attach_type()) {
            (ProgType::Lsm, _) | (ProgType::Tracing, Some(AttachType::TraceIter)) => true,
            _ => self.state.sleepable,
        }
    }
}
