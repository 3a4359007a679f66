//! The fields of a type that mean something to the kernel (`btf_parse_fields`,
//! `kernel/bpf/btf.c`).

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// What a field is to the kernel (`enum btf_field_type`, `include/linux/bpf.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// A kernel pointer that the place owns (`__kptr`).
    Kptr,
    /// A per-CPU object that the place owns (`__percpu_kptr`).
    PercpuKptr,
    /// A kernel pointer that it does not own (`__kptr_untrusted`).
    UntrustedKptr,
    /// A pointer to user memory (`__uptr`).
    Uptr,
}

/// Structs that are such fields, by name.
const STRUCTS: &[(&str, FieldKind)] = &[
    ("bpf_spin_lock", FieldKind::SpinLock),
    ("bpf_res_spin_lock", FieldKind::ResSpinLock),
    ("bpf_timer", FieldKind::Timer),
    ("bpf_wq", FieldKind::Workqueue),
    ("bpf_task_work", FieldKind::TaskWork),
    ("bpf_list_head", FieldKind::ListHead),
    ("bpf_list_node", FieldKind::ListNode),
    ("bpf_rb_root", FieldKind::RbRoot),
    ("bpf_rb_node", FieldKind::RbNode),
    ("bpf_refcount", FieldKind::Refcount),
];

/// Tags of pointers that make them such fields.
const TAGS: &[(&str, FieldKind)] = &[
    ("kptr", FieldKind::Kptr),
    ("percpu_kptr", FieldKind::PercpuKptr),
    ("kptr_untrusted", FieldKind::UntrustedKptr),
    ("uptr", FieldKind::Uptr),
];

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it is.
    pub kind: FieldKind,
    /// Bytes from the start of the type.
    pub offset: u32,
}

/// The most fields of a type that are looked at; the kernel takes 11
/// (`BTF_FIELDS_MAX`).
const MAX_FIELDS: usize = 64;
/// How deep structs may be nested (`MAX_RESOLVE_DEPTH`).
const MAX_DEPTH: usize = 32;

/// The fields of a type, by rising offset.
#[must_use]
pub fn fields(btf: &Btf, ty: TypeId) -> Vec<Field> {
    let mut found = Vec::new();
    collect(btf, ty, 0, 0, &mut found);
    found.sort_by_key(|field| field.offset);
    found
}

fn collect(btf: &Btf, ty: TypeId, base: u32, depth: usize, found: &mut Vec<Field>) {
    let Ok(ty) = btf.resolve(ty) else { return };
    if depth > MAX_DEPTH || found.len() >= MAX_FIELDS {
        return;
    }
    match ty.kind() {
        Kind::Struct | Kind::Union => {
            if let Some(kind) = known(STRUCTS, ty.name()) {
                found.push(Field { kind, offset: base });
                return;
            }
            for member in ty.members().filter(|member| member.bitfield.is_none()) {
                let offset = base.saturating_add(member.bit_offset / 8);
                collect(btf, member.ty, offset, depth + 1, found);
            }
        }
        Kind::Array => {
            let Some(array) = ty.array() else { return };
            let Ok(size) = btf.size_of(array.element) else {
                return;
            };
            for index in 0..array.len {
                let before = found.len();
                let offset = base.saturating_add(size.saturating_mul(index));
                collect(btf, array.element, offset, depth + 1, found);
                if found.len() == before || found.len() >= MAX_FIELDS {
                    return;
                }
            }
        }
        Kind::Ptr => {
            let kind = tags(ty).find_map(|tag| known(TAGS, tag));
            found.extend(kind.map(|kind| Field { kind, offset: base }));
        }
        _ => {}
    }
}

fn known(list: &[(&str, FieldKind)], name: &str) -> Option<FieldKind> {
    let found = list.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

/// The tags of what a pointer points to.
fn tags<'a>(pointer: Type<'a>) -> impl Iterator<Item = &'a str> {
    let qualified = |ty: &Type<'a>| ty.kind().is_qualifier() || ty.kind() == Kind::TypeTag;
    let first = pointer.target().filter(qualified);
    std::iter::successors(first, move |ty| ty.target().filter(qualified))
        .take(MAX_DEPTH)
        .filter(|ty| ty.kind() == Kind::TypeTag)
        .map(|ty| ty.name())
}
