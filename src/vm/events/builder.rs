//! Builds packets layer by layer; lengths and checksums are filled in.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Header,
    Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel,
    Ipv6Header, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TcpHeader,
    TransportSlice, UdpHeader,
};

use super::error::EventError;
use super::event::Event;

/// A packet under construction, from the Ethernet header on.
///
/// Errors of all steps are reported by [`build`](Self::build).
///
/// ```
/// use bpflab::vm::events::Packet;
///
/// let bytes = Packet::ethernet()
///     .vlan(5)
///     .ipv4("10.0.0.1", "10.0.0.2")
///     .tcp(49152, 80)
///     .payload(b"GET / HTTP/1.0\r\n\r\n")
///     .build()?;
/// assert_eq!(bytes[12..14], [0x81, 0]);
/// assert_eq!(bytes[18..20], [0x45, 0]);
/// assert_eq!(bytes.len(), 14 + 4 + 20 + 20 + 18);
/// # Ok::<(), bpflab::vm::events::EventError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Packet {
    source: [u8; 6],
    destination: [u8; 6],
    /// Protocol and tag, outermost first.
    vlans: Vec<(EtherType, u16)>,
    network: Network,
    transport: Transport,
    ttl: u8,
    tos: u8,
    payload: Vec<u8>,
    problem: Option<String>,
}

#[derive(Debug, Clone)]
enum Network {
    None(EtherType),
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
    Arp(Box<ArpEthIpv4Packet>),
}

#[derive(Debug, Clone)]
enum Transport {
    /// No header of this layer: the payload has this protocol.
    None(u8),
    Tcp(Box<TcpHeader>),
    Udp(u16, u16),
    /// An echo request, or a reply if the flag is true.
    Echo(IcmpEchoHeader, bool),
}

impl Packet {
    /// An Ethernet frame from `02:00:00:00:00:01` to `02:00:00:00:00:02`.
    #[must_use]
    pub const fn ethernet() -> Self {
        Self {
            source: [2, 0, 0, 0, 0, 1],
            destination: [2, 0, 0, 0, 0, 2],
            vlans: Vec::new(),
            network: Network::None(EtherType(0x88b5)),
            transport: Transport::None(NOTHING),
            ttl: 64,
            tos: 0,
            payload: Vec::new(),
            problem: None,
        }
    }

    /// Sets the source and destination hardware addresses.
    #[must_use]
    pub const fn between(mut self, source: [u8; 6], destination: [u8; 6]) -> Self {
        (self.source, self.destination) = (source, destination);
        self
    }

    /// Adds an 802.1Q VLAN tag: VLAN ID, and priority in the upper bits.
    #[must_use]
    pub fn vlan(mut self, tci: u16) -> Self {
        self.vlans.push((EtherType::VLAN_TAGGED_FRAME, tci));
        self
    }

    /// Adds an 802.1ad (provider bridging) VLAN tag.
    #[must_use]
    pub fn provider_vlan(mut self, tci: u16) -> Self {
        self.vlans.push((EtherType::PROVIDER_BRIDGING, tci));
        self
    }

    /// Sets the EtherType of a packet without a network header from this builder; the default
    /// is 0x88b5 (local experiments).
    #[must_use]
    pub fn ether_type(mut self, protocol: u16) -> Self {
        self.network = Network::None(EtherType(protocol));
        self
    }

    /// Records the first error.
    fn wrong(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn address<T: std::str::FromStr>(&mut self, text: &str, family: &str) -> Option<T> {
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.wrong(format!("invalid {family} address `{text}`"));
        }
        parsed
    }

    /// Adds an IPv4 header with these source and destination addresses.
    #[must_use]
    pub fn ipv4(mut self, source: &str, destination: &str) -> Self {
        let ends = (
            self.address(source, "IPv4"),
            self.address(destination, "IPv4"),
        );
        if let (Some(source), Some(destination)) = ends {
            self.network = Network::V4(source, destination);
        }
        self
    }

    /// Adds an IPv6 header with these source and destination addresses.
    #[must_use]
    pub fn ipv6(mut self, source: &str, destination: &str) -> Self {
        let ends = (
            self.address(source, "IPv6"),
            self.address(destination, "IPv6"),
        );
        if let (Some(source), Some(destination)) = ends {
            self.network = Network::V6(source, destination);
        }
        self
    }

    /// Sets the TTL or hop limit; 64 by default.
    #[must_use]
    pub const fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the TOS byte or traffic class; the lower two bits are ECN.
    #[must_use]
    pub const fn tos(mut self, tos: u8) -> Self {
        self.tos = tos;
        self
    }

