//! Memory that a helper reads or writes (`check_helper_mem_access`,
//! `check_mem_size_reg`).

use super::under_way::Call;
use crate::isa::Reg;
use crate::spec::ContextKind;
use crate::spec::helpers::TypeFlags;
use crate::spec::limits::MAX_VAR_SIZE;
use crate::verifier::env::Verifier;
use crate::verifier::log::name::type_name;
use crate::verifier::memory::{Access, MemoryAccess};
use crate::verifier::reg::Kind;
use crate::verifier::reject::{Checked, reject, unmodelled};

/// Contexts whose fields are what they seem, so that a byte of one is a byte of memory:
/// there is no `convert_ctx_access`.
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
    /// Memory of an argument; notes the stack that the call fills.
    pub(super) fn check_argument_memory(
        &mut self,
        call: &mut Call,
        reg: Reg,
        size: u32,
        access: Access,
        zero: bool,
    ) -> Checked {
        if self.check_helper_memory(reg, size, access, zero, call.fills)? {
            call.filled = Some((reg, size));
        }
        Ok(())
    }

    /// Memory with its size in a register: all that the largest size would reach.
    pub(super) fn check_size(
        &mut self,
        call: &mut Call,
        memory: Reg,
        size: Reg,
        access: Access,
        zero: bool,
    ) -> Checked {
        let bytes = self.reg(size).var;
        call.size_max = bytes.umax;
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
        // A size that varies may leave some of the memory as it was.
        let fills = call.fills && bytes.is_const();
        if self.check_helper_memory(memory, most, access, zero, fills)? {
            call.filled = Some((memory, most));
        }
        self.mark_precise(size)
    }

    /// Whether a helper may read or write `size` bytes behind a register; `zero` allows
    /// none at all. Whether, with `fills`, the bytes are stack which the call overwrites
    /// and that nothing is asked of before.
    pub(crate) fn check_helper_memory(
        &mut self,
        reg: Reg,
        size: u32,
        access: Access,
        zero: bool,
        fills: bool,
    ) -> Checked<bool> {
        let state = *self.reg(reg);
        let number = reg.number();
        let off = state.off;
        let read_only = state.flags.contains(TypeFlags::MEM_RDONLY);
        if access == Access::Write
            && (matches!(state.kind, Kind::MapKey { .. })
                || read_only && matches!(state.kind, Kind::Mem { .. } | Kind::Buf))
        {
            reject!(EACCES, "R{number} cannot write into {}", type_name(&state));
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
            Kind::BtfId { .. } => unmodelled!(TypedPointer),
            Kind::Buf => {
                unmodelled!(IteratorBuffer)
            }
            Kind::Ctx if is_plain(self.program.prog_type.info().context) => {
                return self.check_context_memory(reg, size, access, zero);
            }
            _ if zero && size == 0 && state.is_null() => {}
            _ => reject!(EACCES, "R{number} type={} expected=fp", type_name(&state)),
        }
        Ok(false)
    }

    /// Bytes of a plain context: the last one is as good as all.
    fn check_context_memory(
        &mut self,
        base: Reg,
        size: u32,
        access: Access,
        zero: bool,
    ) -> Checked<bool> {
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

/// One byte, of which the value does not matter.
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
