//! Packets from capture files: pcap in both byte orders and resolutions, and pcapng.

use pcap_parser::nom::Err as NomError;
use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};
use pcap_parser::pcapng::{Block, parse_block_be, parse_block_le, parse_sectionheaderblock};
use pcap_parser::{PcapError, PcapHeader};
use thiserror::Error;

use super::event::Event;

/// A packet of a capture file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Captured {
    /// The packet with its Ethernet header; zeros if the capture has none.
    pub event: Event,
    /// Capture time in nanoseconds since 1970; 0 if the file has none.
    pub ns: u64,
    /// Length on the wire; larger than the number of bytes if the capture truncated the
    /// packet.
    pub wire_len: u32,
}

/// What is wrong with a capture file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("capture file, byte {at}{}: {problem}", in_packet(*.packet))]
#[non_exhaustive]
pub struct CaptureError {
    /// Offset of the block or record in the file, in bytes.
    pub at: usize,
    /// Number of packets before it.
    pub packet: usize,
    /// What is wrong.
    pub problem: String,
}

fn in_packet(before: usize) -> String {
    match before {
        0 => String::new(),
        before => format!(" (after packet {before})"),
    }
}

/// A link-layer type (`LINKTYPE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Ethernet,
    /// Length of a header to strip, and the offset of the protocol in it; without an offset
    /// the version in the IP header decides.
    Headed(usize, Option<usize>),
}

impl Link {
    fn of(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Ethernet,
            // BSD loopback: the address family in the capturing machine's byte order.
            0 | 108 => Self::Headed(4, None),
            // Raw IP: no link header.
            12 | 14 | 101 | 228 | 229 => Self::Headed(0, None),
            // Linux cooked captures (v1, v2).
            113 => Self::Headed(16, Some(14)),
            276 => Self::Headed(20, Some(0)),
            _ => return None,
        })
    }

    /// The packet with an Ethernet header.
    fn framed(self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let Self::Headed(len, protocol) = self else {
            return Ok(bytes.to_vec());
        };
        let Some((header, packet)) = bytes.split_at_checked(len) else {
            let had = bytes.len();
            return Err(format!(
                "expected a link header of {len} bytes, found {had}"
            ));
        };
        let protocol = match protocol {
            Some(at) => header.get(at..at + 2).and_then(|two| two.try_into().ok()),
            None => match packet.first().map(|byte| byte >> 4) {
                Some(6) => Some([0x86, 0xdd]),
                _ => Some([8, 0]),
            },
        };
        let protocol = protocol.unwrap_or([0, 0]);
        Ok([&[0; 12][..], &protocol, packet].concat())
    }
}

/// The state of reading one file.
struct Reading<'a> {
    file: &'a [u8],
    rest: &'a [u8],
    packets: Vec<Captured>,
}

/// The result of a `pcap_parser` parser.
type Parsed<'a, T> = Result<(&'a [u8], T), NomError<PcapError<&'a [u8]>>>;

impl<'a> Reading<'a> {
    fn at(&self) -> usize {
        self.file.len() - self.rest.len()
    }

    fn error(&self, problem: impl Into<String>) -> CaptureError {
        CaptureError {
            at: self.at(),
            packet: self.packets.len(),
            problem: problem.into(),
        }
    }

