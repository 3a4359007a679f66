//! Which attach targets the running kernel supports.

use super::error::AttachError;
use super::point::{AttachPoint, AttachTarget};
use super::probe;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::functions::{suggestion, traceable};
use crate::kernel::machine::Uname;
use crate::kernel::probe::{Probe, probe_for};
use crate::kernel::tracefs::Tracefs;
use crate::spec::{AttachType, ProgType};
use crate::util::{Errno, glob};

impl AttachPoint {
    /// Checks whether this kernel supports such targets, as far as can be known before loading.
    ///
    /// # Errors
    /// [`AttachError::Unavailable`], with the reason.
    pub fn available(&self) -> Result<(), AttachError> {
        match self.place() {
            AttachTarget::Kernel { .. } => probe::pmu(self, "kprobe").map(drop),
            AttachTarget::User { .. } | AttachTarget::Usdt { .. } => {
                probe::pmu(self, "uprobe").map(drop)
            }
            AttachTarget::Btf { attach_type, .. } => {
                self.is_loadable(*attach_type)?;
                match attach_type {
                    AttachType::LsmMac => self.has_lsm(),
                    _ => Ok(()),
                }
            }
            AttachTarget::Iterator(_) => self.is_loadable(AttachType::TraceIter),
            _ => Ok(()),
        }
    }
}

impl AttachPoint {
    /// Checks whether programs for such targets reach the verifier.
    fn is_loadable(&self, attach_type: AttachType) -> Result<(), AttachError> {
        let prog_type = match attach_type {
            AttachType::LsmMac => ProgType::Lsm,
            _ => ProgType::Tracing,
        };
        let Probe::Refused(errno) = probe_for(prog_type, Some(attach_type)) else {
            return Ok(());
        };
        let why = match probe_for(ProgType::RawTracepoint, None) {
            Probe::Refused(_) => format!(
                "no program can be loaded ({errno}): needs root, or CAP_BPF and CAP_PERFMON"
            ),
            _ => format!(
                "programs of type {prog_type} for {attach_type} are refused ({errno}) before the \
                 verifier sees them, while others are loaded: this kernel was built without them, \
                 or a policy forbids them"
            ),
        };
        Err(AttachError::unavailable(self, why))
    }
}

/// The active security modules, as `lockdown,capability,bpf`.
const MODULES: &str = "/sys/kernel/security/lsm";

impl AttachPoint {
    /// Checks whether the kernel calls BPF programs at its LSM hooks. Where it does not, it may
    /// attach them all the same, and they never run. Without securityfs it is not known.
    fn has_lsm(&self) -> Result<(), AttachError> {
        let modules = std::fs::read_to_string(MODULES).ok();
        match modules.and_then(|modules| without_bpf(&modules)) {
            Some(why) => Err(AttachError::unavailable(self, why)),
            None => Ok(()),
        }
    }
}

/// What to say if the module `bpf` is not among those active.
fn without_bpf(modules: &str) -> Option<String> {
    let modules = modules.trim();
    if modules.split(',').any(|module| module == "bpf") {
        return None;
    }
    Some(format!(
        "the security module `bpf` is not active, so the program would never run: {MODULES} has \
         `{modules}`; boot with `lsm={modules},bpf` (CONFIG_BPF_LSM=y), or record in a virtual \
         machine (--vm), which has it"
    ))
}

/// The kernel functions that can be probed and whose names fit.
pub(super) fn functions(
    point: &AttachPoint,
    fits: impl Fn(&str) -> bool,
) -> Result<Vec<String>, AttachError> {
    let mut names = traceable().map_err(|error| {
        let why = format!("the kernel does not list its functions: {error}");
        AttachError::unavailable(point, why)
    })?;
    names.retain(|name| fits(name));
    Ok(names)
}

/// The function that a kprobe's target names: a pattern with `*` or `?` must match one.
pub(super) fn function(point: &AttachPoint, target: &str) -> Result<String, AttachError> {
    if !target.contains(['*', '?']) {
        return Ok(target.to_owned());
    }
    let mut found = functions(point, |name| glob(target, name))?;
    match (found.pop(), found.len()) {
        (None, _) => Err(no_function(point, target)),
        (Some(only), 0) => Ok(only),
        (Some(last), others) => {
            /// How many names the error lists.
            const SHOWN: usize = 3;
            found.push(last);
            found.truncate(SHOWN);
            let more = if others >= SHOWN { ", …" } else { "" };
            let why = format!(
                "{} functions match: {}{more}; a kprobe attaches to one, kprobe.multi to all",
                others + 1,
                found.join(", ")
            );
            Err(AttachError::no_such_place(point, why))
        }
    }
}

