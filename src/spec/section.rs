//! Section names: mapping of ELF section names to program type, attach type and target, as
//! in libbpf (`section_defs`, `src/libbpf.c`).

use bitflags::bitflags;

use super::attach_type::AttachType;
use super::prog_type::ProgType;

bitflags! {
    /// Further properties of a section name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SectionFlags: u8 {
        /// Loaded with [`ProgFlags::SLEEPABLE`](super::ProgFlags::SLEEPABLE).
        const SLEEPABLE = 1 << 0;
        /// The target is a function or type in BTF, required at load.
        const ATTACH_BTF = 1 << 1;
        /// Loaded with [`ProgFlags::XDP_HAS_FRAGS`](super::ProgFlags::XDP_HAS_FRAGS).
        const XDP_FRAGS = 1 << 2;
        /// A USDT probe: an uprobe with a specification of its arguments.
        const USDT = 1 << 3;
        /// Runs when the target returns.
        const ON_RETURN = 1 << 4;
    }
}

/// A row of the table: a section name and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionRule {
    /// The name, or its part before `/` if [`takes_target`](Self::takes_target).
    pub prefix: &'static str,
    /// Whether `/target` may follow.
    pub takes_target: bool,
    /// The program type.
    pub prog_type: ProgType,
    /// The expected attach type.
    pub attach_type: Option<AttachType>,
    /// Further properties.
    pub flags: SectionFlags,
}

impl SectionRule {
    /// The rest of `name` (empty, or the target after the `/`) if this row matches it.
    fn strip<'a>(&self, name: &'a str) -> Option<Option<&'a str>> {
        let rest = name.strip_prefix(self.prefix)?;
        if rest.is_empty() {
            return Some(None);
        }
        rest.strip_prefix('/')
            .filter(|_| self.takes_target)
            .map(Some)
    }
}

/// The meaning of a section's name for its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The row that the name matched.
    pub rule: &'static SectionRule,
    /// The text after the `/`: the event, the function, the hook. `None` without `/`;
    /// possibly empty, as in `kprobe/`.
    pub target: Option<&'a str>,
    /// Whether the program is loaded by default: false if the name begins with `?`.
    pub autoload: bool,
}

impl<'a> Section<'a> {
    /// Looks up a section's name as libbpf does; `None` if no row matches.
    ///
    /// ```
    /// use bpflab::spec::{ProgType, Section};
    /// let section = Section::classify("tp/syscalls/sys_enter_write").unwrap();
    /// assert_eq!(section.rule.prog_type, ProgType::Tracepoint);
    /// assert_eq!(section.target, Some("syscalls/sys_enter_write"));
    /// ```
    #[must_use]
    pub fn classify(name: &'a str) -> Option<Self> {
        let bare = name.strip_prefix('?');
        let (name, autoload) = (bare.unwrap_or(name), bare.is_none());
        RULES.iter().find_map(|rule| {
            rule.strip(name).map(|target| Section {
                rule,
                target,
                autoload,
            })
        })
    }

    /// libbpf's prefix of the target for the name of the BTF type to attach to:
    /// `btf_trace_` for a `tp_btf` program.
    #[must_use]
    pub const fn btf_prefix(&self) -> &'static str {
        match self.rule.attach_type {
            Some(AttachType::TraceRawTp) => "btf_trace_",
            Some(AttachType::LsmMac | AttachType::LsmCgroup) => "bpf_lsm_",
            Some(AttachType::TraceIter) => "bpf_iter_",
            _ => "",
        }
    }

    /// The group and name of a trace event: `("syscalls", "sys_enter_write")`.
    #[must_use]
    pub fn event(&self) -> Option<(&'a str, &'a str)> {
        match self.rule.prog_type {
            ProgType::Tracepoint => self.target?.split_once('/'),
            _ => None,
        }
    }
}

/// All section names of libbpf whose attach type Linux 6.18 has.
pub fn section_rules() -> &'static [SectionRule] {
    RULES
}

