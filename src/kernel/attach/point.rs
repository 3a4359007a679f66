//! Where a program is attached in the running kernel.

use std::fmt;
use std::path::PathBuf;

use super::error::AttachError;
use crate::kernel::perf::{EventSource, Sampling, Software};
use crate::program::Program;
use crate::spec::context::Arch;
use crate::spec::{AttachType, ProgType};
use crate::vm::attach::Hook;

/// A place in the running kernel, and how a program is attached there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachPoint {
    pub(super) place: Place,
    pub(super) pid: Option<u32>,
    pub(super) cookie: u64,
    pub(super) way: Way,
}

/// A place in the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A tracepoint, through perf.
    Tracepoint {
        /// `syscalls`.
        group: String,
        /// `sys_enter_write`.
        name: String,
    },
    /// A tracepoint's arguments.
    RawTracepoint(String),
    /// What the program says itself, by the type in BTF that it was loaded for: a function,
    /// a tracepoint, a security hook.
    Btf {
        /// The section, for messages: `fentry`.
        section: &'static str,
        /// What it names.
        target: String,
        /// What the program is loaded for.
        attach_type: AttachType,
    },
    /// A kernel function.
    Kernel {
        /// Its name.
        function: String,
        /// Bytes from its start on.
        offset: u64,
        /// Whether at its return.
        returns: bool,
    },
    /// Kernel functions, by name; `*` and `?` stand for others.
    KernelMulti {
        /// The names.
        pattern: String,
        /// Whether at their return.
        returns: bool,
        /// What the program is loaded for.
        attach_type: AttachType,
    },
    /// A place in a program or library.
    User {
        /// The file.
        path: PathBuf,
        /// Where in it.
        spot: Spot,
        /// Whether at the function's return.
        returns: bool,
    },
    /// Functions in a program or library, by name; `*` and `?` stand for others.
    UserMulti {
        /// The file.
        path: PathBuf,
        /// The names.
        pattern: String,
        /// Whether at their return.
        returns: bool,
        /// What the program is loaded for.
        attach_type: AttachType,
    },
    /// A marker in a program or library.
    Usdt {
        /// The file.
        path: PathBuf,
        /// Who made the marker.
        provider: String,
        /// Its name.
        name: String,
    },
    /// Samples of an event.
    PerfEvent {
        /// The event.
        source: EventSource,
        /// How often.
        sampling: Sampling,
    },
}

/// Where in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// Bytes from a function's start on.
    Function {
        /// Its name.
        name: String,
        /// How many bytes.
        offset: u64,
    },
    /// Bytes from the file's start on.
    Offset(u64),
}

/// By which call a program is attached, where there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The one that all kernels have: `PERF_EVENT_IOC_SET_BPF`,
    /// `BPF_RAW_TRACEPOINT_OPEN`. With a cookie it is a link.
    #[default]
    Classic,
    /// `BPF_LINK_CREATE` (Linux 5.15).
    Link,
}

/// Samples a second where nothing else is asked for: not in step with timers of 100 Hz.
const FREQUENCY: u64 = 99;

impl From<Place> for AttachPoint {
    fn from(place: Place) -> Self {
        Self {
            place,
            pid: None,
            cookie: 0,
            way: Way::default(),
        }
    }
}

impl AttachPoint {
    /// The place that a program's section asks for. A program for perf events gets
    /// `cpu-clock`, 99 times a second.
    ///
    /// # Errors
    /// [`AttachError::Unclear`] where the section leaves it open,
    /// [`AttachError::Unavailable`] for types that are not attached to a running kernel.
    pub fn of(program: &Program) -> Result<Self, AttachError> {
        let hook = Hook::of(program);
        let target = program.attach_target.as_deref();
        let target = target.filter(|target| !target.is_empty());
        place(program, hook, target).map(Self::from)
    }

    /// A tracepoint.
    #[must_use]
    pub fn tracepoint(group: &str, name: &str) -> Self {
        Self::from(Place::Tracepoint {
            group: group.to_owned(),
            name: name.to_owned(),
        })
    }

    /// A tracepoint's arguments, for programs of type `raw_tracepoint`.
    #[must_use]
    pub fn raw_tracepoint(name: &str) -> Self {
        Self::from(Place::RawTracepoint(name.to_owned()))
    }

    /// The start of a function in a program or library.
    #[must_use]
    pub fn uprobe(path: impl Into<PathBuf>, function: &str) -> Self {
        Self::user(path.into(), function, false)
    }

