//! The events of system calls, which BTF does not describe, from bpflab's table of calls.

use super::tracepoint::{Argument, DescriptionSource, Record, RecordField};
use crate::spec::syscalls::Syscall;
use crate::spec::tracepoint::{EventField, syscall_event};

/// The group of the events.
pub(super) const GROUP: &str = "syscalls";
const ENTER: &str = "sys_enter_";
const EXIT: &str = "sys_exit_";
/// Offset of the arguments, or of the result, in a record.
const ARGUMENTS: u32 = 16;

/// The enter and exit event of a call, if the table has the call.
pub(super) fn events_of(call: &str) -> Option<[String; 2]> {
    Syscall::by_name(call)?;
    Some([ENTER, EXIT].map(|side| format!("{side}{call}")))
}

/// The record of an event of this group, from the table.
pub(super) fn record(name: &str) -> Option<Record> {
    let fields = syscall_event(GROUP, name)?;
    Some(Record {
        id: None,
        fields: fields.iter().map(field).collect(),
        source: DescriptionSource::Syscalls,
    })
}

fn field(field: &EventField) -> RecordField {
    RecordField {
        name: field.name.to_owned(),
        c_type: field.c_type.to_owned(),
        declaration: format!("{} {}", field.c_type, field.name),
        offset: field.offset,
        size: field.size,
        signed: Some(field.signed),
    }
}

/// The call's arguments at its entry, its result at its exit: the fields after the call's
/// number, whatever the record's source. Linux 6.19 puts what arguments point to after them;
/// that is dynamic data, not an argument.
pub(super) fn arguments(record: &Record) -> Vec<Argument> {
    let values = record
        .fields
        .iter()
        .filter(|field| field.offset >= ARGUMENTS && !field.c_type.starts_with("__data_loc"));
    values
        .map(|field| Argument {
            name: field.name.clone(),
            c_type: field.c_type.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_call() {
        let [enter, exit] = events_of("write").unwrap();
        assert_eq!((&*enter, &*exit), ("sys_enter_write", "sys_exit_write"));
        let names = |event: &str| -> Vec<String> {
            let arguments = arguments(&record(event).unwrap()).into_iter();
            arguments
                .map(|argument| format!("{}: {}", argument.name, argument.c_type))
                .collect()
        };
        assert_eq!(
            names(&enter),
            ["fd: unsigned int", "buf: const char *", "count: size_t"]
        );
        assert_eq!(names(&exit), ["ret: long"]);
        assert_eq!(events_of("wirte"), None);
        assert_eq!(record("softirq_entry"), None);
    }
}
