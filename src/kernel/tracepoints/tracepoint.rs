//! Tracepoints as data.

use std::fmt;

/// A tracepoint by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tracepoint {
    /// Its group.
    pub group: Group,
    /// Its name.
    pub name: String,
    /// The index of its BTF table in the catalogue; none if it is not in BTF.
    pub(super) table: Option<usize>,
}

/// The group of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// An event in this group.
    Named(String),
    /// Possibly an event, in an unknown group.
    Unknown,
    /// Not an event (`DECLARE_TRACE`): neither perf nor programs of type `tracepoint` can
    /// attach to it.
    NoEvent,
}

impl Group {
    /// The group's name, if known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Unknown | Self::NoEvent => None,
        }
    }
}

impl Tracepoint {
    /// The sections of programs that can attach to it. Those of `tp` get the record, the others
    /// the arguments.
    #[must_use]
    pub fn sections(&self) -> Vec<String> {
        let name = &self.name;
        let event = self.group.name().map(|group| format!("tp/{group}/{name}"));
        let raw = ["raw_tp", "tp_btf"].map(|prefix| format!("{prefix}/{name}"));
        event
            .into_iter()
            .chain(raw.into_iter().filter(|_| self.in_btf()))
            .collect()
    }

    /// Whether it is in BTF, so that programs can attach to the tracepoint itself.
    #[must_use]
    pub const fn in_btf(&self) -> bool {
        self.table.is_some()
    }
}

impl fmt::Display for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.name() {
            Some(group) => write!(f, "{group}:{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// An argument of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Its name; `arg0`, … if the source has none.
    pub name: String,
    /// Its type in C.
    pub c_type: String,
}

/// The fields of an event's record, without the common fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The event's id for `perf_event_open`.
    pub id: Option<u32>,
    /// The event's own fields.
    pub fields: Vec<RecordField>,
    /// The source of the description.
    pub source: DescriptionSource,
}

/// A field of an event's record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordField {
    /// Its name.
    pub name: String,
    /// Its type in C, without the name.
    pub c_type: String,
    /// Type and name as C declares them.
    pub declaration: String,
    /// Offset from the record's start in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Whether it is a signed number; none if unknown.
    pub signed: Option<bool>,
}

/// The source of a tracepoint's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptionSource {
    /// A `format` file in tracefs.
    Format,
    /// The kernel's BTF.
    Btf,
    /// bpflab's table of system calls.
    Syscalls,
}

impl DescriptionSource {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Btf => "btf",
            Self::Syscalls => "syscalls",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_follow_from_where_it_is_known() {
        let mut tracepoint = Tracepoint {
            group: Group::Named("irq".to_owned()),
            name: "softirq_entry".to_owned(),
            table: Some(0),
        };
        let all = [
            "tp/irq/softirq_entry",
            "raw_tp/softirq_entry",
            "tp_btf/softirq_entry",
        ];
        assert_eq!(tracepoint.sections(), all);
        assert_eq!(tracepoint.to_string(), "irq:softirq_entry");
        tracepoint.group = Group::Unknown;
        assert_eq!(tracepoint.sections(), all[1..]);
        assert_eq!(tracepoint.to_string(), "softirq_entry");
        tracepoint.table = None;
        assert!(tracepoint.sections().is_empty());
    }
}
