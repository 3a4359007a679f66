//! The initial registers of a program or a global function (`do_check_common`).

use super::functions::Known;
use super::signature::{self, Argument, Signature};
use crate::isa::Reg;
use crate::spec::helpers::TypeFlags;
use crate::verifier::attach_target::AttachTarget;
use crate::verifier::env::Verifier;
use crate::verifier::log::log;
use crate::verifier::reg::{DynptrKind, Kind, ObjectType, RegState};
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::struct_ops::ArgumentReferences;

impl Verifier<'_> {
    /// Sets the argument registers, to explore this function from its start.
    pub(crate) fn set_arguments(&mut self, subprogram: u32) -> VerifyResult {
        if subprogram == 0 && !self.is_extension() {
            self.note_main_signature();
            self.acquire_arguments();
            let context = RegState::pointer(Kind::Ctx, TypeFlags::empty());
            self.set_reg(Reg::R1, context);
            return Ok(());
        }
        if self.log.is_on() {
            let name = self.subprogram(subprogram).name.clone();
            log!(self, "Validating {name}() func#{subprogram}...\n");
        }
        let start = self.subprogram(subprogram).start;
        let signature = self.signature(subprogram)?;
        if subprogram == 0 {
            self.check_replaced(&signature)?;
        }
        if self.subprogram(subprogram).is_exception_cb
            && signature.arguments() != [Argument::Scalar]
        {
            reject!(EINVAL, "exception cb only supports single integer argument");
        }
        for (reg, argument) in Reg::ARGUMENTS.into_iter().zip(signature.arguments()) {
            let state = self.any_of(*argument).map_err(|why| why.at(start))?;
            self.set_reg(reg, state);
        }
        Ok(())
    }

    /// Acquires the references among a struct_ops program's arguments.
    fn acquire_arguments(&mut self) {
        let Some(member) = self.attach.and_then(AttachTarget::member) else {
            return;
        };
        let references = member
            .references()
            .map(|argument| (argument, self.acquire()));
        self.argument_references = ArgumentReferences::new(references.collect());
    }

    /// The signature of a function, cached (`btf_prepare_func_args`).
    pub(super) fn signature(&mut self, subprogram: u32) -> VerifyResult<Signature> {
        match self.functions.signature(subprogram) {
            Known::Is(signature) => Ok(signature),
            Known::Unreliable => {
                let name = &self.subprogram(subprogram).name;
                reject!(EFAULT, "unreliable BTF for function {name}()")
            }
            Known::NotComputed => {
                let function = self.subprogram(subprogram);
                let signature =
                    signature::of(self.program, subprogram, function.type_id, function.global)?;
                self.functions
                    .set_signature(subprogram, Known::Is(signature));
                Ok(signature)
            }
        }
    }

    /// Logs what the kernel logs about the main program's own types. They only decide
    /// whether an extension can replace the program.
    fn note_main_signature(&mut self) {
        if !self.log.is_on() || self.program.func_info.is_empty() {
            return;
        }
        match self.signature(0) {
            Ok(signature) if signature.is_main() => {}
            Ok(_) => self.functions.set_signature(0, Known::Unreliable),
            Err(why) => {
                if !why.text().is_empty() {
                    log!(self, "{}\n", why.text());
                }
                self.functions.set_signature(0, Known::Unreliable);
            }
        }
    }

    /// After exploration: whether the function's type holds for every call; that of a main
    /// program, whether it takes the context.
    pub(crate) fn is_reliable(&mut self, subprogram: u32) -> bool {
        match subprogram {
            0 => self.signature(0).is_ok_and(|signature| signature.is_main()),
            _ => !matches!(self.functions.signature(subprogram), Known::Unreliable),
        }
    }

    /// A register that holds any argument of this type.
    fn any_of(&mut self, argument: Argument) -> VerifyResult<RegState> {
        let mut reg = match argument {
            Argument::Context => RegState::pointer(Kind::Ctx, TypeFlags::empty()),
            Argument::Scalar | Argument::Arena => RegState::UNKNOWN,
            Argument::Memory { size, flags } => RegState::pointer(Kind::Mem { size }, flags),
            Argument::Object { id, flags } => {
                let mut reg = {
                    let ty = ObjectType::kernel(id);
                    RegState::pointer(Kind::BtfId { ty }, flags)
                };
                reg.id = self.new_id();
                return Ok(reg);
            }
            // The kernel assumes a dynptr of the program's own memory.
            Argument::Dynptr => {
                let kind = DynptrKind::Local;
                let dynptr = Kind::Dynptr { kind, first: true };
                let mut reg = RegState::pointer(dynptr, TypeFlags::empty());
                reg.id = self.new_id();
                return Ok(reg);
            }
        };
        if reg.maybe_null() {
            reg.id = self.new_id();
        }
        Ok(reg)
    }
}
