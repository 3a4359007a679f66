//! Global functions, verified on their own against their types in BTF (`check_func_call`,
//! `btf_check_func_arg_match`, `do_check_subprogs`).
//!
//! A call of a global function is not entered: its arguments are checked against the types,
//! and its result is an unknown scalar. After the main program, each global function that
//! was called is explored with any arguments of its types, then those that it calls.

use super::functions::Known;
use super::helper::check_type;
use super::signature::Argument;
use crate::isa::Reg;
use crate::spec::call::{RegTypes, TypeFlags};
use crate::util::{Errno, TypeId};
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};
use crate::verifier::stack_object::dynptr::DynptrArgument;

/// The message for a call that may sleep in a context that can't.
const MAY_SLEEP: &str = "global functions that may sleep are not allowed in non-sleepable context,\n\
     i.e., in a RCU/IRQ/preempt-disabled section, or in\n\
     a non-sleepable BPF program context";

/// The message for a call while a lock is held.
const UNDER_LOCK: &str = "global function calls are not allowed while holding a lock,\n\
     use static function instead";

impl Verifier<'_> {
    /// Checks a call of a global function: the arguments are checked against its types, the
    /// result is an unknown scalar.
    pub(crate) fn check_global_call(&mut self, subprogram: u32) -> VerifyResult {
        let matched = self.check_call_types(subprogram);
        let failed = matched.as_ref().err();
        if failed.is_some_and(|why| why.feature().is_none() && why.errno() == Errno::EFAULT) {
            return matched;
        }
        if self.held_lock().is_some() {
            reject!(EINVAL, "{UNDER_LOCK}");
        }
        if failed.is_some_and(|why| why.feature().is_some()) {
            return matched;
        }
        let function = self.subprogram(subprogram);
        let sleeps = self.state.sleepable && self.section_without_sleep().is_none();
        if function.might_sleep && !sleeps {
            let before = matched.err().unwrap_or(Reject::new(Errno::EINVAL, ""));
            return Err(before.with_errno(Errno::EINVAL).and(MAY_SLEEP));
        }
        let changes_packet = function.changes_pkt_data;
        if let Err(why) = matched {
            let name = &function.name;
            let line = format!("Caller passes invalid args into func#{subprogram} ('{name}')");
            return Err(why.and(line));
        }
        if self.log.is_on() {
            let name = function.name.clone();
            log!(
                self,
                "Func#{subprogram} ('{name}') is global and assumed valid.\n"
            );
        }
        if changes_packet {
            self.forget_packet_pointers();
        }
        self.functions.call(subprogram as usize);
        self.forget_caller_saved();
        self.set_unknown(Reg::R0);
        Ok(())
    }

    /// Checks the argument types of a static call or a callback. They are only hints: a
    /// mismatch is just logged.
    ///
    /// # Errors
    /// Invalid BTF.
    pub(crate) fn note_call_types(&mut self, subprogram: u32) -> VerifyResult {
        match self.check_call_types(subprogram) {
            Err(why) if why.errno() == Errno::EFAULT => Err(why),
            Err(why) if !why.text().is_empty() => {
                log!(self, "{}\n", why.text());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks the registers against the parameters (`btf_check_subprog_call`). After one
    /// mismatch, a function's types are unreliable and not checked again.
    fn check_call_types(&mut self, subprogram: u32) -> VerifyResult {
        let has_types = self.subprogram(subprogram).type_id.is_some();
        if !has_types || matches!(self.functions.signature(subprogram), Known::Unreliable) {
            reject!(EINVAL, "");
        }
        let matched = self.check_arguments(subprogram);
        if matched.is_err() {
            self.functions.set_signature(subprogram, Known::Unreliable);
        }
        matched
    }

    fn check_arguments(&mut self, subprogram: u32) -> VerifyResult {
        let signature = self.signature(subprogram)?;
        for (at, argument) in signature.arguments().iter().enumerate() {
            if let Some(reg) = Reg::ARGUMENTS.get(at) {
                self.check_passed(at, *reg, *argument)?;
            }
        }
        Ok(())
    }

    /// Checks that a register may be passed for an argument.
    fn check_passed(&mut self, at: usize, reg: Reg, argument: Argument) -> VerifyResult {
        let state = *self.reg(reg);
        let number = reg.number();
        match argument {
            Argument::Scalar => {
                if !state.is_scalar() {
                    reject!(EINVAL, "R{number} is not a scalar");
                }
            }
            // Loads through it are checked at run time.
            Argument::Memory { flags, .. } | Argument::Object { flags, .. }
                if flags.contains(TypeFlags::PTR_UNTRUSTED) => {}
            Argument::Context => {
                self.check_offset_of_type(&state, reg)?;
                if state.kind != Kind::Ctx || !state.flags.is_empty() {
                    reject!(EINVAL, "arg#{at} expects pointer to ctx");
                }
            }
            Argument::Memory { size, flags } => {
                self.check_offset_of_type(&state, reg)?;
                // Whatever the error number was.
                self.check_memory_of_type(reg, size)
                    .map_err(|why| why.with_errno(Errno::EINVAL))?;
                if !flags.contains(TypeFlags::PTR_MAYBE_NULL) && state.maybe_null() {
                    reject!(EINVAL, "arg#{at} is expected to be non-NULL");
                }
            }
            Argument::Arena => {
                if !state.is_scalar() && state.kind != Kind::Arena {
                    reject!(EINVAL, "R{number} is not a pointer to arena or scalar.");
                }
            }
            Argument::Dynptr => {
                self.check_offset_of_type(&state, reg)?;
                let any = DynptrArgument::Use {
                    kind: None,
                    constant: true,
                };
                self.process_dynptr_argument(reg, any)?;
            }
            Argument::Object { id, flags } => {
                if !(state.is_null() && flags.contains(TypeFlags::PTR_MAYBE_NULL)) {
                    self.check_passed_object(&state, reg, id, flags)?;
                }
            }
        }
        Ok(())
    }

    /// Checks a pointer to a kernel object (`check_reg_type`).
    fn check_passed_object(
        &mut self,
        state: &RegState,
        reg: Reg,
        wanted: TypeId,
        allowed: TypeFlags,
    ) -> VerifyResult {
        let nullable = allowed & TypeFlags::PTR_MAYBE_NULL;
        check_type(state, reg, RegTypes::OBJECT.ignoring(nullable))?;
        let Kind::BtfId { ty } = state.kind else {
            return Ok(());
        };
        self.check_object_type(state, reg, ty, wanted, false)?;
        self.check_offset_of_type(state, reg)
    }

    /// Explores the global functions that were called, and those that they call.
    pub(crate) fn explore_called_globals(&mut self) -> VerifyResult {
        let mut verified = vec![false; self.structure.subprograms.len()];
        if let Some(callback) = self.structure.exception_callback {
            self.functions.call(callback);
        }
        loop {
            let mut found_more = false;
            for (number, done) in (0u32..).zip(&mut verified).skip(1) {
                if *done || !self.functions.is_called(number) || !self.subprogram(number).global {
                    continue;
                }
                self.explore_subprogram(number)?;
                (*done, found_more) = (true, true);
                if self.log.is_on() {
                    let name = self.subprogram(number).name.clone();
                    log!(
                        self,
                        "Func#{number} ('{name}') is safe for any args that match its prototype\n"
                    );
                }
            }
            if !found_more {
                return Ok(());
            }
        }
    }
}
