//! Sets of kfuncs as registered by the kernel (`register_btf_kfunc_id_set`), with the
//! programs that may call them.

use bitflags::bitflags;

use crate::spec::attach_type::AttachType;
use crate::spec::helpers::Caller;
use crate::spec::prog_type::ProgType;

bitflags! {
    /// Hooks at which a set is registered (`enum btf_kfunc_hook`, `kernel/bpf/btf.c`), with
    /// the kernel's numbers as bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Hooks: u16 {
        /// For programs of every type.
        const COMMON = 1 << 0;
        /// XDP.
        const XDP = 1 << 1;
        /// Classifiers of traffic control.
        const TC = 1 << 2;
        /// `struct_ops` implementations.
        const STRUCT_OPS = 1 << 3;
        /// Tracing programs, except kprobes.
        const TRACING = 1 << 4;
        /// Syscall programs.
        const SYSCALL = 1 << 5;
        /// Not callable: `fmod_ret` programs may attach to these functions.
        const FMODRET = 1 << 6;
        /// Programs of a cgroup.
        const CGROUP = 1 << 7;
        /// Actions of traffic control.
        const SCHED_ACT = 1 << 8;
        /// Parsers and verdicts of socket maps.
        const SK_SKB = 1 << 9;
        /// Socket filters.
        const SOCKET_FILTER = 1 << 10;
        /// Lightweight tunnels.
        const LWT = 1 << 11;
        /// Netfilter.
        const NETFILTER = 1 << 12;
        /// Kprobes and uprobes.
        const KPROBE = 1 << 13;
    }
}

impl Hooks {
    /// The hook for programs of this type, in addition to [`COMMON`](Self::COMMON)
    /// (`bpf_prog_type_to_kfunc_hook`, `kernel/bpf/btf.c`).
    #[must_use]
    pub const fn of(prog_type: ProgType) -> Self {
        match prog_type {
            ProgType::Xdp => Self::XDP,
            ProgType::SchedCls => Self::TC,
            ProgType::StructOps => Self::STRUCT_OPS,
            ProgType::Tracing | ProgType::Tracepoint | ProgType::PerfEvent | ProgType::Lsm => {
                Self::TRACING
            }
            ProgType::Syscall => Self::SYSCALL,
            ProgType::CgroupSkb
            | ProgType::CgroupSock
            | ProgType::CgroupDevice
            | ProgType::CgroupSockAddr
            | ProgType::CgroupSockopt
            | ProgType::CgroupSysctl
            | ProgType::SockOps => Self::CGROUP,
            ProgType::SchedAct => Self::SCHED_ACT,
            ProgType::SkSkb => Self::SK_SKB,
            ProgType::SocketFilter => Self::SOCKET_FILTER,
            ProgType::LwtIn | ProgType::LwtOut | ProgType::LwtXmit | ProgType::LwtSeg6local => {
                Self::LWT
            }
            ProgType::Netfilter => Self::NETFILTER,
            ProgType::Kprobe => Self::KPROBE,
            _ => Self::empty(),
        }
    }
}

/// Additional requirements of a set on a program (`btf_kfunc_filter_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// LSM programs only (`bpf_fs_kfuncs_filter`, `fs/bpf_fs_kfuncs.c`;
    /// `bpf_get_fsverity_digest_filter`, `fs/verity/measure.c`).
    Lsm,
    /// Iterators only (`tracing_iter_filter`, `net/core/filter.c`).
    Iterator,
    /// Probes that are called at entry and return of a function (`bpf_kprobe_multi_filter`,
    /// `kernel/trace/bpf_trace.c`).
    Session,
    /// XDP programs that are bound to a device
    /// (`bpf_prog_is_dev_bound`, `kernel/bpf/verifier.c`).
    DeviceBound,
    /// Implementations of these members of `struct Qdisc_ops` (`bpf_qdisc_kfunc_filter`,
    /// `net/sched/bpf_qdisc.c`).
    Qdisc(&'static [&'static str]),
}

