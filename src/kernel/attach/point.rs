//! Attach points in the running kernel.

use std::fmt;
use std::path::PathBuf;

use super::error::AttachError;
use crate::kernel::perf::{EventSource, Sampling, Software};
use crate::program::Program;
use crate::spec::context::Arch;
use crate::spec::{AttachType, ProgType};
use crate::vm::attach::Hook;

/// An attach target in the running kernel, and the options for attaching there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachPoint {
    pub(super) target: AttachTarget,
    pub(super) pid: Option<u32>,
    pub(super) cookie: u64,
    pub(super) way: Way,
}

/// An attach target in the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachTarget {
    /// A tracepoint, through perf.
    Tracepoint {
        /// `syscalls`.
        group: String,
        /// `sys_enter_write`.
        name: String,
    },
    /// A raw tracepoint: the program gets its arguments.
    RawTracepoint(String),
    /// The BTF id that the program was loaded for: a function, a tracepoint or an LSM hook.
    Btf {
        /// The section, for messages: `fentry`.
        section: &'static str,
        /// The name in the section, after the `/`.
        target: String,
        /// The expected attach type.
        attach_type: AttachType,
    },
    /// An iterator: the program runs for each object while [`Attachment::iterate`] reads.
    ///
    /// [`Attachment::iterate`]: super::Attachment::iterate
    Iterator(String),
    /// The packets of a network device.
    Device {
        /// The device's name: `veth0`.
        name: String,
        /// The attach type.
        attach_type: AttachType,
    },
    /// What the processes of a cgroup do.
    Cgroup {
        /// The cgroup's folder: `/sys/fs/cgroup/web`.
        path: PathBuf,
        /// The attach type.
        attach_type: AttachType,
    },
    /// A kernel function (kprobe or kretprobe).
    Kernel {
        /// Its name.
        function: String,
        /// Bytes from its start.
        offset: u64,
        /// Whether the probe is at its return.
        returns: bool,
    },
    /// Kernel functions by name pattern, with `*` and `?` as wildcards.
    KernelMulti {
        /// The pattern.
        pattern: String,
        /// Whether the probes are at the returns.
        returns: bool,
        /// The expected attach type.
        attach_type: AttachType,
    },
    /// An instruction in a program or library (uprobe or uretprobe).
    User {
        /// The file.
        path: PathBuf,
        /// The location in the file.
        spot: Spot,
        /// Whether the probe is at the function's return.
        returns: bool,
    },
    /// Functions in a program or library by name pattern, with `*` and `?` as wildcards.
    UserMulti {
        /// The file.
        path: PathBuf,
        /// The pattern.
        pattern: String,
        /// Whether the probes are at the returns.
        returns: bool,
        /// The expected attach type.
        attach_type: AttachType,
    },
    /// A USDT probe in a program or library.
    Usdt {
        /// The file.
        path: PathBuf,
        /// The provider of the probe.
        provider: String,
        /// The probe's name.
        name: String,
    },
    /// Samples of an event.
    PerfEvent {
        /// The event.
        source: EventSource,
        /// The sampling rate.
        sampling: Sampling,
    },
}

/// A location in an ELF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// An offset from a function's start.
    Function {
        /// Its name.
        name: String,
        /// Bytes from its start.
        offset: u64,
    },
    /// An offset in bytes from the file's start.
    Offset(u64),
}

/// The system call that attaches a program, for targets that have two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The call that all kernels have: `PERF_EVENT_IOC_SET_BPF` or `BPF_RAW_TRACEPOINT_OPEN`. A
    /// cookie makes it a link.
    #[default]
    Classic,
    /// `BPF_LINK_CREATE` (Linux 5.15).
    Link,
}

/// Default samples a second; 99, so as not to run in step with 100 Hz timers.
const FREQUENCY: u64 = 99;

impl From<AttachTarget> for AttachPoint {
    fn from(target: AttachTarget) -> Self {
        Self {
            target,
            pid: None,
            cookie: 0,
            way: Way::default(),
        }
    }
}

