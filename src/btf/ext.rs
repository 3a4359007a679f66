//! `.BTF.ext`: function starts, source lines and CO-RE relocations.
//!
//! Records are grouped by the ELF section of their instructions; their offsets are in bytes
//! from that section's start. Strings are those of `.BTF`.

use super::blob::{self, Btf, MAGIC, VERSION};
use super::error::{BTF_EXT, BtfError, Problem};
use crate::util::{Reader, TypeId};

/// The parts of a `.BTF.ext` section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BtfExt {
    /// Functions.
    pub funcs: Vec<Records<FuncInfo>>,
    /// Source lines.
    pub lines: Vec<Records<LineInfo>>,
    /// CO-RE relocations.
    pub relocations: Vec<Records<CoreRelo>>,
}

/// The records of one ELF section, in order of their offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records<T> {
    /// Name of the section, as an offset into the strings of `.BTF`.
    pub section: u32,
    /// The records.
    pub records: Vec<T>,
}

/// The start of a function (`struct bpf_func_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FuncInfo {
    /// Offset of its first instruction, in bytes from the section's start.
    pub insn_off: u32,
    /// Its [`Kind::Func`](super::Kind::Func).
    pub ty: TypeId,
}

/// The source line of the instructions from an offset on (`struct bpf_line_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineInfo {
    /// Offset of the first instruction, in bytes from the section's start.
    pub insn_off: u32,
    /// File name, as an offset into the strings of `.BTF`.
    pub file: u32,
    /// Text of the line, as an offset into the strings of `.BTF`.
    pub text: u32,
    /// Line (upper 22 bits) and column (lower 10).
    pub line_col: u32,
}

/// A CO-RE relocation of an instruction (`struct bpf_core_relo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreRelo {
    /// Offset of the instruction, in bytes from the section's start.
    pub insn_off: u32,
    /// The root type of the access.
    pub ty: TypeId,
    /// The access string (`0:1:2`), as an offset into the strings of `.BTF`.
    pub access: u32,
    /// The kind of relocation (`enum bpf_core_relo_kind`).
    pub kind: u32,
}

/// A source location, with its strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine<'a> {
    /// File name as passed to the compiler.
    pub file: &'a str,
    /// The source line with its indentation; empty if it wasn't recorded.
    pub text: &'a str,
    /// Line, from 1; 0 for compiler-generated code.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

impl LineInfo {
    /// Line, from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line_col >> 10
    }

    /// Column, from 1.
    #[must_use]
    pub const fn column(&self) -> u32 {
        self.line_col & 0x3ff
    }

    /// The source location, with strings from the object's BTF.
    #[must_use]
    pub fn source<'a>(&self, btf: &'a Btf) -> SourceLine<'a> {
        SourceLine {
            file: btf.string(self.file).unwrap_or_default(),
            text: btf.string(self.text).unwrap_or_default(),
            line: self.line(),
            column: self.column(),
        }
    }
}

/// A record in the section: a sequence of words, of which newer versions may have more.
pub trait Record: Copy {
    /// Name of the records in errors.
    const NAME: &'static str;
    /// Words that this library reads.
    const WORDS: usize;

    /// Reads a record.
    ///
    /// # Errors
    /// If the bytes end first.
    #[doc(hidden)]
    fn read(reader: &mut Reader<'_>) -> Result<Self, crate::util::ReadError>;

    /// Its words, in order.
    fn words(&self) -> impl IntoIterator<Item = u32>;

    /// Offset of its instruction, in bytes.
    fn insn_off(&self) -> u32;
}

/// Implements [`Record`] for a struct of `u32` fields and ids, in the order in the section.
macro_rules! record {
    ($type:ident, $name:literal, $words:literal: $($field:ident $(as $wrap:ident)?),*) => {
        impl Record for $type {
            const NAME: &'static str = $name;
            const WORDS: usize = $words;

            fn read(reader: &mut Reader<'_>) -> Result<Self, crate::util::ReadError> {
                Ok(Self { $($field: record!(@read reader $($wrap)?)),* })
            }

            fn words(&self) -> impl IntoIterator<Item = u32> {
                [$(record!(@word self.$field, $($wrap)?)),*]
            }

            fn insn_off(&self) -> u32 {
                self.insn_off
            }
        }
    };
    (@read $reader:ident) => { $reader.u32()? };
    (@read $reader:ident $wrap:ident) => { $wrap($reader.u32()?) };
    (@word $word:expr,) => { $word };
    (@word $word:expr, $wrap:ident) => { $word.0 };
}

record!(FuncInfo, "func_info", 2: insn_off, ty as TypeId);
record!(LineInfo, "line_info", 4: insn_off, file, text, line_col);
record!(CoreRelo, "core_relo", 4: insn_off, ty as TypeId, access, kind);

impl<T: Record> Records<T> {
    /// The last record at or before an instruction: its function or line.
    #[must_use]
    pub fn at(&self, insn_off: u32) -> Option<&T> {
        let after = self
            .records
            .partition_point(|record| record.insn_off() <= insn_off);
        after.checked_sub(1).and_then(|last| self.records.get(last))
    }

