//! Program types (`enum bpf_prog_type`, `include/uapi/linux/bpf.h`): their contexts, rights
//! and return values.

use bitflags::bitflags;

use super::attach_type::AttachType;
use super::numbered::numbered;

/// The structure that `r1` points to when a program starts.
///
/// [`crate::spec::context`] has the fields and rules of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ContextKind {
    /// `struct __sk_buff`: a packet as the network stack sees it.
    SkBuff,
    /// `struct xdp_md`: a packet as the driver sees it.
    XdpMd,
    /// The user's registers (`struct pt_regs`; `struct user_pt_regs` on arm64).
    PtRegs,
    /// The raw bytes of a trace event's record.
    Tracepoint,
    /// `struct bpf_perf_event_data`: registers, sample period and address.
    PerfEvent,
    /// `struct bpf_raw_tracepoint_args`: arguments as an array of `u64`.
    RawTracepoint,
    /// Arguments of a traced kernel function as an array of `u64`, typed by BTF.
    BtfArgs,
    /// `struct bpf_sock`.
    Sock,
    /// `struct bpf_sock_ops`.
    SockOps,
    /// `struct bpf_sock_addr`.
    SockAddr,
    /// `struct sk_msg_md`.
    SkMsg,
    /// `struct sk_reuseport_md`.
    SkReuseport,
    /// `struct bpf_sk_lookup`.
    SkLookup,
    /// `struct __sk_buff` with only the flow dissector's fields.
    FlowDissector,
    /// `struct bpf_cgroup_dev_ctx`.
    CgroupDevice,
    /// `struct bpf_sysctl`.
    CgroupSysctl,
    /// `struct bpf_sockopt`.
    CgroupSockopt,
    /// `struct bpf_nf_ctx`: pointers to the hook's state and the packet.
    Netfilter,
    /// One `u32`: an infrared receiver's mode2 sample.
    LircMode2,
    /// Bytes that user space passes to `BPF_PROG_TEST_RUN`, up to 64 KiB.
    Syscall,
    /// The context of the program that is replaced or extended.
    Target,
}

/// The kernel subsystem that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Packets and sockets.
    Networking,
    /// Verdicts on the processes of a cgroup.
    Cgroup,
    /// Tracing of the kernel or user space.
    Tracing,
    /// A replacement of a kernel function, or a program called by user space.
    Other,
}

/// A program type's direct access to packet bytes (`may_access_direct_pkt_data`,
/// `kernel/bpf/verifier.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketAccess {
    /// No packet pointers.
    None,
    /// Packet bytes may be read.
    Read,
    /// Packet bytes may be read and written.
    Write,
}

bitflags! {
    /// Further properties of a program type.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Traits: u8 {
        /// `BPF_PROG_TEST_RUN` can run it.
        const TEST_RUN = 1 << 0;
        /// The legacy `ABS` and `IND` packet loads are allowed (`may_access_skb`).
        const LEGACY_LOADS = 1 << 1;
        /// Its attach target is given as a BTF id at load time.
        const ATTACH_BTF = 1 << 2;
        /// Loading requires `CAP_NET_ADMIN` (`is_net_admin_prog_type`).
        const NET_ADMIN = 1 << 3;
        /// Loading requires `CAP_PERFMON` (`is_perfmon_prog_type`).
        const PERFMON = 1 << 4;
    }
}

/// Valid values of `expected_attach_type` (`bpf_prog_load_check_attach`,
/// `kernel/bpf/syscall.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachRule {
    /// Not checked at load.
    Any,
    /// Must be 0.
    Zero,
    /// One of these; a 0 that is not in the list is replaced by the first one.
    OneOf(&'static [AttachType]),
}

/// The columns of a program type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProgTypeInfo {
    /// The structure that `r1` points to at the start.
    pub context: ContextKind,
    /// The kernel subsystem that runs it.
    pub family: Family,
    /// Direct access to packet bytes.
    pub packet: PacketAccess,
    /// Valid attach types at load.
    pub attach: AttachRule,
    /// Further properties.
    pub traits: Traits,
}

const fn row(context: ContextKind, family: Family, traits: Traits) -> ProgTypeInfo {
    ProgTypeInfo {
        context,
        family,
        packet: PacketAccess::None,
        attach: Any,
        traits,
    }
}

impl ProgTypeInfo {
    const fn packet(mut self, packet: PacketAccess) -> Self {
        self.packet = packet;
        self
    }

    const fn attach(mut self, attach: AttachRule) -> Self {
        self.attach = attach;
        self
    }
}

