//! Special fields of a value, which the kernel manages: locks, timers, kptrs, list heads
//! and tree roots.
//!
//! A field is found by its type: `struct bpf_timer`, a pointer tagged `kptr`. Fields in
//! arrays and nested structs are found, too; those in unions, or under a typedef or a
//! qualifier, are not. If the kernel finds an error (two locks, an unknown tag), the value
//! has no special fields at all: the map is created, and its bytes are ordinary data
//! (`btf_parse_fields`, `kernel/bpf/btf.c`).

use std::ops::{Deref, Range};

use smallvec::SmallVec;

use super::blob::Btf;
use super::kind::Kind;
use super::types::Type;
use crate::util::TypeId;

/// Maximum depth of structs and arrays (`MAX_RESOLVE_DEPTH`) and maximum number of fields
/// in a value (`BTF_FIELDS_MAX`).
const MAX_DEPTH: u32 = 32;
const MAX_FIELDS: usize = 11;
/// Prefix of the tag on a list head or tree root that names the element type.
const CONTAINS: &str = "contains:";

/// Kind of a special field (`enum btf_field_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// A kptr that is not a reference.
    KptrUnref,
    /// A kptr that is a reference.
    KptrRef,
    /// A kptr to per-CPU memory.
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
    /// The kind for a struct of this name.
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

    /// The kind for a pointer with this tag.
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

    /// Its size in bytes (`btf_field_type_size`).
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::SpinLock | Self::ResSpinLock | Self::Refcount => 4,
            Self::TaskWork | Self::KptrUnref | Self::KptrRef | Self::KptrPercpu | Self::Uptr => 8,
            Self::Timer | Self::Workqueue | Self::ListHead | Self::RbRoot => 16,
            Self::ListNode => 24,
            Self::RbNode => 32,
        }
    }

    /// Its alignment (`btf_field_type_align`).
    const fn align(self) -> u32 {
        match self {
            Self::SpinLock | Self::ResSpinLock | Self::Refcount => 4,
            _ => 8,
        }
    }

    /// Whether a struct may have only one field of this kind.
    const fn is_unique(self) -> bool {
        matches!(
            self,
            Self::SpinLock | Self::ResSpinLock | Self::Timer | Self::Workqueue | Self::TaskWork
        )
    }

    /// Whether it may be an array element.
    const fn repeats(self) -> bool {
        self.is_pointer() || self.is_root()
    }

    /// Whether it is a list head or a tree root.
    pub(crate) const fn is_root(self) -> bool {
        matches!(self, Self::ListHead | Self::RbRoot)
    }

    /// Whether it is a node of a list or a tree.
    pub(crate) const fn is_node(self) -> bool {
        matches!(self, Self::ListNode | Self::RbNode)
    }

    /// The kind of the nodes of a list head or tree root, with their structure's name.
    const fn node(self) -> Option<(Self, &'static str)> {
        match self {
            Self::ListHead => Some((Self::ListNode, "bpf_list_node")),
            Self::RbRoot => Some((Self::RbNode, "bpf_rb_node")),
            _ => None,
        }
    }

    /// Whether it is a pointer that programs may load.
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
#[non_exhaustive]
pub struct SpecialField {
    /// Its kind.
    pub kind: FieldKind,
    /// Offset in bytes from the start of the value.
    pub off: u32,
    /// Size in bytes.
    pub size: u32,
    /// The struct that a pointer points to, or that is an element of a list or tree, in the
    /// same BTF; `void` for other kinds.
    pub target: TypeId,
    /// For a list head or tree root, the offset of the node in an element.
    pub node: u32,
}

impl SpecialField {
    /// A non-pointer field at this offset.
    #[must_use]
    pub const fn new(kind: FieldKind, off: u32) -> Self {
        Self {
            kind,
            off,
            size: kind.size(),
            target: TypeId(0),
            node: 0,
        }
    }

    /// Its byte range in the value.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        let start = self.off as usize;
        start..start.saturating_add(self.size as usize)
    }
}

/// The special fields of a value, by ascending offset (`struct btf_record`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialFields(SmallVec<[SpecialField; 2]>);

impl SpecialFields {
    /// The fields of an object that a program allocates. The kernel looks only into structs
    /// that have such a field as a member, not just in a nested struct or an array
    /// (`btf_parse_struct_metas`).
    #[must_use]
    pub fn of(btf: &Btf, object: TypeId) -> Self {
        if !has_own_fields(btf, object) {
            return Self::default();
        }
        Self::search(btf, object, is_in_objects).unwrap_or_default()
    }

