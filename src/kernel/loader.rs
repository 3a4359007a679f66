//! Loading as a user with fewer capabilities.

use super::availability::Capability;
use super::error::{Command, KernelError, NoVerdict, NoVerdictKind};
use super::log::verdict;
use super::sys::DroppedCapabilities;
use crate::spec::Capabilities;
use crate::verifier::Verdict;

/// The sysctl that decides whether a loader without `CAP_BPF` is refused everything.
#[cfg(feature = "cli")]
pub(crate) const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

/// Why the running kernel gives no verdicts for a loader with these capabilities: it refuses every
/// program and map of a loader without `CAP_BPF`, unless the sysctl
/// `kernel.unprivileged_bpf_disabled` is 0.
#[cfg(feature = "cli")]
pub(crate) fn why_refused(loader: Capabilities) -> Option<String> {
    if loader.allow(Capabilities::BPF) {
        return None;
    }
    let value = std::fs::read_to_string(UNPRIVILEGED).unwrap_or_default();
    (value.trim() != "0").then(|| {
        format!(
            "the sysctl kernel.unprivileged_bpf_disabled is {}: this kernel refuses every program \
             of a loader without CAP_BPF; it is 0 in virtual machines (--vm)",
            value.trim()
        )
    })
}

/// Calls `load` as a loader with these capabilities: the calling thread has no others of the four
/// meanwhile.
pub(super) fn as_loader<T>(
    loader: Capabilities,
    command: Command,
    load: impl FnOnce() -> T,
) -> Result<T, NoVerdict> {
    if loader == Capabilities::all() {
        return Ok(load());
    }
    let lacking = Capability::ALL
        .into_iter()
        .filter(|capability| !loader.contains(capability.bit()));
    let numbers = lacking.map(|capability| capability as u32);
    let _dropped = DroppedCapabilities::new(numbers).map_err(|errno| NoVerdict {
        // Not the kernel's refusal of the loader.
        kind: NoVerdictKind::Feature,
        error: KernelError {
            log: "the capabilities of the thread can't be changed".to_owned(),
            ..KernelError::new(command, format!("a loader with {loader}"), errno)
        },
    })?;
    Ok(load())
}

impl NoVerdict {
    /// The refusal as the verdict for a loader with these capabilities, if it is one: the loader
    /// lacks a capability for the program's maps, which exist when a program is loaded.
    #[must_use]
    pub fn as_verdict(&self, loader: Capabilities) -> Option<Verdict> {
        let lacks = loader != Capabilities::all() && self.kind == NoVerdictKind::Permission;
        lacks.then(|| verdict(Some(self.error.errno), String::new()))
    }
}