const NONE: Traits = Traits::empty();
const TEST_RUN: Traits = Traits::TEST_RUN;
const LEGACY_LOADS: Traits = Traits::LEGACY_LOADS;
const NET_ADMIN: Traits = Traits::NET_ADMIN;
const PERFMON: Traits = Traits::PERFMON;
const HOOK: Traits = Traits::PERFMON.union(Traits::ATTACH_BTF);

use AttachRule::{Any, OneOf, Zero};
use AttachType as At;
use ContextKind as Ctx;
use Family::{Cgroup, Networking, Other, Tracing};
use PacketAccess::{Read, Write};

numbered! {
    /// The type of a program, which determines all its rights.
    #[non_exhaustive]
    pub enum ProgType: ProgTypeInfo {
        SocketFilter = 1, "socket_filter" => row(Ctx::SkBuff, Networking, TEST_RUN.union(LEGACY_LOADS));
        Kprobe = 2, "kprobe" => row(Ctx::PtRegs, Tracing, PERFMON);
        SchedCls = 3, "sched_cls" => row(Ctx::SkBuff, Networking, TEST_RUN.union(LEGACY_LOADS).union(NET_ADMIN)).packet(Write);
        SchedAct = 4, "sched_act" => row(Ctx::SkBuff, Networking, TEST_RUN.union(LEGACY_LOADS).union(NET_ADMIN)).packet(Write);
        Tracepoint = 5, "tracepoint" => row(Ctx::Tracepoint, Tracing, PERFMON);
        Xdp = 6, "xdp" => row(Ctx::XdpMd, Networking, TEST_RUN.union(NET_ADMIN)).packet(Write);
        PerfEvent = 7, "perf_event" => row(Ctx::PerfEvent, Tracing, PERFMON);
        CgroupSkb = 8, "cgroup_skb" => row(Ctx::SkBuff, Cgroup, TEST_RUN).packet(Read)
            .attach(OneOf(&[At::CgroupInetIngress, At::CgroupInetEgress]));
        CgroupSock = 9, "cgroup_sock" => row(Ctx::Sock, Cgroup, NET_ADMIN).attach(OneOf(&[
            At::CgroupInetSockCreate, At::CgroupInetSockRelease, At::CgroupInet4PostBind, At::CgroupInet6PostBind,
        ]));
        LwtIn = 10, "lwt_in" => row(Ctx::SkBuff, Networking, TEST_RUN.union(NET_ADMIN)).packet(Read);
        LwtOut = 11, "lwt_out" => row(Ctx::SkBuff, Networking, TEST_RUN.union(NET_ADMIN)).packet(Read);
        LwtXmit = 12, "lwt_xmit" => row(Ctx::SkBuff, Networking, TEST_RUN.union(NET_ADMIN)).packet(Write);
        SockOps = 13, "sock_ops" => row(Ctx::SockOps, Networking, NET_ADMIN);
        SkSkb = 14, "sk_skb" => row(Ctx::SkBuff, Networking, NET_ADMIN).packet(Write);
        CgroupDevice = 15, "cgroup_device" => row(Ctx::CgroupDevice, Cgroup, NET_ADMIN);
        SkMsg = 16, "sk_msg" => row(Ctx::SkMsg, Networking, NET_ADMIN).packet(Write);
        RawTracepoint = 17, "raw_tracepoint" => row(Ctx::RawTracepoint, Tracing, TEST_RUN.union(PERFMON));
        CgroupSockAddr = 18, "cgroup_sock_addr" => row(Ctx::SockAddr, Cgroup, NET_ADMIN).attach(OneOf(SOCK_ADDR_HOOKS));
        LwtSeg6local = 19, "lwt_seg6local" => row(Ctx::SkBuff, Networking, TEST_RUN.union(NET_ADMIN)).packet(Read);
        LircMode2 = 20, "lirc_mode2" => row(Ctx::LircMode2, Other, NONE);
        SkReuseport = 21, "sk_reuseport" => row(Ctx::SkReuseport, Networking, NONE).packet(Read)
            .attach(OneOf(&[At::SkReuseportSelect, At::SkReuseportSelectOrMigrate]));
        FlowDissector = 22, "flow_dissector" => row(Ctx::FlowDissector, Networking, TEST_RUN.union(NET_ADMIN)).packet(Read);
        CgroupSysctl = 23, "cgroup_sysctl" => row(Ctx::CgroupSysctl, Cgroup, NET_ADMIN);
        RawTracepointWritable = 24, "raw_tracepoint_writable" => row(Ctx::RawTracepoint, Tracing, PERFMON);
        CgroupSockopt = 25, "cgroup_sockopt" => row(Ctx::CgroupSockopt, Cgroup, NET_ADMIN).packet(Write)
            .attach(OneOf(&[At::CgroupGetsockopt, At::CgroupSetsockopt]));
        Tracing = 26, "tracing" => row(Ctx::BtfArgs, Tracing, TEST_RUN.union(HOOK));
        StructOps = 27, "struct_ops" => row(Ctx::BtfArgs, Other, TEST_RUN.union(HOOK));
        Ext = 28, "ext" => row(Ctx::Target, Other, NET_ADMIN.union(HOOK)).attach(Zero);
        Lsm = 29, "lsm" => row(Ctx::BtfArgs, Tracing, HOOK);
        SkLookup = 30, "sk_lookup" => row(Ctx::SkLookup, Networking, TEST_RUN).attach(OneOf(&[At::SkLookup]));
        Syscall = 31, "syscall" => row(Ctx::Syscall, Other, TEST_RUN).attach(Zero);
        Netfilter = 32, "netfilter" => row(Ctx::Netfilter, Networking, TEST_RUN.union(NET_ADMIN))
            .attach(OneOf(&[At::Netfilter]));
    }
}