    /// Whether the kernel refuses the whole BTF because of this struct's fields.
    pub(super) fn are_refused(btf: &Btf, object: TypeId) -> bool {
        has_own_fields(btf, object) && Self::search(btf, object, is_in_objects).is_err()
    }

    /// The fields of a map's value.
    #[must_use]
    pub fn of_map_value(btf: &Btf, value: TypeId) -> Self {
        Self::search(btf, value, |kind| !kind.is_node()).unwrap_or_default()
    }

    fn search(btf: &Btf, ty: TypeId, counts: fn(FieldKind) -> bool) -> Result<Self, Refused> {
        let mut search = Search {
            btf,
            counts,
            found: Found::new(),
        };
        let whole = btf.resolve(ty).map_err(|_| Refused)?;
        search.within(whole, 0, 0)?;
        search.check()?;
        Ok(search.found.into_iter().collect())
    }

    /// The field of this kind; if there are several, the first one.
    #[must_use]
    pub fn find(&self, kind: FieldKind) -> Option<&SpecialField> {
        self.iter().find(|field| field.kind == kind)
    }

    /// The byte ranges outside of the fields, for a value of `size` bytes.
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

    /// Keeps the fields for which `keep` returns true.
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

/// Whether objects that a program allocates may have a field of this kind.
const fn is_in_objects(kind: FieldKind) -> bool {
    !matches!(
        kind,
        FieldKind::Timer | FieldKind::Workqueue | FieldKind::TaskWork | FieldKind::Uptr
    )
}

/// Whether a struct has a member that is a special field of objects.
fn has_own_fields(btf: &Btf, object: TypeId) -> bool {
    let is_field = |id| {
        let Some(ty) = btf.get(id) else { return false };
        if ty.kind() == Kind::Struct {
            return FieldKind::of_struct(ty.name()).is_some_and(is_in_objects);
        }
        let search = Search {
            btf,
            counts: is_in_objects,
            found: Found::new(),
        };
        matches!(search.pointer(ty), Ok(Some(_)))
    };
    let ty = btf.resolve(object).ok();
    ty.is_some_and(|ty| ty.kind() == Kind::Struct && ty.members().any(|member| is_field(member.ty)))
}

/// Fields found so far.
type Found = SmallVec<[SpecialField; 2]>;

/// The kernel rejects the type's fields.
struct Refused;

/// A search in progress.
struct Search<'a> {
    btf: &'a Btf,
    /// The kinds that are valid here.
    counts: fn(FieldKind) -> bool,
    found: Found,
}

/// A struct member or a section's variable that may be or contain special fields.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    /// The struct or the variable; `member` is the member's index.
    owner: Type<'a>,
    member: Option<u32>,
    ty: TypeId,
    off: u32,
    /// The variable's size in bytes.
    size: Option<u32>,
}

