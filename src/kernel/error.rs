//! Errors of the kernel, and failures that are no verdict on a program.

use std::fmt;

use thiserror::Error;

use crate::util::Errno;

/// A command: of `bpf(2)` (`enum bpf_cmd`, `include/uapi/linux/bpf.h`), or of perf events
/// (`linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Creating a map.
    MapCreate,
    /// Reading an element.
    MapLookupElem,
    /// Writing an element.
    MapUpdateElem,
    /// Reading the next key.
    MapGetNextKey,
    /// Making a map read-only.
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
    /// Opening an iterator.
    IterCreate,
    /// Reading an iterator.
    IterRead,
    /// Reading information on a program or map.
    ObjGetInfo,
    /// Opening a perf event.
    PerfEventOpen,
    /// Attaching a program to a perf event.
    PerfSetBpf,
    /// Setting a perf event's filter.
    PerfSetFilter,
    /// Enabling or disabling a perf event, or redirecting its output.
    PerfControl,
    /// Reading a perf event's counts.
    PerfRead,
    /// Mapping memory shared with the kernel.
    Mmap,
    /// Waiting for the kernel.
    Poll,
    /// Making a BPF token.
    TokenCreate,
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
            Self::IterCreate => "BPF_ITER_CREATE",
            Self::ObjGetInfo => "BPF_OBJ_GET_INFO_BY_FD",
            Self::PerfEventOpen => "perf_event_open",
            Self::PerfSetBpf => "PERF_EVENT_IOC_SET_BPF",
            Self::PerfSetFilter => "PERF_EVENT_IOC_SET_FILTER",
            Self::PerfControl => "ioctl",
            Self::PerfRead | Self::IterRead => "read",
            Self::Mmap => "mmap",
            Self::Poll => "poll",
            Self::TokenCreate => "BPF_TOKEN_CREATE",
        })
    }
}

/// A command that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{command} of {object}: {errno}{}", Hint(*command, *errno, log))]
#[non_exhaustive]
pub struct KernelError {
    /// The command.
    pub command: Command,
    /// The object of the command: `map events`, `program count_write`, `BTF`.
    pub object: String,
    /// The errno.
    pub errno: Errno,
    /// The kernel's log of a load; may be empty.
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

    /// Whether permissions are missing, and not the request wrong: the exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self.errno, Errno::EPERM | Errno::EACCES)
    }
}

/// The last line of the log; without a log, a hint for the errno.
struct Hint<'a>(Command, Errno, &'a str);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.2.lines().next_back() {
            return write!(f, ": {line}");
        }
        f.write_str(match (self.0, self.1) {
            (Command::Mmap, Errno::EPERM) => {
                "; without CAP_IPC_LOCK the limit is /proc/sys/kernel/perf_event_mlock_kb: \
                 ask for fewer pages"
            }
            (Command::Mmap, Errno::EINVAL) => "; the number of pages must be a power of two",
            (_, Errno::EPERM) => {
                "; needs root, or CAP_BPF and CAP_PERFMON, and a kernel that is not locked down"
            }
            (Command::PerfEventOpen, Errno::EACCES) => {
                "; needs root, or CAP_PERFMON (/proc/sys/kernel/perf_event_paranoid)"
            }
            (Command::PerfEventOpen, Errno::ENOENT | Errno::EOPNOTSUPP) => {
                "; this machine has no such event"
            }
            (_, Errno::EMFILE) => "; too many open files (ulimit -n)",
            _ => "",
        })
    }
}

/// Why the kernel gave no verdict on a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoVerdictKind {
    /// This process lacks permission (`EPERM`).
    Permission,
    /// The kernel lacked memory (`ENOMEM`).
    Memory,
    /// This kernel does not support the program type, the map type, or a feature of the load.
    Feature,
    /// A map of the program can't be created as declared.
    Map,
    /// The program that it attaches to is not accepted.
    Target,
}

impl NoVerdictKind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Memory => "memory",
            Self::Feature => "feature",
            Self::Map => "map",
            Self::Target => "target",
        }
    }
}

/// A program on which the kernel gave no verdict: neither accepted nor rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct NoVerdict {
    /// The reason.
    pub kind: NoVerdictKind,
    /// The command that failed.
    pub error: KernelError,
}

impl NoVerdict {
    /// The reason by errno; `otherwise` if the errno does not tell.
    pub(super) fn of(error: KernelError, otherwise: NoVerdictKind) -> Self {
        let kind = match error.errno {
            Errno::EPERM => NoVerdictKind::Permission,
            Errno::ENOMEM => NoVerdictKind::Memory,
            _ => otherwise,
        };
        Self { kind, error }
    }

    /// Whether permissions, memory or a feature are missing, and not the map declaration wrong:
    /// the exit code is 3 then.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        !matches!(self.kind, NoVerdictKind::Map | NoVerdictKind::Target)
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
            "BPF_PROG_LOAD of program p: EPERM (Operation not permitted); needs root, or \
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
