//! Packets: how the kernel prepares packet data before it runs a program. Sizes and limits
//! are those of `BPF_PROG_TEST_RUN` (`net/bpf/test_run.c`), compared with Linux 6.18.

use super::error::EventError;
use super::kern::Headers;
use crate::spec::{ProgType, limits};
use crate::util::Errno;
use crate::vm::fields::FieldValue;

/// Length of an Ethernet header (`ETH_HLEN`).
pub const ETH_HLEN: usize = 14;
/// Headroom of an XDP packet (`XDP_PACKET_HEADROOM`).
pub const XDP_HEADROOM: usize = 256;
/// Bytes at the start of the headroom that the kernel reserves (`sizeof(struct xdp_frame)`).
pub const XDP_FRAME: usize = 40;
/// Bytes after a packet that the kernel reserves (`skb_shared_info`, aligned).
const SHARED_INFO: usize = 320;
/// One page holds headroom, packet and tailroom of an XDP packet.
const PAGE: usize = limits::PAGE_SIZE as usize;
/// Headroom of an `sk_buff` (`NET_SKB_PAD`).
const SKB_HEADROOM: usize = 64;
/// The longest packet of an `sk_buff` in bpflab: the largest IP packet and its Ethernet
/// header.
const MAX_SKB: usize = 65_535 + ETH_HLEN;

/// The longest packet that helpers can grow a packet to (`BPF_SKB_MAX_LEN`: `SKB_MAX_ALLOC`).
pub const MAX_GROWN: usize = 4 * PAGE - SHARED_INFO;
/// Room for headers that helpers push without a length: VLAN tags, outer headers.
const SLACK: usize = 1024;

/// A family of program types that get packet bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// In the driver: the packet as received.
    Xdp,
    /// `sk_buff` that begins with its Ethernet header (`tc`).
    Link,
    /// `sk_buff` that begins with the network header; the Ethernet header is pulled.
    Network,
    /// The flow dissector: the packet as received, and flow keys to fill in.
    Dissector,
    /// Data of a stream or datagram, without headers.
    Payload,
}

impl Stage {
    const fn of(prog_type: ProgType) -> Option<Self> {
        Some(match prog_type {
            ProgType::Xdp => Self::Xdp,
            ProgType::SchedCls | ProgType::SchedAct => Self::Link,
            ProgType::SocketFilter
            | ProgType::CgroupSkb
            | ProgType::LwtIn
            | ProgType::LwtOut
            | ProgType::LwtXmit
            | ProgType::LwtSeg6local => Self::Network,
            ProgType::FlowDissector => Self::Dissector,
            ProgType::SkSkb | ProgType::SkMsg | ProgType::SkReuseport => Self::Payload,
            _ => return None,
        })
    }
}

/// Whether programs of this type run on packets.
#[must_use]
pub(super) const fn takes_packets(prog_type: ProgType) -> bool {
    Stage::of(prog_type).is_some()
}

/// A packet as a program type sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prepared {
    /// Headroom, metadata, packet and tailroom.
    pub block: Vec<u8>,
    /// Offset of the metadata in the block; `data` if there is none.
    pub meta: usize,
    /// Offset of the packet in the block.
    pub data: usize,
    /// End of the linear part, exclusive.
    pub end: usize,
    /// Offset of the Ethernet header in the block, pulled or not.
    pub link: usize,
    /// The bytes that don't fit into the first page of an XDP packet.
    pub frags: Vec<u8>,
    /// Fields of the context that the kernel sets, by name.
    pub fields: Vec<(&'static str, FieldValue)>,
    /// Keys of the flow dissector (`struct bpf_flow_keys`).
    pub flow_keys: Option<Vec<u8>>,
    /// Offsets of the headers, for an `sk_buff`.
    pub headers: Option<Headers>,
    /// Room in the allocation before and after `block`.
    pub room: (usize, usize),
}

/// Prepares a packet.
///
/// `bytes` begin with the Ethernet header, except for the types that see a payload.
/// `in_context` is true if the test set fields of the context: the kernel then has the
/// packet's length on the wire.
pub(super) fn prepare(
    event: &str,
    prog_type: ProgType,
    bytes: &[u8],
    meta: &[u8],
    in_context: bool,
) -> Result<Prepared, EventError> {
    let refused = |reason: String| EventError::Refused {
        event: event.to_owned(),
        errno: Errno::EINVAL,
        reason,
    };
    let Some(stage) = Stage::of(prog_type) else {
        return Err(EventError::WrongProgram {
            event: event.to_owned(),
            prog_type: prog_type.name().to_owned(),
            reason: "it does not run on packet bytes".to_owned(),
        });
    };
    if stage != Stage::Payload && bytes.len() < ETH_HLEN {
        let len = bytes.len();
        return Err(refused(format!(
            "a packet begins with an Ethernet header of {ETH_HLEN} bytes, this one has {len}"
        )));
    }
    check_meta(stage, meta).map_err(refused)?;
    match stage {
        Stage::Xdp => Ok(xdp(bytes, meta)),
        Stage::Dissector => Ok(dissector(bytes)),
        Stage::Link | Stage::Network => skb(stage, bytes, meta, in_context).map_err(refused),
        Stage::Payload => payload(prog_type, bytes).map_err(refused),
    }
}

