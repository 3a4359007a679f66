//! What is held and has to be given back (`acquire_reference`, `release_reference`,
//! `check_resource_leak`).

use super::under_way::{Call, Named};
use crate::isa::Reg;
use crate::spec::ProgType;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::reg::RegState;
use crate::verifier::reject::{Checked, Reject, reject};
use crate::verifier::state::{Held, Reference};

impl Verifier<'_> {
    /// The call hands something out; the number that stands for it.
    pub(super) fn acquire(&mut self) -> u32 {
        let id = self.new_id();
        self.state.refs.push(Reference {
            id,
            pc: self.pc,
            held: Held::Object,
        });
        id
    }

    /// The argument that the call gives back is: no register that stands for it can be
    /// used as a pointer any more.
    pub(super) fn release_argument(&mut self, call: &Call) -> Checked {
        let Some(reg) = call.released else {
            return Ok(());
        };
        let released = match call.ref_id {
            0 => self.reg(reg).is_null(),
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

    /// Gives a reference back; whether it was held.
    pub(crate) fn release(&mut self, id: u32) -> bool {
        let refs = &mut self.state.refs;
        let is_it = |held: &Reference| held.held == Held::Object && held.id == id;
        let Some(at) = refs.iter().position(is_it) else {
            return false;
        };
        refs.remove(at);
        for reg in self.state.all_regs_mut() {
            if reg.ref_id == id {
                *reg = RegState::UNKNOWN;
            }
        }
        true
    }

    /// Pointers into the packet are numbers from here on: it may have moved
    /// (`clear_all_pkt_pointers`).
    pub(crate) fn forget_packet_pointers(&mut self) {
        for reg in self.state.all_regs_mut() {
            if reg.flags.is_empty() && reg.is_packet_any() {
                *reg = RegState::UNKNOWN;
            }
        }
    }

    /// Nothing is held that would be lost. `exits_program`: the program itself ends here
    /// (or may), so that locks count as well; references always do, unless it is only a
    /// function that ends.
    pub(crate) fn check_leak(&mut self, exits_program: bool, prefix: &str) -> Checked {
        if exits_program && self.held_lock().is_some() {
            reject!(
                EINVAL,
                "{prefix} cannot be used inside bpf_spin_lock-ed region"
            );
        }
        if self.state.refs.is_empty() || self.state.current() != 0 {
            return Ok(());
        }
        // A struct_ops program may hand a reference back to the kernel.
        let returned = match self.program.prog_type {
            ProgType::StructOps => self.reg(Reg::R0).ref_id,
            _ => 0,
        };
        let lost = |held: &&Reference| held.held == Held::Object && held.id != returned;
        let mut leak = None;
        for held in self.state.refs.iter().filter(lost) {
            let line = format_args!("Unreleased reference id={} alloc_insn={}", held.id, held.pc);
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
