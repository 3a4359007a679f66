//! The tracepoints of the group `syscalls`, which the kernel makes of the table of
//! system calls (`kernel/trace/trace_syscalls.c`).
//!
//! A program on one of them does not see the perf record but `struct syscall_tp_t`,
//! which `perf_call_bpf_enter` and `perf_call_bpf_exit` build for it: the number as
//! an `int` at 8, then six arguments or the result from 16.

use super::layout::Layout;
use super::shape::{Field, Shape, Storage};

/// Which end of a system call.
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

impl Side {
    /// The side that a tracepoint is on, if it is a system call's.
    pub fn of(group: &str, name: &str) -> Option<Self> {
        Some(Self::split(group, name)?.0)
    }

    /// The side and the system call's name.
    pub fn split<'a>(group: &str, name: &'a str) -> Option<(Self, &'a str)> {
        if group != GROUP {
            return None;
        }
        let enter = name
            .strip_prefix("sys_enter_")
            .map(|call| (Self::Enter, call));
        enter.or_else(|| Some((Self::Exit, name.strip_prefix("sys_exit_")?)))
    }

    /// Size of the struct that programs get.
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
