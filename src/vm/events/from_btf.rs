//! Layouts from the kernel's BTF: records of tracepoints from the structs
//! `trace_event_raw_<class>`, arguments of raw tracepoints and of functions from prototypes.
//!
//! A tracepoint made by `TRACE_EVENT` is its own class. A tracepoint made by `DEFINE_EVENT`
//! shares the class of a `DECLARE_EVENT_CLASS`, and BTF does not say which. But the class has
//! a function `__bpf_trace_<class>` (`include/trace/bpf_probe.h`) with the same prototype as
//! the tracepoint's `__probestub_<name>` (`include/linux/tracepoint.h`), parameter names
//! included. If several classes share a prototype, classes that are not tracepoints
//! themselves are preferred, then [`CLASSES`] decides.
//! no tracepoints themselves are preferred, then [`CLASSES`] decides.

use super::error::EventError;
use super::layout::{Layout, LayoutSource};
use crate::btf::{Btf, Encoding, Kind, Type};
use crate::program::Program;
use crate::spec::limits::{MAX_FUNC_ARGS, MAX_TRACE_SIZE};
use crate::spec::{ProgType, struct_ops};
use crate::util::TypeId;
use crate::vm::fields::{Field, Points, Shape, Storage};

/// Ambiguities in the BTF of 6.18: classes with equal prototypes and different records, and
/// the tracepoints that belong to them. A trailing `*` matches any rest. The first row
/// applies whose class is in BTF with a matching prototype.
const CLASSES: &[(&str, &[&str])] = &[
    (
        "sched_wakeup_template",
        &["sched_wakeup", "sched_wakeup_new", "sched_waking"],
    ),
    (
        "sched_process_template",
        &[
            "sched_process_free",
            "sched_process_exit",
            "sched_wait_task",
        ],
    ),
    ("net_dev_rx_verbose_template", &["napi_gro_*", "netif_r*"]),
    ("tcp_event_skb", &["tcp_bad_csum"]),
    (
        "writeback_inode_template",
        &[
            "sb_*_inode_writeback",
            "writeback_dirty_inode_enqueue",
            "writeback_lazytime*",
        ],
    ),
    (
        "btrfs_delayed_data_ref",
        &["add_delayed_data_ref", "run_delayed_data_ref"],
    ),
    (
        "btrfs_delayed_tree_ref",
        &["add_delayed_tree_ref", "run_delayed_tree_ref"],
    ),
    ("ext4__truncate", &["ext4_truncate_*"]),
    ("hugetlbfs__inode", &["hugetlbfs_*"]),
    ("xfs_attr_class", &["xfs_attr_*"]),
    ("xfs_da_class", &["xfs_da_*", "xfs_dir2_*"]),
    ("xfs_defer_class", &["xfs_defer_*"]),
    ("xfs_trans_class", &["xfs_trans_*"]),
    ("xfs_ag_inode_class", &["xfs_iunlink*"]),
    ("xfs_inode_class", &["xfs_*"]),
];

/// The most members that the shape of one field may have in total: nested structs in BTF can
/// multiply.
const MAX_MEMBERS: usize = 4096;
/// The deepest nesting of structs and arrays in one field.
const MAX_DEPTH: usize = 16;
/// Modifiers between a pointer and its target.
const MAX_MODIFIERS: usize = 16;
impl Layout {
    /// The record of tracepoint `group/name`. BTF has no groups: `group` only becomes part of
    /// the layout's name. System-call tracepoints are not in BTF; see [`Layout::of_syscall`].
    ///
    /// # Errors
    /// [`EventError::NoLayout`] with everything that was tried.
    pub fn from_btf(btf: &Btf, group: &str, name: &str) -> Result<Self, EventError> {
        let full = format!("{group}/{name}");
        if group == "ftrace" {
            let tried = vec!["programs can't attach to ftrace's own records".into()];
            return Err(EventError::NoLayout { event: full, tried });
        }
        match record_struct(btf, name) {
            Ok(record) => {
                let layout = of_struct(btf, record, full);
                if layout.size as usize > MAX_TRACE_SIZE {
                    let tried = vec![format!(
                        "struct {} has {} bytes, more than a record's {MAX_TRACE_SIZE}",
                        record.name(),
                        layout.size
                    )];
                    return Err(EventError::NoLayout {
                        event: layout.name,
                        tried,
                    });
                }
                Ok(layout)
            }
            Err(tried) => Err(EventError::NoLayout { event: full, tried }),
        }
    }

