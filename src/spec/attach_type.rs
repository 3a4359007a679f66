//! Attach types (`enum bpf_attach_type`, `include/uapi/linux/bpf.h`): the hook that a
//! program attaches to. The verifier's rules for contexts and return values depend on it
//! for some program types.

use super::numbered::numbered;

numbered! {
    /// The attach type of a program (`expected_attach_type` of `BPF_PROG_LOAD`).
    ///
    /// The kernel's field has no "none": programs without attach types use number 0,
    /// [`CgroupInetIngress`](Self::CgroupInetIngress). Here they have `None` in an
    /// `Option`.
    #[non_exhaustive]
    pub enum AttachType {
        CgroupInetIngress = 0, "cgroup_inet_ingress";
        CgroupInetEgress = 1, "cgroup_inet_egress";
        CgroupInetSockCreate = 2, "cgroup_inet_sock_create";
        CgroupSockOps = 3, "cgroup_sock_ops";
        SkSkbStreamParser = 4, "sk_skb_stream_parser";
        SkSkbStreamVerdict = 5, "sk_skb_stream_verdict";
        CgroupDevice = 6, "cgroup_device";
        SkMsgVerdict = 7, "sk_msg_verdict";
        CgroupInet4Bind = 8, "cgroup_inet4_bind";
        CgroupInet6Bind = 9, "cgroup_inet6_bind";
        CgroupInet4Connect = 10, "cgroup_inet4_connect";
        CgroupInet6Connect = 11, "cgroup_inet6_connect";
        CgroupInet4PostBind = 12, "cgroup_inet4_post_bind";
        CgroupInet6PostBind = 13, "cgroup_inet6_post_bind";
        CgroupUdp4Sendmsg = 14, "cgroup_udp4_sendmsg";
        CgroupUdp6Sendmsg = 15, "cgroup_udp6_sendmsg";
        LircMode2 = 16, "lirc_mode2";
        FlowDissector = 17, "flow_dissector";
        CgroupSysctl = 18, "cgroup_sysctl";
        CgroupUdp4Recvmsg = 19, "cgroup_udp4_recvmsg";
        CgroupUdp6Recvmsg = 20, "cgroup_udp6_recvmsg";
        CgroupGetsockopt = 21, "cgroup_getsockopt";
        CgroupSetsockopt = 22, "cgroup_setsockopt";
        TraceRawTp = 23, "trace_raw_tp";
        TraceFentry = 24, "trace_fentry";
        TraceFexit = 25, "trace_fexit";
        ModifyReturn = 26, "modify_return";
        LsmMac = 27, "lsm_mac";
        TraceIter = 28, "trace_iter";
        CgroupInet4Getpeername = 29, "cgroup_inet4_getpeername";
        CgroupInet6Getpeername = 30, "cgroup_inet6_getpeername";
        CgroupInet4Getsockname = 31, "cgroup_inet4_getsockname";
        CgroupInet6Getsockname = 32, "cgroup_inet6_getsockname";
        XdpDevmap = 33, "xdp_devmap";
        CgroupInetSockRelease = 34, "cgroup_inet_sock_release";
        XdpCpumap = 35, "xdp_cpumap";
        SkLookup = 36, "sk_lookup";
        Xdp = 37, "xdp";
        SkSkbVerdict = 38, "sk_skb_verdict";
        SkReuseportSelect = 39, "sk_reuseport_select";
        SkReuseportSelectOrMigrate = 40, "sk_reuseport_select_or_migrate";
        PerfEvent = 41, "perf_event";
        TraceKprobeMulti = 42, "trace_kprobe_multi";
        LsmCgroup = 43, "lsm_cgroup";
        StructOps = 44, "struct_ops";
        Netfilter = 45, "netfilter";
        TcxIngress = 46, "tcx_ingress";
        TcxEgress = 47, "tcx_egress";
        TraceUprobeMulti = 48, "trace_uprobe_multi";
        CgroupUnixConnect = 49, "cgroup_unix_connect";
        CgroupUnixSendmsg = 50, "cgroup_unix_sendmsg";
        CgroupUnixRecvmsg = 51, "cgroup_unix_recvmsg";
        CgroupUnixGetpeername = 52, "cgroup_unix_getpeername";
        CgroupUnixGetsockname = 53, "cgroup_unix_getsockname";
        NetkitPrimary = 54, "netkit_primary";
        NetkitPeer = 55, "netkit_peer";
        TraceKprobeSession = 56, "trace_kprobe_session";
        TraceUprobeSession = 57, "trace_uprobe_session";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_uapi_header_without_prefix() {
        assert_eq!(
            AttachType::CgroupInet4Connect.name(),
            "cgroup_inet4_connect"
        );
        assert_eq!(AttachType::TraceRawTp.number(), 23);
        assert_eq!(
            AttachType::from_name("trace_uprobe_session"),
            Some(AttachType::TraceUprobeSession)
        );
    }
}
