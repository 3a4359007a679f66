//! What a program did to a packet.

use std::fmt;

use serde::Serialize;

use super::datum::hex;
use crate::vm::events::headers_of;

/// Bytes in a line.
const WIDTH: usize = 16;

/// A packet that a program changed. Its fields are the keys of `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PacketRow {
    /// `packet`.
    kind: &'static str,
    /// The packet before the programs ran.
    pub before: PacketState,
    /// The packet afterwards.
    pub after: PacketState,
}

/// A packet: its headers in words, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PacketState {
    /// Length in bytes.
    pub size: usize,
    /// The headers.
    pub headers: String,
    /// The bytes in hexadecimal.
    pub bytes: String,
    #[serde(skip)]
    raw: Vec<u8>,
}

impl PacketState {
    fn new(bytes: &[u8]) -> Self {
        Self {
            size: bytes.len(),
            headers: headers_of(bytes),
            bytes: hex(bytes),
            raw: bytes.to_vec(),
        }
    }

    fn line(&self, number: usize) -> &[u8] {
        let at = (number * WIDTH).min(self.raw.len());
        let end = (at + WIDTH).min(self.raw.len());
        self.raw.get(at..end).unwrap_or_default()
    }
}

impl PacketRow {
    /// The change of a packet that begins with its Ethernet header; `None` if it is the same.
    #[must_use]
    pub fn new(before: &[u8], after: &[u8]) -> Option<Self> {
        (before != after).then(|| Self {
            kind: "packet",
            before: PacketState::new(before),
            after: PacketState::new(after),
        })
    }
}

/// The headers, and the lines of 16 bytes that differ.
impl fmt::Display for PacketRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (&self.before, &self.after);
        writeln!(f, "packet: {} bytes, was {}", after.size, before.size)?;
        if before.headers == after.headers {
            writeln!(f, "  {}", after.headers)?;
        } else {
            writeln!(f, "- {}", before.headers)?;
            writeln!(f, "+ {}", after.headers)?;
        }
        let lines = before.size.max(after.size).div_ceil(WIDTH);
        for number in 0..lines {
            let (was, is) = (before.line(number), after.line(number));
            if was == is {
                continue;
            }
            for (sign, bytes) in [('-', was), ('+', is)] {
                if !bytes.is_empty() {
                    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    writeln!(f, "{sign} {:04x}  {}", number * WIDTH, bytes.join(" "))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::events::Packet;

    #[test]
    fn what_changed_is_shown() {
        let packet = |port| {
            let packet = Packet::ethernet().ipv4("10.0.0.1", "10.0.0.2");
            packet.udp(1, port).build().unwrap()
        };
        let (before, after) = (packet(53), packet(5353));
        assert_eq!(PacketRow::new(&before, &before), None);
        let text = PacketRow::new(&before, &after).unwrap().to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "packet: 42 bytes, was 42");
        assert!(
            lines[1].ends_with("udp 1 > 53") && lines[1].starts_with("- "),
            "{text}"
        );
        assert!(
            lines[2].ends_with("udp 1 > 5353") && lines[2].starts_with("+ "),
            "{text}"
        );
        assert!(lines[3].starts_with("- 0020  "), "{text}");
        assert_eq!(lines.len(), 5, "{text}");
    }

    #[test]
    fn a_shorter_packet_loses_lines() {
        let text = PacketRow::new(&[1; 40], &[1; 16]).unwrap().to_string();
        assert!(text.starts_with("packet: 16 bytes, was 40"));
        assert!(
            text.contains("\n- 0020  01 01 01 01 01 01 01 01\n"),
            "{text}"
        );
        assert!(!text.contains("+ 00"), "{text}");
    }
}
