//! The layout of a tracepoint's record or of another context: named fields, and the offset of
//! data of variable length.

use super::error::EventError;
use crate::spec::tracepoint::{COMMON_FIELDS, EventField, HEADER_SIZE};
use crate::util::nearest_first;
use crate::vm::fields::{Field, FieldValue, Part, Shape, Storage, find};

/// Number of bytes at the start of a tracepoint's context that programs can't read. While
/// programs run, the kernel keeps its pointer to the registers there
/// (`perf_trace_run_bpf_submit`, `kernel/events/core.c`).
pub const HIDDEN: u32 = HEADER_SIZE;

/// The source of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutSource {
    /// The struct of this name in the kernel's BTF.
    Btf(String),
    /// A tracefs `format` file.
    Format,
    /// The table of system calls.
    Syscalls,
    /// The prototype of this function or of the tracepoint's probe in BTF.
    Prototype(String),
    /// Declared by the test.
    Declared,
    /// The table of context structs in [`crate::spec::context`].
    Context,
}

/// The fields of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// `sched/sched_switch` for a tracepoint, the struct's name for a context.
    pub name: String,
    /// The fields in order of offset, with those of the common header (`common_type`, …).
    pub fields: Vec<Field>,
    /// Size of the fixed part of a record in bytes, as `sizeof` counts it.
    pub size: u32,
    /// Offset of data of variable length: `offsetof(…, __data)`.
    pub data_offset: u32,
    /// Number of bytes at the start that programs can't read.
    pub hidden: u32,
    /// Size of the context if it is not the record: programs on system-call tracepoints get
    /// another struct.
    pub context_size: Option<u32>,
    /// Number of bytes that a program may read at constant offsets. A program that reads more
    /// loads, but the kernel refuses to attach it (`trace_event_get_offsets`,
    /// `kernel/trace/trace_events.c`).
    pub readable: u32,
    /// The source of the layout.
    pub source: LayoutSource,
    /// Default values of fields: the number of a system call.
    pub defaults: Vec<(String, FieldValue)>,
    /// Offsets of pointers whose references the program gets, and has to release or return:
    /// arguments of a struct_ops member whose names end with `__ref` in the kernel.
    pub references: Vec<u32>,
}

impl Layout {
    /// Lays out fields that have their offsets: the fixed part ends with the last field,
    /// padded to the strictest alignment.
    pub(super) fn of_fields(name: String, fields: Vec<Field>, source: LayoutSource) -> Self {
        let end = fields.iter().map(Field::end).max().unwrap_or(0);
        let align = fields.iter().map(field_align).max().unwrap_or(1);
        let last = fields.last().map_or(0, Field::end);
        Self {
            name,
            size: end.checked_next_multiple_of(align.max(1)).unwrap_or(end),
            data_offset: end,
            hidden: HIDDEN,
            context_size: None,
            readable: last,
            fields,
            source,
            defaults: Vec::new(),
            references: Vec::new(),
        }
    }

    /// The fields without those of the common header.
    pub fn own_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| !is_common(field))
    }

    /// The values of the fields in a context, without those of the common header: what
    /// [`Event::set`](super::Event::set) takes. Fields that the bytes do not hold are missing,
    /// as are bytes of unknown type, and second names of the same bytes (`args` of a system
    /// call).
    #[must_use]
    pub fn values(&self, context: &[u8]) -> Vec<(String, FieldValue)> {
        let mut values = Vec::new();
        let mut end = 0;
        for field in self.own_fields() {
            if field.offset >= end {
                field.values(context, &mut values);
                end = field.end();
            }
        }
        values
    }

    /// Whether records have data after the fixed part.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.fields
            .iter()
            .any(|field| field.storage != Storage::Inline)
    }

    /// Whether there is a field of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.is_named(name))
    }

    /// The offset of the field of this name.
    #[must_use]
    pub fn offset(&self, name: &str) -> Option<u32> {
        let field = self.fields.iter().find(|field| field.is_named(name));
        field.map(|field| field.offset)
    }

    /// The field that a name or path begins with, and the part that the path refers to.
    pub(super) fn part(&self, path: &str) -> Result<Part<'_>, EventError> {
        find(&self.fields, path.trim()).ok_or_else(|| {
            let (common, own): (Vec<_>, Vec<_>) = self.fields.iter().partition(|f| is_common(f));
            let mut known = nearest_first(path, own.into_iter().flat_map(shown).collect());
            known.extend(common.into_iter().flat_map(shown));
            EventError::NoField {
                event: self.name.clone(),
                field: path.to_owned(),
                known,
            }
        })
    }
}

/// The alignment of the bytes at a field's offset.
fn field_align(field: &Field) -> u32 {
    match field.storage {
        Storage::Inline => field.shape.align(),
        Storage::DataLoc | Storage::RelLoc => 4,
    }
}

/// Whether the field is in the common header.
pub(super) fn is_common(field: &Field) -> bool {
    field.offset < HIDDEN && (field.name.starts_with("common_") || field.name == "ent")
}

/// A field's names as errors list them, with the length of an array: `comm[16]`, `count
/// (args[2])`.
fn shown(field: &Field) -> Option<String> {
    if field.name.starts_with("__pad") {
        return None;
    }
    let mut text = field.name.clone();
    if let (Storage::Inline, Shape::Array { count, .. }) = (field.storage, &field.shape) {
        text.push_str(&format!("[{count}]"));
    }
    if !field.aliases.is_empty() {
        text.push_str(&format!(" ({})", field.aliases.join(", ")));
    }
    Some(text)
}

/// The common header of all records.
pub(super) fn common_fields() -> Vec<Field> {
    COMMON_FIELDS.iter().map(of_table).collect()
}

/// The field of a row in the table of kernel records.
pub(super) fn of_table(field: &EventField) -> Field {
    let shape = match (field.c_type.contains('*'), field.count) {
        (true, _) => Shape::Pointer,
        (false, 0 | 1) => Shape::number(field.size, field.signed),
        (false, count) => Shape::number(field.size / count, field.signed).times(count),
    };
    Field::inline(field.name, field.offset, shape).of_c_type(field.c_type)
}
