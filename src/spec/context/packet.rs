//! Contexts of programs that process packets.

use super::table::layouts;

layouts! {
    /// A packet in the network stack (`sk_filter_is_valid_access` and its siblings,
    /// `net/core/filter.c`). Columns: socket filter, tc, cgroup, lightweight tunnel,
    /// `sk_skb`, flow dissector.
    SK_BUFF: "__sk_buff", 192 bytes {
          0 len: u32             | [p      p      p      p      p      -];
          4 pkt_type: u32        | [p      p      p      p      p      -];
          8 mark: u32            | [p      pw     pw     pw     -      -];
         12 queue_mapping: u32   | [p      pw     p      p      p      -];
         16 protocol: u32        | [p      p      p      p      p      -];
         20 vlan_present: u32    | [p      p      p      p      p      -];
         24 vlan_tci: u32        | [p      p      p      p      p      -];
         28 vlan_proto: u32      | [p      p      p      p      p      -];
         32 priority: u32        | [p      pw     pw     pw     pw     -];
         36 ingress_ifindex: u32 | [p      p      p      p      p      -];
         40 ifindex: u32         | [p      p      p      p      p      -];
         44 tc_index: u32        | [p      pw     p      p      pw     -];
         48 cb: [u32; 5]         | [cw     cw     cw     cw     c      -];
         68 hash: u32            | [p      p      p      p      p      -];
         72 tc_classid: u32      | [-      pw     -      -      -      -];
         76 data: u32            | [-      packet packet packet packet packet];
         80 data_end: u32        | [-      end    end    end    end    end];
         84 napi_id: u32         | [p      p      p      p      p      -];
         88 family: u32          | [-      -      p      -      p      -];
         92 remote_ip4: u32      | [-      -      r      -      r      -];
         96 local_ip4: u32       | [-      -      r      -      r      -];
        100 remote_ip6: [u32; 4] | [-      -      r      -      r      -];
        116 local_ip6: [u32; 4]  | [-      -      r      -      r      -];
        132 remote_port: u32     | [-      -      p      -      p      -];
        136 local_port: u32      | [-      -      p      -      p      -];
        140 data_meta: u32       | [-      meta   -      -      -      -];
        144 flow_keys: ptr       | [-      -      -      -      -      keys];
        152 tstamp: u64          | [-      rw     rw     -      -      -];
        160 wire_len: u32        | [-      p      -      -      -      -];
        164 gso_segs: u32        | [p      p      p      p      p      -];
        168 sk: ptr              | [common common common common common -];
        176 gso_size: u32        | [p      p      p      p      p      -];
        180 tstamp_type: u8      | [-      r      -      -      -      -];
        184 hwtstamp: u64        | [-      r      r      -      -      -];
    }

    /// A packet in the driver (`xdp_is_valid_access`). Columns: on a device, in a
    /// device map.
    XDP_MD: "xdp_md", 24 bytes {
          0 data: u32            | [packet packet];
          4 data_end: u32        | [end    end];
          8 data_meta: u32       | [meta   meta];
         12 ingress_ifindex: u32 | [r      r];
         16 rx_queue_index: u32  | [r      r];
         20 egress_ifindex: u32  | [-      r];
    }

    /// A message that is being sent to a socket (`sk_msg_is_valid_access`).
    SK_MSG_MD: "sk_msg_md", 80 bytes {
          0 data: ptr            | [packet];
          8 data_end: ptr        | [end];
         16 family: u32          | [r];
         20 remote_ip4: u32      | [r];
         24 local_ip4: u32       | [r];
         28 remote_ip6: [u32; 4] | [r];
         44 local_ip6: [u32; 4]  | [r];
         60 remote_port: u32     | [r];
         64 local_port: u32      | [r];
         68 size: u32            | [r];
         72 sk: ptr              | [live];
    }

    /// The packet for which a socket of a reuseport group is selected
    /// (`sk_reuseport_is_valid_access`).
    SK_REUSEPORT_MD: "sk_reuseport_md", 56 bytes {
          0 data: ptr         | [packet];
          8 data_end: ptr     | [end];
         16 len: u32          | [p];
         20 eth_protocol: u32 | [h];
         24 ip_protocol: u32  | [p];
         28 bind_inany: u32   | [p];
         32 hash: u32         | [r];
         40 sk: ptr           | [live];
         48 migrating_sk: ptr | [common];
    }

    /// The result of a flow dissector. It is the program's own memory: all bytes are
    /// readable and writable (`check_flow_keys_access`, `kernel/bpf/verifier.c`).
    FLOW_KEYS: "bpf_flow_keys", 56 bytes {
          0 nhoff: u16         | [-];
          2 thoff: u16         | [-];
          4 addr_proto: u16    | [-];
          6 is_frag: u8        | [-];
          7 is_first_frag: u8  | [-];
          8 is_encap: u8       | [-];
          9 ip_proto: u8       | [-];
         10 n_proto: u16       | [-];
         12 sport: u16         | [-];
         14 dport: u16         | [-];
         16 ipv4_src: u32      | [-];
         20 ipv4_dst: u32      | [-];
         16 ipv6_src: [u32; 4] | [-];
         32 ipv6_dst: [u32; 4] | [-];
         48 flags: u32         | [-];
         52 flow_label: u32    | [-];
    }
}