    /// The records of the instructions from `start` up to `end`.
    #[must_use]
    pub fn range(&self, start: u32, end: u32) -> &[T] {
        let from = self
            .records
            .partition_point(|record| record.insn_off() < start);
        let to = self
            .records
            .partition_point(|record| record.insn_off() < end);
        self.records.get(from..to).unwrap_or_default()
    }
}

/// Header length of the oldest version: two parts, no CO-RE.
const OLD_HEADER: u32 = 24;
/// Header length with CO-RE.
const HEADER: u32 = 32;

impl BtfExt {
    /// Parses a `.BTF.ext` section. Unknown parts are ignored; an old section without CO-RE
    /// relocations has none.
    ///
    /// # Errors
    /// [`BtfError`] with the offset of the first error.
    pub fn parse(bytes: &[u8], btf: &Btf) -> Result<Self, BtfError> {
        let mut reader = Reader::new(bytes);
        let header_len = blob::preamble(&mut reader, BTF_EXT)?;
        if header_len < OLD_HEADER || header_len as usize > bytes.len() {
            return Err(BtfError::ext(4, Problem::HeaderLen(header_len)));
        }
        let mut part = |there: bool| {
            let field = reader.offset();
            let mut word = || {
                reader
                    .u32()
                    .map_err(|error| BtfError::header(BTF_EXT, error))
            };
            let (off, len) = if there { (word()?, word()?) } else { (0, 0) };
            Ok::<_, BtfError>(Part {
                bytes,
                header_len,
                field,
                off,
                len,
            })
        };
        let (funcs, lines, relocations) = (part(true)?, part(true)?, part(header_len >= HEADER)?);
        Ok(Self {
            funcs: funcs.read(btf)?,
            lines: lines.read(btf)?,
            relocations: relocations.read(btf)?,
        })
    }

    /// The functions of the section of this name.
    #[must_use]
    pub fn funcs_of(&self, btf: &Btf, section: &str) -> Option<&Records<FuncInfo>> {
        of_section(&self.funcs, btf, section)
    }

    /// The lines of the section of this name.
    #[must_use]
    pub fn lines_of(&self, btf: &Btf, section: &str) -> Option<&Records<LineInfo>> {
        of_section(&self.lines, btf, section)
    }

    /// The CO-RE relocations of the section of this name.
    #[must_use]
    pub fn relocations_of(&self, btf: &Btf, section: &str) -> Option<&Records<CoreRelo>> {
        of_section(&self.relocations, btf, section)
    }

    /// Encodes the section.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = [
            write(&self.funcs),
            write(&self.lines),
            write(&self.relocations),
        ];
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut out = Vec::new();
        out.extend(MAGIC.to_le_bytes());
        out.extend([VERSION, 0]);
        out.extend(HEADER.to_le_bytes());
        let mut off = 0u32;
        for part in &parts {
            out.extend(off.to_le_bytes());
            out.extend(len(part).to_le_bytes());
            off = off.saturating_add(len(part));
        }
        out.extend(parts.iter().flatten());
        out
    }
}

fn of_section<'a, T>(list: &'a [Records<T>], btf: &Btf, section: &str) -> Option<&'a Records<T>> {
    list.iter()
        .find(|records| btf.string(records.section) == Some(section))
}

/// One of the three parts, as listed in the header.
struct Part<'a> {
    bytes: &'a [u8],
    header_len: u32,
    /// Offset of its header field.
    field: usize,
    off: u32,
    len: u32,
}

impl Part<'_> {
    fn read<T: Record>(&self, btf: &Btf) -> Result<Vec<Records<T>>, BtfError> {
        if self.len == 0 {
            return Ok(Vec::new());
        }
        let start = u64::from(self.header_len) + u64::from(self.off);
        let out_of_section = || {
            let problem = Problem::OutOfSection {
                part: T::NAME,
                start,
                len: self.len,
                size: self.bytes.len(),
            };
            BtfError::ext(self.field, problem)
        };
        if !self.off.is_multiple_of(4) {
            return Err(BtfError::ext(self.field, Problem::Unaligned(T::NAME)));
        }
        let start = usize::try_from(start).map_err(|_| out_of_section())?;
        let end = start
            .checked_add(self.len as usize)
            .ok_or_else(out_of_section)?;
        let bytes = self.bytes.get(..end).ok_or_else(out_of_section)?;

        let mut reader = Reader::at(bytes, start);
        let short = |wanted: u64, reader: &Reader<'_>| {
            let problem = Problem::Records {
                part: T::NAME,
                wanted,
                left: reader.left(),
            };
            BtfError::ext(reader.offset(), problem)
        };
        let least = u32::try_from(T::WORDS * 4).unwrap_or(u32::MAX);
        let size = reader.u32().map_err(|_| short(4, &reader))?;
        if size < least || size % 4 != 0 {
            let problem = Problem::RecordSize {
                part: T::NAME,
                size,
                least,
            };
            return Err(BtfError::ext(start, problem));
        }
        let mut sections = Vec::new();
        while !reader.is_empty() {
            let at = reader.offset();
            let section = reader.u32().map_err(|_| short(8, &reader))?;
            let count = reader.u32().map_err(|_| short(4, &reader))?;
            if btf.string(section).is_none() {
                return Err(BtfError::ext(at, Problem::NameOffset(section)));
            }
            if count == 0 {
                return Err(BtfError::ext(at, Problem::NoRecords(T::NAME)));
            }
            let wanted = u64::from(count) * u64::from(size);
            if wanted > reader.left() as u64 {
                return Err(short(wanted, &reader));
            }
            let mut records = Vec::with_capacity(count as usize);
            for _ in 0..count {
                let record = reader
                    .bytes(size as usize)
                    .map_err(|_| short(wanted, &reader))?;
                records
                    .push(T::read(&mut Reader::new(record)).map_err(|_| short(wanted, &reader))?);
            }
            // Compilers write them in order, and the binary search relies on the order.
            records.sort_by_key(Record::insn_off);
            sections.push(Records { section, records });
        }
        Ok(sections)
    }
}