    /// The record of tracepoint `name` (`group/name`) as a program attached to it declares
    /// it: the struct that its parameter points to. It is the only source if no kernel BTF
    /// has the tracepoint, and has just the fields that the program's author declared.
    ///
    /// `None` if the program has another attach target, takes no pointer to a struct (`void
    /// *ctx`), or its struct is larger than a record can be.
    #[must_use]
    pub fn declared_by(program: &Program, name: &str) -> Option<Self> {
        let is_there = program.prog_type == ProgType::Tracepoint
            && program.attach_target.as_deref() == Some(name);
        let btf = program.btf.as_ref().filter(|_| is_there)?;
        let main = program.func_info.iter().find(|info| info.insn_off == 0)?;
        Self::of_parameter(btf, main.ty, name)
    }

    /// The struct that the first parameter of a function points to.
    fn of_parameter(btf: &Btf, function: TypeId, name: &str) -> Option<Self> {
        let proto = prototype(btf.get(function)?)?;
        let pointer = btf.resolve(proto.params().next()?.ty).ok()?;
        let pointer = (pointer.kind() == Kind::Ptr).then_some(pointer)?;
        let record = btf.resolve(pointer.target_id()?).ok()?;
        if record.kind() != Kind::Struct {
            return None;
        }
        let layout = of_struct(btf, record, name.to_owned());
        (layout.size as usize <= MAX_TRACE_SIZE).then_some(layout)
    }

    /// The arguments of raw tracepoint `name`, 8 bytes each, for `raw_tp` and `tp_btf`
    /// programs. Narrower arguments are zero-extended (`CAST_TO_U64`,
    /// `include/trace/bpf_probe.h`).
    ///
    /// # Errors
    /// [`EventError::NoLayout`] if BTF has no such tracepoint.
    pub fn of_raw_tracepoint(btf: &Btf, name: &str) -> Result<Self, EventError> {
        let Some((proto, source)) = tracepoint_prototype(btf, name) else {
            let tried = vec![
                format!("no function __probestub_{name} or __traceiter_{name} in BTF"),
                format!("no typedef btf_trace_{name} in BTF"),
                "is it a tracepoint of a module, or is the name the group's?".to_owned(),
            ];
            return Err(EventError::NoLayout {
                event: name.to_owned(),
                tried,
            });
        };
        // The first parameter is the probe's own data, hidden from programs.
        let fields = arguments(btf, proto.params().skip(1).map(|p| (p.name, p.ty)));
        Ok(args_layout(name.to_owned(), fields, source))
    }

    /// The arguments of a raw tracepoint without BTF: `args[0]`, … as 8-byte numbers, at most
    /// 12.
    #[must_use]
    pub fn of_arguments(name: impl Into<String>, count: usize) -> Self {
        let count = u32::try_from(count.min(MAX_FUNC_ARGS)).unwrap_or(0);
        let field = |index: u32| {
            Field::inline(format!("arg{index}"), 8 * index, Shape::number(8, false))
                .alias(format!("args[{index}]"))
        };
        let mut layout = args_layout(name.into(), (0..count).map(field).collect(), String::new());
        layout.source = LayoutSource::Declared;
        layout
    }

    /// The context of iterators over `target`: `struct bpf_iter__<target>`; each member takes
    /// 8 bytes.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] if BTF has no such iterator.
    pub fn of_iterator(btf: &Btf, target: &str) -> Result<Self, EventError> {
        let name = format!("bpf_iter__{target}");
        let Some(context) = btf.find(&name, Kind::Struct) else {
            return Err(EventError::NoLayout {
                event: target.to_owned(),
                tried: vec![format!("no struct {name} in BTF")],
            });
        };
        // Members are unions of a pointer and 8 bytes (`__bpf_md_ptr`).
        let slot = |name: &str, at: u32| Field::inline(name, at / 8, Shape::number(8, false));
        let mut fields = Vec::new();
        for member in context.members() {
            let lifted = btf
                .resolve(member.ty)
                .ok()
                .filter(|_| member.name.is_empty());
            match lifted.and_then(|union| union.members().next()) {
                Some(inner) => fields.push(slot(inner.name, member.bit_offset)),
                None => fields.push(slot(member.name, member.bit_offset)),
            }
        }
        Ok(args_layout(target.to_owned(), fields, name))
    }

