//! The program's maps, and the fields of their values that only helpers may touch.
//!
//! A field is found by its type in BTF: `struct bpf_timer`, a pointer tagged `kptr`. It
//! counts in an array and in a struct inside as well. (`btf_parse_fields`,
//! `kernel/bpf/btf.c`.)

use smallvec::SmallVec;

use super::reg::{MapRef, RegState};
use crate::btf::{Btf, Kind, Type};
use crate::program::{MapDef, Program};
use crate::util::{MapId, TypeId};

/// How deep structs are searched, and how many fields count.
const MAX_DEPTH: u32 = 8;
const MAX_FIELDS: usize = 11;

/// What a field is (`enum btf_field_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldKind {
    SpinLock,
    ResSpinLock,
    Timer,
    Workqueue,
    TaskWork,
    /// A kernel pointer, without a reference.
    KptrUnref,
    /// A kernel pointer that is a reference.
    KptrRef,
    KptrPercpu,
    Uptr,
    ListHead,
    ListNode,
    RbRoot,
    RbNode,
    Refcount,
}

impl FieldKind {
    /// The field that a struct of this name is.
    fn of_struct(name: &str) -> Option<Self> {
        Some(match name {
            "bpf_spin_lock" => Self::SpinLock,
            "bpf_res_spin_lock" => Self::ResSpinLock,
            "bpf_timer" => Self::Timer,
            "bpf_wq" => Self::Workqueue,
            "bpf_task_work" => Self::TaskWork,
            "bpf_list_head" => Self::ListHead,
            "bpf_list_node" => Self::ListNode,
            "bpf_rb_root" => Self::RbRoot,
            "bpf_rb_node" => Self::RbNode,
            "bpf_refcount" => Self::Refcount,
            _ => return None,
        })
    }

    /// The field that a pointer with this tag is.
    fn of_tag(tag: &str) -> Option<Self> {
        Some(match tag {
            "kptr_untrusted" => Self::KptrUnref,
            "kptr" => Self::KptrRef,
            "percpu_kptr" => Self::KptrPercpu,
            "uptr" => Self::Uptr,
            _ => return None,
        })
    }

    /// Its name in messages (`btf_field_type_name`).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SpinLock => "bpf_spin_lock",
            Self::ResSpinLock => "bpf_res_spin_lock",
            Self::Timer => "bpf_timer",
            Self::Workqueue => "bpf_wq",
            Self::TaskWork => "bpf_task_work",
            Self::KptrUnref | Self::KptrRef => "kptr",
            Self::KptrPercpu => "percpu_kptr",
            Self::Uptr => "uptr",
            Self::ListHead => "bpf_list_head",
            Self::ListNode => "bpf_list_node",
            Self::RbRoot => "bpf_rb_root",
            Self::RbNode => "bpf_rb_node",
            Self::Refcount => "bpf_refcount",
        }
    }

    /// Whether it is a pointer that a program may load.
    pub(crate) const fn is_pointer(self) -> bool {
        matches!(
            self,
            Self::KptrUnref | Self::KptrRef | Self::KptrPercpu | Self::Uptr
        )
    }
}

/// A field of a map's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub kind: FieldKind,
    /// Where it is, in bytes from the start of the value.
    pub off: u32,
    /// Its bytes.
    pub size: u32,
}

/// The fields of a value, by rising offset.
pub(crate) type Fields = SmallVec<[Field; 2]>;

/// The maps of a program with their fields.
pub(crate) struct Maps<'p> {
    program: &'p Program,
    /// For each map its own fields, and those of what it holds.
    fields: Vec<[Fields; 2]>,
}

impl<'p> Maps<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        let of = |def: &MapDef| match (&program.btf, def.value_type) {
            (Some(btf), Some(value)) => fields(btf, value),
            _ => Fields::new(),
        };
        let maps = program.maps.iter();
        let fields = maps.map(|def| [of(def), def.inner.as_deref().map(of).unwrap_or_default()]);
        Self {
            program,
            fields: fields.collect(),
        }
    }

    /// The definition of a map that a register refers to.
    pub(crate) fn def(&self, map: MapRef) -> Option<&'p MapDef> {
        let def = self.program.map(map.id)?;
        if map.inner {
            def.inner.as_deref()
        } else {
            Some(def)
        }
    }

    /// The fields of its value.
    pub(crate) fn fields(&self, map: MapRef) -> &[Field] {
        let of = |id: MapId| self.fields.get(id.index());
        of(map.id).map_or(&[], |both| &both[usize::from(map.inner)])
    }

    /// Whether its value has a field of this kind.
    pub(crate) fn has(&self, map: MapRef, kind: FieldKind) -> bool {
        self.fields(map).iter().any(|field| field.kind == kind)
    }

    /// Whether a register may point to a lock (`reg_may_point_to_spin_lock`).
    pub(crate) fn may_hold_lock(&self, reg: &RegState) -> bool {
        let super::reg::Kind::MapValue { map, .. } = reg.kind else {
            return false;
        };
        reg.flags.is_empty()
            && (self.has(map, FieldKind::SpinLock) || self.has(map, FieldKind::ResSpinLock))
    }
}

/// The fields of a type.
fn fields(btf: &Btf, value: TypeId) -> Fields {
    let mut found = Fields::new();
    if let Ok(ty) = btf.resolve(value) {
        search(btf, ty, 0, MAX_DEPTH, &mut found);
    }
    found.sort_by_key(|field| field.off);
    found
}

/// Adds the fields of a struct or of a section of global data that begins at `base`.
fn search(btf: &Btf, ty: Type<'_>, base: u32, depth: u32, found: &mut Fields) {
    let places: SmallVec<[(TypeId, u32); 8]> = match ty.kind() {
        Kind::Struct | Kind::Union => {
            let members = ty.members();
            members
                .map(|member| (member.ty, member.bit_offset / 8))
                .collect()
        }
        Kind::Datasec => {
            let variables = ty.variables();
            let typed = |id| btf.get(id).and_then(|variable| variable.target_id());
            variables
                .filter_map(|v| Some((typed(v.ty)?, v.offset)))
                .collect()
        }
        _ => return,
    };
    for (mut id, off) in places {
        let base = base.saturating_add(off);
        let mut count = 1u32;
        let mut ty = btf.resolve(id);
        for _ in 0..MAX_DEPTH {
            let Ok(array) = ty else { break };
            let Some(array) = array.array() else { break };
            count = count.saturating_mul(array.len);
            id = array.element;
            ty = btf.resolve(id);
        }
        let Ok(ty) = ty else { continue };
        let Ok(size) = btf.size_of(ty.id()) else {
            continue;
        };
        let kind = match ty.kind() {
            Kind::Struct => FieldKind::of_struct(ty.name()),
            Kind::Ptr => pointer_tag(btf, ty).and_then(FieldKind::of_tag),
            _ => None,
        };
        for at in 0..count {
            if found.len() >= MAX_FIELDS {
                return;
            }
            let off = base.saturating_add(at.saturating_mul(size));
            match kind {
                Some(kind) => found.push(Field { kind, off, size }),
                None if depth > 0 && ty.kind() == Kind::Struct => {
                    let before = found.len();
                    search(btf, ty, off, depth - 1, found);
                    if found.len() == before {
                        break;
                    }
                }
                None => break,
            }
        }
    }
}

/// The tag of what a pointer points to.
fn pointer_tag<'a>(btf: &'a Btf, pointer: Type<'a>) -> Option<&'a str> {
    let target = btf.get(pointer.target_id()?)?;
    (target.kind() == Kind::TypeTag).then(|| target.name())
}
