//! The helpers of a kernel, by its build options and lockdown level.

use super::id;
use crate::spec::kernel_config::{BuildOptions, KernelConfig, Lockdown};
use crate::util::HelperId;

impl BuildOptions {
    /// The build option that this helper requires; none for most helpers.
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
}

impl Lockdown {
    /// The lowest lockdown level that forbids this helper, if any.
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

impl KernelConfig {
    /// Whether this kernel offers the helper to programs whose type allows it.
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
        let of_helpers = BuildOptions::all() - BuildOptions::KALLSYMS_ALL;
        for option in of_helpers.iter() {
            let lacking = KernelConfig {
                build: BuildOptions::all() - option,
                ..KernelConfig::default()
            };
            let helpers = (1..=super::super::COUNT).map(HelperId);
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