    /// The arguments of function pointer `member` in struct `name`, followed by its return
    /// value (`ret`). The names of arguments are those of the kernel's stub, without its marks
    /// (`__nullable`, `__ref`).
    ///
    /// # Errors
    /// [`EventError::NoLayout`] if BTF has no such struct or member.
    pub fn of_member(btf: &Btf, name: &str, member: &str) -> Result<Self, EventError> {
        let structure = btf.find(name, Kind::Struct);
        let proto = structure.and_then(|structure| struct_ops::prototype(structure, member));
        let full = format!("{name}.{member}");
        proto.map_or_else(
            || {
                Err(EventError::NoLayout {
                    event: full.clone(),
                    tried: vec![format!(
                        "no function pointer {member} in a struct {name} in BTF"
                    )],
                })
            },
            |proto| {
                // A function pointer's parameters have no names, but those of its stub have.
                let stub = struct_ops::stub(btf, name, member);
                let same = |stub: &Type<'_>| stub.params().len() == proto.params().len();
                let proto = stub.filter(same).unwrap_or(proto);
                let mut layout = of_prototype(btf, proto, full.clone());
                for field in &mut layout.fields {
                    if field.name.ends_with(struct_ops::REFERENCE) {
                        layout.references.push(field.offset);
                    }
                    let marks = [struct_ops::NULLABLE, struct_ops::REFERENCE];
                    let mut plain = marks
                        .iter()
                        .filter_map(|mark| field.name.strip_suffix(mark));
                    if let Some(name) = plain.next().map(str::to_owned) {
                        field.name = name;
                    }
                }
                Ok(layout)
            },
        )
    }

    /// The arguments of kernel function `name` (`fentry`), followed by its return value
    /// (`ret`, for `fexit`). The trampoline saves whole registers: give 8-byte values.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] if BTF has no such function.
    pub fn of_function(btf: &Btf, name: &str) -> Result<Self, EventError> {
        let Some(proto) = btf.find(name, Kind::Func).and_then(prototype) else {
            return Err(EventError::NoLayout {
                event: name.to_owned(),
                tried: vec![format!("no function {name} in BTF")],
            });
        };
        Ok(of_prototype(btf, proto, name.to_owned()))
    }
}

/// The prototype of a tracepoint's probes, and the BTF type that it was found in. The first
/// parameter is the probe's own data. Kernels before 6.4 have only a typedef, without
/// parameter names.
#[must_use]
pub fn tracepoint_prototype<'a>(btf: &'a Btf, name: &str) -> Option<(Type<'a>, String)> {
    let named = ["__probestub_", "__traceiter_"]
        .into_iter()
        .map(|prefix| format!("{prefix}{name}"))
        .find_map(|function| Some((prototype(btf.find(&function, Kind::Func)?)?, function)));
    let unnamed = || {
        let typedef = format!("btf_trace_{name}");
        let pointer = btf.find(&typedef, Kind::Typedef)?.target()?;
        Some((pointer.target()?, typedef))
    };
    named.or_else(unnamed)
}

/// The arguments of a function and its return value.
pub(super) fn of_prototype(btf: &Btf, proto: Type<'_>, name: String) -> Layout {
    let mut fields = arguments(btf, proto.params().map(|p| (p.name, p.ty)));
    let returned = proto.target_id().unwrap_or_default();
    if returned != TypeId(0) {
        let end = slots_end(&fields);
        fields.push(Field::inline("ret", end, Shape::number(8, false)));
    }
    args_layout(name.clone(), fields, name)
}

/// A context of 8-byte slots.
pub(super) fn args_layout(name: String, fields: Vec<Field>, source: String) -> Layout {
    let size = slots_end(&fields);
    Layout {
        name,
        size,
        data_offset: size,
        hidden: 0,
        context_size: Some(size),
        readable: size,
        fields,
        source: LayoutSource::Prototype(source),
        defaults: Vec::new(),
        references: Vec::new(),
    }
}

fn slots_end(fields: &[Field]) -> u32 {
    let end = fields.iter().map(Field::end).max().unwrap_or(0);
    end.next_multiple_of(8)
}

