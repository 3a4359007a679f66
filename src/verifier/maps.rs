//! The program's maps, and the special fields of their values.

use super::reg::{Kind, MapRef, RegState};
use crate::btf::{FieldKind, SpecialField, SpecialFields};
use crate::program::{MapDef, Program, kernel_name};
use crate::spec::call::TypeFlags;

/// The maps of a program with their fields.
pub(crate) struct Maps<'p> {
    program: &'p Program,
    /// For each map its own special fields and those of its inner map; `None` without BTF.
    fields: Vec<[Option<SpecialFields>; 2]>,
}

impl MapRef {
    /// The definition of the map, which is one of the program's or of the inner maps.
    pub(crate) fn def(self, program: &Program) -> Option<&MapDef> {
        let def = program.map(self.id)?;
        if self.inner {
            def.inner.as_deref()
        } else {
            Some(def)
        }
    }
}

impl<'p> Maps<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        let btf = program.btf.as_ref();
        let of = |def: &MapDef| btf.and_then(|btf| def.special_fields(btf));
        let maps = program.maps.iter();
        let fields = maps.map(|def| [of(def), def.inner.as_deref().and_then(of)]);
        Self {
            program,
            fields: fields.collect(),
        }
    }

    /// The definition of a map that a register refers to.
    pub(crate) fn def(&self, map: MapRef) -> Option<&'p MapDef> {
        map.def(self.program)
    }

    /// The name as the kernel prints it; inner maps have none.
    pub(crate) fn name(&self, map: MapRef) -> String {
        let def = self.def(map).filter(|_| !map.inner);
        def.map_or_else(String::new, |def| kernel_name(&def.name))
    }

    /// The special fields of its value.
    pub(crate) fn fields(&self, map: MapRef) -> &[SpecialField] {
        self.typed(map).map_or(&[], |fields| fields)
    }

    /// Whether the map has BTF.
    pub(crate) fn is_typed(&self, map: MapRef) -> bool {
        self.typed(map).is_some()
    }

    fn typed(&self, map: MapRef) -> Option<&SpecialFields> {
        let both = self.fields.get(map.id.index())?;
        both[usize::from(map.inner)].as_ref()
    }

    /// Whether its value has a field of this kind.
    pub(crate) fn has(&self, map: MapRef, kind: FieldKind) -> bool {
        self.fields(map).iter().any(|field| field.kind == kind)
    }

    /// The special fields of the map value or the allocated object that a register points to
    /// (`reg_btf_record`).
    pub(crate) fn fields_of(&self, reg: &RegState) -> SpecialFields {
        match reg.kind {
            Kind::MapValue { map, .. } if reg.flags.is_empty() => {
                self.typed(map).cloned().unwrap_or_default()
            }
            Kind::BtfId { ty } if reg.flags.contains(TypeFlags::MEM_ALLOC) => {
                let btf = ty.btf(self.program);
                btf.map(|btf| SpecialFields::of(btf, ty.id))
                    .unwrap_or_default()
            }
            _ => SpecialFields::default(),
        }
    }

    /// Whether a register may point to a lock (`reg_may_point_to_spin_lock`).
    pub(crate) fn may_hold_lock(&self, reg: &RegState) -> bool {
        let is_lock = |field: &SpecialField| {
            matches!(field.kind, FieldKind::SpinLock | FieldKind::ResSpinLock)
        };
        match reg.kind {
            Kind::MapValue { map, .. } => {
                reg.flags.is_empty() && self.fields(map).iter().any(is_lock)
            }
            _ => self.fields_of(reg).iter().any(is_lock),
        }
    }
}
