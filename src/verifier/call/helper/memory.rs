//! Memory that a helper reads or writes (`check_helper_mem_access`, `check_mem_size_reg`).

use super::arg_type::check_type;
use super::call_state::Call;
use crate::isa::Reg;
use crate::spec::ContextKind;
use crate::spec::call::{Access, RegTypes, Region, TypeFlags};
use crate::spec::limits::MAX_VAR_SIZE;
use crate::verifier::branch::not_null;
use crate::verifier::env::Verifier;
use crate::verifier::memory::MemoryAccess;
use crate::verifier::reg::Kind;
use crate::verifier::reject::{VerifyResult, reject};
use crate::verifier::typed::ObjectAccess;

/// Contexts without `convert_ctx_access`: their bytes can be accessed as plain memory.
const fn is_plain(context: ContextKind) -> bool {
    matches!(
        context,
        ContextKind::Syscall
            | ContextKind::Tracepoint
            | ContextKind::PtRegs
            | ContextKind::RawTracepoint
            | ContextKind::BtfArgs
            | ContextKind::CgroupDevice
            | ContextKind::LircMode2
            | ContextKind::Netfilter
    )
}

impl Verifier<'_> {
    /// Checks the memory of an argument; records the stack bytes that the call fills.
    pub(super) fn check_argument_memory(
        &mut self,
        call: &mut Call,
        reg: Reg,
        size: u32,
        region: Region,
    ) -> VerifyResult {
        if self.check_helper_memory(reg, size, region.access, false, region.uninit)? {
            call.filled = Some((reg, size));
        }
        Ok(())
    }

    /// Checks memory with its size in a register; records the stack bytes that the call fills.
    pub(super) fn check_size(
        &mut self,
        call: &mut Call,
        memory: Reg,
        size: Reg,
        region: Region,
        zero: bool,
    ) -> VerifyResult {
        call.size_max = self.reg(size).var.umax;
        let filled = self.check_sized_memory(memory, size, region.access, zero, region.uninit)?;
        if let Some(filled) = filled {
            call.filled = Some((memory, filled));
        }
        Ok(())
    }

    /// Checks memory with its size in a register, for the largest possible size
    /// (`check_mem_size_reg`). Returns the number of stack bytes that the call overwrites, if
    /// it does (`uninit`).
    pub(in crate::verifier) fn check_sized_memory(
        &mut self,
        memory: Reg,
        size: Reg,
        access: Access,
        zero: bool,
        uninit: bool,
    ) -> VerifyResult<Option<u32>> {
        let bytes = self.reg(size).var;
        let number = size.number();
        if bytes.smin < 0 {
            reject!(
                EACCES,
                "R{number} min value is negative, either use unsigned or 'var &= const'"
            );
        }
        if bytes.umin == 0 && !zero {
            reject!(
                EACCES,
                "R{number} invalid zero-sized read: u64=[{},{}]",
                bytes.umin.cast_signed(),
                bytes.umax.cast_signed()
            );
        }
        let most = match u32::try_from(bytes.umax) {
            Ok(most) if bytes.umax < MAX_VAR_SIZE => most,
            _ => reject!(
                EACCES,
                "R{number} unbounded memory access, use 'var &= const' or 'if (var < const)'"
            ),
        };
        // A size that isn't constant may leave some of the memory as it was.
        let fills = uninit && bytes.is_const();
        let filled = self.check_helper_memory(memory, most, access, zero, fills)?;
        self.mark_precise(size)?;
        Ok(filled.then_some(most))
    }

    /// Checks memory of a type's size for reading and writing, or null (`check_mem_reg`).
    pub(in crate::verifier) fn check_memory_of_type(
        &mut self,
        reg: Reg,
        size: u32,
    ) -> VerifyResult {
        if self.reg(reg).is_null() {
            return Ok(());
        }
        let mut checked = Ok(());
        self.as_not_null(reg, |verifier| {
            for access in [Access::Read, Access::Write] {
                if checked.is_ok() {
                    let all = verifier.check_helper_memory(reg, size, access, true, false);
                    checked = all.map(|_| ());
                }
            }
        });
        checked
    }

    /// Performs checks as if a pointer that may be null were not.
    pub(in crate::verifier) fn as_not_null(&mut self, reg: Reg, check: impl FnOnce(&mut Self)) {
        let state = *self.reg(reg);
        if !state.maybe_null() {
            return check(self);
        }
        let mut present = state;
        not_null(&self.maps, &mut present);
        *self.reg_mut(reg) = present;
        check(self);
        *self.reg_mut(reg) = state;
    }

    /// Checks that a helper may read or write `size` bytes at a register; `zero` allows a
    /// size of 0. Returns whether the bytes are stack memory that the call overwrites
    /// (`fills`) and that may be uninitialised.
    pub(crate) fn check_helper_memory(
        &mut self,
        reg: Reg,
        size: u32,
        access: Access,
        zero: bool,
        fills: bool,
    ) -> VerifyResult<bool> {
        let state = *self.reg(reg);
        let number = reg.number();
        let off = state.off;
        let read_only = state.flags.contains(TypeFlags::MEM_RDONLY);
        if access == Access::Write
            && (matches!(state.kind, Kind::MapKey { .. })
                || read_only && matches!(state.kind, Kind::Mem { .. } | Kind::Buf))
        {
            reject!(EACCES, "R{number} cannot write into {}", state.reg_type());
        }
        match state.kind {
            Kind::Packet { .. } | Kind::PacketMeta { .. } => {
                self.check_packet_access(reg, off, size, zero)?;
            }
            Kind::MapKey { map, .. } => {
                let key_size = self.map(map).map_or(0, |def| def.key_size);
                self.check_region(reg, off, size, key_size, false)?;
            }
            Kind::MapValue { .. } => {
                self.check_map_access_type(reg, off, size, access)?;
                self.check_map_access(reg, off, size, zero)?;
            }
            Kind::Mem { size: all } => self.check_region(reg, off, size, all, zero)?,
            Kind::Stack { frame } => {
                return self.check_stack_range(reg, frame, size, access, zero, fills);
            }
            Kind::BtfId { .. } => {
                self.check_object_access(&ObjectAccess {
                    base: reg,
                    off,
                    size,
                    access,
                    loads: false,
                })?;
            }
            Kind::Buf => self.check_buffer_access(reg, off, size, zero)?,
            Kind::Ctx if is_plain(self.program.prog_type.info().context) => {
                return self.check_context_memory(reg, size, access, zero);
            }
            _ if zero && size == 0 && state.is_null() => {}
            _ => check_type(&state, reg, RegTypes::STACK)?,
        }
        Ok(false)
    }

    /// Checks the last byte of a plain context, which stands for all.
    fn check_context_memory(
        &mut self,
        base: Reg,
        size: u32,
        access: Access,
        zero: bool,
    ) -> VerifyResult<bool> {
        let Some(last) = size.checked_sub(1) else {
            if !zero {
                reject!(EACCES, "");
            }
            return Ok(false);
        };
        let off = i32::try_from(last).unwrap_or(i32::MAX);
        self.check_memory(&byte(base, off, access))?;
        Ok(false)
    }
}

/// An access of one byte whose value is not used.
pub(super) const fn byte(base: Reg, off: i32, access: Access) -> MemoryAccess {
    MemoryAccess {
        base,
        off,
        size: 1,
        access,
        value: None,
        constant: None,
        signed: false,
        strict: false,
    }
}
