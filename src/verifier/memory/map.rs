//! Map values.
//!
//! Programs access their bytes directly, except for special fields. The contents of a
//! frozen read-only map are constants.

use super::{Access, MemoryAccess};
use crate::btf::{FieldKind, SpecialField};
use crate::isa::Reg;
use crate::program::MapDef;
use crate::spec::MapFlags;
use crate::verifier::env::Verifier;
use crate::verifier::reg::{MapRef, RegState};
use crate::verifier::reject::{VerifyResult, reject};

impl Verifier<'_> {
    /// Checks a load or store, and returns the loaded register.
    pub(super) fn check_map_load_store(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        map: MapRef,
        off: i32,
    ) -> VerifyResult<RegState> {
        self.check_map_access_type(a.base, off, a.size, a.access)?;
        self.check_map_bytes(a.base, off, a.size, false, true)?;
        let Some(place) = reg.var.value() else {
            return Ok(RegState::UNKNOWN);
        };
        let place = i64::from(off).wrapping_add(place.cast_signed());
        let is_pointer =
            |field: &&SpecialField| field.kind.is_pointer() && i64::from(field.off) == place;
        if let Some(field) = self.maps.fields(map).iter().find(is_pointer).copied() {
            return self.check_kernel_pointer(a, &field);
        }
        let Some(def) = self.map(map) else {
            return Ok(RegState::UNKNOWN);
        };
        if a.loaded().is_none() || !is_constant(def) {
            return Ok(RegState::UNKNOWN);
        }
        if def.max_entries != 1 {
            reject!(ENOTSUPP, "");
        }
        Ok(RegState::constant(read(def, place, a.size)))
    }

    /// Checks a load or store of a kptr, which must be eight bytes
    /// (`check_map_kptr_access`).
    fn check_kernel_pointer(
        &mut self,
        a: &MemoryAccess,
        field: &SpecialField,
    ) -> VerifyResult<RegState> {
        // Atomics and sign-extending loads.
        if a.strict || a.signed {
            reject!(
                EACCES,
                "kptr in map can only be accessed using BPF_MEM instruction mode"
            );
        }
        if a.access == Access::Read {
            return self.load_kptr(field);
        }
        match field.kind {
            FieldKind::KptrRef | FieldKind::KptrPercpu => {
                reject!(EACCES, "store to referenced kptr disallowed")
            }
            FieldKind::Uptr => reject!(EACCES, "store to uptr disallowed"),
            _ => {}
        }
        let Some(value) = a.value else {
            if a.constant != Some(0) {
                reject!(
                    EACCES,
                    "BPF_ST imm must be 0 when storing to kptr at off={}",
                    field.off
                );
            }
            return Ok(RegState::UNKNOWN);
        };
        if !self.reg(value).is_null() {
            self.check_kptr_match(field, value)?;
        }
        Ok(RegState::UNKNOWN)
    }

    /// Checks the access of a helper to a map value, excluding special fields
    /// (`check_map_access`).
    pub(crate) fn check_map_access(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        zero: bool,
    ) -> VerifyResult {
        self.check_map_bytes(base, off, size, zero, false)
    }

    fn check_map_bytes(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        zero: bool,
        direct: bool,
    ) -> VerifyResult {
        let reg = *self.reg(base);
        let Some(map) = reg.map() else {
            return Ok(());
        };
        let value_size = self.map(map).map_or(0, |def| def.value_size);
        self.check_region(base, off, size, value_size, zero)?;
        let fields = self.maps.fields(map);
        let first = reg.var.smin.wrapping_add(off.into());
        // The region is checked: nothing wraps.
        let end = i64::try_from(reg.var.umax).unwrap_or(i64::MAX);
        let end = end.saturating_add(i64::from(off) + i64::from(size));
        for field in fields {
            let (from, to) = (
                i64::from(field.off),
                i64::from(field.off) + i64::from(field.size),
            );
            if first >= to || from >= end {
                continue;
            }
            let name = field.kind.name();
            if !field.kind.is_pointer() {
                reject!(EACCES, "{name} cannot be accessed directly by load/store");
            }
            if !direct {
                reject!(EACCES, "{name} cannot be accessed indirectly by helper");
            }
            if !reg.var.is_const() {
                reject!(EACCES, "{name} access cannot have variable offset");
            }
            if first != from {
                reject!(
                    EACCES,
                    "{name} access misaligned expected={from} off={first}"
                );
            }
            if size != 8 {
                reject!(EACCES, "{name} access size must be BPF_DW");
            }
        }
        Ok(())
    }

    /// Checks that programs may read or write the map (`check_map_access_type`).
    pub(crate) fn check_map_access_type(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        access: Access,
    ) -> VerifyResult {
        let Some(def) = self.reg(base).map().and_then(|map| self.map(map)) else {
            return Ok(());
        };
        let (allowed, what) = match access {
            Access::Write => (def.flags_made().programs_write(), "write into"),
            Access::Read => (def.flags_made().programs_read(), "read from"),
        };
        if !allowed {
            reject!(
                EACCES,
                "{what} map forbidden, value_size={} off={off} size={}",
                def.value_size,
                size.cast_signed()
            );
        }
        Ok(())
    }
}

/// Whether the contents can't change any more and programs may use the address of the value
/// (`bpf_map_is_rdonly`).
fn is_constant(def: &MapDef) -> bool {
    def.frozen && def.flags.contains(MapFlags::RDONLY_PROG) && def.map_type.info().direct_value
}

/// Reads the value's bytes at `place`, which are inside the value (`bpf_map_direct_read`).
fn read(def: &MapDef, place: i64, size: u32) -> u64 {
    let value = def.initial_value(&0u32.to_le_bytes()).unwrap_or(&[]);
    let mut bytes = [0; 8];
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    let size = usize::try_from(size).unwrap_or(8).min(8);
    for (at, byte) in bytes.iter_mut().enumerate().take(size) {
        // The definition may omit zeros at the end.
        *byte = place
            .checked_add(at)
            .and_then(|at| value.get(at))
            .copied()
            .unwrap_or(0);
    }
    u64::from_le_bytes(bytes)
}