/// The error for a function that does not exist, with those that may be meant.
pub(super) fn no_function(point: &AttachPoint, name: &str) -> AttachError {
    let names = traceable().unwrap_or_default();
    let hint = suggestion(name, names.iter().map(String::as_str));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    AttachError::no_such_place(point, format!("there is no such function{hint}"))
}

/// The id of a tracepoint.
pub(super) fn tracepoint_id(
    point: &AttachPoint,
    group: &str,
    name: &str,
) -> Result<u32, AttachError> {
    let found = Tracefs::open().and_then(|tracefs| tracefs.tracepoint_id(group, name));
    found.map_err(|error| match error.is_unavailable() {
        true => AttachError::unavailable(point, error.to_string()),
        false => AttachError::no_such_place(point, error.to_string()),
    })
}

/// What some targets and cookies need that not all kernels with BPF have, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needs {
    /// `BPF_LINK_CREATE` of a perf event, and so its cookie.
    PerfLink,
    /// `BPF_LINK_CREATE` with a cookie for BTF targets.
    TracingCookie,
    /// `BPF_RAW_TRACEPOINT_OPEN` with a cookie.
    RawCookie,
    /// `BPF_TRACE_KPROBE_MULTI`.
    KprobeMulti,
    /// `BPF_TRACE_UPROBE_MULTI`.
    UprobeMulti,
    /// `BPF_LINK_CREATE` of an XDP program.
    XdpLink,
    /// `BPF_LINK_CREATE` of a classifier.
    TcxLink,
}

impl Needs {
    pub const fn since(self) -> (&'static str, (u32, u32)) {
        match self {
            Self::PerfLink => ("a cookie or link of a perf event", (5, 15)),
            Self::TracingCookie => ("a link or a cookie", (5, 19)),
            Self::RawCookie => ("a cookie", (6, 10)),
            Self::KprobeMulti => ("a multi-function probe", (5, 18)),
            Self::UprobeMulti => ("a multi-function probe", (6, 6)),
            Self::XdpLink => ("an XDP program that ends with bpflab", (5, 9)),
            Self::TcxLink => ("a classifier that ends with bpflab (tcx)", (6, 6)),
        }
    }

    /// What an errno means: kernels answer `EINVAL` or `E2BIG` to requests that they are too
    /// old for, as they do to mistakes.
    pub fn refused(self, point: &AttachPoint, command: Command) -> impl Fn(Errno) -> AttachError {
        move |errno| self.refused_by(&Uname::here(), point, command, errno)
    }

    fn refused_by(
        self,
        kernel: &Uname,
        point: &AttachPoint,
        command: Command,
        errno: Errno,
    ) -> AttachError {
        let (what, since) = self.since();
        let unknown = matches!(errno, Errno::EINVAL | Errno::E2BIG);
        if !unknown || !kernel.is_before(since) {
            return refused(point, command)(errno);
        }
        let (major, minor) = since;
        let why = format!(
            "{what} needs Linux {major}.{minor}, this is {} ({command}: {errno})",
            kernel.release
        );
        AttachError::unavailable(point, why)
    }
}

/// What an errno of a command means for an attach point.
pub(super) fn refused(point: &AttachPoint, command: Command) -> impl Fn(Errno) -> AttachError {
    move |errno| match errno {
        // For a program that was loaded for this target, only a missing feature gives these.
        Errno::EOPNOTSUPP | Errno::ENOTSUPP => {
            let why = format!("this kernel does not support {command} for it ({errno})");
            AttachError::unavailable(point, why)
        }
        errno => KernelError::new(command, point.to_string(), errno).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_that_call_no_program_are_told() {
        assert_eq!(without_bpf("lockdown,capability,bpf\n"), None);
        let why = without_bpf("capability,landlock\n").unwrap();
        assert!(
            why.contains("boot with `lsm=capability,landlock,bpf`"),
            "{why}"
        );
        assert!(without_bpf("capability,bpfilter").is_some());
    }

    #[test]
    fn what_a_kernel_is_too_old_for_is_said() {
        let point = AttachPoint::tracepoint("irq", "softirq_entry");
        let of = |release: &str, errno| {
            let kernel = Uname {
                release: release.to_owned(),
                ..Uname::here()
            };
            Needs::PerfLink.refused_by(&kernel, &point, Command::LinkCreate, errno)
        };
        let old = of("5.10.0", Errno::EINVAL);
        assert!(old.is_unavailable(), "{old}");
        assert!(
            old.to_string().contains("needs Linux 5.15, this is 5.10.0"),
            "{old}"
        );
        for (release, errno) in [("6.18.1", Errno::EINVAL), ("5.10.0", Errno::EBADF)] {
            let wrong = of(release, errno);
            assert!(matches!(wrong, AttachError::Kernel(_)), "{wrong}");
        }
        assert!(of("6.18.1", Errno::EOPNOTSUPP).is_unavailable());
    }
}