impl Filter {
    /// Whether it accepts a program. Whether a program is device-bound can't be determined from
    /// `caller`.
    #[must_use]
    pub fn passes(self, caller: &Caller<'_>) -> bool {
        use AttachType as At;
        match self {
            Self::Lsm => caller.prog_type == ProgType::Lsm,
            Self::Iterator => caller.attach_type == Some(At::TraceIter),
            Self::Session => {
                matches!(
                    caller.attach_type,
                    Some(At::TraceKprobeSession | At::TraceUprobeSession)
                )
            }
            Self::DeviceBound => true,
            Self::Qdisc(members) => {
                caller.target == Some("Qdisc_ops")
                    && caller
                        .member
                        .is_some_and(|member| members.contains(&member))
            }
        }
    }
}

/// Kfuncs that are registered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Set {
    /// The programs that may call them.
    pub hooks: Hooks,
    /// Additional requirement on the programs.
    pub filter: Option<Filter>,
    /// The build option that they require, in addition to the common ones
    /// (`CONFIG_BPF_SYSCALL`, `CONFIG_NET`, `CONFIG_CGROUPS`).
    pub config: Option<&'static str>,
    /// Another set with the same functions.
    pub other: Option<&'static Self>,
}

impl Set {
    const fn of(hooks: &[Hooks]) -> Self {
        let (mut all, mut at) = (Hooks::empty(), 0);
        while at < hooks.len() {
            all = all.union(hooks[at]);
            at += 1;
        }
        Self {
            hooks: all,
            filter: None,
            config: None,
            other: None,
        }
    }

    const fn only(self, filter: Filter) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }

    const fn with(self, config: &'static str) -> Self {
        Self {
            config: Some(config),
            ..self
        }
    }

    /// The functions of this set, which are in another one, too.
    const fn and(self, other: &'static Self) -> Self {
        Self {
            other: Some(other),
            ..self
        }
    }

    /// Whether a program may call the functions (`btf_kfunc_id_set_contains`,
    /// `kernel/bpf/btf.c`).
    #[must_use]
    pub fn covers(&self, caller: &Caller<'_>) -> bool {
        let hooks = Hooks::COMMON.union(Hooks::of(caller.prog_type));
        self.hooks.intersects(hooks) && self.filter.is_none_or(|filter| filter.passes(caller))
            || self.other.is_some_and(|other| other.covers(caller))
    }
}

/// `common_btf_ids` and similar sets: all programs.
pub(super) const COMMON: Set = Set::of(&[Hooks::COMMON]);
/// Kfuncs of [`COMMON`] that require tracing support.
pub(super) const COMMON_EVENTS: Set = COMMON.with("CONFIG_BPF_EVENTS");
/// Kfuncs of [`COMMON`] that require shared buffers.
pub(super) const COMMON_DMABUF: Set = COMMON.with("CONFIG_DMA_SHARED_BUFFER");
/// Kfuncs of [`COMMON`] that require BPF LSM.
pub(super) const COMMON_LSM: Set = COMMON.with("CONFIG_BPF_LSM");
/// `generic_btf_ids`: objects, graphs, tasks, cgroups, exceptions.
pub(super) const GENERIC: Set = Set::of(&[
    Hooks::XDP,
    Hooks::TC,
    Hooks::STRUCT_OPS,
    Hooks::TRACING,
    Hooks::SYSCALL,
    Hooks::CGROUP,
]);
/// Kfuncs of [`GENERIC`] for keys.
pub(super) const GENERIC_KEYS: Set = GENERIC.with("CONFIG_KEYS");
/// Kfuncs of [`GENERIC`] for dumps of a crashed kernel.
pub(super) const GENERIC_CRASH: Set = GENERIC.with("CONFIG_CRASH_DUMP");
/// Kfuncs of [`GENERIC`] for signatures.
pub(super) const GENERIC_PKCS7: Set = GENERIC.with("CONFIG_SYSTEM_DATA_VERIFICATION");
/// `cpumask_kfunc_btf_ids`.
pub(super) const CPUMASK: Set = Set::of(&[Hooks::STRUCT_OPS, Hooks::TRACING, Hooks::SYSCALL]);
/// `crypt_init_kfunc_btf_ids`.
pub(super) const CRYPTO_CONTEXT: Set = Set::of(&[Hooks::SYSCALL]).with("CONFIG_CRYPTO");
/// `crypt_kfunc_btf_ids`.
pub(super) const CRYPTO: Set =
    Set::of(&[Hooks::XDP, Hooks::TC, Hooks::SCHED_ACT]).with("CONFIG_CRYPTO");