    /// The return of a function in a program or library.
    #[must_use]
    pub fn uretprobe(path: impl Into<PathBuf>, function: &str) -> Self {
        Self::user(path.into(), function, true)
    }

    fn user(path: PathBuf, function: &str, returns: bool) -> Self {
        Self::from(Place::User {
            path,
            spot: Spot::Function {
                name: function.to_owned(),
                offset: 0,
            },
            returns,
        })
    }

    /// A marker in a program or library.
    #[must_use]
    pub fn usdt(path: impl Into<PathBuf>, provider: &str, name: &str) -> Self {
        Self::from(Place::Usdt {
            path: path.into(),
            provider: provider.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Samples of an event.
    #[must_use]
    pub fn perf_event(source: EventSource, sampling: Sampling) -> Self {
        Self::from(Place::PerfEvent { source, sampling })
    }

    /// Only for one process: for probes in user space and perf events. A tracepoint or a
    /// kernel function is hit by all, and to attach there with a process is an error.
    #[must_use]
    pub const fn with_pid(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// In another file, for probes in user space; other places have none.
    #[must_use]
    pub fn with_path(mut self, to: impl Into<PathBuf>) -> Self {
        if let Place::User { path, .. } | Place::UserMulti { path, .. } | Place::Usdt { path, .. } =
            &mut self.place
        {
            *path = to.into();
        }
        self
    }

    /// So many bytes behind the function's start, for probes; or, where a file has been
    /// named by offset, there.
    #[must_use]
    pub const fn with_offset(mut self, to: u64) -> Self {
        match &mut self.place {
            Place::User { spot, .. } => match spot {
                Spot::Function { offset, .. } | Spot::Offset(offset) => *offset = to,
            },
            Place::Kernel { offset, .. } => *offset = to,
            _ => {}
        }
        self
    }

    /// Another event, for programs that see samples.
    #[must_use]
    pub const fn with_source(mut self, to: EventSource) -> Self {
        if let Place::PerfEvent { source, .. } = &mut self.place {
            *source = to;
        }
        self
    }

    /// About so many samples a second.
    #[must_use]
    pub const fn with_frequency(self, frequency: u64) -> Self {
        self.with_sampling(Sampling::Frequency(frequency))
    }

    /// A sample each so many events; of clocks, nanoseconds.
    #[must_use]
    pub const fn with_period(self, period: u64) -> Self {
        self.with_sampling(Sampling::Period(period))
    }

    const fn with_sampling(mut self, to: Sampling) -> Self {
        if let Place::PerfEvent { sampling, .. } = &mut self.place {
            *sampling = to;
        }
        self
    }

    /// What `bpf_get_attach_cookie` returns there (`bpf_usdt_cookie` at markers).
    #[must_use]
    pub const fn with_cookie(mut self, cookie: u64) -> Self {
        self.cookie = cookie;
        self
    }

    /// By which call.
    #[must_use]
    pub const fn with_way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// The place.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The process, where it is only for one.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether the kernel wants a link for it, or it was asked for.
    pub(super) const fn is_link(&self) -> bool {
        self.cookie != 0 || matches!(self.way, Way::Link)
    }
}

/// Reads a section's target.
fn place(program: &Program, hook: Hook, target: Option<&str>) -> Result<Place, AttachError> {
    let unclear = |wanted| AttachError::Unclear {
        program: program.name.clone(),
        section: program.section.clone(),
        wanted,
    };
    let named = |wanted| target.map(str::to_owned).ok_or_else(|| unclear(wanted));
    let returns = matches!(
        hook,
        Hook::Kretprobe
            | Hook::Kretsyscall
            | Hook::KretprobeMulti
            | Hook::Uretprobe
            | Hook::UretprobeMulti
    );
    let attach_type = program.expected_attach_type;
    let place = match hook {
        Hook::Tracepoint => {
            let wanted = "name one, as in 'tp/syscalls/sys_enter_write'";
            let event = target.and_then(|target| target.split_once('/'));
            let (group, name) = event.ok_or_else(|| unclear(wanted))?;
            Place::Tracepoint {
                group: group.to_owned(),
                name: name.to_owned(),
            }
        }
        Hook::RawTracepoint if program.prog_type != ProgType::Tracing => {
            Place::RawTracepoint(named("name one, as in 'raw_tp/sched_switch'")?)
        }
        Hook::RawTracepoint | Hook::Fentry | Hook::Fexit | Hook::FmodRet | Hook::Lsm => {
            let section = match hook {
                Hook::RawTracepoint => "tp_btf",
                _ => hook.rule().sections.first().copied().unwrap_or_default(),
            };
            Place::Btf {
                section,
                target: named("name a function, as in 'fentry/vfs_read'")?,
                attach_type: attach_type.unwrap_or(AttachType::TraceRawTp),
            }
        }
        Hook::Kprobe | Hook::Kretprobe | Hook::Ksyscall | Hook::Kretsyscall => {
            let wanted = "name a function, as in 'kprobe/vfs_read'";
            let (name, offset) = split_offset(target.ok_or_else(|| unclear(wanted))?);
            let is_call = matches!(hook, Hook::Ksyscall | Hook::Kretsyscall);
            let prefix = if is_call { SYSCALL_PREFIX } else { "" };
            Place::Kernel {
                function: format!("{prefix}{name}"),
                offset,
                returns,
            }
        }
        Hook::KprobeMulti | Hook::KretprobeMulti | Hook::KprobeSession => Place::KernelMulti {
            pattern: named("name functions, as in 'kprobe.multi/vfs_*'")?,
            returns,
            attach_type: attach_type.unwrap_or(AttachType::TraceKprobeMulti),
        },
        Hook::Uprobe | Hook::Uretprobe => {
            let wanted = "name a file and a function, as in 'uprobe//bin/bash:readline'";
            let parts = target.and_then(|target| target.rsplit_once(':'));
            let (path, spot) = parts.ok_or_else(|| unclear(wanted))?;
            Place::User {
                path: path.into(),
                spot: Spot::parse(spot),
                returns,
            }
        }
        Hook::UprobeMulti | Hook::UretprobeMulti | Hook::UprobeSession => {
            let wanted = "name a file and functions, as in 'uprobe.multi//bin/bash:read*'";
            let parts = target.and_then(|target| target.rsplit_once(':'));
            let (path, pattern) = parts.ok_or_else(|| unclear(wanted))?;
            Place::UserMulti {
                path: path.into(),
                pattern: pattern.to_owned(),
                returns,
                attach_type: attach_type.unwrap_or(AttachType::TraceUprobeMulti),
            }
        }
        Hook::Usdt => {
            let wanted = "name a file, a provider and a marker, as in 'usdt//bin/x:provider:name'";
            let mut parts = target.unwrap_or_default().rsplitn(3, ':');
            let (name, provider, path) = (parts.next(), parts.next(), parts.next());
            let (Some(name), Some(provider), Some(path)) = (name, provider, path) else {
                return Err(unclear(wanted));
            };
            Place::Usdt {
                path: path.into(),
                provider: provider.to_owned(),
                name: name.to_owned(),
            }
        }
        Hook::PerfEvent => Place::PerfEvent {
            source: EventSource::Software(Software::CpuClock),
            sampling: Sampling::Frequency(FREQUENCY),
        },
        Hook::Iterator | Hook::StructOps | Hook::LsmCgroup => {
            let why = "programs of this type are not attached to a running kernel";
            return Err(AttachError::unavailable(&program.section, why));
        }
        _ => {
            let why = "a program for packets, sockets or cgroups would decide about the whole \
                       machine's; run it on input of your own (BPF_PROG_TEST_RUN, `bpflab run`)";
            return Err(AttachError::unavailable(&program.section, why));
        }
    };
    Ok(place)
}

/// What the kernel puts before the name of a system call's function.
const SYSCALL_PREFIX: &str = Arch::HOST.syscall_prefix();

/// Bytes behind a name, as in `vfs_read+0x10`.
fn split_offset(text: &str) -> (&str, u64) {
    let parts = text.rsplit_once('+');
    let found = parts.and_then(|(name, offset)| Some((name, number(offset)?)));
    found.unwrap_or((text, 0))
}

/// A number, with `0x` a hexadecimal one.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl Spot {
    /// `handle_request`, `handle_request+0x10`, `0x1234`.
    fn parse(text: &str) -> Self {
        match number(text) {
            Some(offset) => Self::Offset(offset),
            None => {
                let (name, offset) = split_offset(text);
                Self::Function {
                    name: name.to_owned(),
                    offset,
                }
            }
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name, offset: 0 } => f.write_str(name),
            Self::Function { name, offset } => write!(f, "{name}+{offset:#x}"),
            Self::Offset(offset) => write!(f, "{offset:#x}"),
        }
    }
}

/// The prefix of a section at a function's return.
const fn if_returns(returns: bool) -> &'static str {
    if returns { "ret" } else { "" }
}

impl fmt::Display for AttachPoint {
    /// As a section is called.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tracepoint { group, name } => write!(f, "tp/{group}/{name}"),
            Place::RawTracepoint(name) => write!(f, "raw_tp/{name}"),
            Place::Btf {
                section, target, ..
            } => write!(f, "{section}/{target}"),
            Place::Kernel {
                function,
                offset,
                returns,
            } => {
                write!(f, "k{}probe/{function}", if_returns(*returns))?;
                match offset {
                    0 => Ok(()),
                    _ => write!(f, "+{offset:#x}"),
                }
            }
            Place::KernelMulti {
                pattern, returns, ..
            } => write!(f, "k{}probe.multi/{pattern}", if_returns(*returns)),
            Place::User {
                path,
                spot,
                returns,
            } => write!(
                f,
                "u{}probe/{}:{spot}",
                if_returns(*returns),
                path.display()
            ),
            Place::UserMulti {
                path,
                pattern,
                returns,
                ..
            } => write!(
                f,
                "u{}probe.multi/{}:{pattern}",
                if_returns(*returns),
                path.display()
            ),
            Place::Usdt {
                path,
                provider,
                name,
            } => write!(f, "usdt/{}:{provider}:{name}", path.display()),
            Place::PerfEvent { source, sampling } => match sampling {
                Sampling::Period(period) => write!(f, "perf_event {source}, each {period}"),
                Sampling::Frequency(often) => write!(f, "perf_event {source}, {often} Hz"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Section;

    fn of(section: &str) -> Result<AttachPoint, AttachError> {
        let read = Section::classify(section).unwrap();
        let mut program = Program::new("p", read.rule.prog_type, Vec::new());
        program.section = section.to_owned();
        program.expected_attach_type = read.rule.attach_type;
        program.attach_target = read.target.map(str::to_owned);
        AttachPoint::of(&program)
    }

    #[test]
    fn sections_say_where() {
        for section in [
            "tp/syscalls/sys_enter_write",
            "raw_tp/sched_switch",
            "tp_btf/sched_switch",
            "fentry/vfs_read",
            "lsm/file_open",
            "kprobe/vfs_read+0x10",
            "kretprobe/vfs_read",
            "kprobe.multi/vfs_*",
            "uprobe//bin/bash:readline",
            "uprobe//bin/bash:readline+0x4",
            "uretprobe//bin/bash:0x1234",
            "uprobe.multi/libc.so.6:mem*",
            "usdt/libc.so.6:libc:setjmp",
        ] {
            assert_eq!(of(section).unwrap().to_string(), section);
        }
        let call = of("ksyscall/write").unwrap().to_string();
        assert!(call.ends_with("_sys_write"), "{call}");
        assert_eq!(
            of("perf_event").unwrap().to_string(),
            "perf_event cpu-clock, 99 Hz"
        );
        assert_eq!(
            of("tracepoint.s/a/b").unwrap(),
            AttachPoint::tracepoint("a", "b")
        );
    }

    #[test]
    fn what_a_section_leaves_open_is_said() {
        for section in [
            "tp", "tp/x", "raw_tp", "kprobe/", "uprobe/x", "usdt/x:y", "fentry",
        ] {
            let error = of(section).unwrap_err();
            assert!(matches!(error, AttachError::Unclear { .. }), "{error}");
            assert!(error.to_string().contains(section), "{error}");
        }
    }

    #[test]
    fn the_network_is_not_attached_to() {
        for section in ["xdp", "tc", "cgroup_skb/ingress", "socket", "iter/task"] {
            assert!(of(section).unwrap_err().is_unavailable(), "{section}");
        }
    }

    #[test]
    fn places_can_be_changed() {
        let point = of("uprobe//bin/bash:readline").unwrap();
        let point = point.with_path("/bin/sh").with_offset(8).with_pid(3);
        assert_eq!(point.to_string(), "uprobe//bin/sh:readline+0x8");
        assert_eq!(point.pid(), Some(3));
        let sampler = of("perf_event").unwrap().with_period(1000);
        let sampler = sampler.with_source(EventSource::Software(Software::TaskClock));
        assert_eq!(sampler.to_string(), "perf_event task-clock, each 1000");
        assert!(!sampler.is_link());
        assert!(sampler.clone().with_cookie(1).is_link());
        assert!(sampler.with_way(Way::Link).is_link());
    }
}
