//! Fields of a value that the kernel watches over: locks, timers, kernel pointers, heads
//! of lists and trees.
//!
//! A field is found by its type: `struct bpf_timer`, a pointer tagged `kptr`. It counts in
//! an array and in a struct inside as well. (`btf_parse_fields`, `kernel/bpf/btf.c`.)

use std::ops::{Deref, Range};

use smallvec::SmallVec;

use super::blob::Btf;
use super::kind::Kind;
use super::types::Type;
use crate::util::TypeId;

/// How deep structs are searched, and how many fields count.
const MAX_DEPTH: u32 = 8;
const MAX_FIELDS: usize = 11;

/// What a field is (`enum btf_field_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// `struct bpf_spin_lock`.
    SpinLock,
    /// `struct bpf_res_spin_lock`.
    ResSpinLock,
    /// `struct bpf_timer`.
    Timer,
    /// `struct bpf_wq`.
    Workqueue,
    /// `struct bpf_task_work`.
    TaskWork,
    /// A kernel pointer, without a reference.
    KptrUnref,
    /// A kernel pointer that is a reference.
    KptrRef,
    /// A kernel pointer to per-CPU memory.
    KptrPercpu,
    /// A pointer to user memory.
    Uptr,
    /// `struct bpf_list_head`.
    ListHead,
    /// `struct bpf_list_node`.
    ListNode,
    /// `struct bpf_rb_root`.
    RbRoot,
    /// `struct bpf_rb_node`.
    RbNode,
    /// `struct bpf_refcount`.
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
    #[must_use]
    pub const fn name(self) -> &'static str {
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
    #[must_use]
    pub const fn is_pointer(self) -> bool {
        matches!(
            self,
            Self::KptrUnref | Self::KptrRef | Self::KptrPercpu | Self::Uptr
        )
    }
}

/// A field that only helpers and kfuncs may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpecialField {
    /// What it is.
    pub kind: FieldKind,
    /// Where it is, in bytes from the start of the value.
    pub off: u32,
    /// Its bytes.
    pub size: u32,
}

impl SpecialField {
    /// Its bytes in the value.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        let start = self.off as usize;
        start..start.saturating_add(self.size as usize)
    }
}

/// The special fields of a value, by rising offset (`struct btf_record`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialFields(SmallVec<[SpecialField; 2]>);

impl SpecialFields {
    /// The fields of a type.
    #[must_use]
    pub fn of(btf: &Btf, value: TypeId) -> Self {
        let mut found = Found::new();
        if let Ok(ty) = btf.resolve(value) {
            search(btf, ty, 0, MAX_DEPTH, &mut found);
        }
        found.sort_by_key(|field| field.off);
        Self(found)
    }

    /// The field of this kind; the first one where there are several.
    #[must_use]
    pub fn find(&self, kind: FieldKind) -> Option<&SpecialField> {
        self.iter().find(|field| field.kind == kind)
    }

    /// The bytes of a value of `size` bytes that are no field, in pieces.
    pub fn gaps(&self, size: usize) -> impl Iterator<Item = Range<usize>> {
        let ends = self.iter().map(|field| field.range().end);
        let starts = self.iter().map(|field| field.range().start);
        let pieces = std::iter::once(0)
            .chain(ends)
            .zip(starts.chain(std::iter::once(size)));
        pieces
            .map(|(from, to)| from..to)
            .filter(|piece| !piece.is_empty())
    }

    /// Keeps the fields that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&SpecialField) -> bool) {
        self.0.retain(|field| keep(field));
    }
}

impl Deref for SpecialFields {
    type Target = [SpecialField];

    fn deref(&self) -> &[SpecialField] {
        &self.0
    }
}

impl FromIterator<SpecialField> for SpecialFields {
    fn from_iter<I: IntoIterator<Item = SpecialField>>(fields: I) -> Self {
        let mut fields: Found = fields.into_iter().collect();
        fields.sort_by_key(|field| field.off);
        Self(fields)
    }
}

/// Fields on the way.
type Found = SmallVec<[SpecialField; 2]>;

/// Adds the fields of a struct or of a section of global data that begins at `base`.
fn search(btf: &Btf, ty: Type<'_>, base: u32, depth: u32, found: &mut Found) {
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
                Some(kind) => found.push(SpecialField { kind, off, size }),
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

#[cfg(test)]
mod tests {
    use super::super::builder::Builder;
    use super::super::types::{Array, Encoding, Member};
    use super::*;

    fn member(name: &str, ty: TypeId, bytes: u32) -> Member<'_> {
        Member {
            name,
            ty,
            bit_offset: bytes * 8,
            bitfield: None,
        }
    }

    /// `struct { u32 n; struct bpf_spin_lock lock; struct { struct bpf_timer t[2]; } in; }`
    #[test]
    fn fields_are_found_inside_and_in_arrays() {
        let mut builder = Builder::new();
        let number = builder.int("unsigned int", 4, Encoding::Unsigned);
        let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
        let timer = builder.structure("bpf_timer", 16, &[member("n", number, 0)]);
        let timers = builder.array(Array {
            element: timer,
            index: number,
            len: 2,
        });
        let inside = builder.structure("inside", 32, &[member("t", timers, 0)]);
        let members = [
            member("n", number, 0),
            member("lock", lock, 4),
            member("in", inside, 8),
        ];
        let value = builder.structure("value", 48, &members);
        let btf = builder.build().unwrap();
        let fields = SpecialFields::of(&btf, value);
        let found: Vec<_> = fields.iter().map(|f| (f.kind, f.off, f.size)).collect();
        let timer = |off| (FieldKind::Timer, off, 16);
        assert_eq!(found, [(FieldKind::SpinLock, 4, 4), timer(8), timer(24)]);
        assert_eq!(fields.gaps(48).collect::<Vec<_>>(), [0..4, 40..48]);
        assert_eq!(fields.find(FieldKind::Timer).map(|f| f.off), Some(8));
        assert_eq!(fields.find(FieldKind::Uptr), None);
        let none = SpecialFields::of(&btf, number);
        assert!(none.gaps(4).eq(std::iter::once(0..4)));
    }
}
