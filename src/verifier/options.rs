//! Options of a verification.

use std::num::NonZeroU32;

use super::verdict::LogLevel;
use crate::spec::limits::MAX_CPUS;
use crate::spec::{Capabilities, KernelConfig};
use crate::util::with;

/// Options of a verification.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options {
    /// The contents of the log; the error line is always included.
    pub log: LogLevel,
    /// Whether every access has to be aligned, as for CPUs without unaligned access
    /// (`BPF_F_STRICT_ALIGNMENT`; a program's own flags can request this, too).
    pub strict_alignment: bool,
    /// The number of possible CPUs (`nr_cpu_ids`), the bound of `bpf_get_smp_processor_id`;
    /// by default the kernel's maximum.
    pub cpus: Option<NonZeroU32>,
    /// The configuration and lockdown state of the kernel, which decide the helpers
    /// available; by default all of them.
    pub kernel: KernelConfig,
    /// The capabilities of the loader; by default all of them. Without `CAP_BPF` the kernel's
    /// `unprivileged_bpf_disabled` is taken to be 0.
    pub capabilities: Capabilities,
}

impl Options {
    with! {
        with_log(log: LogLevel);
        with_strict_alignment(strict_alignment: bool);
        with_cpus(cpus: impl Into<Option<NonZeroU32>>);
        with_kernel(kernel: KernelConfig);
        with_capabilities(capabilities: Capabilities);
    }

    /// The number of possible CPUs.
    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.map_or(MAX_CPUS, NonZeroU32::get)
    }
}