/// Metadata is a multiple of 4 bytes and must not overlap the kernel's part of the headroom
/// (`xdp_metalen_invalid`, `include/net/xdp.h`).
fn check_meta(stage: Stage, meta: &[u8]) -> Result<(), String> {
    const MOST: usize = XDP_HEADROOM - XDP_FRAME;
    match stage {
        _ if meta.is_empty() => Ok(()),
        Stage::Xdp | Stage::Link if !meta.len().is_multiple_of(4) || meta.len() > MOST => {
            Err(format!(
                "metadata must be a multiple of 4 bytes, at most {MOST}; got {}",
                meta.len()
            ))
        }
        Stage::Xdp | Stage::Link => Ok(()),
        _ => Err("only XDP and tc programs see metadata".to_owned()),
    }
}

/// Puts bytes into a block with headroom and tailroom.
fn block(headroom: usize, meta: &[u8], head: &[u8], packet: &[u8], tailroom: usize) -> Prepared {
    let data = headroom + head.len();
    let mut block = vec![0; headroom - meta.len()];
    block.extend_from_slice(meta);
    block.extend_from_slice(head);
    block.extend_from_slice(packet);
    let end = block.len();
    block.resize(end + tailroom, 0);
    Prepared {
        block,
        meta: data - head.len() - meta.len(),
        data,
        end,
        link: data - head.len(),
        frags: Vec::new(),
        fields: Vec::new(),
        flow_keys: None,
        headers: None,
        room: (0, 0),
    }
}

fn xdp(bytes: &[u8], meta: &[u8]) -> Prepared {
    const MOST: usize = PAGE - XDP_HEADROOM - SHARED_INFO;
    let (linear, frags) = bytes.split_at_checked(MOST).unwrap_or((bytes, &[]));
    let tailroom = MOST - linear.len();
    Prepared {
        frags: frags.to_vec(),
        fields: vec![
            ("ingress_ifindex", FieldValue::Int(1)),
            ("rx_queue_index", FieldValue::Int(0)),
        ],
        ..block(XDP_HEADROOM, meta, &[], linear, tailroom)
    }
}

/// Prepares a packet as `bpf_flow_dissect` (`net/core/flow_dissector.c`) does: the keys are
/// zero except for the protocol and the offset of the network header.
fn dissector(bytes: &[u8]) -> Prepared {
    let mut keys = vec![0; 56];
    let header = [14, 0, 14, 0];
    for (to, from) in keys.iter_mut().zip(header) {
        *to = from;
    }
    let protocol = bytes.get(12..14).unwrap_or_default();
    for (to, from) in keys.iter_mut().skip(10).zip(protocol) {
        *to = *from;
    }
    Prepared {
        flow_keys: Some(keys),
        ..block(0, &[], &[], bytes, 0)
    }
}

fn skb(stage: Stage, bytes: &[u8], meta: &[u8], in_context: bool) -> Result<Prepared, String> {
    if bytes.len() > MAX_SKB {
        let len = bytes.len();
        return Err(format!(
            "a packet has at most {MAX_SKB} bytes, this one has {len}"
        ));
    }
    let (ethernet, network) = bytes.split_at_checked(ETH_HLEN).unwrap_or((bytes, &[]));
    let protocol = protocol(bytes);
    let sock = Endpoints::of(protocol, network)?;
    let len = match stage {
        Stage::Link => bytes.len(),
        _ => network.len(),
    };
    let mut prepared = match stage {
        Stage::Link => block(SKB_HEADROOM.max(meta.len()), meta, &[], bytes, SHARED_INFO),
        _ => block(SKB_HEADROOM, &[], ethernet, network, SHARED_INFO),
    };
    if stage != Stage::Link {
        prepared.meta = prepared.data;
    }
    let number = FieldValue::Int;
    prepared.fields = vec![
        ("len", number(len as i128)),
        ("pkt_type", number(packet_type(ethernet))),
        (
            "protocol",
            number(i128::from(u16::from_le_bytes(protocol.to_be_bytes()))),
        ),
        ("ifindex", number(1)),
        ("wire_len", number(if in_context { len as i128 } else { 0 })),
    ];
    prepared.fields.extend(sock.fields);
    prepared.headers = Some(Headers {
        mac: prepared.link,
        network: prepared.link + ETH_HLEN,
        ..Headers::default()
    });
    // Helpers may grow the packet in either direction.
    let room = MAX_GROWN.saturating_sub(bytes.len()) + SLACK;
    prepared.room = (room, room);
    Ok(prepared)
}

