//! Contexts that are structs of plain fields: their layouts, and which of their
//! fields follow from an event's bytes.

use super::error::{EventError, nearest_first};
use super::layout::{Layout, Source};
use super::record::Values;
use super::shape::{Field, Shape};
use super::value::FieldValue;
use crate::spec::ContextKind;

/// One field: name, offset, size of an element, elements (0 for a scalar), pointer.
type Row = (&'static str, u32, u32, u32, bool);

/// Expands the table of structs.
macro_rules! contexts {
    (@size u8) => { 1 };
    (@size u16) => { 2 };
    (@size u32) => { 4 };
    (@size $other:tt) => { 8 };
    (@pointer ptr) => { true };
    (@pointer $other:tt) => { false };
    ($($kind:ident, $size:literal, $name:literal:
        $($field:tt $offset:literal $type:tt $($count:literal)?),*;)*) => {
        /// Name, size and fields of a context's struct.
        const fn rows(kind: ContextKind) -> Option<(&'static str, u32, &'static [Row])> {
            match kind {
                $(ContextKind::$kind => Some(($name, $size, &[
                    $((stringify!($field), $offset, contexts!(@size $type), 0 $(+ $count)?,
                        contexts!(@pointer $type))),*
                ])),)*
                _ => None,
            }
        }
    };
}

// `include/uapi/linux/bpf.h` of Linux 6.18; registers: `arch/x86/include/asm/ptrace.h`.
contexts! {
    SkBuff, 192, "__sk_buff":
        len 0 u32, pkt_type 4 u32, mark 8 u32, queue_mapping 12 u32, protocol 16 u32,
        vlan_present 20 u32, vlan_tci 24 u32, vlan_proto 28 u32, priority 32 u32,
        ingress_ifindex 36 u32, ifindex 40 u32, tc_index 44 u32, cb 48 u32 5, hash 68 u32,
        tc_classid 72 u32, data 76 u32, data_end 80 u32, napi_id 84 u32, family 88 u32,
        remote_ip4 92 u32, local_ip4 96 u32, remote_ip6 100 u32 4, local_ip6 116 u32 4,
        remote_port 132 u32, local_port 136 u32, data_meta 140 u32, flow_keys 144 ptr,
        tstamp 152 u64, wire_len 160 u32, gso_segs 164 u32, sk 168 ptr, gso_size 176 u32,
        tstamp_type 180 u8, hwtstamp 184 u64;
    XdpMd, 24, "xdp_md":
        data 0 u32, data_end 4 u32, data_meta 8 u32, ingress_ifindex 12 u32,
        rx_queue_index 16 u32, egress_ifindex 20 u32;
    Sock, 80, "bpf_sock":
        bound_dev_if 0 u32, family 4 u32, type 8 u32, protocol 12 u32, mark 16 u32,
        priority 20 u32, src_ip4 24 u32, src_ip6 28 u32 4, src_port 44 u32, dst_port 48 u16,
        dst_ip4 52 u32, dst_ip6 56 u32 4, state 72 u32, rx_queue_mapping 76 u32;
    SkMsg, 80, "sk_msg_md":
        data 0 ptr, data_end 8 ptr, family 16 u32, remote_ip4 20 u32, local_ip4 24 u32,
        remote_ip6 28 u32 4, local_ip6 44 u32 4, remote_port 60 u32, local_port 64 u32,
        size 68 u32, sk 72 ptr;
    SkReuseport, 56, "sk_reuseport_md":
        data 0 ptr, data_end 8 ptr, len 16 u32, eth_protocol 20 u32, ip_protocol 24 u32,
        bind_inany 28 u32, hash 32 u32, sk 40 ptr, migrating_sk 48 ptr;
    SockOps, 224, "bpf_sock_ops":
        op 0 u32, args 4 u32 4, reply 4 u32, replylong 4 u32 4, family 20 u32,
        remote_ip4 24 u32, local_ip4 28 u32, remote_ip6 32 u32 4, local_ip6 48 u32 4,
        remote_port 64 u32, local_port 68 u32, is_fullsock 72 u32, snd_cwnd 76 u32,
        srtt_us 80 u32, bpf_sock_ops_cb_flags 84 u32, state 88 u32, rtt_min 92 u32,
        snd_ssthresh 96 u32, rcv_nxt 100 u32, snd_nxt 104 u32, snd_una 108 u32,
        mss_cache 112 u32, ecn_flags 116 u32, rate_delivered 120 u32, rate_interval_us 124 u32,
        packets_out 128 u32, retrans_out 132 u32, total_retrans 136 u32, segs_in 140 u32,
        data_segs_in 144 u32, segs_out 148 u32, data_segs_out 152 u32, lost_out 156 u32,
        sacked_out 160 u32, sk_txhash 164 u32, bytes_received 168 u64, bytes_acked 176 u64,
        sk 184 ptr, skb_data 192 ptr, skb_data_end 200 ptr, skb_len 208 u32,
        skb_tcp_flags 212 u32, skb_hwtstamp 216 u64;
    SockAddr, 72, "bpf_sock_addr":
        user_family 0 u32, user_ip4 4 u32, user_ip6 8 u32 4, user_port 24 u32, family 28 u32,
        type 32 u32, protocol 36 u32, msg_src_ip4 40 u32, msg_src_ip6 44 u32 4, sk 64 ptr;
    SkLookup, 72, "bpf_sk_lookup":
        sk 0 ptr, cookie 0 u64, family 8 u32, protocol 12 u32, remote_ip4 16 u32,
        remote_ip6 20 u32 4, remote_port 36 u16, local_ip4 40 u32, local_ip6 44 u32 4,
        local_port 60 u32, ingress_ifindex 64 u32;
    CgroupDevice, 12, "bpf_cgroup_dev_ctx":
        access_type 0 u32, major 4 u32, minor 8 u32;
    CgroupSysctl, 8, "bpf_sysctl":
        write 0 u32, file_pos 4 u32;
    CgroupSockopt, 40, "bpf_sockopt":
        sk 0 ptr, optval 8 ptr, optval_end 16 ptr, level 24 u32, optname 28 u32, optlen 32 u32,
        retval 36 u32;
    PtRegs, 168, "pt_regs":
        r15 0 u64, r14 8 u64, r13 16 u64, r12 24 u64, bp 32 u64, bx 40 u64, r11 48 u64,
        r10 56 u64, r9 64 u64, r8 72 u64, ax 80 u64, cx 88 u64, dx 96 u64, si 104 u64,
        di 112 u64, orig_ax 120 u64, ip 128 u64, cs 136 u16, flags 144 u64, sp 152 u64,
        ss 160 u16;
}

/// Other names for registers: those of libbpf's `PT_REGS_*` and of bpftrace.
const REGISTERS: &[(&str, &[&str])] = &[
    ("di", &["parm1", "arg0"]),
    ("si", &["parm2", "arg1"]),
    ("dx", &["parm3", "arg2"]),
    ("cx", &["parm4", "arg3"]),
    ("r8", &["parm5", "arg4"]),
    ("r9", &["parm6", "arg5"]),
    ("ax", &["rc", "retval"]),
    ("bp", &["fp"]),
];

/// Fields whose value follows from the bytes that the event brings along.
const DERIVED: &[&str] = &[
    "data",
    "data_end",
    "data_meta",
    "optval",
    "optval_end",
    "skb_data",
    "skb_data_end",
    "flow_keys",
    "len",
    "size",
];

/// The contexts that come with a packet.
const PACKETS: &[ContextKind] = &[
    ContextKind::SkBuff,
    ContextKind::XdpMd,
    ContextKind::SkMsg,
    ContextKind::SkReuseport,
];

/// The layout of a context; `None` for one without fixed fields.
pub(super) fn layout(kind: ContextKind) -> Option<Layout> {
    match kind {
        ContextKind::FlowDissector => return layout(ContextKind::SkBuff),
        ContextKind::PerfEvent => return perf_event(),
        ContextKind::LircMode2 => {
            let sample = Field::inline("sample", 0, Shape::number(4, false));
            return Some(plain("lirc_mode2", 4, vec![sample]));
        }
        _ => {}
    }
    let (name, size, rows) = rows(kind)?;
    let fields = rows.iter().map(|(name, offset, size, count, pointer)| {
        let one = match pointer {
            true => Shape::Pointer,
            false => Shape::number(*size, false),
        };
        let shape = match count {
            0 => one,
            count => one.times(*count),
        };
        let mut field = Field::inline(*name, *offset, shape);
        if kind == ContextKind::PtRegs {
            let found = REGISTERS.iter().find(|(register, _)| register == name);
            let aliases = found.map_or(&[][..], |(_, aliases)| aliases);
            field.aliases = aliases.iter().map(ToString::to_string).collect();
        }
        field
    });
    Some(plain(name, size, fields.collect()))
}

fn plain(name: &str, size: u32, fields: Vec<Field>) -> Layout {
    Layout {
        name: name.to_owned(),
        fields,
        size,
        data_offset: size,
        hidden: 0,
        context_size: Some(size),
        readable: size,
        source: Source::Context,
        defaults: Vec::new(),
    }
}

/// `struct bpf_perf_event_data`: registers, then what was sampled.
fn perf_event() -> Option<Layout> {
    let regs = layout(ContextKind::PtRegs)?;
    let size = regs.size;
    let shape = Shape::Struct {
        size,
        members: regs.fields,
    };
    let fields = vec![
        Field::inline("regs", 0, shape),
        Field::inline("sample_period", size, Shape::number(8, false)),
        Field::inline("addr", size + 8, Shape::number(8, false)),
    ];
    Some(plain("bpf_perf_event_data", size + 16, fields))
}

/// Why a test can't set a field, if it can't.
pub(super) fn derived(field: &str) -> Option<&'static str> {
    DERIVED
        .contains(&field.trim())
        .then_some("it follows from the bytes")
}