    /// Adds an ARP request, or a reply if a hardware address is given.
    #[must_use]
    pub fn arp(mut self, sender: &str, target: &str, answer: Option<[u8; 6]>) -> Self {
        let ends: (Option<Ipv4Addr>, Option<Ipv4Addr>) =
            (self.address(sender, "IPv4"), self.address(target, "IPv4"));
        if let (Some(sender), Some(target)) = ends {
            self.network = Network::Arp(Box::new(ArpEthIpv4Packet {
                operation: match answer {
                    Some(_) => ArpOperation::REPLY,
                    None => ArpOperation::REQUEST,
                },
                sender_mac: answer.unwrap_or(self.source),
                sender_ipv4: sender.octets(),
                target_mac: if answer.is_some() {
                    self.destination
                } else {
                    [0; 6]
                },
                target_ipv4: target.octets(),
            }));
            if answer.is_none() {
                self.destination = [0xff; 6];
            }
        }
        self
    }

    /// Adds a TCP header with these source and destination ports. ACK is set unless
    /// [`tcp_flags`](Self::tcp_flags) says otherwise; the window is 65,535.
    #[must_use]
    pub fn tcp(mut self, source: u16, destination: u16) -> Self {
        let mut header = TcpHeader::new(source, destination, 1, u16::MAX);
        header.ack = true;
        header.acknowledgment_number = 1;
        self.transport = Transport::Tcp(Box::new(header));
        self
    }

    /// Changes the TCP header; `what` names the setting in the error.
    fn with_tcp(mut self, what: &str, change: impl FnOnce(&mut TcpHeader)) -> Self {
        match &mut self.transport {
            Transport::Tcp(header) => change(header),
            _ => self.wrong(format!("{what} need a TCP header: call tcp() first")),
        }
        self
    }

    /// Sets the flags of the TCP header, by letter: `S`, `A`, `F`, `R`, `P`, `U`, `E`, `C`.
    #[must_use]
    pub fn tcp_flags(mut self, flags: &str) -> Self {
        if let Some(unknown) = flags.chars().find(|flag| !"SAFRPUEC".contains(*flag)) {
            self.wrong(format!(
                "unknown TCP flag `{unknown}` (known: S, A, F, R, P, U, E, C)"
            ));
        }
        self.with_tcp("flags", |header| {
            let has = |flag| flags.contains(flag);
            header.syn = has('S');
            header.ack = has('A');
            header.fin = has('F');
            header.rst = has('R');
            header.psh = has('P');
            header.urg = has('U');
            header.ece = has('E');
            header.cwr = has('C');
        })
    }

    /// Sets the sequence and acknowledgement numbers of the TCP header; 1 and 1 by default.
    #[must_use]
    pub fn tcp_numbers(self, sequence: u32, acknowledgement: u32) -> Self {
        self.with_tcp("sequence numbers", |header| {
            header.sequence_number = sequence;
            header.acknowledgment_number = acknowledgement;
        })
    }

    /// Sets the TCP options, in bytes; padded to a multiple of four.
    #[must_use]
    pub fn tcp_options(self, options: &[u8]) -> Self {
        let mut fits = true;
        let mut packet = self.with_tcp("options", |header| {
            fits = header.set_options_raw(options).is_ok();
        });
        if !fits {
            packet.wrong(format!(
                "TCP options take at most 40 bytes, not {}",
                options.len()
            ));
        }
        packet
    }

    /// Adds a UDP header with these source and destination ports.
    #[must_use]
    pub fn udp(mut self, source: u16, destination: u16) -> Self {
        self.transport = Transport::Udp(source, destination);
        self
    }

    /// Adds an ICMP or ICMPv6 echo request.
    #[must_use]
    pub fn echo_request(mut self, id: u16, seq: u16) -> Self {
        self.transport = Transport::Echo(IcmpEchoHeader { id, seq }, false);
        self
    }

    /// Adds an ICMP or ICMPv6 echo reply.
    #[must_use]
    pub fn echo_reply(mut self, id: u16, seq: u16) -> Self {
        self.transport = Transport::Echo(IcmpEchoHeader { id, seq }, true);
        self
    }

    /// Sets the IP protocol of a packet without a transport header from this builder.
    #[must_use]
    pub fn ip_protocol(mut self, protocol: u8) -> Self {
        self.transport = Transport::None(protocol);
        self
    }

