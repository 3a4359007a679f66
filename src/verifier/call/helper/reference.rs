//! References: acquire, release, and leak checks (`acquire_reference`, `release_reference`,
//! `check_resource_leak`).

use super::call_state::{Call, Named};
use crate::isa::Reg;
use crate::spec::ProgType;
use crate::spec::call::TypeFlags;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::references::{Reference, ReferenceKind};
use crate::verifier::reg::Kind;
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// What ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) enum Exit {
    /// The current function. References must be released only if it is the outermost one.
    Return,
    /// The program, perhaps: locks must be released and sections left.
    Program,
    /// All functions of the program, by an exception: references must be released, too.
    Throw,
}

impl Verifier<'_> {
    /// Acquires a reference for the call; returns its id.
    pub(in crate::verifier) fn acquire(&mut self) -> u32 {
        let id = self.new_id();
        self.state.refs.push(Reference {
            id,
            pc: self.pc(),
            kind: ReferenceKind::Object,
        });
        id
    }

    /// Releases the reference of the argument that the call releases. All registers with
    /// its id become invalid.
    pub(super) fn release_argument(&mut self, call: &Call) -> VerifyResult {
        let Some(reg) = call.released else {
            return Ok(());
        };
        let released = match call.ref_id {
            _ if call.releases_dynptr() => self.release_dynptr(reg)?,
            0 => self.reg(reg).is_null(),
            id if call.kptr.is_some() => self.release_into_kptr(id),
            id => self.release(id),
        };
        if !released {
            reject!(
                EINVAL,
                "func {} reference has not been acquired before",
                Named(call.id)
            );
        }
        Ok(())
    }

    /// Releases a reference that is moved to a kptr. Per-CPU objects that the program
    /// allocated stay readable in an RCU read section.
    fn release_into_kptr(&mut self, id: u32) -> bool {
        let percpu = TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU;
        if self.in_rcu_section() {
            for reg in self.state.all_regs_mut() {
                if reg.ref_id == id && reg.flags.contains(percpu) {
                    reg.ref_id = 0;
                    reg.flags -= TypeFlags::MEM_ALLOC;
                    reg.flags |= TypeFlags::MEM_RCU;
                }
            }
        }
        self.release(id)
    }

    /// Releases a reference; returns whether it was acquired.
    pub(crate) fn release(&mut self, id: u32) -> bool {
        let is_it =
            |reference: &Reference| reference.kind == ReferenceKind::Object && reference.id == id;
        if !self.state.refs.remove(is_it) {
            return false;
        }
        let invalid = self.privileges.invalid();
        for reg in self.state.all_regs_mut() {
            if reg.ref_id == id {
                *reg = invalid;
            }
        }
        true
    }

    /// Makes pointers to the packet, and slices of dynptrs of the packet, invalid: the packet may
    /// have moved (`clear_all_pkt_pointers`).
    pub(crate) fn forget_packet_pointers(&mut self) {
        let slice = TypeFlags::DYNPTR_TYPE_SKB
            | TypeFlags::DYNPTR_TYPE_XDP
            | TypeFlags::DYNPTR_TYPE_SKB_META;
        let invalid = self.privileges.invalid();
        for reg in self.state.all_regs_mut() {
            let is_packet = reg.flags.is_empty() && reg.is_packet_any();
            if is_packet || matches!(reg.kind, Kind::Mem { .. }) && reg.flags.intersects(slice) {
                *reg = invalid;
            }
        }
    }

    /// Checks that no reference is leaked (`check_resource_leak`).
    pub(in crate::verifier) fn check_leak(&mut self, exit: Exit, prefix: &str) -> VerifyResult {
        let exits_program = exit != Exit::Return;
        if exits_program && self.held_lock().is_some() {
            reject!(
                EINVAL,
                "{prefix} cannot be used inside bpf_spin_lock-ed region"
            );
        }
        if exit == Exit::Throw || self.state.current() == 0 {
            self.check_lost_references(exit, prefix)?;
        }
        if !exits_program {
            return Ok(());
        }
        let state = &self.state;
        let sections = [
            (state.irq_id, "bpf_local_irq_save-ed"),
            (state.rcu_locks, "bpf_rcu_read_lock-ed"),
            (state.preempt_locks, "bpf_preempt_disable-ed"),
        ];
        match sections.iter().find(|(entered, _)| *entered != 0) {
            Some((_, section)) => {
                reject!(EINVAL, "{prefix} cannot be used inside {section} region")
            }
            None => Ok(()),
        }
    }

    /// Checks that all references are released (`check_reference_leak`).
    fn check_lost_references(&self, exit: Exit, prefix: &str) -> VerifyResult {
        if self.state.refs.is_empty() {
            return Ok(());
        }
        // A struct_ops program may return a reference to the kernel.
        let returned = match self.program.prog_type {
            ProgType::StructOps if exit != Exit::Throw => self.reg(Reg::R0).ref_id,
            _ => 0,
        };
        let lost = |reference: &&Reference| {
            reference.kind == ReferenceKind::Object && reference.id != returned
        };
        let mut leak = None;
        for reference in self.state.refs.oldest_first().filter(lost) {
            let line = format_args!(
                "Unreleased reference id={} alloc_insn={}",
                reference.id, reference.pc
            );
            let reject = leak.take();
            leak = Some(
                reject
                    .unwrap_or_else(|| Reject::new(Errno::EINVAL, ""))
                    .and(line),
            );
        }
        match leak {
            Some(leak) => Err(leak.and(format_args!("{prefix} would lead to reference leak"))),
            None => Ok(()),
        }
    }
}
