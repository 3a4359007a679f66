//! What the kernel refuses, and what is no verdict on a program.

use std::fmt;

use thiserror::Error;

use crate::util::Errno;

/// What the kernel was asked: a command of `bpf(2)` (`enum bpf_cmd`,
/// `include/uapi/linux/bpf.h`), or one about perf events (`linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Making a map.
    MapCreate,
    /// Reading an element.
    MapLookupElem,
    /// Writing an element.
    MapUpdateElem,
    /// Going from key to key.
    MapGetNextKey,
    /// Making a map constant.
    MapFreeze,
    /// Verifying and loading a program.
    ProgLoad,
    /// Running a program on given input.
    ProgTestRun,
    /// Checking and loading types.
    BtfLoad,
    /// Reading many elements.
    MapLookupBatch,
    /// Attaching to a raw tracepoint.
    RawTracepointOpen,
    /// Attaching by a link.
    LinkCreate,
    /// Asking about a program or map.
    ObjGetInfo,
    /// Making a perf event.
    PerfEventOpen,
    /// Giving a perf event a program.
    PerfSetBpf,
    /// Giving a perf event a filter.
    PerfSetFilter,
    /// Switching a perf event on or off, or joining it to another.
    PerfControl,
    /// Reading a perf event's counts.
    PerfRead,
    /// Mapping memory that the kernel fills.
    Mmap,
    /// Waiting for the kernel.
    Poll,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MapCreate => "BPF_MAP_CREATE",
            Self::MapLookupElem => "BPF_MAP_LOOKUP_ELEM",
            Self::MapUpdateElem => "BPF_MAP_UPDATE_ELEM",
            Self::MapGetNextKey => "BPF_MAP_GET_NEXT_KEY",
            Self::MapFreeze => "BPF_MAP_FREEZE",
            Self::ProgLoad => "BPF_PROG_LOAD",
            Self::ProgTestRun => "BPF_PROG_TEST_RUN",
            Self::BtfLoad => "BPF_BTF_LOAD",
            Self::MapLookupBatch => "BPF_MAP_LOOKUP_BATCH",
            Self::RawTracepointOpen => "BPF_RAW_TRACEPOINT_OPEN",
            Self::LinkCreate => "BPF_LINK_CREATE",
            Self::ObjGetInfo => "BPF_OBJ_GET_INFO_BY_FD",
            Self::PerfEventOpen => "perf_event_open",
            Self::PerfSetBpf => "PERF_EVENT_IOC_SET_BPF",
            Self::PerfSetFilter => "PERF_EVENT_IOC_SET_FILTER",
            Self::PerfControl => "ioctl",
            Self::PerfRead => "read",
            Self::Mmap => "mmap",
            Self::Poll => "poll",
        })
    }
}

/// A command that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{command} of {object}: {errno}{}", Hint(*command, *errno, log))]
pub struct KernelError {
    /// The command.
    pub command: Command,
    /// What it was about: `map events`, `program count_write`, `BTF`.
    pub object: String,
    /// What the kernel said.
    pub errno: Errno,
    /// The kernel's log, of loads; may be empty.
    pub log: String,
}

impl KernelError {
    pub(super) fn new(command: Command, object: impl Into<String>, errno: Errno) -> Self {
        Self {
            command,
            object: object.into(),
            errno,
            log: String::new(),
        }
    }

    /// Whether it is the rights that are missing, and not something wrong that was asked
    /// for: the exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self.errno, Errno::EPERM | Errno::EACCES)
    }
}

/// The last line of the log; without one, what usually helps.
struct Hint<'a>(Command, Errno, &'a str);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.2.lines().next_back() {
            return write!(f, ": {line}");
        }
        f.write_str(match (self.0, self.1) {
            (Command::Mmap, Errno::EPERM) => {
                "; without CAP_IPC_LOCK there is no more memory for it than \
                 /proc/sys/kernel/perf_event_mlock_kb says: ask for fewer pages"
            }
            (Command::Mmap, Errno::EINVAL) => "; its pages are a power of two",
            (_, Errno::EPERM) => {
                "; it takes root, or CAP_BPF and CAP_PERFMON, and a kernel that is not locked down"
            }
            (Command::PerfEventOpen, Errno::EACCES) => {
                "; it takes root, or CAP_PERFMON (/proc/sys/kernel/perf_event_paranoid)"
            }
            (Command::PerfEventOpen, Errno::ENOENT | Errno::EOPNOTSUPP) => {
                "; this machine has no such event"
            }
            (_, Errno::EMFILE) => "; this process may open no more files (ulimit -n)",
            _ => "",
        })
    }
}

/// Why a program was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoVerdictKind {
    /// We may not (`EPERM`).
    Permission,
    /// The kernel had no memory for it (`ENOMEM`).
    Memory,
    /// This kernel doesn't know the type of the program or map, or what the load asks
    /// for.
    Feature,
    /// A map of the program can't be made as it is declared.
    Map,
}

impl NoVerdictKind {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Memory => "memory",
            Self::Feature => "feature",
            Self::Map => "map",
        }
    }
}

/// A program that the kernel did not judge: neither accepted nor rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{error}")]
pub struct NoVerdict {
    /// Why.
    pub kind: NoVerdictKind,
    /// What failed.
    pub error: KernelError,
}

impl NoVerdict {
    /// What the error number alone tells; `otherwise` where it tells nothing.
    pub(super) fn of(error: KernelError, otherwise: NoVerdictKind) -> Self {
        let kind = match error.errno {
            Errno::EPERM => NoVerdictKind::Permission,
            Errno::ENOMEM => NoVerdictKind::Memory,
            _ => otherwise,
        };
        Self { kind, error }
    }

    /// Whether rights, memory or a feature are missing, and not a map declared as no kernel
    /// makes it: the exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        !matches!(self.kind, NoVerdictKind::Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_and_why() {
        let mut error = KernelError::new(Command::ProgLoad, "program p", Errno::EPERM);
        assert_eq!(
            error.to_string(),
            "BPF_PROG_LOAD of program p: EPERM (Operation not permitted); it takes root, or \
             CAP_BPF and CAP_PERFMON, and a kernel that is not locked down"
        );
        let mut perf = KernelError::new(Command::PerfEventOpen, "event 7", Errno::EACCES);
        assert!(perf.to_string().contains("CAP_PERFMON"), "{perf}");
        assert!(perf.is_unavailable());
        perf.command = Command::Mmap;
        perf.errno = Errno::EPERM;
        assert!(perf.to_string().ends_with("fewer pages"), "{perf}");
        perf.errno = Errno::EINVAL;
        assert!(perf.to_string().contains("a power of two"), "{perf}");
        perf.errno = Errno::EBADF;
        assert_eq!(
            perf.to_string(),
            "mmap of event 7: EBADF (Bad file descriptor)"
        );
        assert!(!perf.is_unavailable());
        error.errno = Errno::EACCES;
        error.log = "0: (95) exit\nR0 !read_ok\n".to_owned();
        assert!(error.to_string().ends_with("denied): R0 !read_ok"));
        let none = NoVerdict::of(error.clone(), NoVerdictKind::Feature);
        assert_eq!(none.kind, NoVerdictKind::Feature);
        assert!(none.is_unavailable());
        assert!(!NoVerdict::of(error.clone(), NoVerdictKind::Map).is_unavailable());
        error.errno = Errno::ENOMEM;
        assert_eq!(
            NoVerdict::of(error, NoVerdictKind::Map).kind.name(),
            "memory"
        );
    }
}
