//! What this kernel has to attach to.

use super::error::AttachError;
use super::point::{AttachPoint, Place};
use super::probe;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::probe::{Probe, probe_for};
use crate::kernel::tracefs::Tracefs;
use crate::spec::{AttachType, ProgType};
use crate::util::Errno;

impl AttachPoint {
    /// Whether this kernel has such places at all, as far as can be known before a program
    /// is loaded.
    ///
    /// # Errors
    /// [`AttachError::Unavailable`], with the reason.
    pub fn available(&self) -> Result<(), AttachError> {
        match self.place() {
            Place::Kernel { .. } => probe::pmu(self, "kprobe").map(drop),
            Place::User { .. } | Place::Usdt { .. } => probe::pmu(self, "uprobe").map(drop),
            Place::Btf { attach_type, .. } => self.is_loadable(*attach_type),
            _ => Ok(()),
        }
    }
}

impl AttachPoint {
    /// Whether programs for such places are looked at by the verifier.
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
                "no program can be loaded ({errno}): it takes root, or CAP_BPF and CAP_PERFMON"
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

/// The kernel functions that probes may be put to, and whose names fit.
pub(super) fn functions(
    point: &AttachPoint,
    fits: impl Fn(&str) -> bool,
) -> Result<Vec<String>, AttachError> {
    let list = Tracefs::open().and_then(|tracefs| tracefs.read("available_filter_functions"));
    let list = list.map_err(|error| {
        let why = format!("the kernel tells no functions by name: {error}");
        AttachError::unavailable(point, why)
    })?;
    // Of modules, the module's name follows.
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<_> = names.filter(|name| fits(name)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The number of a tracepoint.
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

/// What an error number of a command means at a place.
pub(super) fn refused(point: &AttachPoint, command: Command) -> impl Fn(Errno) -> AttachError {
    move |errno| match errno {
        // Nobody else says so to a program that was loaded for this place.
        Errno::EOPNOTSUPP | Errno::ENOTSUPP => {
            let why = format!("{command} is not supported by this kernel for it ({errno})");
            AttachError::unavailable(point, why)
        }
        errno => KernelError::new(command, point.to_string(), errno).into(),
    }
}