/// One 8-byte slot per argument, two for a struct of more than 8 and up to 16 bytes.
fn arguments<'a>(btf: &Btf, params: impl Iterator<Item = (&'a str, TypeId)>) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut offset = 0;
    for (index, (name, ty)) in params.take(MAX_FUNC_ARGS).enumerate() {
        let shape = match Shapes::new(btf).shape(ty, 0) {
            shape if (1..=16).contains(&shape.size()) => shape,
            _ => Shape::number(8, false),
        };
        let slots = shape.size().div_ceil(8);
        let (own, aliases) = match name {
            "" => (format!("arg{index}"), vec![]),
            name => (name.to_owned(), vec![format!("arg{index}")]),
        };
        let mut field = Field::inline(own, offset, shape).alias(format!("args[{index}]"));
        if points_into_user(btf, ty) {
            field.points = Points::IntoUser;
        }
        field.aliases.extend(aliases);
        fields.push(field);
        offset += 8 * slots;
    }
    fields
}

/// Whether a type is a pointer whose target has the tag `user`. Kernels whose compiler does not
/// write the tag don't say it.
fn points_into_user(btf: &Btf, id: TypeId) -> bool {
    let mut ty = match btf.resolve(id) {
        Ok(ty) if ty.kind() == Kind::Ptr => ty.target(),
        _ => None,
    };
    // Longer chains are malformed.
    for _ in 0..MAX_MODIFIERS {
        match ty {
            Some(tag) if tag.kind() == Kind::TypeTag && tag.name() == "user" => return true,
            Some(modifier) if modifier.kind().is_modifier() => ty = modifier.target(),
            _ => return false,
        }
    }
    false
}

pub(super) fn prototype(function: Type<'_>) -> Option<Type<'_>> {
    function.target().filter(|ty| ty.kind() == Kind::FuncProto)
}

/// The struct of a tracepoint's records, or what was tried.
fn record_struct<'a>(btf: &'a Btf, name: &str) -> Result<Type<'a>, Vec<String>> {
    let class_struct = |class: &str| btf.find(&format!("trace_event_raw_{class}"), Kind::Struct);
    if let Some(own) = class_struct(name) {
        return Ok(own);
    }
    let mut tried = vec![format!("no struct trace_event_raw_{name} in BTF")];
    let probe = ["__probestub_", "__traceiter_"]
        .into_iter()
        .find_map(|prefix| prototype(btf.find(&format!("{prefix}{name}"), Kind::Func)?));
    let Some(probe) = probe else {
        tried.push(format!(
            "no function __probestub_{name} or __traceiter_{name} in BTF"
        ));
        tried.push("give its tracefs format file, or declare it".to_owned());
        return Err(tried);
    };
    let classes = |fits: &dyn Fn(Type<'_>) -> bool| -> Vec<(&'a str, Type<'a>)> {
        let mut found = Vec::new();
        for function in btf.types().filter(|ty| ty.kind() == Kind::Func) {
            // Most functions have another prototype, and names take longer to compare.
            if prototype(function).is_some_and(fits)
                && let Some(class) = function.name().strip_prefix("__bpf_trace_")
                && found.iter().all(|(other, _)| *other != class)
                && let Some(record) = class_struct(class)
            {
                found.push((class, record));
            }
        }
        found
    };
    let mut found = classes(&|proto| proto.id() == probe.id());
    if found.is_empty() {
        // Some events name their parameters differently from their class.
        found = classes(&|proto| {
            proto
                .params()
                .map(|p| p.ty)
                .eq(probe.params().map(|p| p.ty))
        });
    }
    if let [(_, first), others @ ..] = &found[..]
        && others.iter().all(|(_, other)| same_members(*first, *other))
    {
        return Ok(*first);
    }
    let mut pure = found.clone();
    pure.retain(|(class, _)| {
        btf.find(&format!("btf_trace_{class}"), Kind::Typedef)
            .is_none()
    });
    if let [(_, first), others @ ..] = &pure[..]
        && others.iter().all(|(_, other)| same_members(*first, *other))
    {
        return Ok(*first);
    }
    let known = CLASSES.iter().find_map(|(class, events)| {
        let (_, record) = found.iter().find(|(found, _)| found == class)?;
        events
            .iter()
            .any(|pattern| matches(pattern, name))
            .then_some(*record)
    });
    known.ok_or_else(|| {
        tried.push(if found.is_empty() {
            "no function __bpf_trace_<class> in BTF has the tracepoint's prototype".to_owned()
        } else {
            let names: Vec<_> = found.iter().map(|(class, _)| *class).collect();
            format!("its prototype fits the classes {}", names.join(", "))
        });
        tried.push("give its tracefs format file, or declare it".to_owned());
        tried
    })
}