/// Whether any packet context has this field and it takes this value.
pub(super) fn check_packet_field(field: &str, value: &FieldValue) -> Result<(), EventError> {
    let mut known = Vec::new();
    let mut problem = None;
    for layout in PACKETS.iter().filter_map(|kind| layout(*kind)) {
        match Values::new(&layout).set(&layout, field, value) {
            Ok(()) => return Ok(()),
            Err(EventError::NoField { .. }) => {
                let names = layout.fields.iter().map(|field| field.name.clone());
                known.extend(names.filter(|name| !DERIVED.contains(&name.as_str())));
            }
            Err(error) => problem = Some(error),
        }
    }
    known.sort();
    known.dedup();
    Err(problem.unwrap_or_else(|| EventError::NoField {
        event: "packet".to_owned(),
        field: field.to_owned(),
        known: nearest_first(field, known),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_reach_beyond_their_struct() {
        let mut structs = 0;
        for prog_type in crate::spec::ProgType::ALL {
            let Some(layout) = layout(prog_type.info().context) else {
                continue;
            };
            structs += 1;
            for field in &layout.fields {
                assert!(field.end() <= layout.size, "{}.{}", layout.name, field.name);
                assert!(
                    field.offset.is_multiple_of(field.shape.align()),
                    "{}",
                    field.name
                );
            }
        }
        assert!(structs > 20);
    }

    #[test]
    fn registers_have_their_other_names() {
        let regs = layout(ContextKind::PtRegs).unwrap();
        assert_eq!(regs.offset("parm1"), Some(112));
        assert_eq!(regs.offset("retval"), Some(80));
        let perf = layout(ContextKind::PerfEvent).unwrap();
        assert_eq!(perf.part("regs.ip").unwrap().offset, 128);
        assert_eq!(perf.offset("addr"), Some(176));
    }
}
