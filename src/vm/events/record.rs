//! The bytes of a tracepoint's record: a fixed part, followed by data of variable length
//! (`include/trace/perf.h`, `include/trace/stages/stage5_get_offsets.h`).

use super::error::EventError;
use super::layout::Layout;
use crate::spec::limits::MAX_TRACE_SIZE;
use crate::vm::fields::{Field, FieldValue, Shape, Storage, ValueProblem, elements};

/// The values of a layout's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values {
    /// The fixed part; data locations are filled in by [`Values::record`].
    pub fixed: Vec<u8>,
    /// The data of each field of variable length, in the order of the fields.
    dynamic: Vec<Vec<u8>>,
}

impl Values {
    /// All fields zero, strings empty.
    pub fn new(layout: &Layout) -> Self {
        let dynamic = dynamic_fields(layout).map(|field| match field.shape {
            // BTF does not give the type (opaque); nearly all such fields are strings.
            Shape::Char | Shape::Opaque { .. } => vec![0],
            _ => Vec::new(),
        });
        let mut values = Self {
            fixed: vec![0; layout.size as usize],
            dynamic: dynamic.collect(),
        };
        for (field, value) in &layout.defaults {
            // A default that does not fit its own layout stays zero.
            let _ = values.set(layout, field, value);
        }
        values
    }

    /// Sets a field or a part of it.
    pub fn set(
        &mut self,
        layout: &Layout,
        path: &str,
        value: &FieldValue,
    ) -> Result<(), EventError> {
        let part = layout.part(path)?;
        let error = |problem| EventError::Value {
            event: layout.name.clone(),
            field: path.trim().to_owned(),
            problem,
        };
        if part.field.storage == Storage::Inline {
            if part.shape == &part.field.shape {
                part.field.check(value).map_err(error)?;
            }
            let at = part.offset as usize;
            let out = at
                .checked_add(part.shape.size() as usize)
                .and_then(|end| self.fixed.get_mut(at..end))
                .ok_or_else(|| error(ValueProblem::Fixed("it lies outside of the context")))?;
            return part.shape.encode(value, out).map_err(error);
        }
        let bytes = elements(part.shape, value).map_err(error)?;
        let index = dynamic_fields(layout).position(|field| std::ptr::eq(field, part.field));
        let Some(index) = index.filter(|index| *index < self.dynamic.len()) else {
            return Err(error(ValueProblem::Fixed("it lies outside of the record")));
        };
        let all: usize = self.dynamic.iter().map(Vec::len).sum();
        let others = all - self.dynamic.get(index).map_or(0, Vec::len);
        let room = (MAX_TRACE_SIZE - 4).saturating_sub(layout.size as usize + others);
        if bytes.len() > room {
            return Err(error(ValueProblem::TooLong {
                room,
                len: bytes.len(),
                unit: "bytes",
            }));
        }
        if let Some(slot) = self.dynamic.get_mut(index) {
            *slot = bytes;
        }
        Ok(())
    }

    /// The record as the kernel writes it to the perf buffer.
    pub fn record(&self, layout: &Layout) -> Vec<u8> {
        let data: usize = self.dynamic.iter().map(Vec::len).sum();
        let len = record_len(layout, data).max(self.fixed.len());
        let mut record = Vec::with_capacity(len);
        record.extend_from_slice(&self.fixed);
        record.resize(len, 0);
        let mut at = layout.data_offset as usize;
        for (field, bytes) in dynamic_fields(layout).zip(&self.dynamic) {
            let base = match field.storage {
                Storage::RelLoc => field.end() as usize,
                Storage::DataLoc | Storage::Inline => 0,
            };
            // Both halves fit 16 bits: a record has at most 8192 bytes.
            let half = |number: usize| u32::try_from(number & 0xffff).unwrap_or(0);
            let location = half(bytes.len()) << 16 | half(at.saturating_sub(base));
            put(&mut record, field.offset as usize, &location.to_le_bytes());
            put(&mut record, at, bytes);
            at += bytes.len();
        }
        record
    }

    /// The context for programs: the bytes that belong to the kernel are zero; for a
    /// system-call tracepoint the struct that replaces the record.
    pub fn context(&self, layout: &Layout) -> Vec<u8> {
        let mut bytes = match layout.context_size {
            Some(size) => {
                let inline = dynamic_fields(layout).map(|field| field.offset as usize);
                let end = inline.min().unwrap_or(self.fixed.len());
                let seen = self.fixed.get(..end).unwrap_or(&self.fixed);
                let mut bytes = Vec::with_capacity(seen.len().max(size as usize));
                bytes.extend_from_slice(seen);
                bytes.resize(size as usize, 0);
                bytes
            }
            None => self.record(layout),
        };
        let hidden = (layout.hidden as usize).min(bytes.len());
        if let Some(head) = bytes.get_mut(..hidden) {
            head.fill(0);
        }
        bytes
    }
}

/// Length of a record: together with the `u32` size before it in the perf buffer it is a
/// multiple of 8.
fn record_len(layout: &Layout, data: usize) -> usize {
    (layout.size as usize + data + 4).next_multiple_of(8) - 4
}

fn dynamic_fields(layout: &Layout) -> impl Iterator<Item = &Field> {
    let fields = layout.fields.iter();
    fields.filter(|field| field.storage != Storage::Inline)
}

fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = into.get_mut(at..at.saturating_add(bytes.len())) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::declare::Scalar;
    use super::*;

    fn layout() -> Layout {
        Layout::declare("app/x")
            .string("first")
            .field("n", Scalar::U64)
            .rel_dynamic_array("second", Scalar::U32)
            .build()
            .unwrap()
    }

    #[test]
    fn data_follows_the_last_field_and_the_size_is_perfs() {
        let layout = layout();
        // Common header 8 bytes, first at 8, n at 16, second at 24; sizeof is 32, __data at
        // 28.
        assert_eq!((layout.size, layout.data_offset), (32, 28));
        let mut values = Values::new(&layout);
        values.set(&layout, "first", &"abc".into()).unwrap();
        values.set(&layout, "second", &[1u32, 2].into()).unwrap();
        let record = values.record(&layout);
        let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        assert_eq!(word(8), 4 << 16 | 28);
        assert_eq!(&record[28..32], b"abc\0");
        assert_eq!(word(24), 8 << 16 | 4, "counted from byte 28");
        assert_eq!((word(32), word(36)), (1, 2));
        assert_eq!(record.len(), 44, "align(32 + 12 + 4, 8) - 4");
    }

    #[test]
    fn what_is_not_set_is_zero_and_strings_are_empty() {
        let layout = layout();
        let record = Values::new(&layout).record(&layout);
        assert_eq!(&record[8..12], (1u32 << 16 | 28).to_le_bytes());
        assert_eq!(&record[24..28], 1u32.to_le_bytes());
        assert_eq!(record.len(), 36);
    }

    #[test]
    fn a_record_has_at_most_8192_bytes() {
        let layout = layout();
        let mut values = Values::new(&layout);
        let problem = values
            .set(&layout, "first", &"x".repeat(9000).into())
            .unwrap_err();
        assert_eq!(
            problem.to_string(),
            "app/x: field `first` has room for 8156 bytes, but 9001 were given; \
             values are not truncated"
        );
        values
            .set(&layout, "first", &vec![1u8; 8156].into())
            .unwrap();
        assert_eq!(values.record(&layout).len(), 8188);
        assert!(values.set(&layout, "second", &[1u32].into()).is_err());
    }
}