/// Whether a name matches a pattern with at most one `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| rest.ends_with(tail)),
        None => pattern == name,
    }
}

/// Whether two structs have the same size and the same members.
fn same_members(a: Type<'_>, b: Type<'_>) -> bool {
    let members = |ty: Type<'_>| -> Vec<(String, TypeId, u32)> {
        ty.members()
            .map(|member| (member.name.to_owned(), member.ty, member.bit_offset))
            .collect()
    };
    a.size() == b.size() && members(a) == members(b)
}

/// The layout of a `trace_event_raw_<class>`.
fn of_struct(btf: &Btf, record: Type<'_>, name: String) -> Layout {
    let mut shapes = Shapes::new(btf);
    let mut fields = Vec::new();
    let mut data_offset = None;
    for mut field in shapes.members(record, 0) {
        if field.name == "__data" {
            data_offset = Some(field.offset);
            continue;
        }
        if field.name == "ent"
            && let Shape::Struct { members, .. } = &field.shape
        {
            for member in members {
                let mut common = member.clone();
                common.name = format!("common_{}", member.name);
                common.offset = common.offset.saturating_add(field.offset);
                fields.push(common);
            }
        }
        for (prefix, storage) in [
            ("__data_loc_", Storage::DataLoc),
            ("__rel_loc_", Storage::RelLoc),
        ] {
            if let Some(plain) = field.name.strip_prefix(prefix)
                && field.shape.size() == 4
            {
                field.storage = storage;
                // BTF has no type for the data after the fixed part.
                field.shape = Shape::Opaque { size: 1 };
                let plain = plain.to_owned();
                field
                    .aliases
                    .push(std::mem::replace(&mut field.name, plain));
                break;
            }
        }
        fields.push(field);
    }
    let mut layout = Layout::of_fields(name, fields, LayoutSource::Btf(record.name().to_owned()));
    layout.size = record.size().unwrap_or(layout.size).max(layout.data_offset);
    if let Some(offset) = data_offset {
        layout.data_offset = offset.min(layout.size);
    }
    layout
}

/// Converts types to shapes, with a limit against malicious BTF.
pub(super) struct Shapes<'a> {
    btf: &'a Btf,
    left: usize,
}

impl<'a> Shapes<'a> {
    pub const fn new(btf: &'a Btf) -> Self {
        Self {
            btf,
            left: MAX_MEMBERS,
        }
    }

    fn shape(&mut self, id: TypeId, depth: usize) -> Shape {
        let size = self.btf.size_of(id).unwrap_or(0);
        let opaque = Shape::Opaque { size };
        let Ok(ty) = self.btf.resolve(id) else {
            return opaque;
        };
        if depth > MAX_DEPTH {
            return opaque;
        }
        match ty.kind() {
            Kind::Int => {
                let encoding = ty.int().map_or(Encoding::Unsigned, |int| int.encoding);
                if size == 1 && (ty.name() == "char" || encoding == Encoding::Char) {
                    return Shape::Char;
                }
                Shape::number(size, encoding == Encoding::Signed)
            }
            Kind::Enum | Kind::Enum64 => Shape::number(size, ty.is_signed_enum()),
            Kind::Ptr => Shape::Pointer,
            Kind::Array => match ty.array() {
                Some(array) => self.shape(array.element, depth + 1).times(array.len),
                None => opaque,
            },
            Kind::Struct | Kind::Union => Shape::Struct {
                size,
                members: self.members(ty, depth),
            },
            _ => opaque,
        }
    }

