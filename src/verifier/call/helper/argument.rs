//! One argument of a helper (`check_func_arg`).

use super::call_state::Call;
use crate::isa::Reg;
use crate::program::MapDef;
use crate::spec::helpers::{Arg, ArgKind, Attributes, Detail, RetKind, TypeFlags, id};
use crate::spec::{MapType, ProgType};
use crate::verifier::env::Verifier;
use crate::verifier::memory::{Access, MemoryAccess};
use crate::verifier::missing::Feature;
use crate::verifier::reg::{Kind, MapRef};
use crate::verifier::reject::{Reject, VerifyResult, reject};

/// How the helper accesses the memory of an argument.
const fn access(arg: Arg) -> Access {
    if arg.flags.contains(TypeFlags::MEM_WRITE) {
        Access::Write
    } else {
        Access::Read
    }
}

impl Verifier<'_> {
    /// Checks the register of this argument.
    pub(super) fn check_argument(
        &mut self,
        call: &mut Call,
        reg: Reg,
        mut arg: Arg,
    ) -> VerifyResult {
        self.check_read(reg)?;
        // Pointers may leak: we verify for a privileged user.
        if arg.kind == ArgKind::Anything {
            return Ok(());
        }
        let state = *self.reg(reg);
        let number = reg.number();
        if state.is_packet() && state.flags.is_empty() && !self.may_pass_packet(call) {
            reject!(EACCES, "helper access to the packet is not allowed");
        }
        if arg.kind == ArgKind::PtrToMapValue {
            arg = self.value_argument(call, arg)?;
        }
        if !(state.is_null() && arg.nullable()) {
            self.check_argument_type(call, reg, arg)?;
            self.check_argument_offset(&state, reg, arg)?;
        }
        if arg.flags.contains(TypeFlags::OBJ_RELEASE) {
            if arg.kind != ArgKind::PtrToDynptr && state.ref_id == 0 && !state.is_null() {
                reject!(
                    EINVAL,
                    "R{number} must be referenced when passed to release function"
                );
            }
            call.released = Some(reg);
        }
        if state.ref_id != 0 && arg.kind != ArgKind::KptrXchgDest {
            if call.ref_id != 0 {
                reject!(
                    EACCES,
                    "more than one arg with ref_obj_id R{number} {} {}",
                    state.ref_id,
                    call.ref_id
                );
            }
            call.ref_id = state.ref_id;
        }
        match arg.kind {
            ArgKind::ConstMapPtr => {
                self.take_map(call, reg)?;
                self.check_shape_known(call)
            }
            ArgKind::PtrToMapKey => self.check_key(call, reg),
            ArgKind::PtrToMapValue => {
                if state.is_null() && arg.nullable() {
                    return Ok(());
                }
                let size = self.call_map(call)?.1.value_size;
                call.fills = arg.flags.contains(TypeFlags::MEM_UNINIT);
                self.check_argument_memory(call, reg, size, access(arg), false)
            }
            ArgKind::PtrToMem => {
                call.fills = arg.flags.contains(TypeFlags::MEM_UNINIT);
                match arg.detail {
                    Detail::Size(size) if arg.flags.contains(TypeFlags::MEM_FIXED_SIZE) => {
                        self.check_argument_memory(call, reg, size, access(arg), false)?;
                        self.check_argument_alignment(reg, size, arg)
                    }
                    _ => Ok(()), // With the size, which comes next.
                }
            }
            ArgKind::ConstSize | ArgKind::ConstSizeOrZero => {
                let Some((memory, sized)) = memory_before(call, reg) else {
                    return Ok(());
                };
                let zero = arg.kind == ArgKind::ConstSizeOrZero;
                self.check_size(call, memory, reg, access(sized), zero)
            }
            ArgKind::ConstAllocSizeOrZero => {
                let Some(size) = state.var.value() else {
                    reject!(EACCES, "R{number} is not a known constant'");
                };
                // The kernel truncates to 32 bits, too; larger records are never allocated.
                call.allocated = crate::isa::low32(size);
                self.mark_precise(reg)
            }
            ArgKind::PtrToFunc => {
                if let Kind::Func { subprogram } = state.kind {
                    call.callback = Some(subprogram);
                }
                Ok(())
            }
            ArgKind::PtrToConstStr => self.constant_string(reg).map(|_| ()),
            ArgKind::PtrToSpinLock => self.check_lock(call, reg),
            ArgKind::PtrToTimer => self.check_timer(call, reg),
            ArgKind::PtrToDynptr | ArgKind::KptrXchgDest => match Feature::of_argument(arg.kind) {
                Some(feature) => Err(Reject::unmodelled(feature)),
                None => Ok(()),
            },
            ArgKind::Anything
            | ArgKind::PtrToArena
            | ArgKind::PtrToCtx
            | ArgKind::PtrToSockCommon
            | ArgKind::PtrToSocket
            | ArgKind::PtrToBtfId
            | ArgKind::PtrToBtfIdSockCommon
            | ArgKind::PtrToRingbufMem
            | ArgKind::PtrToPercpuBtfId
            | ArgKind::PtrToStack => Ok(()),
        }
    }

    /// Whether packet memory may be an argument: always for `setsockopt` programs, whose
    /// option value is treated as a packet; otherwise the prototype decides.
    fn may_pass_packet(&mut self, call: &Call) -> bool {
        (call.is(Attributes::PKT_ACCESS) || self.program.prog_type == ProgType::CgroupSockopt)
            && self.may_access_packet(Access::Read)
    }

    /// The type of a value argument for this map (`resolve_map_arg_type`).
    fn value_argument(&self, call: &Call, arg: Arg) -> VerifyResult<Arg> {
        let (_, def) = self.call_map(call)?;
        Ok(match def.map_type {
            MapType::Sockmap | MapType::Sockhash => {
                if !arg.flags.is_empty() {
                    reject!(EINVAL, "invalid arg_type for sockmap/sockhash");
                }
                Arg {
                    kind: ArgKind::PtrToBtfIdSockCommon,
                    ..arg
                }
            }
            // The value is the key to look up, not an output.
            MapType::BloomFilter if call.id == id::map_peek_elem => Arg {
                flags: TypeFlags::empty(),
                ..arg
            },
            _ => arg,
        })
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
        let takes = |kind| call.prototype.args.iter().any(|arg| arg.kind == kind);
        let finds = call.prototype.ret.kind == RetKind::PtrToMapValue;
        let keyed = takes(ArgKind::PtrToMapKey) && def.key_size == 0 && !info.key.allows(0);
        let values = finds || takes(ArgKind::PtrToMapValue);
        let valued = values && def.value_size == 0 && !info.value.allows(0);
        let nested = finds && def.map_type.holds_maps() && def.inner.is_none();
        if keyed || valued || nested {
            return Err(Reject::unmodelled(Feature::MapShape));
        }
        Ok(())
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

    fn check_argument_alignment(&mut self, reg: Reg, size: u32, arg: Arg) -> VerifyResult {
        if !arg.flags.contains(TypeFlags::MEM_ALIGNED) {
            return Ok(());
        }
        let state = *self.reg(reg);
        self.check_alignment(
            &state,
            &MemoryAccess {
                base: reg,
                off: 0,
                size,
                access: access(arg),
                value: None,
                constant: None,
                signed: false,
                strict: true,
            },
        )
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

/// The memory argument for a size argument: the one before it.
fn memory_before(call: &Call, size: Reg) -> Option<(Reg, Arg)> {
    let at = Reg::ARGUMENTS
        .iter()
        .position(|reg| *reg == size)?
        .checked_sub(1)?;
    Some((*Reg::ARGUMENTS.get(at)?, *call.prototype.args.get(at)?))
}
