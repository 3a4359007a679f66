//! One argument of a helper (`check_func_arg`): the checks of its preconditions.

use super::call_state::Call;
use crate::btf::FieldKind;
use crate::isa::Reg;
use crate::program::MapDef;
use crate::spec::call::{Access, ArgSpec, Extent, Precondition, Region};
use crate::spec::helpers::{FILTER_VALUE, RetKind, SOCKET_VALUE, id};
use crate::spec::{MapType, ProgType};
use crate::verifier::env::Verifier;
use crate::verifier::memory::MemoryAccess;
use crate::verifier::missing::Feature;
use crate::verifier::reg::{Kind, MapRef};
use crate::verifier::reject::{Reject, VerifyResult, reject};

impl Verifier<'_> {
    /// Checks the register of this argument.
    pub(super) fn check_argument(
        &mut self,
        call: &mut Call,
        reg: Reg,
        mut arg: &'static ArgSpec,
    ) -> VerifyResult {
        let is_null = arg.nullable && self.reg(reg).is_null();
        let mut left = arg.preconditions;
        while let [precondition, rest @ ..] = left {
            left = rest;
            match precondition {
                Precondition::MapDecides => {
                    if let Some(other) = self.value_argument(call, arg)? {
                        (arg, left) = (other, other.preconditions);
                    }
                }
                _ if is_null && !precondition.applies_to_null() => {}
                _ => self
                    .check_precondition(call, reg, arg, precondition)
                    .map_err(|why| why.violating(*precondition))?,
            }
        }
        Ok(())
    }

    /// Checks one precondition, and records what the rest of the call depends on.
    fn check_precondition(
        &mut self,
        call: &mut Call,
        reg: Reg,
        arg: &ArgSpec,
        precondition: &Precondition,
    ) -> VerifyResult {
        match *precondition {
            Precondition::Initialised => {
                self.check_read(reg)?;
                match arg.preconditions {
                    // The helper does anything with the value.
                    [Precondition::Initialised] => self.check_pointer_leak(reg, "helper function"),
                    _ => Ok(()),
                }
            }
            Precondition::PacketAccess(allowed) => self.check_packet_argument(reg, allowed),
            Precondition::Is(types) => self.check_argument_type(call, reg, types),
            Precondition::NotObject => self.check_no_object(call, reg),
            Precondition::Object(wanted) => self.check_object(call, reg, arg, wanted),
            Precondition::OffsetOfType => {
                let state = *self.reg(reg);
                self.check_offset_of_type(&state, reg)
            }
            Precondition::NoOffset => self.check_no_offset(reg),
            Precondition::Released => self.check_released(call, reg),
            Precondition::OnlyReference => self.check_only_reference(call, reg),
            Precondition::Map => {
                self.take_map(call, reg)?;
                self.check_shape_known(call)
            }
            Precondition::Memory(region) => self.check_region_argument(call, reg, region),
            Precondition::Size { zero } => match region_before(call, reg) {
                Some((memory, region)) => self.check_size(call, memory, reg, region, zero),
                None => Ok(()),
            },
            Precondition::ResultSize => self.take_result_size(call, reg),
            Precondition::Callback => {
                if let Kind::Func { subprogram } = self.reg(reg).kind {
                    call.callback = Some(subprogram);
                }
                Ok(())
            }
            Precondition::ConstString => self.constant_string(reg).map(|_| ()),
            Precondition::Field(FieldKind::SpinLock) => self.check_lock(call, reg),
            Precondition::Field(FieldKind::Timer) => self.check_timer(call, reg),
            Precondition::Dynptr(step) => self.check_dynptr_argument(call, reg, step),
            Precondition::Field(FieldKind::KptrRef) => {
                call.kptr = Some(self.kptr_argument(reg)?);
                Ok(())
            }
            Precondition::MapDecides => Ok(()),
            // Only kfuncs have these.
            Precondition::Field(_)
            | Precondition::NotNull
            | Precondition::Trusted
            | Precondition::TrustedOrRcu
            | Precondition::Constant
            | Precondition::Iterator(_)
            | Precondition::IrqFlag => Err(Reject::unmodelled(Feature::Kfunc)),
        }
    }

    /// Checks that packet memory may be an argument: always for `setsockopt` programs, whose
    /// option value is treated as a packet; otherwise the prototype decides.
    fn check_packet_argument(&mut self, reg: Reg, allowed: bool) -> VerifyResult {
        let state = self.reg(reg);
        if !state.is_packet() || !state.flags.is_empty() {
            return Ok(());
        }
        let allowed = allowed || self.program.prog_type == ProgType::CgroupSockopt;
        if !(allowed && self.may_access_packet(Access::Read)) {
            reject!(EACCES, "helper access to the packet is not allowed");
        }
        Ok(())
    }

    /// What takes the place of a value argument for this map (`resolve_map_arg_type`).
    fn value_argument(&self, call: &Call, arg: &ArgSpec) -> VerifyResult<Option<&'static ArgSpec>> {
        let (_, def) = self.call_map(call)?;
        Ok(match def.map_type {
            MapType::Sockmap | MapType::Sockhash => {
                let writes = |region: Region| region.access == Access::Write;
                if arg.nullable || arg.region().is_some_and(writes) {
                    reject!(EINVAL, "invalid arg_type for sockmap/sockhash");
                }
                Some(&SOCKET_VALUE)
            }
            MapType::BloomFilter if call.id == id::map_peek_elem => Some(&FILTER_VALUE),
            _ => None,
        })
    }

    /// Checks that the argument is a reference, and records that the call releases it.
    fn check_released(&self, call: &mut Call, reg: Reg) -> VerifyResult {
        let state = self.reg(reg);
        if state.ref_id == 0 && !state.is_null() {
            reject!(
                EINVAL,
                "R{} must be referenced when passed to release function",
                reg.number()
            );
        }
        call.released = Some(reg);
        Ok(())
    }

    /// Checks that no argument before this one has a reference, if this one does.
    fn check_only_reference(&self, call: &mut Call, reg: Reg) -> VerifyResult {
        let ref_id = self.reg(reg).ref_id;
        if ref_id == 0 {
            return Ok(());
        }
        if call.ref_id != 0 {
            reject!(
                EACCES,
                "more than one arg with ref_obj_id R{} {ref_id} {}",
                reg.number(),
                call.ref_id
            );
        }
        call.ref_id = ref_id;
        Ok(())
    }

    /// Sets the map of the call. A timer argument may have set the map before.
    fn take_map(&self, call: &mut Call, reg: Reg) -> VerifyResult {
        let Kind::MapPtr { map, uid } = self.reg(reg).kind else {
            return Ok(());
        };
        if let Some((timers, timers_uid)) = call.map
            && (timers, timers_uid) != (map, uid)
        {
            reject!(
                EINVAL,
                "timer pointer in R1 map_uid={timers_uid} doesn't match map pointer in R2 map_uid={uid}"
            );
        }
        call.map = Some((map, uid));
        Ok(())
    }

    /// Stops as unjudged if the call depends on a map attribute that the loader sets at run
    /// time. The kernel can't create such a map without it.
    fn check_shape_known(&self, call: &Call) -> VerifyResult {
        let Some(def) = call.map.and_then(|(map, _)| self.map(map)) else {
            return Ok(());
        };
        let info = def.map_type.info();
        let takes = |extent| {
            let mut regions = call.prototype.arguments.iter().filter_map(ArgSpec::region);
            regions.any(|region| region.extent == extent)
        };
        let finds = call.prototype.ret.kind == RetKind::PtrToMapValue;
        let keyed = takes(Extent::Key) && def.key_size == 0 && !info.key.allows(0);
        let values = finds || takes(Extent::Value);
        let valued = values && def.value_size == 0 && !info.value.allows(0);
        let nested = finds && def.map_type.holds_maps() && def.inner.is_none();
        if keyed || valued || nested {
            return Err(Reject::unmodelled(Feature::MapShape));
        }
        Ok(())
    }

    /// Checks memory of a known size. If the next argument is its size, it is checked with
    /// that.
    fn check_region_argument(&mut self, call: &mut Call, reg: Reg, region: Region) -> VerifyResult {
        match region.extent {
            Extent::Key => self.check_key(call, reg),
            Extent::Value => {
                let size = self.call_map(call)?.1.value_size;
                self.check_argument_memory(call, reg, size, region)
            }
            Extent::Bytes(size) => {
                self.check_argument_memory(call, reg, size, region)?;
                self.check_argument_alignment(reg, size, region)
            }
            Extent::Next | Extent::Type(_) => Ok(()),
        }
    }

    /// Checks the key's memory, and records a constant key of an array.
    fn check_key(&mut self, call: &mut Call, reg: Reg) -> VerifyResult {
        let (_, def) = self.call_map(call)?;
        self.check_helper_memory(reg, def.key_size, Access::Read, false, false)?;
        if matches!(def.map_type, MapType::Array | MapType::PercpuArray) {
            call.key = self.constant_key(reg, def.key_size)?;
        }
        Ok(())
    }

    fn check_argument_alignment(&mut self, reg: Reg, size: u32, region: Region) -> VerifyResult {
        if !region.aligned {
            return Ok(());
        }
        let state = *self.reg(reg);
        self.check_alignment(
            &state,
            &MemoryAccess {
                base: reg,
                off: 0,
                size,
                access: region.access,
                value: None,
                constant: None,
                signed: false,
                strict: true,
            },
        )
    }

    /// Records the size of the memory that the call returns.
    fn take_result_size(&mut self, call: &mut Call, reg: Reg) -> VerifyResult {
        let Some(size) = self.reg(reg).var.value() else {
            reject!(EACCES, "R{} is not a known constant'", reg.number());
        };
        // The kernel truncates to 32 bits, too; larger records are never allocated.
        call.allocated = crate::isa::low32(size);
        self.mark_precise(reg)
    }
}

impl<'p> Verifier<'p> {
    /// The map of a call; its prototype has a map argument first.
    pub(super) fn call_map(&self, call: &Call) -> VerifyResult<(MapRef, &'p MapDef)> {
        match call.map.and_then(|(map, _)| Some((map, self.map(map)?))) {
            Some(found) => Ok(found),
            None => reject!(EFAULT, "invalid map_ptr to access map->key"),
        }
    }
}

/// The memory for a size argument: that of the argument before it.
fn region_before(call: &Call, size: Reg) -> Option<(Reg, Region)> {
    let at = Reg::ARGUMENTS
        .iter()
        .position(|reg| *reg == size)?
        .checked_sub(1)?;
    let region = call.prototype.arguments.get(at)?.region()?;
    Some((*Reg::ARGUMENTS.get(at)?, region))
}
