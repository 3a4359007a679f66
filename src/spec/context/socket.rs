//! Contexts of programs on sockets, and the sockets that they point to.

use super::table::layouts;

layouts! {
    /// A socket (`bpf_sock_is_valid_access`, `net/core/filter.c`). The first three
    /// columns are contexts of cgroup programs: at creation and release, after an IPv4
    /// bind, after an IPv6 bind. The others are objects that a program points to: a
    /// socket of any kind, a full socket.
    SOCK: "bpf_sock", 80 bytes {
          0 bound_dev_if: u32     | [rw   -    -    r    r];
          4 family: u32           | [l    l    l    l    l];
          8 type: u32             | [l    l    l    -    l];
         12 protocol: u32         | [l    l    l    -    l];
         16 mark: u32             | [rw   -    -    -    r];
         20 priority: u32         | [rw   -    -    -    r];
         24 src_ip4: u32          | [-    p    -    p    p];
         28 src_ip6: [u32; 4]     | [-    -    p    p    p];
         44 src_port: u32         | [-    l    l    l    l];
         48 dst_port: u16         | [port port port port port];
         52 dst_ip4: u32          | [p    p    p    p    p];
         56 dst_ip6: [u32; 4]     | [p    p    p    p    p];
         72 state: u32            | [l    l    l    l    l];
         76 rx_queue_mapping: u32 | [l    l    l    l    l];
    }

    /// A TCP socket that a program points to (`bpf_tcp_sock_is_valid_access`).
    TCP_SOCK: "bpf_tcp_sock", 112 bytes {
          0 snd_cwnd: u32         | [r];
          4 srtt_us: u32          | [r];
          8 rtt_min: u32          | [r];
         12 snd_ssthresh: u32     | [r];
         16 rcv_nxt: u32          | [r];
         20 snd_nxt: u32          | [r];
         24 snd_una: u32          | [r];
         28 mss_cache: u32        | [r];
         32 ecn_flags: u32        | [r];
         36 rate_delivered: u32   | [r];
         40 rate_interval_us: u32 | [r];
         44 packets_out: u32      | [r];
         48 retrans_out: u32      | [r];
         52 total_retrans: u32    | [r];
         56 segs_in: u32          | [r];
         60 data_segs_in: u32     | [r];
         64 segs_out: u32         | [r];
         68 data_segs_out: u32    | [r];
         72 lost_out: u32         | [r];
         76 sacked_out: u32       | [r];
         80 bytes_received: u64   | [u];
         88 bytes_acked: u64      | [u];
         96 dsack_dups: u32       | [r];
        100 delivered: u32        | [r];
        104 delivered_ce: u32     | [r];
        108 icsk_retransmits: u32 | [r];
    }

    /// An event of a TCP connection (`sock_ops_is_valid_access`).
    SOCK_OPS: "bpf_sock_ops", 224 bytes {
          0 op: u32                    | [r];
          4 args: [u32; 4]             | [r];
          4 reply: u32                 | [rw];
          4 replylong: [u32; 4]        | [r];
         20 family: u32                | [r];
         24 remote_ip4: u32            | [r];
         28 local_ip4: u32             | [r];
         32 remote_ip6: [u32; 4]       | [r];
         48 local_ip6: [u32; 4]        | [r];
         64 remote_port: u32           | [r];
         68 local_port: u32            | [r];
         72 is_fullsock: u32           | [r];
         76 snd_cwnd: u32              | [r];
         80 srtt_us: u32               | [r];
         84 bpf_sock_ops_cb_flags: u32 | [r];
         88 state: u32                 | [r];
         92 rtt_min: u32               | [r];
         96 snd_ssthresh: u32          | [r];
        100 rcv_nxt: u32               | [r];
        104 snd_nxt: u32               | [r];
        108 snd_una: u32               | [r];
        112 mss_cache: u32             | [r];
        116 ecn_flags: u32             | [r];
        120 rate_delivered: u32        | [r];
        124 rate_interval_us: u32      | [r];
        128 packets_out: u32           | [r];
        132 retrans_out: u32           | [r];
        136 total_retrans: u32         | [r];
        140 segs_in: u32               | [r];
        144 data_segs_in: u32          | [r];
        148 segs_out: u32              | [r];
        152 data_segs_out: u32         | [r];
        156 lost_out: u32              | [r];
        160 sacked_out: u32            | [r];
        164 sk_txhash: u32             | [rw];
        168 bytes_received: u64        | [r];
        176 bytes_acked: u64           | [r];
        184 sk: ptr                    | [socket];
        192 skb_data: ptr              | [packet];
        200 skb_data_end: ptr          | [end];
        208 skb_len: u32               | [r];
        212 skb_tcp_flags: u32         | [l];
        216 skb_hwtstamp: u64          | [r];
    }

    /// A socket address that is being used (`sock_addr_is_valid_access`). Columns: IPv4,
    /// IPv6, sending to IPv4, sending to IPv6, Unix.
    SOCK_ADDR: "bpf_sock_addr", 72 bytes {
          0 user_family: u32      | [r    r    r    r    r];
          4 user_ip4: u32         | [pw   -    pw   -    -];
          8 user_ip6: [u32; 4]    | [-    aw   -    aw   -];
         24 user_port: u32        | [pw   pw   pw   pw   pw];
         28 family: u32           | [r    r    r    r    r];
         32 type: u32             | [r    r    r    r    r];
         36 protocol: u32         | [r    r    r    r    r];
         40 msg_src_ip4: u32      | [-    -    pw   -    -];
         44 msg_src_ip6: [u32; 4] | [-    -    -    aw   -];
         64 sk: ptr               | [live live live live live];
    }

    /// A packet whose socket is being looked up (`sk_lookup_is_valid_access`).
    SK_LOOKUP: "bpf_sk_lookup", 72 bytes {
          0 sk: ptr              | [socket];
          0 cookie: u64          | [-];
          8 family: u32          | [p];
         12 protocol: u32        | [p];
         16 remote_ip4: u32      | [p];
         20 remote_ip6: [u32; 4] | [p];
         36 remote_port: u16     | [pad];
         40 local_ip4: u32       | [p];
         44 local_ip6: [u32; 4]  | [p];
         60 local_port: u32      | [p];
         64 ingress_ifindex: u32 | [p];
    }

    /// A socket option being read or set (`cg_sockopt_is_valid_access`,
    /// `kernel/bpf/cgroup.c`). Columns: get, set.
    SOCKOPT: "bpf_sockopt", 40 bytes {
          0 sk: ptr         | [live   live];
          8 optval: ptr     | [packet packet];
         16 optval_end: ptr | [end    end];
         24 level: u32      | [r      rw];
         28 optname: u32    | [r      rw];
         32 optlen: u32     | [rw     rw];
         36 retval: u32     | [rw     -];
    }

    /// An AF_XDP socket that a program points to.
    XDP_SOCK: "bpf_xdp_sock", 4 bytes {
        0 queue_id: u32 | [r];
    }
}