    /// Parses the next item.
    fn next<T>(
        &mut self,
        what: &str,
        parse: impl Fn(&'a [u8]) -> Parsed<'a, T>,
    ) -> Result<T, CaptureError> {
        match parse(self.rest) {
            Ok((rest, parsed)) if rest.len() < self.rest.len() => {
                self.rest = rest;
                Ok(parsed)
            }
            Ok(_) => Err(self.error(format!("{what} is empty"))),
            Err(NomError::Incomplete(_)) => {
                let left = self.rest.len();
                Err(self.error(format!(
                    "the file ends within {what}: {left} bytes are left"
                )))
            }
            Err(NomError::Error(error) | NomError::Failure(error)) => {
                let reason = match error {
                    PcapError::HeaderNotRecognized => "not a pcap header".to_owned(),
                    PcapError::OwnedNomError(_, kind) | PcapError::NomError(_, kind) => {
                        format!("no {what} ({})", kind.description())
                    }
                    _ => format!("no {what}"),
                };
                Err(self.error(reason))
            }
        }
    }

    fn link(&self, number: i32) -> Result<Link, CaptureError> {
        Link::of(number).ok_or_else(|| {
            self.error(format!(
                "link layer {number} is not known here: Ethernet (1), raw IP (101), BSD \
                 loopback (0) and Linux cooked (113, 276) are"
            ))
        })
    }

    fn packet(
        &mut self,
        link: Link,
        bytes: &[u8],
        ns: u64,
        wire_len: u32,
    ) -> Result<(), CaptureError> {
        let framed = link.framed(bytes).map_err(|problem| self.error(problem))?;
        self.packets.push(Captured {
            event: Event::packet(framed),
            ns,
            wire_len,
        });
        Ok(())
    }

    fn pcap(&mut self) -> Result<(), CaptureError> {
        let header: PcapHeader = self.next("the file's header", parse_pcap_header)?;
        // The upper bits give the length of the frame checksum.
        let link = self.link(header.network.0 & 0xffff)?;
        let fraction = if header.is_nanosecond_precision() {
            1
        } else {
            1000
        };
        while !self.rest.is_empty() {
            let parse = match header.is_bigendian() {
                true => parse_pcap_frame_be,
                false => parse_pcap_frame,
            };
            let before = self.rest;
            let record = self.next("a packet's record", parse)?;
            let ns =
                u64::from(record.ts_sec) * 1_000_000_000 + u64::from(record.ts_usec) * fraction;
            let after = std::mem::replace(&mut self.rest, before);
            self.packet(link, record.data, ns, record.origlen)?;
            self.rest = after;
        }
        Ok(())
    }

    fn pcapng(&mut self) -> Result<(), CaptureError> {
        let mut big = false;
        let mut interfaces: Vec<(Link, Option<u64>, i64, u32)> = Vec::new();
        while !self.rest.is_empty() {
            let before = self.rest;
            let block = if self.rest.starts_with(&SECTION) {
                let section = self.next("a section's header", parse_sectionheaderblock)?;
                big = section.big_endian();
                interfaces.clear();
                continue;
            } else if big {
                self.next("a block", parse_block_be)?
            } else {
                self.next("a block", parse_block_le)?
            };
            let after = std::mem::replace(&mut self.rest, before);
            match block {
                Block::InterfaceDescription(one) => {
                    let link = self.link(one.linktype.0)?;
                    interfaces.push((link, one.ts_resolution(), one.if_tsoffset, one.snaplen));
                }
                Block::EnhancedPacket(one) => {
                    let known = interfaces.get(one.if_id as usize).copied();
                    let (link, resolution, offset, _) = known.ok_or_else(|| {
                        self.error(format!(
                            "no interface description for interface {}",
                            one.if_id
                        ))
                    })?;
                    let ticks = u64::from(one.ts_high) << 32 | u64::from(one.ts_low);
                    let bytes = one.data.get(..one.caplen as usize);
                    let bytes =
                        bytes.ok_or_else(|| self.error("the packet is longer than its block"))?;
                    let ns = nanoseconds(ticks, resolution, offset);
                    self.packet(link, bytes, ns, one.origlen)?;
                }
                Block::SimplePacket(one) => {
                    let known = interfaces.first().copied();
                    let (link, .., snap) = known
                        .ok_or_else(|| self.error("no interface description before the packet"))?;
                    let most = if snap == 0 { u32::MAX } else { snap };
                    let len = one.origlen.min(most) as usize;
                    let bytes = one.data.get(..len).unwrap_or(one.data);
                    self.packet(link, bytes, 0, one.origlen)?;
                }
                // Names, statistics, comments: programs don't see them.
                _ => {}
            }
            self.rest = after;
        }
        Ok(())
    }
}

/// Converts clock ticks to nanoseconds since 1970.
fn nanoseconds(ticks: u64, resolution: Option<u64>, offset: i64) -> u64 {
    let per_second = u128::from(resolution.unwrap_or(1_000_000).max(1));
    let ns = u128::from(ticks) * 1_000_000_000 / per_second;
    let offset = i128::from(offset) * 1_000_000_000;
    let ns = i128::try_from(ns)
        .unwrap_or(i128::MAX)
        .saturating_add(offset);
    u64::try_from(ns).unwrap_or(0)
}

/// First bytes of a pcapng file (`SHB_MAGIC`, the same in both byte orders).
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// First bytes of a pcap file: both byte orders and resolutions.
const MAGICS: [[u8; 4]; 4] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

impl Captured {
    /// Whether the bytes start like a capture file.
    #[must_use]
    pub fn is_file(bytes: &[u8]) -> bool {
        bytes.starts_with(&SECTION) || MAGICS.iter().any(|magic| bytes.starts_with(magic))
    }