fn payload(prog_type: ProgType, bytes: &[u8]) -> Result<Prepared, String> {
    let len = u32::try_from(bytes.len()).map_err(|_| "more than 4 GiB of data".to_owned())?;
    let number = |number: u32| FieldValue::Int(number.into());
    let room = MAX_GROWN.saturating_sub(bytes.len()) + SLACK;
    Ok(Prepared {
        fields: vec![
            ("len", number(len)),
            ("size", number(len)),
            ("ifindex", number(1)),
        ],
        // Header offsets are unknown for a stream's data.
        headers: (prog_type == ProgType::SkSkb).then(Headers::default),
        room: match prog_type {
            ProgType::SkReuseport => (0, 0),
            _ => (room, room),
        },
        ..block(0, &[], &[], bytes, 0)
    })
}

/// The packet's protocol in host order (`eth_type_trans`). A type below 0x600 is a length:
/// 802.2, or Novell's raw 802.3.
fn protocol(packet: &[u8]) -> u16 {
    const ETH_P_802_3: u16 = 1;
    const ETH_P_802_2: u16 = 4;
    let word = |at: usize| match packet.get(at..at + 2) {
        Some(&[high, low]) => Some(u16::from_be_bytes([high, low])),
        _ => None,
    };
    match (word(12), word(14)) {
        (Some(protocol), _) if protocol >= 0x600 => protocol,
        (_, Some(0xffff)) => ETH_P_802_3,
        _ => ETH_P_802_2,
    }
}

/// `PACKET_HOST`, `PACKET_MULTICAST` or `PACKET_OTHERHOST`, as the loopback device with its
/// all-zero address sees it (`eth_skb_pkt_type`).
fn packet_type(ethernet: &[u8]) -> i128 {
    match ethernet.get(..6) {
        Some([0, 0, 0, 0, 0, 0]) | None => 0,
        Some([first, ..]) if first & 1 != 0 => 2,
        Some(_) => 3,
    }
}

