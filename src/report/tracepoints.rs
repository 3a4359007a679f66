//! The catalogue of tracepoints, for `bpflab kernel tracepoints`.

use std::fmt;

use serde::Serialize;

use super::table::Table;
use crate::kernel::tracepoints::{Argument, Catalogue, Group, RecordField, Tracepoint};

/// How much of a tracepoint the text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TracepointDetail {
    /// Its name.
    Name,
    /// And its arguments.
    Arguments,
    /// And the fields of its record.
    Fields,
    /// And its number, and the sections of programs that attach to it.
    All,
}

/// A tracepoint. Its fields are keys of `bpflab kernel tracepoints --json`.
#[derive(Debug, Clone, Serialize)]
pub struct TracepointRow {
    /// Group and name, as perf and bpftrace write them; the name alone without a group.
    pub tracepoint: String,
    /// Its group; none if it has none or it is not known.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
    /// Whether it is a trace event, to which perf and programs of type `tracepoint` attach; none if
    /// not known.
    pub is_event: Option<bool>,
    /// Its id for `perf_event_open`.
    pub id: Option<u32>,
    /// Its arguments; none if not known.
    pub arguments: Option<Vec<ArgumentRow>>,
    /// Where the arguments come from: `btf`, `format`, `syscalls`.
    pub arguments_from: Option<&'static str>,
    /// The fields of its records after the common ones; none if not known.
    pub fields: Option<Vec<FieldRow>>,
    /// Where the fields come from.
    pub fields_from: Option<&'static str>,
    /// Sections of programs that attach to it.
    pub sections: Vec<String>,
    #[serde(skip)]
    detail: TracepointDetail,
}

/// An argument of a tracepoint.
#[derive(Debug, Clone, Serialize)]
pub struct ArgumentRow {
    name: String,
    r#type: String,
}

/// A field of an event's record.
#[derive(Debug, Clone, Serialize)]
pub struct FieldRow {
    name: String,
    r#type: String,
    offset: u32,
    size: u32,
    signed: Option<bool>,
    #[serde(skip)]
    declaration: String,
}

impl From<Argument> for ArgumentRow {
    fn from(Argument { name, c_type }: Argument) -> Self {
        Self {
            name,
            r#type: c_type,
        }
    }
}

impl From<RecordField> for FieldRow {
    fn from(field: RecordField) -> Self {
        Self {
            name: field.name,
            r#type: field.c_type,
            offset: field.offset,
            size: field.size,
            signed: field.signed,
            declaration: field.declaration,
        }
    }
}

impl TracepointRow {
    /// The row of a tracepoint of a catalogue, with this much detail.
    #[must_use]
    pub fn new(catalogue: &Catalogue, tracepoint: &Tracepoint, detail: TracepointDetail) -> Self {
        let arguments = (detail >= TracepointDetail::Arguments)
            .then(|| catalogue.arguments(tracepoint))
            .flatten();
        let record = (detail >= TracepointDetail::Fields)
            .then(|| catalogue.record(tracepoint))
            .flatten();
        Self {
            tracepoint: tracepoint.to_string(),
            group: tracepoint.group.name().map(str::to_owned),
            name: tracepoint.name.clone(),
            is_event: match tracepoint.group {
                Group::Named(_) => Some(true),
                Group::NoEvent => Some(false),
                Group::Unknown => None,
            },
            id: record.as_ref().and_then(|record| record.id),
            arguments_from: arguments.as_ref().map(|(_, source)| source.name()),
            arguments: arguments.map(|(all, _)| all.into_iter().map(Into::into).collect()),
            fields_from: record.as_ref().map(|record| record.source.name()),
            fields: record.map(|record| record.fields.into_iter().map(Into::into).collect()),
            sections: tracepoint.sections(),
            detail,
        }
    }

    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tracepoint)?;
        match &self.arguments {
            _ if self.detail == TracepointDetail::Name => {}
            None => f.write_str("  (arguments are not in BTF)")?,
            Some(none) if none.is_empty() => f.write_str("  (no arguments)")?,
            Some(arguments) => {
                for (index, argument) in arguments.iter().enumerate() {
                    let before = if index == 0 { "  " } else { ", " };
                    write!(f, "{before}{}: {}", argument.name, argument.r#type)?;
                }
            }
        }
        if self.is_event == Some(false) && self.detail > TracepointDetail::Name {
            f.write_str("  (no event)")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for TracepointRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heading(f)?;
        if let Some(fields) = self.fields.as_deref().filter(|fields| !fields.is_empty()) {
            let mut table = Table::default().numbers(&[0, 1]);
            table.row(["offset", "size", "field"]);
            for field in fields {
                let FieldRow { offset, size, .. } = field;
                table.row([&offset.to_string(), &size.to_string(), &field.declaration]);
            }
            write!(f, "{table}")?;
        }
        if self.detail == TracepointDetail::All {
            if let Some(id) = self.id {
                writeln!(f, "  id      {id}")?;
            }
            if !self.sections.is_empty() {
                writeln!(f, "  attach  {}", self.sections.join(", "))?;
            }
        }
        Ok(())
    }
}