    /// The members of a struct or union; members of anonymous ones are included.
    fn members(&mut self, ty: Type<'_>, depth: usize) -> Vec<Field> {
        let mut fields = Vec::new();
        for member in ty.members() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let offset = member.bit_offset / 8;
            let shape = match member.bitfield {
                Some(width @ 1..=64) => {
                    let shift = member.bit_offset % 8;
                    let width = u32::from(width);
                    Shape::Bits {
                        size: (shift + width).div_ceil(8),
                        shift,
                        width,
                    }
                }
                _ => self.shape(member.ty, depth + 1),
            };
            match shape {
                Shape::Struct { members, .. } if member.name.is_empty() => {
                    fields.extend(members.into_iter().map(|mut inner| {
                        inner.offset = inner.offset.saturating_add(offset);
                        inner
                    }));
                }
                _ if member.name.is_empty() => {}
                shape => fields.push(Field::inline(member.name, offset, shape)),
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Linkage, Member, Param};

    fn member(
        name: &'static str,
        ty: TypeId,
        bit_offset: u32,
        width: Option<u8>,
    ) -> Member<'static> {
        Member {
            name,
            ty,
            bit_offset,
            bitfield: width,
        }
    }

    /// Classes with one prototype, each with a record of a different size, and events with
    /// that prototype; the classes in `own` are tracepoints themselves.
    fn table(classes: &[&str], own: &[&str], events: &[&str]) -> Btf {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let void = b.ptr(TypeId(0));
        let params = |name| {
            [
                Param {
                    name: "__data",
                    ty: void,
                },
                Param { name, ty: int },
            ]
        };
        let proto = b.prototype(TypeId(0), &params("value"));
        let other = b.prototype(TypeId(0), &params("renamed"));
        for (size, class) in (8u32..).step_by(4).zip(classes) {
            let fields = [member("x", int, 8 * (size - 4), None)];
            b.structure(&format!("trace_event_raw_{class}"), size, &fields);
            b.function(&format!("__bpf_trace_{class}"), proto, Linkage::Static);
        }
        for class in own {
            b.typedef(&format!("btf_trace_{class}"), void);
        }
        for event in events {
            b.function(&format!("__probestub_{event}"), proto, Linkage::Static);
        }
        b.function("__probestub_renamed", other, Linkage::Static);
        b.build().unwrap()
    }

