//! RPM packages: a lead, two headers, and a cpio archive (`format_lead.md`, `format_header.md`
//! and `format_v6.md` in rpm's manual; `lib/cpio.c` in rpm).

use std::io::{self, BufRead, Read};

use super::collect::{Collector, MAX_UNPACKED};
use super::error::Problem;
use crate::util::compressed::{Bounded, unpack};
use crate::util::{ReadError, Reader};

/// How a package begins.
pub(super) const MAGIC: &[u8] = &[0xed, 0xab, 0xee, 0xdb];

/// The length of the lead.
const LEAD: usize = 96;

/// The largest header: one that lists 5000 modules has a million bytes.
const MAX_HEADER: u64 = 16 << 20;

/// The longest path of a file.
const MAX_PATH: usize = 4096;

/// The tags of a header that describe files.
mod tag {
    pub(super) const FILE_SIZES: u32 = 1028;
    pub(super) const FILE_MODES: u32 = 1030;
    pub(super) const DIR_INDEXES: u32 = 1116;
    pub(super) const BASE_NAMES: u32 = 1117;
    pub(super) const DIR_NAMES: u32 = 1118;
    pub(super) const LONG_FILE_SIZES: u32 = 5008;
}

/// Shows the files of a package.
pub(super) fn read(mut file: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    file.read_exact(&mut [0; LEAD])?;
    let signature = Header::read(&mut file)?;
    // The next header begins at a multiple of 8.
    let padding = signature.values.len().wrapping_neg() % 8;
    io::copy(&mut (&mut file).take(padding as u64), &mut io::sink())?;
    let header = Header::read(&mut file)?;
    let files = Files::of(&header);

    let mut payload = Bounded::new(unpack(file)?, MAX_UNPACKED);
    while let Some(member) = Member::read(&mut payload, &files)? {
        let mut contents = (&mut payload).take(member.size);
        if member.is_file {
            collector.file(&member.path, &mut contents)?;
        }
        let left = contents.limit();
        if io::copy(&mut contents, &mut io::sink())? < left {
            return Err(Problem::Truncated);
        }
        skip_padding(&mut payload, member.size)?;
    }
    Ok(())
}

/// Members and their contents begin at multiples of 4.
fn skip_padding(payload: &mut impl Read, size: u64) -> io::Result<()> {
    let padding = size.wrapping_neg() % 4;
    io::copy(&mut payload.take(padding), &mut io::sink())?;
    Ok(())
}

/// A header: an index of tags, and their values.
struct Header {
    index: Vec<u8>,
    values: Vec<u8>,
}

impl Header {
    fn read(file: &mut impl Read) -> Result<Self, Problem> {
        let mut start = [0; 16];
        file.read_exact(&mut start)?;
        let mut start = Reader::new(&start);
        if start.array()? != [0x8e, 0xad, 0xe8, 1] {
            return Err(Problem::Malformed("no header where one must be".to_owned()));
        }
        start.bytes(4)?;
        let entries = u64::from(u32::from_be_bytes(start.array()?));
        let values = u64::from(u32::from_be_bytes(start.array()?));
        let index = part(file, entries.saturating_mul(16))?;
        let values = part(file, values)?;
        Ok(Self { index, values })
    }

    /// How many values a tag has, of which type, and a reader of them.
    fn values(&self, tag: u32) -> Option<(usize, u32, Reader<'_>)> {
        let mut entries = self.index.chunks_exact(16).map(|entry| {
            let mut fields = Reader::new(entry);
            let mut field = || fields.array().map_or(0, u32::from_be_bytes);
            [field(), field(), field(), field()]
        });
        let [_, kind, offset, count] = entries.find(|[found, ..]| *found == tag)?;
        let values = Reader::at(&self.values, usize::try_from(offset).ok()?);
        Some((usize::try_from(count).ok()?, kind, values))
    }

    /// The values of a tag with numbers of 16, 32 or 64 bits.
    fn numbers(&self, tag: u32) -> Vec<u64> {
        let (count, width, mut values) = match self.values(tag) {
            Some((count, 3, values)) => (count, 2, values),
            Some((count, 4, values)) => (count, 4, values),
            Some((count, 5, values)) => (count, 8, values),
            _ => return Vec::new(),
        };
        let bytes = values.bytes(count.saturating_mul(width)).unwrap_or(&[]);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        bytes.chunks_exact(width).map(number).collect()
    }