/// Encodes a part; empty if there are no records.
fn write<T: Record>(sections: &[Records<T>]) -> Vec<u8> {
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    let mut words = Vec::new();
    for section in sections
        .iter()
        .filter(|section| !section.records.is_empty())
    {
        if words.is_empty() {
            words.push(count(T::WORDS * 4));
        }
        words.extend([section.section, count(section.records.len())]);
        words.extend(section.records.iter().flat_map(Record::words));
    }
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Builder;
    use super::*;

    fn sample() -> (Btf, BtfExt) {
        let mut b = Builder::new();
        let (section, file, text) = (b.string("xdp"), b.string("a.c"), b.string("  return 0;"));
        let access = b.string("0:1");
        let btf = b.build().unwrap();
        let line = |insn_off, line: u32| LineInfo {
            insn_off,
            file,
            text,
            line_col: line << 10 | 7,
        };
        let ext = BtfExt {
            funcs: vec![Records {
                section,
                records: vec![FuncInfo {
                    insn_off: 0,
                    ty: TypeId(3),
                }],
            }],
            lines: vec![Records {
                section,
                records: vec![line(0, 10), line(16, 12)],
            }],
            relocations: vec![Records {
                section,
                records: vec![CoreRelo {
                    insn_off: 8,
                    ty: TypeId(1),
                    access,
                    kind: 0,
                }],
            }],
        };
        (btf, ext)
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let (btf, ext) = sample();
        let again = BtfExt::parse(&ext.to_bytes(), &btf).unwrap();
        assert_eq!(again, ext);
        let lines = again.lines_of(&btf, "xdp").unwrap();
        assert_eq!(lines.at(8).unwrap().line(), 10);
        assert_eq!(lines.at(400).unwrap().line(), 12);
        assert_eq!(lines.range(8, 24).len(), 1);
        let source = lines.at(16).unwrap().source(&btf);
        assert_eq!(
            (source.file, source.text, source.column),
            ("a.c", "  return 0;", 7)
        );
        assert!(again.lines_of(&btf, "tc").is_none());
    }

    #[test]
    fn an_old_header_has_no_relocations_and_a_newer_one_more_of_everything() {
        let (btf, ext) = sample();
        let bytes = ext.to_bytes();
        let mut old = bytes.clone();
        old.drain(24..32);
        old[4] = 24;
        let old = BtfExt::parse(&old, &btf).unwrap();
        assert_eq!((old.lines, old.relocations.len()), (ext.lines.clone(), 0));

        let mut new = bytes.clone();
        new.splice(32..32, [0; 16]);
        new[4] = 48;
        assert_eq!(BtfExt::parse(&new, &btf).unwrap(), ext);

        // A func_info record with a third word.
        let mut wide = ext.to_bytes();
        wide.splice(52..52, [0xaa; 4]);
        wide[32] = 12;
        for (at, more) in [(12, 4), (16, 4), (24, 4)] {
            wide[at] += more;
        }
        assert_eq!(BtfExt::parse(&wide, &btf).unwrap(), ext);
    }

    #[test]
    fn faults_are_named_with_their_offset() {
        let (btf, ext) = sample();
        let bytes = ext.to_bytes();
        let error = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            BtfExt::parse(&bytes, &btf).unwrap_err().to_string()
        };
        assert_eq!(
            error(4, 16),
            ".BTF.ext offset 0x4: invalid header length 16"
        );
        assert!(
            error(15, 1).contains("func_info (16777236 bytes from 0x20)"),
            "{}",
            error(15, 1)
        );
        assert!(
            error(32, 4).contains("records of 4 bytes; at least 8"),
            "{}",
            error(32, 4)
        );
        assert!(
            error(36, 0xff).contains("string offset 0xff"),
            "{}",
            error(36, 0xff)
        );
        assert!(error(40, 0).contains("without records"), "{}", error(40, 0));
        assert_eq!(
            error(43, 0xff),
            ".BTF.ext offset 0x2c: func_info ends inside a record: 34225520648 bytes wanted, 8 left"
        );
    }
}
