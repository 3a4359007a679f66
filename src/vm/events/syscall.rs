//! The tracepoints of the group `syscalls`, which the kernel generates from the table of
//! system calls (`kernel/trace/trace_syscalls.c`).
//!
//! Programs on them see `struct syscall_tp_t` instead of the perf record
//! (`perf_call_bpf_enter`, `perf_call_bpf_exit`): the number as an `int` at offset 8, then
//! six arguments or the result from offset 16.

use super::error::EventError;
use super::layout::{Layout, LayoutSource, common_fields, of_table};
use crate::btf::Btf;
use crate::spec::context::Arch;
use crate::spec::syscalls::Syscall;
use crate::spec::tracepoint::{EventField, syscall_event};
use crate::util::nearest_first;
use crate::vm::fields::{Field, FieldValue, Shape, Storage};

/// Entry or exit of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// `sys_enter_*`.
    Enter,
    /// `sys_exit_*`.
    Exit,
}

/// The group of these tracepoints.
pub(super) const GROUP: &str = "syscalls";
/// Offset of the first argument and of the result.
pub(super) const ARGS: u32 = 16;
/// The most arguments that a system call has (`SYSCALL_DEFINE_MAXARGS`).
const MAX_ARGS: u32 = 6;

impl Layout {
    /// The layout of `syscalls/sys_enter_<call>` or `syscalls/sys_exit_<call>`, from the
    /// table of system calls. The system call's number on `machine` is filled in.
    ///
    /// Arguments have their names and `args[0]`, …; the number is `__syscall_nr`, `nr` and
    /// `id`; the result is `ret`.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] for a call that is not in the table, with the most similar
    /// names, or that this architecture does not have.
    pub fn of_syscall(name: &str, machine: Arch) -> Result<Self, EventError> {
        let full = format!("{GROUP}/{name}");
        let none = |tried: String| EventError::NoLayout {
            event: full.clone(),
            tried: vec![tried],
        };
        let Some((side, call)) = Side::split(GROUP, name) else {
            return Err(none(
                "the name must be sys_enter_<call> or sys_exit_<call>".into(),
            ));
        };
        let found = Syscall::by_name(call).zip(syscall_event(GROUP, name));
        let Some((syscall, fields)) = found else {
            let names = Syscall::all().map(|syscall| syscall.name.to_owned());
            let near = nearest_first(call, names.collect());
            let near = near.get(..3).unwrap_or_default().join(", ");
            return Err(none(format!(
                "no system call `{call}`; there are {near}, …"
            )));
        };
        let Some(number) = syscall.number(machine) else {
            return Err(none(format!("{machine:?} has no system call `{call}`")));
        };
        let mut layout = side.adapt(Self::of_table(full.clone(), &fields));
        let number = FieldValue::from(number);
        layout.defaults.push(("__syscall_nr".to_owned(), number));
        Ok(layout)
    }

    /// The layout of tracepoint `group/name`: from the table of system calls for the groups
    /// `syscalls` and `raw_syscalls`, else from the kernel's BTF.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] with what was tried and what to do.
    pub fn of_tracepoint(
        group: &str,
        name: &str,
        btf: Option<&Btf>,
        machine: Arch,
    ) -> Result<Self, EventError> {
        if group == GROUP {
            return Self::of_syscall(name, machine);
        }
        if let Some(btf) = btf {
            return Self::from_btf(btf, group, name);
        }
        let full = format!("{group}/{name}");
        match syscall_event(group, name) {
            Some(fields) => Ok(Self::of_table(full, &fields)),
            None => Err(EventError::NoLayout {
                event: full,
                tried: vec![
                    "no kernel BTF at hand".to_owned(),
                    "give a BTF file or the tracepoint's format file, or declare it".to_owned(),
                ],
            }),
        }
    }

    /// A layout of the common header and these fields.
    fn of_table(name: String, own: &[EventField]) -> Self {
        let mut fields = common_fields();
        fields.extend(own.iter().map(of_table));
        let mut layout = Self::of_fields(name, fields, LayoutSource::Syscalls);
        // In the kernel's struct the arguments start at 16, even if there are none.
        layout.size = layout.size.max(ARGS);
        layout.data_offset = layout.size;
        layout
    }
}

impl Side {
    /// Entry or exit, if the tracepoint is in the group `syscalls`.
    pub fn of(group: &str, name: &str) -> Option<Self> {
        Some(Self::split(group, name)?.0)
    }