/// `bpf_kfunc_check_set_skb` and `bpf_tracing_kfunc_set`.
pub(super) const SKB: Set = Set::of(&[
    Hooks::TC,
    Hooks::TRACING,
    Hooks::CGROUP,
    Hooks::SCHED_ACT,
    Hooks::SK_SKB,
    Hooks::SOCKET_FILTER,
    Hooks::LWT,
    Hooks::NETFILTER,
]);
/// Kfuncs of [`SKB`] that are in `bpf_qdisc_kfunc_set`, too.
pub(super) const SKB_OR_QDISC: Set = SKB.and(&QDISC);
/// `bpf_kfunc_check_set_skb_meta`.
pub(super) const SKB_META: Set = Set::of(&[Hooks::TC, Hooks::SCHED_ACT]);
/// `bpf_kfunc_check_set_xdp`.
pub(super) const XDP: Set = Set::of(&[Hooks::XDP]);
/// `xdp_metadata_kfunc_ids`.
pub(super) const XDP_METADATA: Set = XDP.only(Filter::DeviceBound);
/// `xfrm_state_kfunc_set`.
pub(super) const XFRM_STATE: Set = XDP.with("CONFIG_XFRM");
/// `nf_flow_kfunc_set`.
pub(super) const FLOW_TABLE: Set = XDP.with("CONFIG_NF_FLOW_TABLE");
/// `nf_conntrack_kfunc_set` and `nf_bpf_nat_kfunc_set`.
pub(super) const CONNTRACK: Set = Set::of(&[Hooks::XDP, Hooks::TC]).with("CONFIG_NF_CONNTRACK");
/// `bpf_kfunc_check_set_tcp_reqsk`.
pub(super) const TCP_REQUEST: Set = Set::of(&[Hooks::TC]);
/// `fou_kfunc_set`.
pub(super) const FOU: Set = Set::of(&[Hooks::TC]).with("CONFIG_NET_FOU");
/// `xfrm_interface_kfunc_set`.
pub(super) const XFRM_INTERFACE: Set = Set::of(&[Hooks::TC]).with("CONFIG_XFRM_INTERFACE");
/// `bpf_kfunc_check_set_sock_addr`, `…_sock_ops`.
pub(super) const CGROUP: Set = Set::of(&[Hooks::CGROUP]);
/// `bpf_fs_kfunc_set`.
pub(super) const FILES: Set = Set::of(&[Hooks::TRACING])
    .only(Filter::Lsm)
    .with("CONFIG_BPF_LSM");
/// `fsverity_set`.
pub(super) const FSVERITY: Set = Set::of(&[Hooks::TRACING])
    .only(Filter::Lsm)
    .with("CONFIG_FS_VERITY");
/// `bpf_rstat_kfunc_set`.
pub(super) const TRACING: Set = Set::of(&[Hooks::TRACING]);
/// `bpf_sk_iter_kfunc_set`.
pub(super) const SOCKET_ITERATOR: Set = TRACING.only(Filter::Iterator);
/// `bpf_kprobe_multi_kfunc_set`.
pub(super) const SESSION: Set = Set::of(&[Hooks::KPROBE])
    .only(Filter::Session)
    .with("CONFIG_BPF_EVENTS");
