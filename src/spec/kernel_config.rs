//! Which kernel is meant, as far as that decides what programs may call: how it was built,
//! and how it is locked down (`#ifdef CONFIG_…` and `security_locked_down` in the
//! `get_func_proto` functions of `kernel/bpf`, `kernel/trace/bpf_trace.c`,
//! `net/core/filter.c`).

use bitflags::bitflags;

use super::helpers::id;
use crate::util::HelperId;

bitflags! {
    /// Options of a kernel's build without which programs lack helpers.
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
    }
}

impl BuildOptions {
    /// The option without which no program has this helper; none for most.
    #[must_use]
    pub const fn of_helper(helper: HelperId) -> Self {
        match helper {
            id::override_return => Self::BPF_KPROBE_OVERRIDE,
            id::rc_repeat | id::rc_keydown | id::rc_pointer_rel => Self::BPF_LIRC_MODE2,
            id::skb_get_xfrm_state => Self::XFRM,
            id::get_current_cgroup_id | id::get_current_ancestor_cgroup_id => Self::CGROUPS,
            id::skb_cgroup_classid => Self::CGROUP_NET_CLASSID,
            id::skb_cgroup_id | id::skb_ancestor_cgroup_id => Self::SOCK_CGROUP_DATA,
            id::lwt_seg6_store_bytes | id::lwt_seg6_adjust_srh | id::lwt_seg6_action => {
                Self::IPV6_SEG6_BPF
            }
            _ => Self::empty(),
        }
    }

    /// The options that a configuration (`/boot/config-…`, `/proc/config.gz` unpacked) turns
    /// on, built in or as a module.
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

/// How far root may not change or see the kernel (`/sys/kernel/security/lockdown`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lockdown {
    /// Not at all.
    #[default]
    None,
    /// Root can't change the running kernel: no `bpf_probe_write_user`.
    Integrity,
    /// Nor read its memory: no `bpf_probe_read_kernel` and its kin, either.
    Confidentiality,
}

impl Lockdown {
    /// The weakest level at which no program has this helper any more, if there is one.
    #[must_use]
    pub const fn forbids(helper: HelperId) -> Option<Self> {
        match helper {
            id::probe_write_user => Some(Self::Integrity),
            id::probe_read
            | id::probe_read_str
            | id::probe_read_kernel
            | id::probe_read_kernel_str => Some(Self::Confidentiality),
            _ => None,
        }
    }
}

/// A kernel as it was built and started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// What it was built with.
    pub build: BuildOptions,
    /// How it is locked down.
    pub lockdown: Lockdown,
}

impl Default for KernelConfig {
    /// Everything was built in, nothing is locked down: what a program may call on some
    /// kernel is not refused.
    fn default() -> Self {
        Self {
            build: BuildOptions::all(),
            lockdown: Lockdown::None,
        }
    }
}

impl KernelConfig {
    /// Whether programs whose type has this helper have it on such a kernel.
    #[must_use]
    pub fn has_helper(&self, helper: HelperId) -> bool {
        self.build.contains(BuildOptions::of_helper(helper))
            && Lockdown::forbids(helper).is_none_or(|level| self.lockdown < level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_takes_helpers_away() {
        for option in BuildOptions::all().iter() {
            let lacking = KernelConfig {
                build: BuildOptions::all() - option,
                ..KernelConfig::default()
            };
            let helpers = (1..=super::super::helpers::COUNT).map(HelperId);
            let gone = helpers.filter(|id| !lacking.has_helper(*id));
            assert!(gone.count() > 0, "{option:?}");
        }
    }

    #[test]
    fn lockdown_takes_away_what_writes_and_then_what_reads() {
        let at = |lockdown| KernelConfig {
            lockdown,
            ..KernelConfig::default()
        };
        for (lockdown, writes, reads) in [
            (Lockdown::None, true, true),
            (Lockdown::Integrity, false, true),
            (Lockdown::Confidentiality, false, false),
        ] {
            let config = at(lockdown);
            assert_eq!(config.has_helper(id::probe_write_user), writes);
            assert_eq!(config.has_helper(id::probe_read_kernel), reads);
            assert!(config.has_helper(id::probe_read_user));
        }
    }
}