    /// Entry or exit, and the system call's name.
    pub fn split<'a>(group: &str, name: &'a str) -> Option<(Self, &'a str)> {
        if group != GROUP {
            return None;
        }
        let enter = name
            .strip_prefix("sys_enter_")
            .map(|call| (Self::Enter, call));
        enter.or_else(|| Some((Self::Exit, name.strip_prefix("sys_exit_")?)))
    }

    /// Size of the programs' context.
    const fn context_size(self) -> u32 {
        match self {
            Self::Enter => ARGS + 8 * MAX_ARGS,
            Self::Exit => ARGS + 8,
        }
    }

    /// Gives a record's layout the names that BTF's `trace_event_raw_sys_enter` and
    /// `syscall_trace_enter` use, and the size of the context.
    pub fn adapt(self, mut layout: Layout) -> Layout {
        let mut args = 0;
        for field in &mut layout.fields {
            let number = field.offset.checked_sub(ARGS);
            match (self, number) {
                (_, None) if field.offset == 8 => {
                    field
                        .aliases
                        .extend(["nr", "id", "syscall_nr"].map(String::from));
                }
                (Self::Enter, Some(offset)) if field.storage == Storage::Inline => {
                    field.aliases.push(format!("args[{}]", offset / 8));
                    args = args.max(offset / 8 + 1);
                }
                _ => {}
            }
        }
        if self == Self::Enter && args > 0 && !layout.fields.iter().any(|f| f.is_named("args")) {
            let all = Shape::number(8, false).times(args);
            layout.fields.push(Field::inline("args", ARGS, all));
        }
        layout.context_size = Some(self.context_size());
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::*;
    use crate::spec::ProgType;
    use crate::vm::memory::Space;

    fn of(name: &str) -> Layout {
        Layout::of_syscall(name, Arch::X86_64).unwrap()
    }

    fn write() -> Event {
        Event::tracepoint(of("sys_enter_write"))
    }

    #[test]
    fn arguments_have_the_format_files_and_btfs_names() {
        for name in ["count", "args[2]"] {
            let mut space = Space::new();
            let event = write().set(name, 4096).unwrap();
            let placed = event.place(ProgType::Tracepoint, &mut space).unwrap();
            let load = |at, size| space.load(placed.context.plus(at), size).unwrap();
            assert_eq!((load(8, 4), load(8, 8), load(32, 8)), (1, 1, 4096));
            assert_eq!(placed.context_bytes(&space).len(), 64);
            assert!(space.load(placed.context.plus(64), 1).is_err());
        }
        let record = write()
            .set("args", [3u64, 4, 5])
            .unwrap()
            .set("id", 7)
            .unwrap()
            .record();
        assert_eq!(
            (record[8], record[16], record[24], record[32]),
            (7, 3, 4, 5)
        );
        assert_eq!(record.len(), 44, "20 + 8 bytes an argument");
        assert_eq!(write().readable(), Some(40));
        let error = write().set("args[3]", 1).unwrap_err().to_string();
        assert!(error.contains("count (args[2])"), "{error}");
        let error = write().set("fd", "text").unwrap_err().to_string();
        assert!(error.contains("`fd`"), "{error}");
    }

    #[test]
    fn the_exit_has_a_result() {
        let exit = of("sys_exit_write");
        assert_eq!((exit.readable, exit.context_size), (24, Some(24)));
        let event = Event::tracepoint(exit).set("ret", -9).unwrap();
        assert_eq!(event.record()[16..24], (-9i64).to_le_bytes());
        assert_eq!(event.record().len(), 28);
    }

    #[test]
    fn a_call_without_arguments() {
        let none = of("sys_enter_getpid");
        assert_eq!((none.readable, none.size), (12, 16));
        assert_eq!(Event::tracepoint(none).record().len(), 20);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error =
            |name: &str, machine| Layout::of_syscall(name, machine).unwrap_err().to_string();
        assert!(error("sys_enter_wirte", Arch::X86_64).contains("there are write, "));
        assert!(error("sys_enter_open", Arch::Arm64).contains("Arm64 has no system call"));
        assert!(error("enter_x", Arch::X86_64).contains("must be sys_enter_<call> or"));
        let find = |group, name| Layout::of_tracepoint(group, name, None, Arch::X86_64);
        assert!(find("syscalls", "sys_enter_write").is_ok());
        let raw = find("raw_syscalls", "sys_enter").unwrap();
        assert_eq!((raw.size, raw.readable, raw.context_size), (64, 64, None));
        let error = find("sched", "sched_switch").unwrap_err().to_string();
        assert!(error.contains("no kernel BTF"), "{error}");
    }

    #[test]
    fn data_behind_the_arguments_is_not_in_the_context() {
        let text = "name: sys_enter_x\nformat:\n\
            \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:const char * path;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:__data_loc char[] __path_val;\toffset:24;\tsize:4;\tsigned:0;\n";
        let layout = Layout::from_format("syscalls", text).unwrap();
        let event = Event::tracepoint(layout).set("__path_val", "/x").unwrap();
        let event = event.set("args[0]", 0x1122).unwrap();
        let mut space = Space::new();
        let placed = event.place(ProgType::Tracepoint, &mut space).unwrap();
        let bytes = placed.context_bytes(&space);
        assert_eq!(
            (bytes.len(), &bytes[16..18], &bytes[24..]),
            (64, &[0x22, 0x11][..], &[0; 40][..])
        );
    }
}
