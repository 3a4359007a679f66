//! Sections in which a program must not sleep: RCU read sections, disabled preemption,
//! disabled interrupts.

use super::Call;
use crate::spec::kfuncs::KfuncFlags;
use crate::verifier::env::Verifier;
use crate::verifier::reject::{VerifyResult, reject};

impl Verifier<'_> {
    /// Enters or leaves a section, and checks that the kfunc may be called in those that are
    /// entered.
    pub(super) fn change_sections(&mut self, call: &Call<'_>) -> VerifyResult {
        let name = call.kfunc.name;
        let sleeps = call.has(KfuncFlags::SLEEPABLE);
        match name {
            "bpf_rcu_read_lock" if self.state.rcu_locks > 0 => {
                reject!(EINVAL, "nested rcu read lock (kernel function {name})")
            }
            "bpf_rcu_read_lock" => self.state.rcu_locks = 1,
            "bpf_rcu_read_unlock" if self.state.rcu_locks == 0 => {
                reject!(EINVAL, "unmatched rcu read unlock (kernel function {name})")
            }
            "bpf_rcu_read_unlock" => {
                self.state.rcu_locks = 0;
                self.invalidate_rcu_pointers();
            }
            _ if sleeps && self.state.rcu_locks > 0 => reject!(
                EACCES,
                "kernel func {name} is sleepable within rcu_read_lock region"
            ),
            _ => {}
        }
        match name {
            "bpf_preempt_disable" => self.state.preempt_locks += 1,
            "bpf_preempt_enable" => match self.state.preempt_locks.checked_sub(1) {
                Some(left) => self.state.preempt_locks = left,
                None => reject!(
                    EINVAL,
                    "unmatched attempt to enable preemption (kernel function {name})"
                ),
            },
            _ if sleeps && self.state.preempt_locks > 0 => reject!(
                EACCES,
                "kernel func {name} is sleepable within non-preemptible region"
            ),
            _ => {}
        }
        if sleeps && self.state.irq_id != 0 {
            reject!(
                EACCES,
                "kernel func {name} is sleepable within IRQ-disabled region"
            );
        }
        if call.has(KfuncFlags::RCU_PROTECTED) && !self.in_rcu_section() {
            reject!(
                EACCES,
                "kernel func {name} requires RCU critical section protection"
            );
        }
        Ok(())
    }

    /// The section that forbids sleeping here, as messages about helpers name it.
    pub(in crate::verifier) fn section_without_sleep(&self) -> Option<&'static str> {
        let state = &self.state;
        if state.rcu_locks > 0 {
            Some("rcu_read_lock region")
        } else if state.preempt_locks > 0 {
            Some("non-preemptible region")
        } else if state.irq_id != 0 {
            Some("IRQ-disabled region")
        } else {
            None
        }
    }
}