    /// The values of a tag with texts.
    fn texts(&self, tag: u32) -> Vec<&[u8]> {
        let Some((count, 8, mut values)) = self.values(tag) else {
            return Vec::new();
        };
        let bytes = values.bytes(values.left()).unwrap_or(&[]);
        bytes.split(|byte| *byte == 0).take(count).collect()
    }
}

/// The files that a header lists.
struct Files<'a> {
    folders: Vec<&'a [u8]>,
    folder_of: Vec<u64>,
    names: Vec<&'a [u8]>,
    modes: Vec<u64>,
    sizes: Vec<u64>,
}

impl<'a> Files<'a> {
    fn of(header: &'a Header) -> Self {
        let mut sizes = header.numbers(tag::LONG_FILE_SIZES);
        if sizes.is_empty() {
            sizes = header.numbers(tag::FILE_SIZES);
        }
        Self {
            folders: header.texts(tag::DIR_NAMES),
            folder_of: header.numbers(tag::DIR_INDEXES),
            names: header.texts(tag::BASE_NAMES),
            modes: header.numbers(tag::FILE_MODES),
            sizes,
        }
    }

    /// The file with this number.
    fn get(&self, nth: usize) -> Option<Member> {
        let folder = usize::try_from(*self.folder_of.get(nth)?).ok()?;
        let path = [*self.folders.get(folder)?, *self.names.get(nth)?].concat();
        Some(Member {
            path: String::from_utf8_lossy(&path).into_owned(),
            is_file: is_file(*self.modes.get(nth)?),
            size: *self.sizes.get(nth)?,
        })
    }
}

/// Reads a part of a header.
fn part(file: &mut impl Read, size: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    if size > MAX_HEADER {
        let text = format!("a header of {size} bytes");
        return Err(Problem::Malformed(text));
    }
    let read = file.take(size).read_to_end(&mut bytes)?;
    if (read as u64) < size {
        return Err(Problem::Truncated);
    }
    Ok(bytes)
}

/// A member of the archive.
struct Member {
    path: String,
    is_file: bool,
    size: u64,
}

impl Member {
    /// Reads the head of the next member; none for the last one.
    fn read(payload: &mut impl Read, files: &Files) -> Result<Option<Self>, Problem> {
        let bad = |text: &str| Problem::Malformed(text.to_owned());
        let mut magic = [0; 6];
        payload.read_exact(&mut magic)?;
        match &magic {
            b"070701" | b"070702" => {}
            // Only the number of the file: everything else is in the header.
            b"07070X" => {
                let mut number = [0; 10];
                payload.read_exact(&mut number)?;
                let file = hex(number.get(..8)).and_then(|nth| files.get(nth));
                return file
                    .map(Some)
                    .ok_or_else(|| bad("a member of the archive that the header does not list"));
            }
            _ => return Err(bad("no member of a cpio archive where one must be")),
        }
        // 13 numbers of 8 hexadecimal digits; the second is the mode.
        let mut fields = [0; 104];
        payload.read_exact(&mut fields)?;
        let field = |nth: usize| hex(fields.chunks_exact(8).nth(nth));
        let (Some(mode), Some(size), Some(length)) = (field(1), field(6), field(11)) else {
            return Err(bad("a member of the archive without mode or sizes"));
        };
        if length > MAX_PATH {
            return Err(bad("a member of the archive with too long a path"));
        }
        let mut path = vec![0; length];
        payload.read_exact(&mut path)?;
        skip_padding(payload, 110 + length as u64)?;
        let path = String::from_utf8_lossy(path.strip_suffix(b"\0").unwrap_or(&path));
        Ok((path != "TRAILER!!!").then(|| Self {
            path: path.into_owned(),
            is_file: is_file(mode as u64),
            size: size as u64,
        }))
    }
}

/// Whether this is the mode of a regular file (`S_IFREG`).
const fn is_file(mode: u64) -> bool {
    mode & 0o170_000 == 0o100_000
}

/// A hexadecimal number.
fn hex(digits: Option<&[u8]>) -> Option<usize> {
    let digits = std::str::from_utf8(digits?).ok()?;
    usize::from_str_radix(digits, 16).ok()
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        Self::Malformed(error.to_string())
    }
}
