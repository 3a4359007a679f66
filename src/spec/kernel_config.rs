//! What verdicts of one release depend on. Build options and lockdown level decide which helpers
//! programs may call (`#ifdef CONFIG_…` and `security_locked_down` in the `get_func_proto`
//! functions of `kernel/bpf`, `kernel/trace/bpf_trace.c`, `net/core/filter.c`). Backports
//! are changes of later releases.

use bitflags::bitflags;

use crate::util::with;

bitflags! {
    /// Build options that verdicts depend on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct BuildOptions: u16 {
        /// `CONFIG_BPF_KPROBE_OVERRIDE`.
        const BPF_KPROBE_OVERRIDE = 1 << 0;
        /// `CONFIG_BPF_LIRC_MODE2`.
        const BPF_LIRC_MODE2 = 1 << 1;
        /// `CONFIG_XFRM`.
        const XFRM = 1 << 2;
        /// `CONFIG_CGROUPS`.
        const CGROUPS = 1 << 3;
        /// `CONFIG_CGROUP_NET_CLASSID`.
        const CGROUP_NET_CLASSID = 1 << 4;
        /// `CONFIG_SOCK_CGROUP_DATA`.
        const SOCK_CGROUP_DATA = 1 << 5;
        /// `CONFIG_IPV6_SEG6_BPF`.
        const IPV6_SEG6_BPF = 1 << 6;
        /// `CONFIG_KALLSYMS_ALL`: the addresses of variables are known, not only those of
        /// functions.
        const KALLSYMS_ALL = 1 << 7;
    }
}

impl BuildOptions {
    /// The options that a configuration (`/boot/config-…`, unpacked `/proc/config.gz`)
    /// enables, built in or as a module.
    ///
    /// ```
    /// use bpflab::spec::BuildOptions;
    ///
    /// let text = "CONFIG_XFRM=y\n# CONFIG_BPF_KPROBE_OVERRIDE is not set\n";
    /// assert_eq!(BuildOptions::from_config(text), BuildOptions::XFRM);
    /// ```
    #[must_use]
    pub fn from_config(text: &str) -> Self {
        let on = text.lines().filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
            matches!(value, "y" | "m").then(|| Self::from_name(name))?
        });
        on.collect()
    }
}

/// Kernel lockdown level (`/sys/kernel/security/lockdown`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lockdown {
    /// No lockdown.
    #[default]
    None,
    /// Root can't change the running kernel: no `bpf_probe_write_user`.
    Integrity,
    /// Nor read its memory: no `bpf_probe_read_kernel` and related helpers, either.
    Confidentiality,
}

bitflags! {
    /// Changes of later kernels that verdicts depend on, and that a build of Linux 6.18 may have
    /// taken. Its release does not tell.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Backports: u8 {
        /// Linux 7.0, commit 1a5c01d2508a ("bpf: Make `KF_TRUSTED_ARGS` the default for all
        /// kfuncs"): a pointer that a kfunc gets must not be null, unless its parameter is named
        /// `…__nullable` or `…__opt`, and an object must be trusted, or protected by RCU where that
        /// is enough (`KF_RCU`).
        const KFUNC_ARGUMENTS_TRUSTED = 1 << 0;
    }
}

/// A kernel's build options, lockdown level and backports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelConfig {
    /// Its build options.
    pub build: BuildOptions,
    /// Its lockdown level.
    pub lockdown: Lockdown,
    /// The changes of later kernels that it has.
    pub backports: Backports,
}

impl KernelConfig {
    with! {
        with_build(build: BuildOptions);
        with_lockdown(lockdown: Lockdown);
        with_backports(backports: Backports);
    }
}

impl Default for KernelConfig {
    /// All options built in, no lockdown: helpers that some kernel offers are allowed. No
    /// backports.
    fn default() -> Self {
        Self {
            build: BuildOptions::all(),
            lockdown: Lockdown::None,
            backports: Backports::empty(),
        }
    }
}
