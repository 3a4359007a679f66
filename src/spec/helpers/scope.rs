//! Sets of programs that prototypes apply to.

use crate::spec::attach_type::AttachType as At;
use crate::spec::capabilities::Capabilities;
use crate::spec::kernel_config::KernelConfig;
use crate::spec::prog_type::ProgType;
use crate::spec::struct_ops;
use crate::util::with;

/// A program that calls a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// Its type; for an extension, that of the program it replaces.
    pub prog_type: ProgType,
    /// Its attach type, as [`ProgType::attach_type`] gives it.
    pub attach_type: Option<At>,
    /// Its attach target, if the target decides: the structure's name for struct_ops
    /// (`tcp_congestion_ops`), the target's for an iterator (`tcp`), the hook's for LSM
    /// (`socket_post_create`).
    pub target: Option<&'a str>,
    /// The member of the structure, for struct_ops (`ssthresh`).
    pub member: Option<&'a str>,
    /// The kernel that runs it.
    pub kernel: KernelConfig,
    /// The capabilities of its loader.
    pub capabilities: Capabilities,
}

impl<'a> Caller<'a> {
    with! {
        with_attach_type(attach_type: impl Into<Option<At>>);
        with_target(target: impl Into<Option<&'a str>>);
        with_member(member: impl Into<Option<&'a str>>);
        with_kernel(kernel: KernelConfig);
        with_capabilities(capabilities: Capabilities);
    }

    /// A caller of this type without attach type, on a kernel with all options, loaded with all
    /// capabilities.
    #[must_use]
    pub fn of(prog_type: ProgType) -> Self {
        Self {
            prog_type,
            attach_type: prog_type.attach_type(None),
            target: None,
            member: None,
            kernel: KernelConfig::default(),
            capabilities: Capabilities::default(),
        }
    }

    /// Whether it may call helpers at all.
    pub(super) fn has_helpers(&self) -> bool {
        let structure = self
            .target
            .filter(|_| self.prog_type == ProgType::StructOps);
        structure
            .and_then(struct_ops::find)
            .is_none_or(|operations| operations.helpers)
    }
}

/// The attach types that a scope covers.
#[derive(Clone, Copy, Debug)]
enum Attach {
    Any,
    Only(&'static [At]),
    Except(&'static [At]),
}

/// A set of programs: types, attach types and targets.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// One bit per program type number.
    types: u64,
    attach: Attach,
    targets: Option<&'static [&'static str]>,
}

impl Scope {
    const fn of(types: &[ProgType]) -> Self {
        let mut bits = 0;
        let mut rest = types;
        while let [first, others @ ..] = rest {
            bits |= 1 << first.number();
            rest = others;
        }
        Self {
            types: bits,
            attach: Attach::Any,
            targets: None,
        }
    }

    const fn at(mut self, list: &'static [At]) -> Self {
        self.attach = Attach::Only(list);
        self
    }

    const fn except(mut self, list: &'static [At]) -> Self {
        self.attach = Attach::Except(list);
        self
    }

    const fn on(mut self, targets: &'static [&'static str]) -> Self {
        self.targets = Some(targets);
        self
    }

    /// Whether `caller` is in the set.
    #[must_use]
    pub fn covers(&self, caller: &Caller<'_>) -> bool {
        let listed = |list: &[At]| caller.attach_type.is_some_and(|at| list.contains(&at));
        self.types >> caller.prog_type.number() & 1 == 1
            && match self.attach {
                Attach::Any => true,
                Attach::Only(list) => listed(list),
                Attach::Except(list) => !listed(list),
            }
            && self
                .targets
                .is_none_or(|list| caller.target.is_some_and(|target| list.contains(&target)))
    }
}

/// Defines a scope for each single program type.
macro_rules! single {
    ($($name:ident = $variant:ident;)*) => {
        $(pub(super) const $name: Scope = Scope::of(&[ProgType::$variant]);)*
    };
}

single! {
    SOCKET_FILTER = SocketFilter;
    KPROBE = Kprobe;
    TRACEPOINT = Tracepoint;
    XDP = Xdp;
    PERF_EVENT = PerfEvent;
    CGROUP_SKB = CgroupSkb;
    CGROUP_SOCK = CgroupSock;
    LWT_IN = LwtIn;
    LWT_XMIT = LwtXmit;
    SOCK_OPS = SockOps;
    SK_SKB = SkSkb;
    CGROUP_DEVICE = CgroupDevice;
    SK_MSG = SkMsg;
    CGROUP_SOCK_ADDR = CgroupSockAddr;
    LWT_SEG6LOCAL = LwtSeg6local;
    LIRC_MODE2 = LircMode2;
    SK_REUSEPORT = SkReuseport;
    FLOW_DISSECTOR = FlowDissector;
    CGROUP_SYSCTL = CgroupSysctl;
    CGROUP_SOCKOPT = CgroupSockopt;
    BTF_TRACING = Tracing;
    LSM = Lsm;
    SK_LOOKUP = SkLookup;
    SYSCALL = Syscall;
}

/// All types with the common helpers (`bpf_base_func_proto`, `kernel/bpf/helpers.c`). An
/// extension has the helpers of the program it replaces, an infrared program its own list.
pub(super) const ALL: Scope = Scope {
    types: !(LIRC_MODE2.types | Scope::of(&[ProgType::Ext]).types),
    attach: Attach::Any,
    targets: None,
};

/// Tracing types (`bpf_tracing_func_proto`, `kernel/trace/bpf_trace.c`).
pub(super) const TRACING: Scope = Scope::of(&[
    ProgType::Kprobe,
    ProgType::Tracepoint,
    ProgType::PerfEvent,
    ProgType::RawTracepoint,
    ProgType::RawTracepointWritable,
    ProgType::Tracing,
    ProgType::Lsm,
    ProgType::Syscall,
]);
/// Both raw tracepoint types.
pub(super) const RAW_TP: Scope =
    Scope::of(&[ProgType::RawTracepoint, ProgType::RawTracepointWritable]);
/// Traffic control.
pub(super) const TC: Scope = Scope::of(&[ProgType::SchedCls, ProgType::SchedAct]);
/// Lightweight tunnels.
pub(super) const LWT: Scope = Scope::of(&[
    ProgType::LwtIn,
    ProgType::LwtOut,
    ProgType::LwtXmit,
    ProgType::LwtSeg6local,
]);

const MULTI: &[At] = &[
    At::TraceKprobeMulti,
    At::TraceKprobeSession,
    At::TraceUprobeMulti,
    At::TraceUprobeSession,
];
/// Multi-kprobes.
pub(super) const KPROBE_MULTI: Scope = KPROBE.at(MULTI);
/// Kprobes on a single function.
pub(super) const KPROBE_SINGLE: Scope = KPROBE.except(MULTI);
/// Raw tracepoints with arguments typed by BTF.
pub(super) const TP_BTF: Scope = BTF_TRACING.at(&[At::TraceRawTp]);
/// Programs that a trampoline calls (`bpf_prog_has_trampoline`,
/// `kernel/bpf/trampoline.c`).
pub(super) const TRAMPOLINE: Scope = Scope::of(&[ProgType::Tracing, ProgType::Lsm]).at(&[
    At::TraceFentry,
    At::TraceFexit,
    At::ModifyReturn,
    At::LsmMac,
]);
/// Iterators.
pub(super) const ITER: Scope = BTF_TRACING.at(&[At::TraceIter]);
/// Iterators over sockets that are locked while the program runs.
pub(super) const ITER_SOCKET: Scope = ITER.on(&["tcp", "unix"]);
/// LSM hooks of a cgroup.
pub(super) const LSM_CGROUP: Scope = LSM.at(&[At::LsmCgroup]);
/// LSM hooks of a cgroup that may change a socket's options (`bpf_lsm_locked_sockopt_hooks`
/// and `…unlocked…`, `kernel/bpf/bpf_lsm.c`).
pub(super) const LSM_SOCKOPT: Scope = LSM_CGROUP.on(&[
    "sock_graft",
    "inet_csk_clone",
    "inet_conn_established",
    "socket_post_create",
    "socket_socketpair",
]);
/// Before `setsockopt`.
pub(super) const SETSOCKOPT: Scope = CGROUP_SOCKOPT.at(&[At::CgroupSetsockopt]);
/// Before `connect` on the Internet.
pub(super) const CONNECT: Scope =
    CGROUP_SOCK_ADDR.at(&[At::CgroupInet4Connect, At::CgroupInet6Connect]);
/// TCP congestion control (`bpf_tcp_ca_get_func_proto`, `net/ipv4/bpf_tcp_ca.c`).
pub(super) const TCP_CA: Scope = Scope::of(&[ProgType::StructOps]).on(&["tcp_congestion_ops"]);
/// Cgroup programs with a verdict, which `get_retval` returns
/// (`cgroup_common_func_proto`, `kernel/bpf/cgroup.c`).
pub(super) const RETVAL: Scope = Scope::of(&[
    ProgType::CgroupSock,
    ProgType::SockOps,
    ProgType::CgroupDevice,
    ProgType::CgroupSockAddr,
    ProgType::CgroupSysctl,
    ProgType::CgroupSockopt,
])
.except(&[
    At::CgroupInetIngress,
    At::CgroupInetEgress,
    At::CgroupSockOps,
    At::CgroupUdp4Recvmsg,
    At::CgroupUdp6Recvmsg,
    At::CgroupUnixRecvmsg,
    At::CgroupInet4Getpeername,
    At::CgroupInet6Getpeername,
    At::CgroupUnixGetpeername,
    At::CgroupInet4Getsockname,
    At::CgroupInet6Getsockname,
    At::CgroupUnixGetsockname,
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_look_at_type_attach_type_and_target() {
        let mut caller = Caller::of(ProgType::Kprobe);
        assert!(KPROBE_SINGLE.covers(&caller) && !KPROBE_MULTI.covers(&caller));
        caller.attach_type = Some(At::TraceUprobeSession);
        assert!(!KPROBE_SINGLE.covers(&caller) && KPROBE_MULTI.covers(&caller));

        let mut caller = Caller::of(ProgType::StructOps);
        assert!(ALL.covers(&caller) && !TCP_CA.covers(&caller));
        caller.target = Some("tcp_congestion_ops");
        assert!(TCP_CA.covers(&caller));
    }

    #[test]
    fn infrared_and_extensions_stand_apart() {
        assert!(!ALL.covers(&Caller::of(ProgType::LircMode2)));
        assert!(!ALL.covers(&Caller::of(ProgType::Ext)));
        assert!(ALL.covers(&Caller::of(ProgType::Netfilter)));
    }
}