    /// Sets the payload after the last header.
    #[must_use]
    pub fn payload(mut self, payload: impl AsRef<[u8]>) -> Self {
        self.payload = payload.as_ref().to_vec();
        self
    }

    /// The packet's bytes.
    ///
    /// # Errors
    /// [`EventError::Declaration`] for the first error: an invalid address, layers that don't
    /// fit, more bytes than a length field can hold.
    pub fn build(&self) -> Result<Vec<u8>, EventError> {
        let wrong = |problem: String| EventError::Declaration {
            event: "packet".to_owned(),
            problem,
        };
        match &self.problem {
            Some(problem) => Err(wrong(problem.clone())),
            None => self.bytes().map_err(wrong),
        }
    }

    /// An event with this packet.
    ///
    /// # Errors
    /// As of [`build`](Self::build).
    pub fn event(&self) -> Result<Event, EventError> {
        Ok(Event::packet(self.build()?))
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        let (inner, behind) = self.after_ethernet()?;
        let types = self.vlans.iter().map(|(kind, _)| *kind).chain([inner]);
        let mut types: Vec<_> = types.collect();
        let outer = types.remove(0);
        let mut bytes = Ethernet2Header {
            source: self.source,
            destination: self.destination,
            ether_type: outer,
        }
        .to_bytes()
        .to_vec();
        for ((_, tci), covered) in self.vlans.iter().zip(types) {
            bytes.extend(tci.to_be_bytes());
            bytes.extend(covered.0.to_be_bytes());
        }
        bytes.extend(behind);
        Ok(bytes)
    }

    /// The bytes after the Ethernet header and VLAN tags, and their protocol.
    fn after_ethernet(&self) -> Result<(EtherType, Vec<u8>), String> {
        match &self.network {
            Network::None(kind) => match self.transport {
                Transport::None(NOTHING) => Ok((*kind, self.payload.clone())),
                _ => Err("a transport header needs ipv4() or ipv6() before it".to_owned()),
            },
            Network::Arp(arp) => Ok((
                EtherType::ARP,
                [&arp.to_bytes()[..], &self.payload].concat(),
            )),
            Network::V4(source, destination) => self.after_ipv4(*source, *destination),
            Network::V6(source, destination) => self.after_ipv6(*source, *destination),
        }
    }

    fn after_ipv4(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<(EtherType, Vec<u8>), String> {
        let (protocol, transport) = self.after_ip(source.into(), destination.into())?;
        let len = transport.len() + self.payload.len();
        let len = u16::try_from(len).map_err(|_| too_long(len))?;
        let (source, destination) = (source.octets(), destination.octets());
        let header = Ipv4Header::new(len, self.ttl, IpNumber(protocol), source, destination);
        let mut header = header.map_err(|_| too_long(len.into()))?;
        let parts = IpDscp::try_new(self.tos >> 2)
            .ok()
            .zip(IpEcn::try_new(self.tos & 3).ok());
        if let Some((dscp, ecn)) = parts {
            (header.dscp, header.ecn) = (dscp, ecn);
        }
        header.header_checksum = header.calc_header_checksum();
        let bytes = [&header.to_bytes()[..], &transport, &self.payload].concat();
        Ok((EtherType::IPV4, bytes))
    }

    fn after_ipv6(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Result<(EtherType, Vec<u8>), String> {
        let (protocol, transport) = self.after_ip(source.into(), destination.into())?;
        let len = transport.len() + self.payload.len();
        let header = Ipv6Header {
            traffic_class: self.tos,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: u16::try_from(len).map_err(|_| too_long(len))?,
            next_header: IpNumber(protocol),
            hop_limit: self.ttl,
            source: source.octets(),
            destination: destination.octets(),
        };
        let bytes = [&header.to_bytes()[..], &transport, &self.payload].concat();
        Ok((EtherType::IPV6, bytes))
    }

    /// The transport header and payload between two addresses of one family, and their
    /// protocol.
    fn after_ip(&self, source: IpAddr, destination: IpAddr) -> Result<(u8, Vec<u8>), String> {
        let payload = self.payload.as_slice();
        let long = |_| too_long(payload.len());
        let ends = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(to)) => Ends::V4(source.octets(), to.octets()),
            (IpAddr::V6(source), IpAddr::V6(to)) => Ends::V6(source.octets(), to.octets()),
            _ => return Err("both addresses must be of one family".to_owned()),
        };
        Ok(match &self.transport {
            Transport::None(protocol) => (*protocol, Vec::new()),
            Transport::Tcp(header) => {
                let mut header = header.clone();
                header.checksum = match ends {
                    Ends::V4(source, to) => header.calc_checksum_ipv4_raw(source, to, payload),
                    Ends::V6(source, to) => header.calc_checksum_ipv6_raw(source, to, payload),
                }
                .map_err(long)?;
                (IpNumber::TCP.0, header.to_bytes().to_vec())
            }
            Transport::Udp(from, to_port) => {
                let len = UdpHeader::LEN + payload.len();
                let mut header = UdpHeader {
                    source_port: *from,
                    destination_port: *to_port,
                    length: u16::try_from(len).map_err(|_| too_long(len))?,
                    checksum: 0,
                };
                header.checksum = match ends {
                    Ends::V4(source, to) => header.calc_checksum_ipv4_raw(source, to, payload),
                    Ends::V6(source, to) => header.calc_checksum_ipv6_raw(source, to, payload),
                }
                .map_err(long)?;
                (IpNumber::UDP.0, header.to_bytes().to_vec())
            }
            Transport::Echo(echo, is_reply) => match ends {
                Ends::V4(..) => {
                    let kind = match is_reply {
                        true => Icmpv4Type::EchoReply(*echo),
                        false => Icmpv4Type::EchoRequest(*echo),
                    };
                    let header = Icmpv4Header::with_checksum(kind, payload);
                    (IpNumber::ICMP.0, header.to_bytes().to_vec())
                }
                Ends::V6(source, to) => {
                    let kind = match is_reply {
                        true => Icmpv6Type::EchoReply(*echo),
                        false => Icmpv6Type::EchoRequest(*echo),
                    };
                    let header = Icmpv6Header::with_checksum(kind, source, to, payload);
                    let header = header.map_err(long)?;
                    (IpNumber::IPV6_ICMP.0, header.to_bytes().to_vec())
                }
            },
        })
    }
}

