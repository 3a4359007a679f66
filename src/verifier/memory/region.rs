//! Bounds of objects with a known size, including packets.

use crate::isa::Reg;
use crate::spec::limits::MAX_VAR_OFFSET;
use crate::util::Errno;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{Reject, VerifyResult, reject};

impl Verifier<'_> {
    /// Checks that `off + [0, size)` is inside an object of `mem_size` bytes, for the
    /// smallest and for the largest variable offset of the register
    /// (`check_mem_region_access`). `zero` allows accesses of no bytes; `off` includes the
    /// register's fixed offset.
    pub(crate) fn check_region(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        mem_size: u32,
        zero: bool,
    ) -> VerifyResult {
        let reg = self.reg(base);
        let at = base.number();
        let (min, max) = (reg.var.smin, reg.var.umax);
        let off = i64::from(off);
        let lowest = min.wrapping_add(off);
        if min < 0 && (min == i64::MIN || i32::try_from(lowest).is_err() || lowest < 0) {
            reject!(
                EACCES,
                "R{at} min value is negative, either use unsigned index or do a if (index >=0) check."
            );
        }
        check_bytes(reg, base, lowest, size, mem_size, zero).map_err(|reject| {
            reject.and(format_args!(
                "R{at} min value is outside of the allowed memory range"
            ))
        })?;
        if max >= MAX_VAR_OFFSET.cast_unsigned() {
            reject!(
                EACCES,
                "R{at} unbounded memory access, make sure to bounds check any such access"
            );
        }
        let highest = max.cast_signed().wrapping_add(off);
        check_bytes(reg, base, highest, size, mem_size, zero).map_err(|reject| {
            reject.and(format_args!(
                "R{at} max value is outside of the allowed memory range"
            ))
        })
    }

    /// Checks that the bytes are in the packet. The range of a packet pointer starts at its
    /// variable offset, so only the fixed offset is compared (`check_packet_access`).
    pub(crate) fn check_packet_access(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        zero: bool,
    ) -> VerifyResult {
        let reg = self.reg(base);
        let at = base.number();
        if reg.var.smin < 0 {
            reject!(
                EACCES,
                "R{at} min value is negative, either use unsigned index or do a if (index >=0) check."
            );
        }
        let checked = match u32::try_from(reg.range()) {
            Ok(range) => check_bytes(reg, base, off.into(), size, range, zero),
            Err(_) => Err(Reject::new(Errno::EINVAL, "")),
        };
        checked.map_err(|reject| reject.and(format_args!("R{at} offset is outside of the packet")))
    }

    /// Checks a pointer that must not be modified: its offset is not negative, and zero, or
    /// constant if a fixed offset is allowed (`__check_ptr_off_reg`).
    pub(crate) fn check_pointer_offset(
        &mut self,
        reg: &RegState,
        number: Reg,
        fixed_ok: bool,
    ) -> VerifyResult {
        let (at, name) = (number.number(), reg.reg_type());
        let off = reg.off;
        if off < 0 {
            reject!(
                EACCES,
                "negative offset {name} ptr R{at} off={off} disallowed"
            );
        }
        if !fixed_ok && off != 0 {
            reject!(
                EACCES,
                "dereference of modified {name} ptr R{at} off={off} disallowed"
            );
        }
        if reg.var.value() != Some(0) {
            reject!(
                EACCES,
                "variable {name} access var_off={} disallowed",
                reg.var.bits
            );
        }
        Ok(())
    }
}

/// Checks that `off + [0, size)` is inside an object (`__check_mem_access`).
fn check_bytes(
    reg: &RegState,
    base: Reg,
    off: i64,
    size: u32,
    mem_size: u32,
    zero: bool,
) -> VerifyResult {
    // The kernel passes the offset as 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "what the kernel does")]
    let off = off as i32;
    let end = i64::from(off) + i64::from(size);
    if off >= 0 && (size > 0 || zero) && end <= i64::from(mem_size) {
        return Ok(());
    }
    // The kernel prints the size as a signed number.
    let size = size.cast_signed();
    let plain = reg.flags.is_empty();
    match reg.kind {
        Kind::MapKey { .. } if plain => reject!(
            EACCES,
            "invalid access to map key, key_size={mem_size} off={off} size={size}"
        ),
        Kind::MapValue { .. } if plain => reject!(
            EACCES,
            "invalid access to map value, value_size={mem_size} off={off} size={size}"
        ),
        Kind::Packet { .. } | Kind::PacketMeta { .. } | Kind::PacketEnd if plain => reject!(
            EACCES,
            "invalid access to packet, off={off} size={size}, R{}(id={},off={off},r={mem_size})",
            base.number(),
            reg.id
        ),
        _ => reject!(
            EACCES,
            "invalid access to memory, mem_size={mem_size} off={off} size={size}"
        ),
    }
}