const SOCK_ADDR_HOOKS: &[AttachType] = &[
    At::CgroupInet4Bind,
    At::CgroupInet6Bind,
    At::CgroupInet4Connect,
    At::CgroupInet6Connect,
    At::CgroupUnixConnect,
    At::CgroupInet4Getpeername,
    At::CgroupInet6Getpeername,
    At::CgroupUnixGetpeername,
    At::CgroupInet4Getsockname,
    At::CgroupInet6Getsockname,
    At::CgroupUnixGetsockname,
    At::CgroupUdp4Sendmsg,
    At::CgroupUdp6Sendmsg,
    At::CgroupUnixSendmsg,
    At::CgroupUdp4Recvmsg,
    At::CgroupUdp6Recvmsg,
    At::CgroupUnixRecvmsg,
];

/// Valid values of `r0` at the exit of the main program (`check_return_code`,
/// `kernel/bpf/verifier.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnRule {
    /// Any number.
    Any,
    /// A number in `min..=max`. If it can be in `binds_attach_type`, the program may only
    /// attach with its declared attach type.
    Within {
        /// The smallest value.
        min: i32,
        /// The largest value.
        max: i32,
        /// Values that are only valid for the declared attach type.
        binds_attach_type: Option<(i32, i32)>,
    },
    /// Determined by the hook's prototype in BTF: no check for a hook that returns `void`,
    /// otherwise the range of that hook.
    Hook,
    /// The kernel rejects the combination (`ENOTSUPP`).
    Refused,
}

impl ReturnRule {
    const fn within(min: i32, max: i32) -> Self {
        Self::Within {
            min,
            max,
            binds_attach_type: None,
        }
    }
}

impl ProgType {
    /// The attach type that a program loads with if its loader passes `declared` (`None`:
    /// number 0), or `None` if the kernel rejects it.
    #[must_use]
    pub fn attach_type(self, declared: Option<AttachType>) -> Option<AttachType> {
        let number = declared.map_or(0, AttachType::number);
        match self.info().attach {
            Any => declared.or(AttachType::from_number(0)),
            Zero => AttachType::from_number(0).filter(|_| number == 0),
            OneOf(list) => match list.iter().find(|allowed| allowed.number() == number) {
                Some(found) => Some(*found),
                None if number == 0 && matches!(self, Self::CgroupSock | Self::SkReuseport) => {
                    list.first().copied()
                }
                None => None,
            },
        }
    }

