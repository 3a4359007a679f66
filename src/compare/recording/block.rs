//! The head of the file and the head of each block.
//!
//! The file's head is the same in every version, so that a reader can name the version. A
//! block's head has its own checksum, which is checked before its lengths are used.

use std::fmt;

use super::checksum::checksum;
use crate::util::Reader;

/// The first bytes of a recording. The first one is not ASCII and the last one a line feed, so
/// that a transfer in text mode is detected.
pub const MAGIC: [u8; 8] = *b"\x89bpfrec\n";

/// The most bytes of a block, packed or not.
pub(super) const MAX_BLOCK: usize = 64 << 20;
/// A block is written when it has at least this many bytes.
pub(super) const TARGET: usize = 256 << 10;
/// The most bytes of an item, so that it fits into a block below [`TARGET`].
pub(super) const MAX_ITEM: usize = MAX_BLOCK - TARGET;
/// An LZ4 block grows by at most this factor when unpacked: a length byte stands for up to 255
/// bytes.
const MAX_RATIO: usize = 255;

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Increases with incompatible changes; old readers refuse the file.
    pub major: u16,
    /// Increases with additions; old readers continue.
    pub minor: u16,
}

impl Version {
    /// The version that is written.
    pub const CURRENT: Self = Self { major: 1, minor: 1 };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Bytes of the file's head.
pub(super) const FILE_HEAD: usize = 16;

/// The file's head: magic, version, checksum of both.
pub(super) fn file_head(version: Version) -> [u8; FILE_HEAD] {
    let mut head = [0; FILE_HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..10].copy_from_slice(&version.major.to_le_bytes());
    head[10..12].copy_from_slice(&version.minor.to_le_bytes());
    let sum = checksum(&head[..12]);
    head[12..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// The version in a file's head that begins with [`MAGIC`]; an error if the checksum is
/// wrong.
pub(super) fn file_version(head: &[u8; FILE_HEAD]) -> Result<Version, String> {
    let [.., j0, j1, n0, n1, s0, s1, s2, s3] = *head;
    let version = Version {
        major: u16::from_le_bytes([j0, j1]),
        minor: u16::from_le_bytes([n0, n1]),
    };
    same_sum(
        "the file's head",
        u32::from_le_bytes([s0, s1, s2, s3]),
        &head[..12],
    )?;
    Ok(version)
}

/// Compares bytes with their checksum.
pub(super) fn same_sum(what: &str, wanted: u32, bytes: &[u8]) -> Result<(), String> {
    let found = checksum(bytes);
    if found == wanted {
        return Ok(());
    }
    Err(format!(
        "{what} has checksum {wanted:#010x}, but its bytes have {found:#010x}"
    ))
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// The [`Header`](super::Header): the first block and no other.
    Header = 1,
    /// Records of the recorder's ring buffer.
    Firings = 2,
    /// [`MapEntry`](super::MapEntry)s.
    Entries = 3,
    /// [`MapRead`](super::MapRead)s.
    MapReads = 4,
    /// [`Output`](super::Output)s.
    Outputs = 5,
    /// [`Sample`](super::Sample)s.
    Samples = 6,
    /// [`Loss`](super::Loss)es.
    Losses = 7,
    /// [`Resource`](super::Resource)s; can be skipped.
    Resources = 8,
    /// The [`End`](super::End): the last block and no other.
    End = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Header,
        Self::Firings,
        Self::Entries,
        Self::MapReads,
        Self::Outputs,
        Self::Samples,
        Self::Losses,
        Self::Resources,
        Self::End,
    ];

    /// The number in the file.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The kind with a number, if this version knows one.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// The block is packed by LZ4.
pub(super) const PACKED: u16 = 1;
/// Readers that don't know the kind of the block may skip it.
pub(super) const SKIPPABLE: u16 = 2;

/// Bytes of a block's head.
pub(super) const BLOCK_HEAD: usize = 36;
/// How each block begins.
const MARK: [u8; 4] = *b"blk\n";

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    /// Number of the [`Kind`].
    pub kind: u16,
    /// [`PACKED`], [`SKIPPABLE`].
    pub flags: u16,
    /// Number of the block, from 0.
    pub number: u64,
    /// Bytes that follow in the file.
    pub stored: u32,
    /// Bytes when unpacked.
    pub plain: u32,
    /// Number of items.
    pub items: u32,
    /// Checksum of the bytes that follow in the file.
    pub sum: u32,
}

impl BlockHead {
    pub fn to_bytes(self) -> [u8; BLOCK_HEAD] {
        let mut bytes = [0; BLOCK_HEAD];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..6].copy_from_slice(&self.kind.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.stored.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.plain.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.items.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.sum.to_le_bytes());
        let sum = checksum(&bytes[..32]);
        bytes[32..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a head and checks its mark, checksum and lengths. The error says what was
    /// expected and what was found.
    pub fn parse(bytes: &[u8; BLOCK_HEAD]) -> Result<Self, String> {
        let mut reader = Reader::new(bytes);
        let short = |error: crate::util::ReadError| error.to_string();
        let mark: [u8; 4] = reader.array().map_err(short)?;
        if mark != MARK {
            let found = mark.escape_ascii();
            return Err(format!(
                "expected 'blk\\n' at the start of the block, found '{found}'"
            ));
        }
        let head = Self {
            kind: reader.u16().map_err(short)?,
            flags: reader.u16().map_err(short)?,
            number: reader.u64().map_err(short)?,
            stored: reader.u32().map_err(short)?,
            plain: reader.u32().map_err(short)?,
            items: reader.u32().map_err(short)?,
            sum: reader.u32().map_err(short)?,
        };
        let sum = reader.u32().map_err(short)?;
        same_sum("the block's head", sum, &bytes[..32])?;
        head.check_lengths().map(|()| head)
    }

    /// Whether the block is packed.
    pub const fn is_packed(self) -> bool {
        self.flags & PACKED != 0
    }

    /// Refuses lengths that no block has, before memory is allocated for them.
    fn check_lengths(self) -> Result<(), String> {
        let (stored, plain) = (self.stored as usize, self.plain as usize);
        let limit = if self.is_packed() {
            stored.saturating_mul(MAX_RATIO)
        } else {
            stored
        };
        if stored.max(plain) > MAX_BLOCK {
            return Err(format!(
                "a block of {stored} bytes, {plain} unpacked, is too long: at most {MAX_BLOCK}"
            ));
        }
        if plain > limit || (!self.is_packed() && plain < stored) {
            return Err(format!("{stored} bytes can't be {plain} when unpacked"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: BlockHead = BlockHead {
        kind: 2,
        flags: PACKED,
        number: 7,
        stored: 100,
        plain: 1000,
        items: 3,
        sum: 0x1234_5678,
    };

    #[test]
    fn heads_come_back() {
        assert_eq!(BlockHead::parse(&HEAD.to_bytes()), Ok(HEAD));
        let version = Version { major: 3, minor: 9 };
        assert_eq!(file_version(&file_head(version)), Ok(version));
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(Kind::from_number(0), None);
    }

    #[test]
    fn no_byte_of_a_head_can_change_unseen() {
        for at in 0..BLOCK_HEAD {
            let mut bytes = HEAD.to_bytes();
            bytes[at] ^= 0x10;
            let problem = BlockHead::parse(&bytes).unwrap_err();
            let wanted = if at < 4 { "'blk\\n'" } else { "checksum" };
            assert!(problem.contains(wanted), "byte {at}: {problem}");
        }
        for at in 8..FILE_HEAD {
            let mut bytes = file_head(Version::CURRENT);
            bytes[at] ^= 1;
            assert!(file_version(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn lengths_that_no_block_has_are_refused_whatever_the_checksum() {
        let of = |flags, stored, plain| BlockHead {
            flags,
            stored,
            plain,
            ..HEAD
        };
        let refused = |head: BlockHead| BlockHead::parse(&head.to_bytes()).unwrap_err();
        assert_eq!(
            refused(of(PACKED, 100, 25_501)),
            "100 bytes can't be 25501 when unpacked"
        );
        assert_eq!(
            refused(of(0, 100, 99)),
            "100 bytes can't be 99 when unpacked"
        );
        let huge = u32::try_from(MAX_BLOCK).unwrap() + 1;
        for head in [
            of(0, huge, huge),
            of(PACKED, huge, 1),
            of(PACKED, 1 << 20, huge),
        ] {
            assert!(refused(head).contains("at most 67108864"));
        }
        assert!(BlockHead::parse(&of(PACKED, 100, 25_500).to_bytes()).is_ok());
    }
}