/// Two addresses of one family.
#[derive(Clone, Copy)]
enum Ends {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

/// `IPPROTO_RESERVED`: no protocol was set.
const NOTHING: u8 = 255;

fn too_long(len: usize) -> String {
    format!("{len} bytes are too many for an IP packet")
}

/// The headers of a packet that begins with its Ethernet header, in words, as far as they are
/// whole: `02:…:01 > 02:…:02, vlan 5, ipv4 10.0.0.1 > 10.0.0.2 ttl 64, tcp 49152 > 80`.
#[doc(hidden)]
#[must_use]
pub fn headers_of(packet: &[u8]) -> String {
    let Ok(sliced) = LaxSlicedPacket::from_ethernet(packet) else {
        return "no Ethernet header".to_owned();
    };
    let mut text = String::new();
    // Writing to a String can't fail.
    if let Some(LinkSlice::Ethernet2(link)) = &sliced.link {
        let _ = write!(text, "{} > {}", mac(link.source()), mac(link.destination()));
        if sliced.net.is_none() && sliced.link_exts.is_empty() {
            let _ = write!(text, ", ethertype {:#06x}", link.ether_type().0);
        }
    }
    for ext in &sliced.link_exts {
        if let LaxLinkExtSlice::Vlan(vlan) = ext {
            let _ = write!(text, ", vlan {}", vlan.vlan_identifier().value());
        }
    }
    match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let (source, destination) = (header.source_addr(), header.destination_addr());
            let _ = write!(text, ", ipv4 {source} > {destination} ttl {}", header.ttl());
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let (source, destination) = (header.source_addr(), header.destination_addr());
            let hops = header.hop_limit();
            let _ = write!(text, ", ipv6 {source} > {destination} hops {hops}");
        }
        Some(LaxNetSlice::Arp(_)) => text.push_str(", arp"),
        None => {}
    }
    let _ = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let (source, destination) = (tcp.source_port(), tcp.destination_port());
            write!(text, ", tcp {source} > {destination}")
        }
        Some(TransportSlice::Udp(udp)) => {
            let (source, destination) = (udp.source_port(), udp.destination_port());
            write!(text, ", udp {source} > {destination}")
        }
        Some(TransportSlice::Icmpv4(icmp)) => write!(text, ", icmp type {}", icmp.type_u8()),
        Some(TransportSlice::Icmpv6(icmp)) => write!(text, ", icmpv6 type {}", icmp.type_u8()),
        Some(TransportSlice::Igmp(_)) => write!(text, ", igmp"),
        None => Ok(()),
    };
    text
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::super::checksum::{folded, partial};
    use super::*;

    /// Whether the checksum over a pseudo header and all of TCP, UDP or ICMPv6 is correct.
    fn adds_up(bytes: &[u8], addresses: std::ops::Range<usize>, protocol: u8, at: usize) -> bool {
        let behind = &bytes[at..];
        let mut pseudo = bytes[addresses].to_vec();
        pseudo.extend(u32::try_from(behind.len()).unwrap().to_be_bytes());
        pseudo.extend([0, 0, 0, protocol]);
        folded(partial(behind, partial(&pseudo, 0))) == 0xffff
    }

    #[test]
    fn checksums_add_up_and_lengths_are_right() {
        let tcp = Packet::ethernet()
            .ipv4("10.0.0.1", "10.0.0.2")
            .tcp(1234, 80)
            .tcp_flags("SE")
            .tcp_options(&[2, 4, 5, 0xb4])
            .tos(0x12)
            .payload(b"abc")
            .build()
            .unwrap();
        assert_eq!(
            (tcp.len(), &tcp[14..18]),
            (14 + 20 + 24 + 3, &[0x45, 0x12, 0, 47][..])
        );
        assert_eq!(folded(partial(&tcp[14..34], 0)), 0xffff);
        assert!(adds_up(&tcp, 26..34, 6, 34));
        assert_eq!((tcp[46], tcp[47]), (0x60, 0x42));
        let udp = Packet::ethernet()
            .ipv6("fd00::1", "fd00::2")
            .udp(53, 999)
            .payload([7; 9]);
        let udp = udp.build().unwrap();
        assert_eq!(
            (udp.len(), &udp[12..14], udp[19]),
            (14 + 40 + 17, &[0x86, 0xdd][..], 17)
        );
        assert!(adds_up(&udp, 22..54, 17, 54));
        let echo = Packet::ethernet()
            .ipv6("fd00::1", "fd00::2")
            .echo_request(1, 2);
        assert!(adds_up(&echo.build().unwrap(), 22..54, 58, 54));
        let ping = Packet::ethernet()
            .ipv4("10.0.0.1", "10.0.0.2")
            .echo_reply(1, 2)
            .build();
        let ping = ping.unwrap();
        assert_eq!(
            (ping[23], ping[34], folded(partial(&ping[34..], 0))),
            (1, 0, 0xffff)
        );
    }

    #[test]
    fn tags_and_other_protocols() {
        let tagged = Packet::ethernet()
            .provider_vlan(7)
            .vlan(0x2005)
            .ether_type(0x1234);
        let bytes = tagged.payload([1]).build().unwrap();
        assert_eq!(
            bytes[12..],
            [0x88, 0xa8, 0, 7, 0x81, 0, 0x20, 5, 0x12, 0x34, 1]
        );
        let arp = Packet::ethernet()
            .arp("10.0.0.1", "10.0.0.2", None)
            .build()
            .unwrap();
        assert_eq!((&arp[..6], arp[21], arp.len()), (&[0xff; 6][..], 1, 42));
    }

    #[test]
    fn what_is_wrong_first_is_told() {
        let text = |packet: Packet| packet.build().unwrap_err().to_string();
        let bad = Packet::ethernet().ipv4("10.0.0", "x").tcp_flags("Q");
        assert_eq!(text(bad), "packet: invalid IPv4 address `10.0.0`");
        assert!(text(Packet::ethernet().udp(1, 2)).contains("needs ipv4() or ipv6()"));
        assert!(text(Packet::ethernet().tcp_options(&[0])).contains("call tcp() first"));
        let long = Packet::ethernet().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2);
        assert!(text(long.payload(vec![0; 70_000])).contains("too many"));
        assert!(Packet::ethernet().event().is_ok());
    }

    #[test]
    fn headers_are_told_as_far_as_they_are_whole() {
        let packet = Packet::ethernet()
            .vlan(5)
            .ipv4("10.0.0.1", "10.0.0.2")
            .tcp(49152, 80)
            .build()
            .unwrap();
        let text = headers_of(&packet);
        let expected = ", vlan 5, ipv4 10.0.0.1 > 10.0.0.2 ttl 64, tcp 49152 > 80";
        assert!(text.ends_with(expected), "{text}");
        let cut = headers_of(&packet[..20]);
        assert!(cut.ends_with(", vlan 5"), "{cut}");
        assert_eq!(headers_of(&packet[..5]), "no Ethernet header");
        assert!(headers_of(&[0; 64]).contains("ethertype 0x0000"));
    }
}