/// Writes a row as `"prefix" => Type @ AttachType, FLAG | FLAG;`; the prefix of a
/// row that takes a target ends with `+`.
macro_rules! rules {
    ($($prefix:literal => $prog:ident $(@ $attach:ident)? $(, $($flag:ident)|+)?;)*) => {
        const RULES: &[SectionRule] = &[$({
            let (prefix, takes_target) = split_plus($prefix);
            SectionRule {
                prefix,
                takes_target,
                prog_type: ProgType::$prog,
                attach_type: rules!(@attach $($attach)?),
                flags: SectionFlags::empty()$($(.union(SectionFlags::$flag))+)?,
            }
        }),*];
    };
    (@attach $attach:ident) => { Some(AttachType::$attach) };
    (@attach) => { None };
}

/// Splits a trailing `+` off a row's prefix; returns whether there was one.
const fn split_plus(prefix: &'static str) -> (&'static str, bool) {
    match prefix.as_bytes() {
        [.., b'+'] => (prefix.split_at(prefix.len() - 1).0, true),
        _ => (prefix, false),
    }
}

rules! {
    "socket" => SocketFilter;
    "sk_reuseport/migrate" => SkReuseport @ SkReuseportSelectOrMigrate;
    "sk_reuseport" => SkReuseport @ SkReuseportSelect;
    "kprobe+" => Kprobe;
    "uprobe+" => Kprobe;
    "uprobe.s+" => Kprobe, SLEEPABLE;
    "kretprobe+" => Kprobe, ON_RETURN;
    "uretprobe+" => Kprobe, ON_RETURN;
    "uretprobe.s+" => Kprobe, SLEEPABLE | ON_RETURN;
    "kprobe.multi+" => Kprobe @ TraceKprobeMulti;
    "kretprobe.multi+" => Kprobe @ TraceKprobeMulti, ON_RETURN;
    "kprobe.session+" => Kprobe @ TraceKprobeSession;
    "uprobe.multi+" => Kprobe @ TraceUprobeMulti;
    "uretprobe.multi+" => Kprobe @ TraceUprobeMulti, ON_RETURN;
    "uprobe.session+" => Kprobe @ TraceUprobeSession;
    "uprobe.multi.s+" => Kprobe @ TraceUprobeMulti, SLEEPABLE;
    "uretprobe.multi.s+" => Kprobe @ TraceUprobeMulti, SLEEPABLE | ON_RETURN;
    "uprobe.session.s+" => Kprobe @ TraceUprobeSession, SLEEPABLE;
    "ksyscall+" => Kprobe;
    "kretsyscall+" => Kprobe, ON_RETURN;
    "usdt+" => Kprobe, USDT;
    "usdt.s+" => Kprobe, SLEEPABLE | USDT;
    "tc/ingress" => SchedCls @ TcxIngress;
    "tc/egress" => SchedCls @ TcxEgress;
    "tcx/ingress" => SchedCls @ TcxIngress;
    "tcx/egress" => SchedCls @ TcxEgress;
    "tc" => SchedCls;
    "classifier" => SchedCls;
    "action" => SchedAct;
    "netkit/primary" => SchedCls @ NetkitPrimary;
    "netkit/peer" => SchedCls @ NetkitPeer;
    "tracepoint+" => Tracepoint;
    "tp+" => Tracepoint;
    "tracepoint.s+" => Tracepoint, SLEEPABLE;
    "tp.s+" => Tracepoint, SLEEPABLE;
    "raw_tracepoint+" => RawTracepoint;
    "raw_tp+" => RawTracepoint;
    "raw_tracepoint.s+" => RawTracepoint, SLEEPABLE;
    "raw_tp.s+" => RawTracepoint, SLEEPABLE;
    "raw_tracepoint.w+" => RawTracepointWritable;
    "raw_tp.w+" => RawTracepointWritable;
    "tp_btf+" => Tracing @ TraceRawTp, ATTACH_BTF;
    "tp_btf.s+" => Tracing @ TraceRawTp, SLEEPABLE | ATTACH_BTF;
    "fentry+" => Tracing @ TraceFentry, ATTACH_BTF;
    "fmod_ret+" => Tracing @ ModifyReturn, ATTACH_BTF;
    "fexit+" => Tracing @ TraceFexit, ATTACH_BTF | ON_RETURN;
    "fentry.s+" => Tracing @ TraceFentry, SLEEPABLE | ATTACH_BTF;
    "fmod_ret.s+" => Tracing @ ModifyReturn, SLEEPABLE | ATTACH_BTF;
    "fexit.s+" => Tracing @ TraceFexit, SLEEPABLE | ATTACH_BTF | ON_RETURN;
    "freplace+" => Ext, ATTACH_BTF;
    "lsm+" => Lsm @ LsmMac, ATTACH_BTF;
    "lsm.s+" => Lsm @ LsmMac, SLEEPABLE | ATTACH_BTF;
    "lsm_cgroup+" => Lsm @ LsmCgroup, ATTACH_BTF;
    "iter+" => Tracing @ TraceIter, ATTACH_BTF;
    "iter.s+" => Tracing @ TraceIter, SLEEPABLE | ATTACH_BTF;
    "syscall" => Syscall, SLEEPABLE;
    "xdp.frags/devmap" => Xdp @ XdpDevmap, XDP_FRAGS;
    "xdp/devmap" => Xdp @ XdpDevmap;
    "xdp.frags/cpumap" => Xdp @ XdpCpumap, XDP_FRAGS;
    "xdp/cpumap" => Xdp @ XdpCpumap;
    "xdp.frags" => Xdp @ Xdp, XDP_FRAGS;
    "xdp" => Xdp @ Xdp;
    "perf_event" => PerfEvent;
    "lwt_in" => LwtIn;
    "lwt_out" => LwtOut;
    "lwt_xmit" => LwtXmit;
    "lwt_seg6local" => LwtSeg6local;
    "sockops" => SockOps @ CgroupSockOps;
    "sk_skb/stream_parser" => SkSkb @ SkSkbStreamParser;
    "sk_skb/stream_verdict" => SkSkb @ SkSkbStreamVerdict;
    "sk_skb/verdict" => SkSkb @ SkSkbVerdict;
    "sk_skb" => SkSkb;
    "sk_msg" => SkMsg @ SkMsgVerdict;
    "lirc_mode2" => LircMode2 @ LircMode2;
    "flow_dissector" => FlowDissector @ FlowDissector;
    "cgroup_skb/ingress" => CgroupSkb @ CgroupInetIngress;
    "cgroup_skb/egress" => CgroupSkb @ CgroupInetEgress;
    "cgroup/skb" => CgroupSkb;
    "cgroup/sock_create" => CgroupSock @ CgroupInetSockCreate;
    "cgroup/sock_release" => CgroupSock @ CgroupInetSockRelease;
    "cgroup/sock" => CgroupSock @ CgroupInetSockCreate;
    "cgroup/post_bind4" => CgroupSock @ CgroupInet4PostBind;
    "cgroup/post_bind6" => CgroupSock @ CgroupInet6PostBind;
    "cgroup/bind4" => CgroupSockAddr @ CgroupInet4Bind;
    "cgroup/bind6" => CgroupSockAddr @ CgroupInet6Bind;
    "cgroup/connect4" => CgroupSockAddr @ CgroupInet4Connect;
    "cgroup/connect6" => CgroupSockAddr @ CgroupInet6Connect;
    "cgroup/connect_unix" => CgroupSockAddr @ CgroupUnixConnect;
    "cgroup/sendmsg4" => CgroupSockAddr @ CgroupUdp4Sendmsg;
    "cgroup/sendmsg6" => CgroupSockAddr @ CgroupUdp6Sendmsg;
    "cgroup/sendmsg_unix" => CgroupSockAddr @ CgroupUnixSendmsg;
    "cgroup/recvmsg4" => CgroupSockAddr @ CgroupUdp4Recvmsg;
    "cgroup/recvmsg6" => CgroupSockAddr @ CgroupUdp6Recvmsg;
    "cgroup/recvmsg_unix" => CgroupSockAddr @ CgroupUnixRecvmsg;
    "cgroup/getpeername4" => CgroupSockAddr @ CgroupInet4Getpeername;
    "cgroup/getpeername6" => CgroupSockAddr @ CgroupInet6Getpeername;
    "cgroup/getpeername_unix" => CgroupSockAddr @ CgroupUnixGetpeername;
    "cgroup/getsockname4" => CgroupSockAddr @ CgroupInet4Getsockname;
    "cgroup/getsockname6" => CgroupSockAddr @ CgroupInet6Getsockname;
    "cgroup/getsockname_unix" => CgroupSockAddr @ CgroupUnixGetsockname;
    "cgroup/sysctl" => CgroupSysctl @ CgroupSysctl;
    "cgroup/getsockopt" => CgroupSockopt @ CgroupGetsockopt;
    "cgroup/setsockopt" => CgroupSockopt @ CgroupSetsockopt;
    "cgroup/dev" => CgroupDevice @ CgroupDevice;
    "struct_ops+" => StructOps;
    "struct_ops.s+" => StructOps, SLEEPABLE;
    "sk_lookup" => SkLookup @ SkLookup;
    "netfilter" => Netfilter @ Netfilter;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classify(name: &str) -> (ProgType, Option<AttachType>, SectionFlags, Option<&str>) {
        let section = Section::classify(name).unwrap_or_else(|| panic!("{name} is known"));
        (
            section.rule.prog_type,
            section.rule.attach_type,
            section.rule.flags,
            section.target,
        )
    }

    const NONE: SectionFlags = SectionFlags::empty();

    #[test]
    fn names_with_and_without_targets() {
        assert_eq!(
            classify("kprobe/do_unlinkat"),
            (ProgType::Kprobe, None, NONE, Some("do_unlinkat"))
        );
        assert_eq!(classify("kprobe"), (ProgType::Kprobe, None, NONE, None));
        assert_eq!(
            classify("uretprobe.s//bin/bash:readline"),
            (
                ProgType::Kprobe,
                None,
                SectionFlags::SLEEPABLE | SectionFlags::ON_RETURN,
                Some("/bin/bash:readline")
            )
        );
        assert_eq!(
            classify("uprobe.multi.s/x"),
            (
                ProgType::Kprobe,
                Some(AttachType::TraceUprobeMulti),
                SectionFlags::SLEEPABLE,
                Some("x")
            )
        );
        assert_eq!(classify("raw_tp.w/x").0, ProgType::RawTracepointWritable);
        assert_eq!(
            classify("cgroup/skb"),
            (ProgType::CgroupSkb, None, NONE, None)
        );
        assert_eq!(
            classify("cgroup/connect4").1,
            Some(AttachType::CgroupInet4Connect)
        );
        assert_eq!(
            classify("xdp.frags/cpumap"),
            (
                ProgType::Xdp,
                Some(AttachType::XdpCpumap),
                SectionFlags::XDP_FRAGS,
                None
            )
        );
        assert_eq!(classify("tc/ingress").1, Some(AttachType::TcxIngress));
        assert_eq!(classify("syscall").2, SectionFlags::SLEEPABLE);
        assert_eq!(
            classify("freplace/f"),
            (ProgType::Ext, None, SectionFlags::ATTACH_BTF, Some("f"))
        );
    }

    #[test]
    fn a_name_that_only_resembles_one_is_unknown() {
        for name in [
            "",
            "?",
            "kprobes",
            "kprobe_x",
            "socket1",
            "xdp/other",
            ".text",
            "cgroup/",
            "fentry.x/f",
        ] {
            assert_eq!(Section::classify(name), None, "{name}");
        }
    }

    #[test]
    fn a_question_mark_switches_autoload_off() {
        let section = Section::classify("?tp_btf/sched_switch").unwrap();
        assert!(!section.autoload);
        assert_eq!(section.btf_prefix(), "btf_trace_");
        assert!(Section::classify("xdp").unwrap().autoload);
    }

    #[test]
    fn events_have_a_group_and_a_name() {
        let section = Section::classify("tracepoint/sched/sched_switch").unwrap();
        assert_eq!(section.event(), Some(("sched", "sched_switch")));
        assert_eq!(Section::classify("raw_tp/sched/x").unwrap().event(), None);
    }

    #[test]
    fn each_row_is_reachable_and_every_program_type_has_one() {
        for rule in RULES {
            assert_eq!(
                Section::classify(rule.prefix).map(|section| section.rule),
                Some(rule)
            );
            assert!(
                rule.prog_type.attach_type(rule.attach_type).is_some(),
                "{}: the kernel takes this attach type",
                rule.prefix
            );
        }
        for prog_type in ProgType::ALL {
            assert!(
                RULES.iter().any(|rule| rule.prog_type == *prog_type),
                "{prog_type}"
            );
        }
    }
}