impl<'a> Search<'a> {
    /// Adds the fields of a struct, or of a section of global data, that begins at `base`.
    fn within(&mut self, ty: Type<'a>, base: u32, level: u32) -> Result<(), Refused> {
        if level >= MAX_DEPTH {
            return Err(Refused);
        }
        let mut candidates: SmallVec<[Candidate<'a>; 8]> = SmallVec::new();
        match ty.kind() {
            Kind::Struct => {
                for (number, member) in (0..).zip(ty.members()) {
                    candidates.push(Candidate {
                        owner: ty,
                        member: Some(number),
                        ty: member.ty,
                        off: whole_bytes(member.bit_offset)?,
                        size: None,
                    });
                }
            }
            Kind::Datasec => {
                for variable in ty.variables() {
                    let owner = self.btf.get(variable.ty).ok_or(Refused)?;
                    candidates.push(Candidate {
                        owner,
                        member: None,
                        ty: owner.target_id().unwrap_or_default(),
                        off: variable.offset,
                        size: Some(variable.size).filter(|size| *size != 0),
                    });
                }
            }
            _ => return Err(Refused),
        }
        let mut seen = SmallVec::new();
        for candidate in candidates {
            self.at(candidate, base, level, &mut seen)?;
        }
        Ok(())
    }

    /// Adds the fields of one member or variable (`btf_find_field_one`).
    fn at(
        &mut self,
        candidate: Candidate<'a>,
        base: u32,
        level: u32,
        seen: &mut SmallVec<[FieldKind; 4]>,
    ) -> Result<(), Refused> {
        let (ty, count) = self.element(candidate.ty)?;
        if count == 0 {
            return Ok(());
        }
        let fits = |size: u32| {
            candidate
                .size
                .is_none_or(|all| all == size.wrapping_mul(count))
        };
        let off = base.saturating_add(candidate.off);
        let counts = self.counts;
        let named = FieldKind::of_struct(ty.name()).filter(|kind| counts(*kind));
        if let Some(kind) = named.filter(|kind| kind.is_unique()) {
            if seen.contains(&kind) {
                return Err(Refused);
            }
            seen.push(kind);
        }
        if named.is_none() && ty.kind() == Kind::Struct {
            let size = ty.size().unwrap_or_default();
            if !fits(size) {
                return Ok(());
            }
            let first = self.found.len();
            self.within(ty, off, level + 1)?;
            return self.repeat(first, count, size);
        }
        let (size, align) = named.map_or((8, 8), |kind| (kind.size(), kind.align()));
        if !fits(size) || !candidate.off.is_multiple_of(align) {
            return Ok(());
        }
        let kind = match named {
            Some(kind) if ty.kind() != Kind::Struct || ty.size() != Some(kind.size()) => None,
            Some(kind) => {
                let (target, node) = match kind.node() {
                    Some(_) => self.elements(candidate, kind)?,
                    None => (TypeId(0), 0),
                };
                Some((kind, target, node))
            }
            None => self.pointer(ty)?.map(|(kind, target)| (kind, target, 0)),
        };
        let Some((kind, target, node)) = kind else {
            return Ok(());
        };
        let first = self.found.len();
        self.found.push(SpecialField {
            kind,
            off,
            size,
            target,
            node,
        });
        self.repeat(first, count, size)
    }

    /// The element type and the number of elements of an array; any other type counts as
    /// one element.
    fn element(&self, id: TypeId) -> Result<(Type<'a>, u32), Refused> {
        let mut count = 1u32;
        let mut ty = self.btf.get(id).ok_or(Refused)?;
        for _ in 0..MAX_DEPTH {
            let Some(array) = ty.array() else {
                return Ok((ty, count));
            };
            count = count.wrapping_mul(array.len);
            ty = self.btf.get(array.element).ok_or(Refused)?;
        }
        Err(Refused)
    }

    /// Repeats the fields from index `first` on for each further element
    /// (`btf_repeat_fields`).
    fn repeat(&mut self, first: usize, count: u32, size: u32) -> Result<(), Refused> {
        let once: Found = self.found.iter().skip(first).copied().collect();
        if once.is_empty() {
            return Ok(());
        }
        if count > 1 && !once.iter().all(|field| field.kind.repeats()) {
            return Err(Refused);
        }
        let all = usize::try_from(count)
            .ok()
            .and_then(|count| once.len().checked_mul(count));
        if all
            .and_then(|all| all.checked_add(first))
            .is_none_or(|all| all > MAX_FIELDS)
        {
            return Err(Refused);
        }
        for number in 1..count {
            let shift = number.saturating_mul(size);
            self.found.extend(once.iter().map(|field| SpecialField {
                off: field.off.saturating_add(shift),
                ..*field
            }));
        }
        Ok(())
    }

    /// The kind and target of a tagged pointer, if it is a special field (`btf_find_kptr`).
    fn pointer(&self, mut ty: Type<'a>) -> Result<Option<(FieldKind, TypeId)>, Refused> {
        let next = |ty: Type<'a>| ty.target_id().and_then(|id| self.btf.get(id));
        if ty.kind() == Kind::Volatile {
            ty = next(ty).ok_or(Refused)?;
        }
        let tag = next(ty).filter(|target| ty.kind() == Kind::Ptr && is_tag(*target));
        let Some(tag) = tag else { return Ok(None) };
        if next(tag).is_some_and(|inner| inner.kind() == Kind::TypeTag) {
            return Err(Refused);
        }
        let kind = FieldKind::of_tag(tag.name()).ok_or(Refused)?;
        if !(self.counts)(kind) {
            return Ok(None);
        }
        let object = tag.target_id().and_then(|id| self.btf.resolve(id).ok());
        match object {
            Some(object) if object.kind() == Kind::Struct => Ok(Some((kind, object.id()))),
            _ => Err(Refused),
        }
    }

    /// The element type of a list head or tree root, and the offset of its node: exactly one
    /// `contains:` tag names the struct and its member (`btf_find_graph_root`,
    /// `btf_parse_graph_root`).
    fn elements(
        &self,
        candidate: Candidate<'a>,
        root: FieldKind,
    ) -> Result<(TypeId, u32), Refused> {
        let mut tags = self
            .btf
            .decl_tags(candidate.owner.id())
            .filter(|ty| ty.component() == candidate.member)
            .filter_map(|ty| ty.name().strip_prefix(CONTAINS));
        let (Some(text), None) = (tags.next(), tags.next()) else {
            return Err(Refused);
        };
        let (name, node) = text.split_once(':').ok_or(Refused)?;
        let element = self.btf.find(name, Kind::Struct).ok_or(Refused)?;
        let (kind, structure) = root.node().ok_or(Refused)?;
        let mut members = element.members().filter(|member| member.name == node);
        let (Some(member), None) = (members.next(), members.next()) else {
            return Err(Refused);
        };
        let ty = self.btf.get(member.ty).ok_or(Refused)?;
        let off = whole_bytes(member.bit_offset)?;
        let fits = ty.kind() == Kind::Struct && ty.name() == structure;
        if node.is_empty() || !fits || !off.is_multiple_of(kind.align()) {
            return Err(Refused);
        }
        Ok((element.id(), off))
    }

    /// Whether the fields are compatible with each other.
    fn check(&self) -> Result<(), Refused> {
        let mut end = 0;
        for field in &self.found {
            if field.off < end {
                return Err(Refused);
            }
            end = field.off.saturating_add(field.size);
        }
        let has = |kind| self.found.iter().any(|field| field.kind == kind);
        let (lock, other) = (has(FieldKind::SpinLock), has(FieldKind::ResSpinLock));
        let roots = self.found.iter().any(|field| field.kind.is_root());
        let two_owners = has(FieldKind::ListNode) && has(FieldKind::RbNode);
        if lock && other || roots && !(lock || other) || two_owners && !has(FieldKind::Refcount) {
            return Err(Refused);
        }
        Ok(())
    }
}

/// Whether a type is a tag and not a whole attribute.
fn is_tag(ty: Type<'_>) -> bool {
    ty.kind() == Kind::TypeTag && !ty.kind_flag()
}

/// Converts bits to bytes. Only bitfields have other offsets in C: if there is one, the
/// kernel finds no special fields in the struct.
fn whole_bytes(bits: u32) -> Result<u32, Refused> {
    match bits % 8 {
        0 => Ok(bits / 8),
        _ => Err(Refused),
    }
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

    /// `struct { u32 n; struct bpf_spin_lock lock; struct { struct s __kptr *p[2]; } in; }`
    #[test]
    fn fields_are_found_inside_and_in_arrays() {
        let mut builder = Builder::new();
        let number = builder.int("unsigned int", 4, Encoding::Unsigned);
        let lock = builder.structure("bpf_spin_lock", 4, &[member("val", number, 0)]);
        let object = builder.structure("s", 4, &[member("n", number, 0)]);
        let tag = builder.type_tag("kptr", object, false);
        let pointer = builder.ptr(tag);
        let pointers = builder.array(Array {
            element: pointer,
            index: number,
            len: 2,
        });
        let inside = builder.structure("inside", 16, &[member("p", pointers, 0)]);
        let members = [
            member("n", number, 0),
            member("lock", lock, 4),
            member("in", inside, 8),
        ];
        let value = builder.structure("value", 24, &members);
        let btf = builder.build().unwrap();
        let fields = SpecialFields::of_map_value(&btf, value);
        let found: Vec<_> = fields.iter().map(|f| (f.kind, f.off, f.size)).collect();
        let pointer = |off| (FieldKind::KptrRef, off, 8);
        assert_eq!(
            found,
            [(FieldKind::SpinLock, 4, 4), pointer(8), pointer(16)]
        );
        assert_eq!(fields.gaps(32).collect::<Vec<_>>(), [0..4, 24..32]);
        assert_eq!(fields.find(FieldKind::KptrRef).map(|f| f.off), Some(8));
        assert_eq!(fields.find(FieldKind::Uptr), None);
        let none = SpecialFields::of(&btf, number);
        assert!(none.gaps(4).eq(std::iter::once(0..4)));
    }
}
