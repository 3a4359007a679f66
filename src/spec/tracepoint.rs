//! The common fields of all trace event records, and the records of the system call events,
//! which BTF does not describe.

use super::syscalls::Syscall;

/// A field of a trace event's record, as a `format` file describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventField {
    /// Its name.
    pub name: &'static str,
    /// Its type in C, without an array's brackets.
    pub c_type: &'static str,
    /// Its offset in the record, in bytes.
    pub offset: u32,
    /// Its size in bytes; for an array, of the whole array.
    pub size: u32,
    /// Number of elements; 1 unless it is an array.
    pub count: u32,
    /// Whether it is a signed number.
    pub signed: bool,
}

const fn field(
    name: &'static str,
    c_type: &'static str,
    offset: u32,
    size: u32,
    signed: bool,
) -> EventField {
    EventField {
        name,
        c_type,
        offset,
        size,
        count: 1,
        signed,
    }
}

/// Bytes of the record's header (`struct trace_entry`, `include/linux/trace_events.h`). In
/// a program's context these bytes are reserved for the kernel.
pub const HEADER_SIZE: u32 = 8;

/// The header's fields.
pub const COMMON_FIELDS: [EventField; 4] = [
    field("common_type", "unsigned short", 0, 2, false),
    field("common_flags", "unsigned char", 2, 1, false),
    field("common_preempt_count", "unsigned char", 3, 1, false),
    field("common_pid", "int", 4, 4, true),
];

/// The fields after the header of a system call's event: `group` is `syscalls`, with
/// `event` one of `sys_enter_…` and `sys_exit_…`, or `raw_syscalls`, with `sys_enter` or
/// `sys_exit` (`kernel/trace/trace_syscalls.c`, `include/trace/events/syscalls.h`). `None`
/// for any other event.
#[must_use]
pub fn syscall_event(group: &str, event: &str) -> Option<Vec<EventField>> {
    let id = field("id", "long", 8, 8, true);
    let number = field("__syscall_nr", "int", 8, 4, true);
    let result = field("ret", "long", 16, 8, true);
    match (group, event) {
        ("raw_syscalls", "sys_enter") => {
            let args = EventField {
                count: 6,
                ..field("args", "unsigned long", 16, 48, false)
            };
            Some(vec![id, args])
        }
        ("raw_syscalls", "sys_exit") => Some(vec![id, result]),
        ("syscalls", event) => {
            if let Some(name) = event.strip_prefix("sys_exit_") {
                return Syscall::by_name(name).map(|_| vec![number, result]);
            }
            let syscall = Syscall::by_name(event.strip_prefix("sys_enter_")?)?;
            let arguments = syscall
                .arguments()
                .zip((16..).step_by(8))
                .map(|(argument, offset)| field(argument.name, argument.c_type, offset, 8, false));
            Some(std::iter::once(number).chain(arguments).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_fills_eight_bytes() {
        let ends: Vec<_> = COMMON_FIELDS
            .iter()
            .map(|field| field.offset + field.size)
            .collect();
        assert_eq!(ends, [2, 3, 4, HEADER_SIZE]);
    }

    #[test]
    fn arguments_follow_the_number_eight_bytes_each() {
        let fields = syscall_event("syscalls", "sys_enter_write").unwrap();
        let places: Vec<_> = fields
            .iter()
            .map(|field| (field.name, field.offset, field.size))
            .collect();
        assert_eq!(
            places,
            [
                ("__syscall_nr", 8, 4),
                ("fd", 16, 8),
                ("buf", 24, 8),
                ("count", 32, 8)
            ]
        );
        let exit = syscall_event("syscalls", "sys_exit_write").unwrap();
        assert_eq!(
            exit.last()
                .map(|field| (field.name, field.offset, field.signed)),
            Some(("ret", 16, true))
        );
    }

    #[test]
    fn raw_events_have_six_arguments() {
        let fields = syscall_event("raw_syscalls", "sys_enter").unwrap();
        assert_eq!(
            fields
                .last()
                .map(|field| (field.offset, field.size, field.count)),
            Some((16, 48, 6))
        );
        assert!(syscall_event("raw_syscalls", "sys_enter_write").is_none());
        assert!(syscall_event("syscalls", "sys_enter_nothing").is_none());
        assert!(syscall_event("syscalls", "write").is_none());
        assert!(syscall_event("sched", "sys_enter_write").is_none());
    }
}