    fn class_of(btf: &Btf, event: &str) -> Result<LayoutSource, String> {
        match Layout::from_btf(btf, "g", event) {
            Ok(layout) => Ok(layout.source),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_class_of_an_event_is_the_one_with_its_prototype() {
        let btf = table(&["a"], &[], &["e"]);
        let a = Ok(LayoutSource::Btf("trace_event_raw_a".into()));
        assert_eq!(class_of(&btf, "a"), a);
        assert_eq!(class_of(&btf, "e"), a);
        assert_eq!(class_of(&btf, "renamed"), a, "by types alone");
        assert_eq!(
            class_of(&btf, "nothing").unwrap_err(),
            "no layout for g/nothing: no struct trace_event_raw_nothing in BTF; \
             no function __probestub_nothing or __traceiter_nothing in BTF; \
             give its tracefs format file, or declare it"
        );
    }

    #[test]
    fn among_several_classes_pure_ones_then_the_table_decide() {
        let btf = table(&["a", "b"], &["b"], &["e"]);
        assert_eq!(
            class_of(&btf, "e"),
            Ok(LayoutSource::Btf("trace_event_raw_a".into()))
        );
        let classes = ["sched_process_template", "sched_wakeup_template"];
        let btf = table(&classes, &[], &["sched_waking", "sched_wait_task", "e"]);
        for (event, class) in [
            ("sched_waking", classes[1]),
            ("sched_wait_task", classes[0]),
        ] {
            let name = format!("trace_event_raw_{class}");
            assert_eq!(class_of(&btf, event), Ok(LayoutSource::Btf(name)));
        }
        let error = class_of(&btf, "e").unwrap_err();
        assert!(error.contains("fits the classes sched_process_template, sched_wakeup_template"));
    }

    #[test]
    fn patterns_have_one_star() {
        assert!(matches("xfs_*", "xfs_a") && matches("sb_*_x", "sb_a_x") && matches("a", "a"));
        assert!(!matches("xfs_*", "ext4_a") && !matches("a", "ab") && !matches("a_*_a", "a_a"));
    }

    #[test]
    fn structs_bits_and_anonymous_members_become_shapes() {
        let mut b = Builder::new();
        let int = b.int("unsigned int", 4, Encoding::Unsigned);
        let char_ = b.int("char", 1, Encoding::Signed);
        let pair = b.structure(
            "pair",
            8,
            &[member("a", int, 0, None), member("b", int, 32, None)],
        );
        let either = b.union(
            "",
            4,
            &[member("u", int, 0, None), member("c", char_, 0, None)],
        );
        let pointer = b.ptr(pair);
        let fields = [
            member("p", pair, 0, None),
            member("", either, 64, None),
            member("low", int, 96, Some(3)),
            member("high", int, 99, Some(5)),
            member("__data_loc_name", int, 128, None),
            member("ptr", pointer, 192, None),
        ];
        b.structure("trace_event_raw_e", 32, &fields);
        let layout = Layout::from_btf(&b.build().unwrap(), "g", "e").unwrap();
        let at = |path| layout.part(path).unwrap().offset;
        assert_eq!(
            (at("p.b"), at("u"), at("c"), at("name"), at("ptr")),
            (4, 8, 8, 16, 24)
        );
        let high = layout.part("high").unwrap();
        assert_eq!(
            high.shape,
            &Shape::Bits {
                size: 1,
                shift: 3,
                width: 5
            }
        );
        assert!(layout.is_dynamic() && layout.size == 32);
    }

    #[test]
    fn arguments_take_slots_of_eight_bytes() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let pair = b.structure("pair", 16, &[]);
        let params = [("", int), ("p", pair), ("last", int)];
        let params = params.map(|(name, ty)| Param { name, ty });
        let proto = b.prototype(int, &params);
        b.function("f", proto, Linkage::Static);
        let btf = b.build().unwrap();
        let layout = Layout::of_function(&btf, "f").unwrap();
        let offsets = ["arg0", "p", "last", "args[2]", "ret"].map(|name| layout.offset(name));
        assert_eq!(offsets, [0, 8, 24, 24, 32].map(Some));
        assert_eq!(layout.size, 40);
        assert!(Layout::of_function(&btf, "g").is_err());
        assert!(
            Layout::of_raw_tracepoint(&btf, "f")
                .unwrap_err()
                .to_string()
                .contains("btf_trace_f")
        );
    }

    #[test]
    fn a_programs_context_is_a_layout() {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let record = [member("ent", int, 0, None), member("vec", int, 64, None)];
        let record = b.structure("my_record", 16, &record);
        let huge = b.structure("huge", u32::MAX, &[]);
        let function = |b: &mut Builder, name, target| {
            let ty = b.ptr(target);
            let proto = b.prototype(int, &[Param { name: "ctx", ty }]);
            b.function(name, proto, Linkage::Global)
        };
        let typed = function(&mut b, "typed", record);
        let of_huge = function(&mut b, "of_huge", huge);
        let untyped = function(&mut b, "untyped", TypeId(0));
        let none = b.prototype(int, &[]);
        let none = b.function("none", none, Linkage::Global);
        let btf = b.build().unwrap();
        let layout = Layout::of_parameter(&btf, typed, "app/e").unwrap();
        assert_eq!((layout.offset("vec"), layout.size), (Some(8), 16));
        assert_eq!(layout.name, "app/e");
        assert_eq!(layout.source, LayoutSource::Btf("my_record".to_owned()));
        for other in [of_huge, untyped, none, int, TypeId(99)] {
            assert_eq!(Layout::of_parameter(&btf, other, "app/e"), None);
        }
    }

    #[test]
    fn a_record_of_gigabytes_is_no_layout() {
        let mut b = Builder::new();
        b.structure("trace_event_raw_e", u32::MAX, &[]);
        let error = Layout::from_btf(&b.build().unwrap(), "g", "e").unwrap_err();
        assert!(error.to_string().contains("4294967295 bytes, more than"));
    }

    #[test]
    fn a_struct_that_multiplies_is_cut_off() {
        let mut b = Builder::new();
        let mut inner = b.int("int", 4, Encoding::Signed);
        for level in 0..12 {
            let names = ["a", "b", "c", "d"];
            let fields = names.map(|name| member(name, inner, 0, None));
            inner = b.structure(&format!("s{level}"), 4, &fields);
        }
        b.structure("trace_event_raw_e", 4, &[member("x", inner, 0, None)]);
        let layout = Layout::from_btf(&b.build().unwrap(), "g", "e").unwrap();
        assert_eq!(layout.part("x.a.a").unwrap().offset, 0);
    }
}