    /// The attach types of which a program has one; empty if the kernel takes any, or none.
    #[cfg(any(feature = "cli", all(feature = "kernel", target_os = "linux")))]
    pub(crate) fn attach_types(self) -> &'static [AttachType] {
        match self.info().attach {
            OneOf(list) => list,
            Any | Zero => &[],
        }
    }

    /// The valid return values, by attach type.
    #[doc(hidden)]
    #[must_use]
    pub const fn return_rule(self, attach: Option<AttachType>) -> ReturnRule {
        match (self, attach) {
            (
                Self::CgroupSockAddr,
                Some(
                    At::CgroupUdp4Recvmsg
                    | At::CgroupUdp6Recvmsg
                    | At::CgroupUnixRecvmsg
                    | At::CgroupInet4Getpeername
                    | At::CgroupInet6Getpeername
                    | At::CgroupUnixGetpeername
                    | At::CgroupInet4Getsockname
                    | At::CgroupInet6Getsockname
                    | At::CgroupUnixGetsockname,
                ),
            ) => ReturnRule::within(1, 1),
            (Self::CgroupSockAddr, Some(At::CgroupInet4Bind | At::CgroupInet6Bind)) => {
                ReturnRule::within(0, 3)
            }
            (Self::CgroupSkb, Some(At::CgroupInetEgress)) => ReturnRule::Within {
                min: 0,
                max: 3,
                binds_attach_type: Some((2, 3)),
            },
            (
                Self::CgroupSkb
                | Self::CgroupSock
                | Self::CgroupSockAddr
                | Self::SockOps
                | Self::CgroupDevice
                | Self::CgroupSysctl
                | Self::CgroupSockopt
                | Self::SkLookup
                | Self::Netfilter,
                _,
            )
            | (Self::Tracing, Some(At::TraceIter))
            | (Self::Kprobe, Some(At::TraceKprobeSession | At::TraceUprobeSession)) => {
                ReturnRule::within(0, 1)
            }
            (Self::Tracing, Some(At::TraceFentry | At::TraceFexit)) => ReturnRule::within(0, 0),
            (Self::Tracing, Some(At::TraceRawTp | At::ModifyReturn)) => ReturnRule::Any,
            (Self::Tracing, _) => ReturnRule::Refused,
            (Self::Lsm | Self::StructOps, _) => ReturnRule::Hook,
            _ => ReturnRule::Any,
        }
    }

    /// Whether a program of this type and attach type may sleep
    /// (`can_be_sleepable`, `kernel/bpf/verifier.c`).
    #[must_use]
    pub const fn may_sleep(self, attach: Option<AttachType>) -> bool {
        match self {
            Self::Tracing => matches!(
                attach,
                Some(At::TraceFentry | At::TraceFexit | At::ModifyReturn | At::TraceIter)
            ),
            Self::Lsm => !matches!(attach, Some(At::LsmCgroup)),
            // Of the kprobe types only uprobes may sleep; that is checked at attach.
            Self::Kprobe | Self::StructOps | Self::Syscall => true,
            _ => false,
        }
    }

    /// The name in the kernel's header: `BPF_PROG_TYPE_XDP`.
    #[must_use]
    pub fn uapi_name(self) -> String {
        format!("BPF_PROG_TYPE_{}", self.name().to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attach_types_are_checked_as_the_syscall_does() {
        assert_eq!(
            ProgType::CgroupSkb.attach_type(None),
            Some(At::CgroupInetIngress)
        );
        assert_eq!(
            ProgType::CgroupSock.attach_type(None),
            Some(At::CgroupInetSockCreate)
        );
        assert_eq!(
            ProgType::SkReuseport.attach_type(None),
            Some(At::SkReuseportSelect)
        );
        assert_eq!(ProgType::CgroupSockAddr.attach_type(None), None);
        assert_eq!(ProgType::SkLookup.attach_type(None), None);
        assert_eq!(ProgType::Syscall.attach_type(Some(At::Xdp)), None);
        assert_eq!(
            ProgType::Xdp.attach_type(Some(At::XdpCpumap)),
            Some(At::XdpCpumap)
        );
    }

    #[test]
    fn return_rules_depend_on_the_attach_type() {
        use ReturnRule::{Any, Hook, Refused, Within};
        assert_eq!(ProgType::Tracepoint.return_rule(None), Any);
        assert_eq!(ProgType::Xdp.return_rule(Some(At::Xdp)), Any);
        assert_eq!(
            ProgType::CgroupSkb.return_rule(Some(At::CgroupInetEgress)),
            Within {
                min: 0,
                max: 3,
                binds_attach_type: Some((2, 3))
            }
        );
        assert_eq!(
            ProgType::CgroupSkb.return_rule(None),
            ReturnRule::within(0, 1)
        );
        assert_eq!(
            ProgType::CgroupSockAddr.return_rule(Some(At::CgroupUdp4Recvmsg)),
            ReturnRule::within(1, 1)
        );
        assert_eq!(
            ProgType::Tracing.return_rule(Some(At::TraceFexit)),
            ReturnRule::within(0, 0)
        );
        assert_eq!(ProgType::Tracing.return_rule(Some(At::Xdp)), Refused);
        assert_eq!(ProgType::Lsm.return_rule(Some(At::LsmMac)), Hook);
    }

    #[test]
    fn what_sleeps() {
        assert!(ProgType::Syscall.may_sleep(None));
        assert!(ProgType::Tracing.may_sleep(Some(At::TraceFentry)));
        assert!(!ProgType::Tracing.may_sleep(Some(At::TraceRawTp)));
        assert!(!ProgType::Lsm.may_sleep(Some(At::LsmCgroup)));
        assert_eq!(
            ProgType::LwtSeg6local.uapi_name(),
            "BPF_PROG_TYPE_LWT_SEG6LOCAL"
        );
    }
}