    /// Reads the packets of a capture file, in file order. Ethernet, raw IP, BSD loopback and
    /// Linux cooked captures are supported; other link layers are errors.
    ///
    /// # Errors
    /// [`CaptureError`] with the position of the malformed data.
    pub fn read(file: &[u8]) -> Result<Vec<Self>, CaptureError> {
        let mut reading = Reading {
            file,
            rest: file,
            packets: Vec::new(),
        };
        if file.starts_with(&SECTION) {
            reading.pcapng()?;
        } else {
            reading.pcap()?;
        }
        Ok(reading.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcap(big: bool, nano: bool, link: u32, packets: &[&[u8]]) -> Vec<u8> {
        let word = |number: u32| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let half = |number: u16| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = word(magic).to_vec();
        file.extend([half(2), half(4)].concat());
        for number in [0, 0, 65_535, link] {
            file.extend(word(number));
        }
        for (packet, second) in packets.iter().zip(1..) {
            let len = u32::try_from(packet.len()).unwrap();
            for number in [second, 7, len, len + 100] {
                file.extend(word(number));
            }
            file.extend(*packet);
        }
        file
    }

    fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
        let word = |number: u32| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let padded = body.len().next_multiple_of(4);
        let len = u32::try_from(padded + 12).unwrap();
        let mut block = [word(kind), word(len)].concat();
        block.extend(body);
        block.resize(padded + 8, 0);
        block.extend(word(len));
        block
    }

    fn pcapng(big: bool, packet: &[u8]) -> Vec<u8> {
        let word = |number: u32| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let half = |number: u16| {
            if big {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            }
        };
        let section = [
            word(0x1a2b_3c4d).to_vec(),
            [half(1), half(0)].concat(),
            vec![0xff; 8],
        ];
        let mut file = block(big, 0x0a0d_0d0a, &section.concat());
        let interface = [[half(1), half(0)].concat(), word(0).to_vec()].concat();
        file.extend(block(big, 1, &interface));
        let len = u32::try_from(packet.len()).unwrap();
        let head = [word(0), word(0), word(5_000_000), word(len), word(len)].concat();
        file.extend(block(big, 6, &[&head, packet].concat()));
        file.extend(block(big, 3, &[&word(len)[..], packet].concat()));
        file.extend(block(big, 0x0bad, &[1, 2, 3]));
        file
    }

    fn bytes(captured: &Captured) -> Vec<u8> {
        captured.event.record()
    }

    #[test]
    fn pcap_of_both_byte_orders_and_resolutions() {
        let packets: [&[u8]; 2] = [&[1; 20], &[2; 15]];
        for (big, nano) in [(false, false), (false, true), (true, false), (true, true)] {
            let file = pcap(big, nano, 1, &packets);
            assert!(Captured::is_file(&file));
            let read = Captured::read(&file).unwrap();
            assert_eq!(
                (bytes(&read[0]), bytes(&read[1])),
                (vec![1; 20], vec![2; 15])
            );
            let fraction = if nano { 7 } else { 7000 };
            assert_eq!(
                (read[1].ns, read[1].wire_len),
                (2_000_000_000 + fraction, 115)
            );
        }
    }

    #[test]
    fn pcapng_of_both_byte_orders() {
        for big in [false, true] {
            let file = pcapng(big, &[3; 17]);
            assert!(Captured::is_file(&file));
            let read = Captured::read(&file).unwrap();
            assert_eq!(read.len(), 2);
            assert_eq!((bytes(&read[0]), read[0].ns), (vec![3; 17], 5_000_000_000));
            assert_eq!((bytes(&read[1]), read[1].ns), (vec![3; 17], 0));
        }
    }

    #[test]
    fn link_layers_get_an_ethernet_header() {
        let first = |link, packet: &[u8]| {
            let read = Captured::read(&pcap(false, false, link, &[packet])).unwrap();
            bytes(&read[0])
        };
        let six = [0x60, 1, 2];
        assert_eq!(
            first(101, &six),
            [&[0; 12][..], &[0x86, 0xdd], &six].concat()
        );
        assert_eq!(first(101, &[0x45])[12..], [8, 0, 0x45]);
        let cooked = [&[0; 14][..], &[8, 6], &[9, 9]].concat();
        assert_eq!(first(113, &cooked)[12..], [8, 6, 9, 9]);
        let cooked = [&[0x86, 0xdd][..], &[0; 18], &[0x60]].concat();
        assert_eq!(first(276, &cooked)[12..], [0x86, 0xdd, 0x60]);
        assert_eq!(first(0, &[2, 0, 0, 0, 0x45])[12..], [8, 0, 0x45]);
    }

    #[test]
    fn a_bad_file_says_where() {
        let text = |file: &[u8]| Captured::read(file).unwrap_err().to_string();
        assert!(text(b"no capture file").contains("byte 0: not a pcap header"));
        let good = pcap(false, false, 1, &[&[1; 20], &[2; 15]]);
        assert_eq!(
            text(&good[..good.len() - 1]),
            "capture file, byte 60 (after packet 1): the file ends within a packet's \
             record: 30 bytes are left"
        );
        assert!(text(&pcap(false, false, 147, &[])).contains("link layer 147"));
        assert!(
            text(&pcap(false, false, 113, &[&[1; 3]])).contains("byte 24: expected a link header")
        );
        let good = pcapng(false, &[1; 8]);
        assert!(
            text(&good[..60]).contains("byte 48"),
            "{}",
            text(&good[..60])
        );
        let mut lost = good.clone();
        lost[56] = 9;
        assert!(text(&lost).contains("interface 9"), "{}", text(&lost));
        for len in 0..good.len() {
            // A truncated file may be an error, but must not panic.
            let _ = Captured::read(&good[..len]);
        }
    }
}
