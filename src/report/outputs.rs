//! Outputs of running programs: lines, records, signals, redirects.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::datum::{Datum, hex};
pub use crate::program::RecordTypes;
use crate::vm::Output;

/// The record, decoded if its type is known.
fn decode(types: &RecordTypes, map: &str, data: &[u8]) -> Option<Datum> {
    let ty = types.type_of(map, data.len())?;
    Some(Datum::new(types.btf(), Some(ty), data))
}

/// An output of a program. Its fields are keys of `bpflab run --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputRow {
    /// A line of `bpf_printk`.
    Printk {
        /// The line, without its end.
        text: String,
    },
    /// A record of a ring or perf buffer.
    Record {
        /// The map.
        map: String,
        /// `ringbuf` or `perf`.
        buffer: &'static str,
        /// The CPU whose perf buffer got it.
        cpu: Option<u32>,
        /// Its length in bytes.
        size: usize,
        /// Its bytes in hexadecimal.
        bytes: String,
        /// The bytes decoded, if their type is known.
        value: Option<Datum>,
    },
    /// A record that was lost, as the buffer was full.
    Lost {
        /// The map.
        map: String,
        /// The error that the program got.
        errno: String,
    },
    /// A redirect of the packet or connection by a helper.
    Redirect {
        /// The map that has the target, if any.
        map: Option<String>,
        /// The target, in words.
        target: String,
        /// The helper's flags.
        flags: u64,
    },
    /// Text that an iterator printed.
    Seq {
        /// The text.
        text: String,
    },
    /// A signal for the current task.
    Signal {
        /// Its number.
        signal: u32,
    },
    /// A copy of the packet that was sent to a device.
    Clone {
        /// The device's number.
        ifindex: u32,
        /// Whether it arrives at the device, instead of being sent by it.
        ingress: bool,
        /// Its length in bytes.
        size: usize,
        /// Its bytes in hexadecimal.
        bytes: String,
    },
    /// A TCP acknowledgement.
    TcpAck {
        /// The acknowledged sequence number.
        ack: u32,
    },
}

impl OutputRow {
    /// The row of an output.
    #[must_use]
    pub fn new(output: &Output, types: &RecordTypes) -> Self {
        let record = |map: &Arc<str>, buffer, cpu, data: &[u8]| Self::Record {
            map: map.to_string(),
            buffer,
            cpu,
            size: data.len(),
            bytes: hex(data),
            value: decode(types, map, data),
        };
        match output {
            Output::Printk(text) => Self::Printk { text: text.clone() },
            Output::Perf { map, cpu, data } => record(map, "perf", Some(*cpu), data),
            Output::RingBuf { map, data } => record(map, "ringbuf", None, data),
            Output::Lost { map, error } => Self::Lost {
                map: map.to_string(),
                errno: error.to_string(),
            },
            Output::Redirect(redirect) => Self::Redirect {
                map: redirect.map.clone(),
                target: redirect.target.to_string(),
                flags: redirect.flags,
            },
            Output::Seq(bytes) => Self::Seq {
                text: String::from_utf8_lossy(bytes).into_owned(),
            },
            Output::Signal(signal) => Self::Signal { signal: *signal },
            Output::Clone {
                ifindex,
                ingress,
                packet,
            } => Self::Clone {
                ifindex: *ifindex,
                ingress: *ingress,
                size: packet.len(),
                bytes: hex(packet),
            },
            Output::TcpAck(number) => Self::TcpAck { ack: *number },
        }
    }
}

impl fmt::Display for OutputRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Printk { text } => writeln!(f, "printk: {text}"),
            Self::Record {
                map,
                cpu,
                size,
                bytes,
                value,
                ..
            } => {
                write!(f, "{map}")?;
                if let Some(cpu) = cpu {
                    write!(f, " (cpu {cpu})")?;
                }
                match value {
                    Some(value) => writeln!(f, ": {value}"),
                    None => writeln!(f, ": {size} bytes {bytes}"),
                }
            }
            Self::Lost { map, errno } => writeln!(f, "{map}: a record was lost: {errno}"),
            Self::Redirect { map, target, .. } => match map {
                Some(map) => writeln!(f, "{map}: redirected to {target}"),
                None => writeln!(f, "redirected to {target}"),
            },
            Self::Seq { text } => writeln!(f, "seq: {}", text.trim_end_matches('\n')),
            Self::Signal { signal } => writeln!(f, "signal {signal} to the current task"),
            Self::Clone {
                ifindex,
                ingress,
                size,
                bytes,
            } => {
                let way = if *ingress { "in by" } else { "out of" };
                writeln!(f, "a copy {way} device {ifindex}: {size} bytes {bytes}")
            }
            Self::TcpAck { ack } => writeln!(f, "TCP acknowledgement of {ack}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::{Builder, Encoding, Linkage, Member};
    use crate::program::MapDef;
    use crate::spec::MapType;
    use crate::util::TypeId;

    /// A struct of one number of `size` bytes.
    fn record(builder: &mut Builder, name: &str, size: u8) -> TypeId {
        let number = builder.int("number", size, Encoding::Unsigned);
        let member = Member {
            name: "n",
            ty: number,
            bit_offset: 0,
            bitfield: None,
        };
        builder.structure(name, size.into(), &[member])
    }

    #[test]
    fn a_record_is_of_the_type_that_fits() {
        let mut builder = Builder::new();
        record(&mut builder, "event", 4);
        let kept = record(&mut builder, "started", 8);
        let constant = builder.constant(kept);
        let pointer = builder.ptr(constant);
        builder.variable("unused", pointer, Linkage::Global);
        let of_map = record(&mut builder, "of_map", 2);
        let btf = builder.build().unwrap();
        let mut map = MapDef::new("typed", MapType::Ringbuf, 0, 0, 4096);
        map.value_type = Some(of_map);

        let mut types = RecordTypes::new(Some(&btf), &[map]);
        let shown = |types: &RecordTypes, map: &str, len: usize| {
            let value = decode(types, map, &vec![1; len]);
            value.map(|value| value.to_string())
        };
        assert_eq!(shown(&types, "any", 4).as_deref(), Some("{n: 16843009}"));
        assert_eq!(
            shown(&types, "any", 8).as_deref(),
            Some("{n: 72340172838076673}")
        );
        assert_eq!(shown(&types, "any", 3), None);
        // A record may be longer than its map's type.
        assert_eq!(shown(&types, "typed", 4).as_deref(), Some("{n: 257}"));
        assert!(types.set("typed", "struct event") && !types.set("typed", "struct nothing"));
        assert_eq!(shown(&types, "typed", 8).as_deref(), Some("{n: 16843009}"));
    }
}
