//! The arguments of a kfunc (`check_kfunc_args`).

use super::Call;
use super::pointer::{Takes, is_number};
use crate::btf::{FieldKind, Kind as BtfKind, Type};
use crate::isa::Reg;
use crate::spec::call::{Access, TypeFlags};
use crate::spec::kfuncs::{KfuncFlags, Parameter, ParameterKind};
use crate::util::TypeId;
use crate::verifier::attach_target::kind_name;
use crate::verifier::context_type;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject, unmodelled};

impl Verifier<'_> {
    /// Checks the registers of all arguments.
    pub(super) fn check_kfunc_arguments(&mut self, call: &mut Call<'_>) -> VerifyResult {
        let (btf, prototype) = (call.btf, call.prototype);
        let parameters = call.kfunc.parameters;
        if parameters.len() > Reg::ARGUMENTS.len() {
            reject!(
                EINVAL,
                "Function {} has {} > {} args",
                call.kfunc.name,
                parameters.len(),
                Reg::ARGUMENTS.len()
            );
        }
        let mut arguments = prototype
            .params()
            .zip(parameters)
            .zip(Reg::ARGUMENTS)
            .enumerate();
        while let Some((at, ((param, parameter), reg))) = arguments.next() {
            if matches!(
                parameter.kind,
                ParameterKind::Ignored | ParameterKind::Program
            ) {
                continue;
            }
            let ty = btf.resolve(param.ty).unwrap_or(btf.ty(TypeId(0)));
            if is_number(ty) {
                self.check_kfunc_number(call, reg, parameter)?;
                continue;
            }
            if ty.kind() != BtfKind::Ptr {
                reject!(
                    EINVAL,
                    "Unrecognized arg#{at} type {}",
                    kind_name(ty.kind())
                );
            }
            let pointed = btf.resolve(ty.target_id().unwrap_or_default());
            let pointed = pointed.unwrap_or(btf.ty(TypeId(0)));
            if self.check_kfunc_pointer(call, at, reg, parameter, pointed)? == Takes::SizedMemory {
                // The size was checked with the memory.
                arguments.next();
            }
        }
        if call.has(KfuncFlags::RELEASE) && call.released.is_none() {
            reject!(
                EINVAL,
                "release kernel function {} expects refcounted PTR_TO_BTF_ID",
                call.kfunc.name
            );
        }
        Ok(())
    }

    /// Checks a number, and records constants.
    fn check_kfunc_number(
        &mut self,
        call: &mut Call<'_>,
        reg: Reg,
        parameter: &Parameter,
    ) -> VerifyResult {
        let number = reg.number();
        if !self.reg(reg).is_scalar() {
            reject!(EINVAL, "R{number} is not a scalar");
        }
        let value = self.reg(reg).var.value();
        match (parameter.kind, parameter.name) {
            (ParameterKind::Constant, _) => {
                let Some(value) = value else {
                    reject!(EINVAL, "R{number} must be a known constant");
                };
                self.mark_precise(reg)?;
                call.constant = Some(value);
            }
            (_, name @ ("rdonly_buf_size" | "rdwr_buf_size")) => {
                call.result_read_only = name == "rdonly_buf_size";
                let Some(value) = value else {
                    reject!(EINVAL, "R{number} is not a const");
                };
                call.result_size = value;
                self.mark_precise(reg)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a pointer to `pointed`; returns what the parameter takes.
    fn check_kfunc_pointer(
        &mut self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
        parameter: &Parameter,
        pointed: Type<'_>,
    ) -> VerifyResult<Takes> {
        let state = *self.reg(reg);
        let checked = self.trusts(call) || call.has(KfuncFlags::RCU);
        let nullable = parameter.name.ends_with("__nullable")
            || self.trusts_by_default() && parameter.name.ends_with("__opt");
        if checked && !nullable && (state.is_null() || state.maybe_null()) {
            reject!(EACCES, "Possibly NULL pointer passed to trusted arg{at}");
        }
        let releases = call.has(KfuncFlags::RELEASE) && state.ref_id != 0;
        if state.ref_id != 0 {
            if releases && call.ref_id != 0 {
                reject!(
                    EFAULT,
                    "verifier bug: more than one arg with ref_obj_id R{} {} {}",
                    reg.number(),
                    state.ref_id,
                    call.ref_id
                );
            }
            call.ref_id = state.ref_id;
            if releases {
                call.released = Some(reg);
            }
        }
        let takes = self.kfunc_pointer(call, at, pointed)?;
        match takes {
            Takes::Null => return Ok(takes),
            Takes::Map => {
                self.take_kfunc_map(call, reg)?;
                self.check_kfunc_trusted(call, reg)?;
            }
            Takes::Object | Takes::Allocated => self.check_kfunc_trusted(call, reg)?,
            _ => {}
        }
        if releases {
            self.check_no_offset(reg)?;
        } else {
            self.check_offset_of_type(&state, reg)?;
        }
        match takes {
            Takes::Null => {}
            Takes::Context => self.check_kfunc_context(call, at, &state)?,
            Takes::Dynptr(step) => self.check_kfunc_dynptr(call, reg, step)?,
            Takes::Iterator => self.check_kfunc_iterator(call, at, reg)?,
            Takes::Allocated => self.check_dropped(call, at, reg)?,
            Takes::Refcounted => self.check_refcounted(call, at, reg)?,
            Takes::Root(kind) => self.check_graph_root(call, at, reg, kind)?,
            Takes::Node(kind) => self.check_graph_node(call, at, reg, kind)?,
            Takes::Lock => self.check_resilient_lock(call, at, reg)?,
            Takes::Map => {
                let Some(map) = call.btf.find("bpf_map", BtfKind::Struct) else {
                    unmodelled!(Kfunc);
                };
                self.check_kfunc_object(call, at, reg, map)?;
            }
            Takes::Object => self.check_kfunc_object(call, at, reg, pointed)?,
            Takes::Memory => {
                let Ok(size) = call.btf.size_of(pointed.id()) else {
                    reject!(
                        EINVAL,
                        "arg#{at} reference type('{} {}') size cannot be determined: -22",
                        kind_name(pointed.kind()),
                        pointed.name()
                    );
                };
                self.check_memory_of_type(reg, size)?;
            }
            Takes::SizedMemory => self.check_kfunc_sized(call, at, reg, parameter)?,
            Takes::Callback => {
                let Kind::Func { subprogram } = state.kind else {
                    reject!(EINVAL, "arg{at} expected pointer to func");
                };
                call.callback = Some(subprogram);
            }
            Takes::ConstString => {
                if !is_map_value(&state) {
                    reject!(EINVAL, "arg#{at} doesn't point to a const string");
                }
                self.constant_string(reg)?;
            }
            Takes::Field(kind) => {
                let Kind::MapValue { map, uid } = state.kind else {
                    reject!(EINVAL, "arg#{at} doesn't point to a map value");
                };
                if !is_map_value(&state) {
                    reject!(EINVAL, "arg#{at} doesn't point to a map value");
                }
                self.check_field(reg, &state, map, kind)?;
                call.map = Some((map, uid));
            }
            Takes::IrqFlag => self.check_irq_flag(call, at, reg)?,
        }
        Ok(takes)
    }

    /// Checks the context; for a cast to the kernel's type, looks up this type.
    fn check_kfunc_context(
        &self,
        call: &mut Call<'_>,
        at: usize,
        state: &RegState,
    ) -> VerifyResult {
        if state.kind != Kind::Ctx || !state.flags.is_empty() {
            reject!(
                EINVAL,
                "arg#{at} expected pointer to ctx, but got {}",
                state.reg_type()
            );
        }
        if !call.is("bpf_cast_to_kern_ctx") {
            return Ok(());
        }
        let Some(ty) = context_type::in_kernel(call.btf, self.program.prog_type) else {
            unmodelled!(Kfunc);
        };
        if !ty.kind().is_composite() {
            reject!(EINVAL, "kern ctx type id {} is not a struct", ty.id());
        }
        call.context = Some(ty.id());
        Ok(())
    }

    /// Sets the map of the call. A work queue before it must be in this map.
    fn take_kfunc_map(&self, call: &mut Call<'_>, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        if !shares_map_field(state) {
            reject!(EINVAL, "pointer in R{} isn't map pointer", reg.number());
        }
        let Some((map, uid)) = state.map_and_uid() else {
            // The check of the type rejects it.
            return Ok(());
        };
        if let Some((fields, fields_uid)) = call.map {
            if !self.maps.is_typed(map) {
                // The kernel has no record of such a map to compare with.
                unmodelled!(Kfunc);
            }
            let queue = self.maps.has(map, FieldKind::Workqueue);
            let work = self.maps.has(map, FieldKind::TaskWork);
            if (queue || work) && (fields, fields_uid) != (map, uid) {
                let (what, first, second) = match work {
                    true => ("bpf_task_work", 2, 3),
                    false => ("workqueue", 1, 2),
                };
                reject!(
                    EINVAL,
                    "{what} pointer in R{first} map_uid={fields_uid} doesn't match map pointer in \
                     R{second} map_uid={uid}"
                );
            }
        }
        call.map = Some((map, uid));
        Ok(())
    }

    /// Checks memory with its size in the next argument, for reading and writing
    /// (`check_kfunc_mem_size_reg`).
    fn check_kfunc_sized(
        &mut self,
        call: &mut Call<'_>,
        at: usize,
        reg: Reg,
        parameter: &Parameter,
    ) -> VerifyResult {
        let next = at + 1;
        let (Some(size), Some(size_parameter)) =
            (Reg::ARGUMENTS.get(next), call.kfunc.parameters.get(next))
        else {
            reject!(EFAULT, "{call} has no size for argument {at}");
        };
        let optional = parameter.name.ends_with("__opt");
        if !(optional && self.reg(reg).is_null()) {
            let mut checked = Ok(());
            self.as_not_null(reg, |verifier| {
                for access in [Access::Read, Access::Write] {
                    if checked.is_ok() {
                        let all = verifier.check_sized_memory(reg, *size, access, true, false);
                        checked = all.map(|_| ());
                    }
                }
            });
            checked.map_err(|why| {
                why.and(format_args!(
                    "arg#{at} arg#{next} memory, len pair leads to invalid memory access"
                ))
            })?;
        }
        if size_parameter.kind == ParameterKind::ConstantSize {
            let Some(value) = self.reg(*size).var.value() else {
                reject!(EINVAL, "R{} must be a known constant", size.number());
            };
            call.constant = Some(value);
        }
        Ok(())
    }
}

/// Whether this is a pointer to an allocated object that the program owns, or could.
pub(super) fn is_allocated(state: &RegState) -> bool {
    matches!(state.kind, Kind::BtfId { .. }) && state.flags == TypeFlags::MEM_ALLOC
}

/// Whether this is a plain pointer to a map's value.
fn is_map_value(state: &RegState) -> bool {
    matches!(state.kind, Kind::MapValue { .. }) && state.flags.is_empty()
}

/// Whether the register's `map_ptr` is set, which shares its memory with other attributes.
fn shares_map_field(state: &RegState) -> bool {
    match state.kind {
        Kind::MapPtr { .. }
        | Kind::MapValue { .. }
        | Kind::MapKey { .. }
        | Kind::BtfId { .. }
        | Kind::Dynptr { .. } => true,
        Kind::Packet { range } | Kind::PacketMeta { range } => range != 0,
        Kind::Mem { size } => size != 0,
        Kind::Func { subprogram } => subprogram != 0,
        _ => false,
    }
}