/// `bpf_tcp_ca_kfunc_set`.
pub(super) const TCP: Set = Set::of(&[Hooks::STRUCT_OPS]);
/// `tcp_cubic_kfunc_set`.
pub(super) const TCP_CUBIC: Set = TCP.with("CONFIG_TCP_CONG_CUBIC");
/// `tcp_bbr_kfunc_set`.
pub(super) const TCP_BBR: Set = TCP.with("CONFIG_TCP_CONG_BBR");
/// `tcp_dctcp_kfunc_set`.
pub(super) const TCP_DCTCP: Set = TCP.with("CONFIG_TCP_CONG_DCTCP");
/// `bpf_qdisc_kfunc_set`, those for all members (`qdisc_common_kfunc_set`).
pub(super) const QDISC: Set = qdisc(&["enqueue", "dequeue", "init", "reset", "destroy"]);
/// Kfuncs for both directions of a queue (`qdisc_enqueue_kfunc_set` and
/// `qdisc_dequeue_kfunc_set`).
pub(super) const QDISC_QUEUE: Set = qdisc(&["enqueue", "dequeue"]);
/// Kfuncs for what enters a queue (`qdisc_enqueue_kfunc_set`).
pub(super) const QDISC_ENQUEUE: Set = qdisc(&["enqueue"]);
/// Kfuncs for what leaves a queue (`qdisc_dequeue_kfunc_set`).
pub(super) const QDISC_DEQUEUE: Set = qdisc(&["dequeue"]);
/// Kfuncs that only the kernel's own prologues and epilogues call.
pub(super) const QDISC_HIDDEN: Set = qdisc(&[]);

const fn qdisc(members: &'static [&'static str]) -> Set {
    Set::of(&[Hooks::STRUCT_OPS])
        .only(Filter::Qdisc(members))
        .with("CONFIG_NET_SCH_BPF")
}
/// `hid_bpf_kfunc_set`.
pub(super) const HID: Set = Set::of(&[Hooks::STRUCT_OPS]).with("CONFIG_HID_BPF");
/// `hid_bpf_syscall_kfunc_set`, in addition to [`HID`].
pub(super) const HID_SYSCALL: Set =
    Set::of(&[Hooks::STRUCT_OPS, Hooks::SYSCALL]).with("CONFIG_HID_BPF");
/// `sched_ext` schedulers.
pub(super) const SCHED_EXT: Set = Set::of(&[Hooks::STRUCT_OPS]).with("CONFIG_SCHED_CLASS_EXT");
/// Kfuncs of schedulers that need no lock of the kernel (`scx_kfunc_set_unlocked`).
pub(super) const SCHED_EXT_UNLOCKED: Set =
    Set::of(&[Hooks::STRUCT_OPS, Hooks::SYSCALL]).with("CONFIG_SCHED_CLASS_EXT");
/// Kfuncs for schedulers and related programs (`scx_kfunc_set_any`, `scx_kfunc_set_idle`).
pub(super) const SCHED_EXT_ANY: Set =
    Set::of(&[Hooks::STRUCT_OPS, Hooks::TRACING, Hooks::SYSCALL]).with("CONFIG_SCHED_CLASS_EXT");
/// `bpf_prog_test_kfunc_set`: destructors of test objects (`net/bpf/test_run.c`).
pub(super) const TEST: Set = Set::of(&[Hooks::TC, Hooks::TRACING, Hooks::SYSCALL]);
/// `bpf_test_modify_return_set` (`net/bpf/test_run.c`).
pub(super) const MODIFY_RETURN: Set = Set::of(&[Hooks::FMODRET]);
/// Functions that are both called and attached to (`net/bpf/test_run.c`).
pub(super) const MODIFY_RETURN_CALLED: Set = Set::of(&[Hooks::COMMON, Hooks::FMODRET]);