/// The addresses of the socket that the kernel creates for a test packet, as fields.
#[derive(Debug, Default)]
struct Endpoints {
    fields: Vec<(&'static str, FieldValue)>,
}

impl Endpoints {
    fn of(protocol: u16, network: &[u8]) -> Result<Self, String> {
        let header = |name: &str, len: usize| {
            network.get(..len).ok_or_else(|| {
                format!(
                    "the Ethernet header says {name}, whose header has {len} bytes, \
                     but {} follow",
                    network.len()
                )
            })
        };
        let part = |from: &[u8], at: usize, len: usize| {
            FieldValue::Bytes(from.get(at..at + len).unwrap_or_default().to_vec())
        };
        let fields = match protocol {
            0x0800 => {
                let ip = header("IPv4", 20)?;
                vec![
                    ("family", FieldValue::Int(2)),
                    ("local_ip4", part(ip, 12, 4)),
                    ("remote_ip4", part(ip, 16, 4)),
                ]
            }
            0x86dd => {
                let ip = header("IPv6", 40)?;
                vec![
                    ("family", FieldValue::Int(10)),
                    ("local_ip6", part(ip, 8, 16)),
                    ("remote_ip6", part(ip, 24, 16)),
                ]
            }
            _ => Vec::new(),
        };
        Ok(Self { fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of `len` bytes with this destination and type.
    fn packet(destination: [u8; 6], protocol: u16, len: usize) -> Vec<u8> {
        let mut bytes = destination.to_vec();
        bytes.extend([2, 2, 2, 2, 2, 2]);
        bytes.extend(protocol.to_be_bytes());
        bytes.extend((0u8..=255).cycle().take(len.saturating_sub(14)));
        bytes.truncate(len);
        bytes
    }

    fn field(prepared: &Prepared, name: &str) -> Option<FieldValue> {
        let found = prepared.fields.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| value.clone())
    }

    fn run(prog_type: ProgType, bytes: &[u8]) -> Result<Prepared, String> {
        prepare("packet", prog_type, bytes, &[], false).map_err(|error| error.to_string())
    }

    #[test]
    fn tc_sees_the_ethernet_header_and_the_others_do_not() {
        let bytes = packet([0xff; 6], 0x0800, 64);
        let tc = run(ProgType::SchedCls, &bytes).unwrap();
        assert_eq!(&tc.block[tc.data..tc.end], &bytes[..]);
        assert_eq!(field(&tc, "len"), Some(FieldValue::Int(64)));
        assert_eq!(field(&tc, "protocol"), Some(FieldValue::Int(8)));
        assert_eq!(field(&tc, "pkt_type"), Some(FieldValue::Int(2)));
        for prog_type in [
            ProgType::SocketFilter,
            ProgType::CgroupSkb,
            ProgType::LwtXmit,
        ] {
            let seen = run(prog_type, &bytes).unwrap();
            assert_eq!(&seen.block[seen.data..seen.end], &bytes[14..]);
            assert_eq!(&seen.block[seen.data - 14..seen.data], &bytes[..14]);
            assert_eq!(
                (seen.meta, field(&seen, "len")),
                (seen.data, Some(FieldValue::Int(50)))
            );
        }
    }

    #[test]
    fn lengths_that_the_kernel_refuses() {
        // (protocol, shortest packet), from BPF_PROG_TEST_RUN on 6.18.
        for (protocol, least) in [(0x0806, 14), (0x0800, 34), (0x86dd, 54)] {
            let bytes = packet([0; 6], protocol, least);
            for prog_type in [ProgType::SocketFilter, ProgType::SchedCls, ProgType::LwtIn] {
                assert!(run(prog_type, &bytes).is_ok(), "{protocol:x}");
                let error = run(prog_type, &bytes[..least - 1]).unwrap_err();
                assert!(error.starts_with("packet: EINVAL"), "{error}");
            }
        }
        for prog_type in [ProgType::Xdp, ProgType::FlowDissector] {
            assert!(run(prog_type, &[0; 13]).is_err());
            assert!(run(prog_type, &packet([0; 6], 0x0800, 14)).is_ok());
        }
        assert!(run(ProgType::SkMsg, &[]).is_ok());
        assert!(
            run(ProgType::Kprobe, &[0; 64])
                .unwrap_err()
                .contains("packet bytes")
        );
    }

    #[test]
    fn protocols_below_0x600_are_lengths() {
        assert_eq!(protocol(&packet([0; 6], 0x40, 64)), 4);
        let mut novell = packet([0; 6], 0x40, 64);
        novell[14..16].fill(0xff);
        assert_eq!(protocol(&novell), 1);
        assert_eq!(protocol(&packet([0; 6], 0x600, 14)), 0x600);
        assert_eq!(packet_type(&[2, 0, 0, 0, 0, 1]), 3);
        assert_eq!(packet_type(&[0; 6]), 0);
    }

    #[test]
    fn an_xdp_packet_lies_in_one_page_and_the_rest_in_fragments() {
        let bytes = packet([0; 6], 0x0806, 4000);
        let seen = run(ProgType::Xdp, &bytes).unwrap();
        assert_eq!(
            (seen.data, seen.end - seen.data, seen.frags.len()),
            (256, 3520, 480)
        );
        assert_eq!(seen.block.len(), 4096 - 320);
        let small = run(ProgType::Xdp, &bytes[..64]).unwrap();
        assert_eq!((small.end, small.block.len()), (320, 4096 - 320));
    }

    #[test]
    fn metadata_stands_before_the_packet() {
        let bytes = packet([0; 6], 0x0806, 64);
        let with = |len| prepare("p", ProgType::Xdp, &bytes, &vec![7; len], true);
        let seen = with(8).unwrap();
        assert_eq!((seen.meta, seen.data), (248, 256));
        assert_eq!(&seen.block[248..256], &[7; 8]);
        assert!(with(216).is_ok());
        assert!(with(220).is_err() && with(2).is_err());
        assert!(prepare("p", ProgType::SocketFilter, &bytes, &[0; 4], true).is_err());
        let tc = prepare("p", ProgType::SchedCls, &bytes, &[7; 80], true).unwrap();
        assert_eq!((tc.meta, tc.data), (0, 80));
    }

    #[test]
    fn the_dissector_gets_its_first_keys() {
        let seen = run(ProgType::FlowDissector, &packet([0; 6], 0x86dd, 60)).unwrap();
        let keys = seen.flow_keys.unwrap();
        assert_eq!(
            (keys[0], keys[2], &keys[10..12]),
            (14, 14, &[0x86, 0xdd][..])
        );
    }

    #[test]
    fn addresses_come_from_the_ip_header() {
        let seen = run(ProgType::CgroupSkb, &packet([0; 6], 0x0800, 64)).unwrap();
        assert_eq!(field(&seen, "family"), Some(FieldValue::Int(2)));
        assert_eq!(
            field(&seen, "local_ip4"),
            Some(FieldValue::Bytes(vec![12, 13, 14, 15]))
        );
        let six = run(ProgType::CgroupSkb, &packet([0; 6], 0x86dd, 64)).unwrap();
        assert_eq!(
            field(&six, "remote_ip6"),
            Some(FieldValue::Bytes((24..40).collect()))
        );
    }
}
