//! `--out`: the packets that programs leave, as a capture file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::cli::exit::Failure;
use crate::spec::ProgType;

/// `pcap` of nanoseconds: magic number, version 2.4, time zone and accuracy 0, the longest
/// packet, Ethernet (draft-ietf-opsawg-pcap).
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const LONGEST: u32 = 262_144;
const ETHERNET: u32 = 1;
const SECOND: u64 = 1_000_000_000;

/// A capture file that is being written.
pub(super) struct PacketFile {
    name: String,
    to: BufWriter<File>,
    /// Packets in the file.
    pub written: u64,
    /// Packets that a program dropped.
    pub dropped: u64,
}

/// Whether this type of program sees packets from the Ethernet header on.
pub(super) const fn sees_frames(prog_type: ProgType) -> bool {
    matches!(
        prog_type,
        ProgType::Xdp | ProgType::SchedCls | ProgType::SchedAct
    )
}

/// Whether a program's return value drops the packet: `XDP_ABORTED` and `XDP_DROP`, and
/// `TC_ACT_SHOT` (`include/uapi/linux/bpf.h`, `pkt_cls.h`).
pub(super) const fn drops(prog_type: ProgType, returned: u32) -> bool {
    match prog_type {
        ProgType::Xdp => returned <= 1,
        _ => returned == 2,
    }
}

impl PacketFile {
    /// Creates a file without packets.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let created = File::create(path);
        let to = created.map_err(|error| unwritable(&name, &error))?;
        let mut file = Self {
            name,
            to: BufWriter::new(to),
            written: 0,
            dropped: 0,
        };
        let mut header = MAGIC.to_le_bytes().to_vec();
        header.extend(VERSION.iter().flat_map(|half| half.to_le_bytes()));
        for word in [0, 0, LONGEST, ETHERNET] {
            header.extend(word.to_le_bytes());
        }
        file.put(&header)?;
        Ok(file)
    }

    /// Adds a packet; `ns` is its time.
    pub fn add(&mut self, ns: u64, packet: &[u8]) -> Result<(), Failure> {
        let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let len = packet.len() as u64;
        let words = [ns / SECOND, ns % SECOND, len, len].map(word);
        self.put(&words.concat())?;
        self.put(packet)?;
        self.written += 1;
        Ok(())
    }

    /// Writes all of it to the disk, and says what there is.
    pub fn finish(mut self) -> Result<String, Failure> {
        let flushed = self.to.flush();
        flushed.map_err(|error| unwritable(&self.name, &error))?;
        let (name, written, dropped) = (&self.name, self.written, self.dropped);
        Ok(format!(
            "{name}: packets: {written} written, {dropped} dropped"
        ))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.to.write_all(bytes);
        written.map_err(|error| unwritable(&self.name, &error))
    }
}

fn unwritable(name: &str, error: &std::io::Error) -> Failure {
    Failure::bad(format!("{name}: can't be written: {error}"))
}