impl AttachPoint {
    /// The attach point that a program's section names. A program of type `perf_event` gets
    /// `cpu-clock`, 99 times a second.
    ///
    /// # Errors
    /// [`AttachError::Unclear`] if the section does not name a full target,
    /// [`AttachError::Unavailable`] for program types that bpflab does not attach.
    pub fn of(program: &Program) -> Result<Self, AttachError> {
        let hook = Hook::of(program);
        let target = program.attach_target.as_deref();
        let target = target.filter(|target| !target.is_empty());
        attach_target(program, hook, target).map(Self::from)
    }

    /// A tracepoint.
    #[must_use]
    pub fn tracepoint(group: &str, name: &str) -> Self {
        Self::from(AttachTarget::Tracepoint {
            group: group.to_owned(),
            name: name.to_owned(),
        })
    }

    /// A raw tracepoint, for programs of type `raw_tracepoint`.
    #[must_use]
    pub fn raw_tracepoint(name: &str) -> Self {
        Self::from(AttachTarget::RawTracepoint(name.to_owned()))
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
        Self::from(AttachTarget::User {
            path,
            spot: Spot::Function {
                name: function.to_owned(),
                offset: 0,
            },
            returns,
        })
    }

    /// A USDT probe in a program or library.
    #[must_use]
    pub fn usdt(path: impl Into<PathBuf>, provider: &str, name: &str) -> Self {
        Self::from(AttachTarget::Usdt {
            path: path.into(),
            provider: provider.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Samples of an event.
    #[must_use]
    pub fn perf_event(source: EventSource, sampling: Sampling) -> Self {
        Self::from(AttachTarget::PerfEvent { source, sampling })
    }

    /// Restricts the attach point to one process, for user-space probes and perf events. All
    /// processes hit a tracepoint or kernel function: to attach there with a pid is an error.
    #[must_use]
    pub const fn with_pid(mut self, pid: u32) -> Self {
        self.pid = Some(pid);
        self
    }

    /// Sets the file of a user-space probe; no effect on other targets.
    #[must_use]
    pub fn with_path(mut self, to: impl Into<PathBuf>) -> Self {
        if let AttachTarget::User { path, .. }
        | AttachTarget::UserMulti { path, .. }
        | AttachTarget::Usdt { path, .. } = &mut self.target
        {
            *path = to.into();
        }
        self
    }

    /// Sets a probe's offset in bytes from the function's start, or from the file's start if
    /// the target is a file offset.
    #[must_use]
    pub const fn with_offset(mut self, to: u64) -> Self {
        match &mut self.target {
            AttachTarget::User { spot, .. } => match spot {
                Spot::Function { offset, .. } | Spot::Offset(offset) => *offset = to,
            },
            AttachTarget::Kernel { offset, .. } => *offset = to,
            _ => {}
        }
        self
    }

    /// Sets the event of a perf event target.
    #[must_use]
    pub const fn with_source(mut self, to: EventSource) -> Self {
        if let AttachTarget::PerfEvent { source, .. } = &mut self.target {
            *source = to;
        }
        self
    }

    /// Sets the rate: about `frequency` samples a second.
    #[must_use]
    pub const fn with_frequency(self, frequency: u64) -> Self {
        self.with_sampling(Sampling::Frequency(frequency))
    }

    /// Sets the rate: a sample every `period` events, or nanoseconds for clocks.
    #[must_use]
    pub const fn with_period(self, period: u64) -> Self {
        self.with_sampling(Sampling::Period(period))
    }

    const fn with_sampling(mut self, to: Sampling) -> Self {
        if let AttachTarget::PerfEvent { sampling, .. } = &mut self.target {
            *sampling = to;
        }
        self
    }

    /// Sets the value that `bpf_get_attach_cookie` returns (`bpf_usdt_cookie` in USDT probes).
    #[must_use]
    pub const fn with_cookie(mut self, cookie: u64) -> Self {
        self.cookie = cookie;
        self
    }

    /// Sets the system call that attaches.
    #[must_use]
    pub const fn with_way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// The attach target.
    #[must_use]
    pub const fn place(&self) -> &AttachTarget {
        &self.target
    }

    /// The process, if the attach point is restricted to one.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether it is attached by a link: required for a cookie, or chosen by [`Way::Link`].
    pub(super) const fn is_link(&self) -> bool {
        self.cookie != 0 || matches!(self.way, Way::Link)
    }
}

/// The attach target of a section's name.
fn attach_target(
    program: &Program,
    hook: Hook,
    target: Option<&str>,
) -> Result<AttachTarget, AttachError> {
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
    let found = match hook {
        Hook::Tracepoint => {
            let wanted = "name it, as in 'tp/syscalls/sys_enter_write'";
            let event = target.and_then(|target| target.split_once('/'));
            let (group, name) = event.ok_or_else(|| unclear(wanted))?;
            AttachTarget::Tracepoint {
                group: group.to_owned(),
                name: name.to_owned(),
            }
        }
        Hook::RawTracepoint if program.prog_type != ProgType::Tracing => {
            AttachTarget::RawTracepoint(named("name it, as in 'raw_tp/sched_switch'")?)
        }
        Hook::RawTracepoint | Hook::Fentry | Hook::Fexit | Hook::FmodRet | Hook::Lsm => {
            let section = match hook {
                Hook::RawTracepoint => "tp_btf",
                _ => hook.rule().sections.first().copied().unwrap_or_default(),
            };
            AttachTarget::Btf {
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
            AttachTarget::Kernel {
                function: format!("{prefix}{name}"),
                offset,
                returns,
            }
        }
        Hook::KprobeMulti | Hook::KretprobeMulti | Hook::KprobeSession => {
            AttachTarget::KernelMulti {
                pattern: named("name functions, as in 'kprobe.multi/vfs_*'")?,
                returns,
                attach_type: attach_type.unwrap_or(AttachType::TraceKprobeMulti),
            }
        }
        Hook::Uprobe | Hook::Uretprobe => {
            let wanted = "name a file and a function, as in 'uprobe//bin/bash:readline'";
            let parts = target.and_then(|target| target.rsplit_once(':'));
            let (path, spot) = parts.ok_or_else(|| unclear(wanted))?;
            AttachTarget::User {
                path: path.into(),
                spot: Spot::parse(spot),
                returns,
            }
        }
        Hook::UprobeMulti | Hook::UretprobeMulti | Hook::UprobeSession => {
            let wanted = "name a file and functions, as in 'uprobe.multi//bin/bash:read*'";
            let parts = target.and_then(|target| target.rsplit_once(':'));
            let (path, pattern) = parts.ok_or_else(|| unclear(wanted))?;
            AttachTarget::UserMulti {
                path: path.into(),
                pattern: pattern.to_owned(),
                returns,
                attach_type: attach_type.unwrap_or(AttachType::TraceUprobeMulti),
            }
        }
        Hook::Usdt => {
            let wanted = "name a file, a provider and a probe, as in 'usdt//bin/x:provider:name'";
            let mut parts = target.unwrap_or_default().rsplitn(3, ':');
            let (name, provider, path) = (parts.next(), parts.next(), parts.next());
            let (Some(name), Some(provider), Some(path)) = (name, provider, path) else {
                return Err(unclear(wanted));
            };
            AttachTarget::Usdt {
                path: path.into(),
                provider: provider.to_owned(),
                name: name.to_owned(),
            }
        }
        Hook::PerfEvent => AttachTarget::PerfEvent {
            source: EventSource::Software(Software::CpuClock),
            sampling: Sampling::Frequency(FREQUENCY),
        },
        Hook::Iterator => AttachTarget::Iterator(named("name it, as in 'iter/task'")?),
        Hook::StructOps | Hook::LsmCgroup => {
            let why = "bpflab does not attach programs of this type to a running kernel";
            return Err(AttachError::unavailable(&program.section, why));
        }
        _ => {
            if let Some(named) = of_network(program, hook, target) {
                return Ok(named);
            }
            let why = "a program for packets, sockets or cgroups would decide about the whole \
                       machine's: name a device for XDP and tc, a cgroup's folder for cgroup \
                       hooks (--attach PROGRAM=veth0), or run it on input of your own \
                       (BPF_PROG_TEST_RUN, `bpflab run`)";
            return Err(AttachError::unavailable(&program.section, why));
        }
    };
    Ok(found)
}

/// The device or cgroup that a target names.
fn of_network(program: &Program, hook: Hook, target: Option<&str>) -> Option<AttachTarget> {
    let target = target?;
    if let Some(attach_type) = of_device(program) {
        return Some(AttachTarget::Device {
            name: target.to_owned(),
            attach_type,
        });
    }
    let is_cgroup = hook == Hook::Cgroup && program.prog_type != ProgType::SockOps;
    let attach_type = program.expected_attach_type.filter(|_| is_cgroup)?;
    Some(AttachTarget::Cgroup {
        path: target.into(),
        attach_type,
    })
}

/// The attach type of programs for the packets of a device.
fn of_device(program: &Program) -> Option<AttachType> {
    use AttachType::{TcxEgress, TcxIngress, Xdp};
    match (program.prog_type, program.expected_attach_type) {
        (ProgType::Xdp, None | Some(Xdp)) => Some(Xdp),
        (ProgType::SchedCls, None) => Some(TcxIngress),
        (ProgType::SchedCls, Some(attach @ (TcxIngress | TcxEgress))) => Some(attach),
        _ => None,
    }
}

/// The prefix of a system call's kernel function.
const SYSCALL_PREFIX: &str = Arch::HOST.syscall_prefix();

/// The name and the offset of `vfs_read+0x10`.
fn split_offset(text: &str) -> (&str, u64) {
    let parts = text.rsplit_once('+');
    let found = parts.and_then(|(name, offset)| Some((name, number(offset)?)));
    found.unwrap_or((text, 0))
}

/// A number, hexadecimal with `0x`.
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

/// The part of a section's prefix for a function's return.
const fn if_returns(returns: bool) -> &'static str {
    if returns { "ret" } else { "" }
}

impl fmt::Display for AttachPoint {
    /// Formats the attach point as a section name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            AttachTarget::Tracepoint { group, name } => write!(f, "tp/{group}/{name}"),
            AttachTarget::RawTracepoint(name) => write!(f, "raw_tp/{name}"),
            AttachTarget::Btf {
                section, target, ..
            } => write!(f, "{section}/{target}"),
            AttachTarget::Iterator(name) => write!(f, "iter/{name}"),
            AttachTarget::Device { name, attach_type } => write!(f, "{attach_type} of {name}"),
            AttachTarget::Cgroup { path, attach_type } => {
                write!(f, "{attach_type} of {}", path.display())
            }
            AttachTarget::Kernel {
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
            AttachTarget::KernelMulti {
                pattern, returns, ..
            } => write!(f, "k{}probe.multi/{pattern}", if_returns(*returns)),
            AttachTarget::User {
                path,
                spot,
                returns,
            } => write!(
                f,
                "u{}probe/{}:{spot}",
                if_returns(*returns),
                path.display()
            ),
            AttachTarget::UserMulti {
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
            AttachTarget::Usdt {
                path,
                provider,
                name,
            } => write!(f, "usdt/{}:{provider}:{name}", path.display()),
            AttachTarget::PerfEvent { source, sampling } => match sampling {
                Sampling::Period(period) => write!(f, "perf_event {source}, every {period}"),
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
            "iter/task",
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
            "tp", "tp/x", "raw_tp", "kprobe/", "uprobe/x", "usdt/x:y", "fentry", "iter",
        ] {
            let error = of(section).unwrap_err();
            assert!(matches!(error, AttachError::Unclear { .. }), "{error}");
            assert!(error.to_string().contains(section), "{error}");
        }
    }

    #[test]
    fn the_network_is_not_attached_to() {
        for section in ["xdp", "tc", "cgroup_skb/ingress", "socket", "struct_ops/x"] {
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
        assert_eq!(sampler.to_string(), "perf_event task-clock, every 1000");
        assert!(!sampler.is_link());
        assert!(sampler.clone().with_cookie(1).is_link());
        assert!(sampler.with_way(Way::Link).is_link());
    }
}
