//! Values of maps.
//!
//! Programs touch their bytes directly, but for the fields that only helpers may touch.
//! What a frozen read-only map holds is a constant to the verifier.

use super::{Access, MemoryAccess};
use crate::btf::{FieldKind, SpecialField};
use crate::isa::Reg;
use crate::program::MapDef;
use crate::spec::MapFlags;
use crate::verifier::env::Verifier;
use crate::verifier::log::name::type_name;
use crate::verifier::reg::{Kind, MapRef, RegState};
use crate::verifier::reject::{Checked, reject, unmodelled};

impl Verifier<'_> {
    /// A load or store of an instruction; what a load gives.
    pub(super) fn check_map_load_store(
        &mut self,
        a: &MemoryAccess,
        reg: &RegState,
        map: MapRef,
        off: i32,
    ) -> Checked<RegState> {
        self.check_map_access_type(a.base, off, a.size, a.access)?;
        self.check_map_bytes(a.base, off, a.size, false, true)?;
        let Some(place) = reg.var.value() else {
            return Ok(RegState::UNKNOWN);
        };
        let place = i64::from(off).wrapping_add(place.cast_signed());
        let is_pointer =
            |field: &&SpecialField| field.kind.is_pointer() && i64::from(field.off) == place;
        if let Some(field) = self.maps.fields(map).iter().find(is_pointer).copied() {
            self.check_kernel_pointer(a, &field)?;
            return Ok(RegState::UNKNOWN);
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
        Ok(RegState::constant(read(def, place, a.size, a.signed)))
    }

    /// A load or store of a kernel pointer, all eight bytes of it
    /// (`check_map_kptr_access`).
    fn check_kernel_pointer(&self, a: &MemoryAccess, field: &SpecialField) -> Checked {
        // Atomics and loads that extend the sign.
        if a.strict || a.signed {
            reject!(
                EACCES,
                "kptr in map can only be accessed using BPF_MEM instruction mode"
            );
        }
        if a.access == Access::Read {
            unmodelled!(Kptr);
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
            return Ok(());
        };
        let stored = self.reg(value);
        if stored.is_null() {
            return Ok(());
        }
        if matches!(stored.kind, Kind::BtfId { .. }) {
            unmodelled!(Kptr);
        }
        let btf = self.program.btf.as_ref();
        let target = btf.and_then(|btf| btf.get(field.target));
        let target = target.map_or("", |target| target.name());
        reject!(
            EACCES,
            "invalid kptr access, R{} type={} expected=ptr_{target} or untrusted_ptr_{target}",
            value.number(),
            type_name(stored)
        );
    }

    /// Bytes of a map's value, fields that only helpers may touch excepted
    /// (`check_map_access`), for a helper.
    pub(crate) fn check_map_access(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        zero: bool,
    ) -> Checked {
        self.check_map_bytes(base, off, size, zero, false)
    }

    fn check_map_bytes(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        zero: bool,
        direct: bool,
    ) -> Checked {
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

    /// Whether programs may read or write the map (`check_map_access_type`).
    pub(crate) fn check_map_access_type(
        &mut self,
        base: Reg,
        off: i32,
        size: u32,
        access: Access,
    ) -> Checked {
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

/// Whether nobody can change the map any more, and a program may hold the address of its
/// value (`bpf_map_is_rdonly`).
fn is_constant(def: &MapDef) -> bool {
    def.frozen && def.flags.contains(MapFlags::RDONLY_PROG) && def.map_type.info().direct_value
}

/// What the bytes at `place` hold (`bpf_map_direct_read`); they lie inside the value.
fn read(def: &MapDef, place: i64, size: u32, signed: bool) -> u64 {
    let value = def.initial_value(&0u32.to_le_bytes()).unwrap_or(&[]);
    let mut bytes = [0; 8];
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    let size = usize::try_from(size).unwrap_or(8).min(8);
    for (at, byte) in bytes.iter_mut().enumerate().take(size) {
        // The definition may leave out zeros at the end.
        *byte = place
            .checked_add(at)
            .and_then(|at| value.get(at))
            .copied()
            .unwrap_or(0);
    }
    let number = u64::from_le_bytes(bytes);
    if signed {
        let unused = 64 - 8 * size;
        (number.cast_signed() << unused >> unused).cast_unsigned()
    } else {
        number
    }
}
