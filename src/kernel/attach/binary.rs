//! ELF programs and libraries, read for probes: the file offsets of functions, and notes. Only
//! tables are read, so the file's size does not matter.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::BinaryError;
use crate::util::{ReadError, Reader};

type Result<T> = std::result::Result<T, BinaryError>;

/// Sizes in bytes of an ELF header, a section header, a program header and a symbol (`Elf64_…`,
/// `elf.h`).
const HEADER: usize = 64;
const SECTION: usize = 64;
const SEGMENT: usize = 56;
const SYMBOL: usize = 24;

/// Bytes of a name that are read at most, so that a table without zero bytes is not scanned for
/// each symbol.
const MAX_NAME: usize = 4096;

const SHT_NOBITS: u32 = 8;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const PT_LOAD: u32 = 1;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;

/// A 64-bit ELF file.
#[derive(Debug)]
pub(super) struct Binary {
    file: File,
    sections: Vec<Section>,
    segments: Vec<Segment>,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub name: String,
    pub address: u64,
    kind: u32,
    offset: u64,
    size: u64,
    /// Of a symbol table, the index of its string table.
    link: usize,
}

/// A loadable segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

/// A function symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Symbol {
    name: u32,
    address: u64,
    binding: u8,
}

/// The error for a truncated part.
fn short(what: &'static str) -> impl Fn(ReadError) -> BinaryError {
    move |error| BinaryError::Short { what, error }
}

fn other<T>(why: impl Into<String>) -> Result<T> {
    Err(BinaryError::Other(why.into()))
}

impl Binary {
    /// Opens a file and reads its section and program headers.
    pub fn open(path: &Path) -> Result<Self> {
        let mut binary = Self {
            file: File::open(path)?,
            sections: Vec::new(),
            segments: Vec::new(),
        };
        let size = binary.file.metadata()?.len();
        if size < HEADER as u64 {
            return other("not an ELF file: too short for a header");
        }
        let header = binary.bytes(0, HEADER as u64)?;
        // ELF magic, 64-bit, little-endian.
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return other("not a 64-bit little-endian ELF file");
        }
        let read = |at| Reader::at(&header, at);
        let (segments, sections) = (read(32).u64(), read(40).u64());
        let counts = (read(56).u16(), read(60).u16(), read(62).u16());
        let (Ok(segments), Ok(sections)) = (segments, sections) else {
            return other("truncated header");
        };
        let (Ok(segment_count), Ok(section_count), Ok(names)) = counts else {
            return other("truncated header");
        };
        let table = binary.bytes(segments, u64::from(segment_count) * SEGMENT as u64)?;
        for entry in table.chunks_exact(SEGMENT) {
            let found = segment(entry).map_err(short("program header"))?;
            binary.segments.extend(found);
        }
        let table = binary.bytes(sections, u64::from(section_count) * SECTION as u64)?;
        let read = table.chunks_exact(SECTION).map(section);
        let read: std::result::Result<Vec<_>, _> = read.collect();
        let (names_at, mut read): (Vec<u32>, Vec<Section>) =
            read.map_err(short("section header"))?.into_iter().unzip();
        if let Some(names) = read.get(usize::from(names)).cloned() {
            let names = binary.contents(&names)?;
            for (section, name_at) in read.iter_mut().zip(names_at) {
                section.name = String::from_utf8_lossy(text(&names, name_at)).into_owned();
            }
        }
        binary.sections = read;
        Ok(binary)
    }

    /// Reads `size` bytes of the file.
    fn bytes(&self, offset: u64, size: u64) -> Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        if offset.checked_add(size).is_none_or(|end| end > len) {
            return other(format!(
                "truncated: {size:#x} bytes at {offset:#x} end past the file's {len:#x}"
            ));
        }
        let Ok(size) = usize::try_from(size) else {
            return other("too large");
        };
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The contents of a section.
    pub fn contents(&self, section: &Section) -> Result<Vec<u8>> {
        match section.kind {
            SHT_NOBITS => Ok(Vec::new()),
            _ => self.bytes(section.offset, section.size),
        }
    }

    /// The file offset of the byte loaded to an address, of data or code.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.file_offset(address, |segment| segment.file_size)
    }

    /// The file offset for an address that may lie past the segment's file data (`.bss`): the
    /// kernel counts from the segment's start.
    pub fn extended_offset_of(&self, address: u64) -> Option<u64> {
        self.file_offset(address, |segment| segment.memory_size)
    }

    fn file_offset(&self, address: u64, size: impl Fn(&Segment) -> u64) -> Option<u64> {
        let mut found = self.segments.iter().filter_map(|segment| {
            let from = address.checked_sub(segment.address)?;
            (from < size(segment)).then(|| segment.offset.checked_add(from))?
        });
        found.next()
    }

    /// The functions whose names fit, each with its file offset. Where several have one name,
    /// the one with the widest binding is taken: global, weak, local.
    pub fn functions(&self, fits: impl Fn(&str) -> bool) -> Result<Vec<(String, u64)>> {
        let mut found: Vec<(String, u8, u64)> = Vec::new();
        for table in &self.sections {
            if !matches!(table.kind, SHT_SYMTAB | SHT_DYNSYM) {
                continue;
            }
            let Some(names) = self.sections.get(table.link) else {
                return other(format!("section {} has no string table", table.name));
            };
            let (symbols, names) = (self.contents(table)?, self.contents(names)?);
            for entry in symbols.chunks_exact(SYMBOL) {
                let Some(symbol) = symbol(entry).map_err(short("symbol"))? else {
                    continue;
                };
                // Exported symbols may have a version: memcpy@@GLIBC_2.14.
                let name = String::from_utf8_lossy(text(&names, symbol.name));
                let name = name.split('@').next().unwrap_or_default();
                let offset = self.offset_of(symbol.address);
                if let Some(offset) = offset.filter(|_| fits(name)) {
                    let reach = match symbol.binding {
                        STB_GLOBAL => 0,
                        STB_WEAK => 1,
                        _ => 2,
                    };
                    found.push((name.to_owned(), reach, offset));
                }
            }
        }
        found.sort();
        found.dedup_by(|next, kept| next.0 == kept.0);
        let functions = found.into_iter().map(|(name, _, offset)| (name, offset));
        Ok(functions.collect())
    }
}

/// The string at an offset of a string table, up to its zero byte.
fn text(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = rest.get(..MAX_NAME).unwrap_or(rest);
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A loadable program header (`Elf64_Phdr`).
fn segment(entry: &[u8]) -> std::result::Result<Option<Segment>, ReadError> {
    let mut reader = Reader::new(entry);
    let kind = reader.u32()?;
    let _flags = reader.u32()?;
    let offset = reader.u64()?;
    let address = reader.u64()?;
    let _physical = reader.u64()?;
    let segment = Segment {
        offset,
        address,
        file_size: reader.u64()?,
        memory_size: reader.u64()?,
    };
    Ok((kind == PT_LOAD).then_some(segment))
}

/// A section header (`Elf64_Shdr`), and the offset of its name.
fn section(entry: &[u8]) -> std::result::Result<(u32, Section), ReadError> {
    let mut reader = Reader::new(entry);
    let name = reader.u32()?;
    let kind = reader.u32()?;
    let _flags = reader.u64()?;
    let section = Section {
        name: String::new(),
        kind,
        address: reader.u64()?,
        offset: reader.u64()?,
        size: reader.u64()?,
        link: reader.u32()? as usize,
    };
    Ok((name, section))
}

/// A function symbol defined in this file (`Elf64_Sym`).
fn symbol(entry: &[u8]) -> std::result::Result<Option<Symbol>, ReadError> {
    let mut reader = Reader::new(entry);
    let name = reader.u32()?;
    let info = reader.u8()?;
    let _visibility = reader.u8()?;
    let section = reader.u16()?;
    let address = reader.u64()?;
    let is_function = matches!(info & 0xf, STT_FUNC | STT_GNU_IFUNC);
    Ok((is_function && section != 0).then_some(Symbol {
        name,
        address,
        binding: info >> 4,
    }))
}

#[cfg(test)]
#[allow(unsafe_code, reason = "a function whose symbol keeps its name")]
mod tests {
    use super::*;

    #[inline(never)]
    fn bpflab_binary_test_function() -> u32 {
        std::hint::black_box(5)
    }

    #[test]
    fn a_function_of_this_program_is_where_its_code_is() {
        assert_eq!(bpflab_binary_test_function(), 5);
        let path = std::env::current_exe().unwrap();
        let binary = Binary::open(&path).unwrap();
        let name = "bpflab_binary_test_function";
        // Rust mangles the name.
        let found = binary.functions(|it| it.contains(name)).unwrap();
        let [(full, offset)] = found.as_slice() else {
            panic!("one function: {found:?}");
        };
        let same = binary.functions(|it| it == full).unwrap();
        assert_eq!(same, found);
        // The mapping that contains the function gives its file offset.
        let address = bpflab_binary_test_function as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (number(start)?, number(end)?);
            let base = number(words.nth(1)?)?;
            (start..end)
                .contains(&address)
                .then(|| address - start + base)
        });
        assert_eq!(mapped, Some(*offset));
        assert!(binary.section(".text").is_some());
        assert!(binary.section(".no-such").is_none());
        assert!(binary.functions(|it| it == "no_such").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("bpflab-binary-{}", std::process::id()));
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for (bytes, why) in [
            (&b"#!/bin/sh\n"[..], "too short"),
            (&[0u8; 100][..], "64-bit little-endian ELF"),
            (&whole[..4000], "truncated"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = Binary::open(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Binary::open(&path).is_err());
    }

    /// Any contents give an answer or an error.
    #[test]
    fn damage_is_no_panic() {
        let Ok(whole) = std::fs::read("/bin/true") else {
            crate::shared::skip(crate::shared::Need::Tools, "no /bin/true");
            return;
        };
        let path = std::env::temp_dir().join(format!("bpflab-damage-{}", std::process::id()));
        let tables = whole.len().saturating_sub(4096)..whole.len();
        let mut offsets: Vec<usize> = (0..2048).chain(tables).step_by(7).collect();
        offsets.retain(|offset| *offset < whole.len());
        for offset in offsets {
            let mut bytes = whole.clone();
            bytes[offset] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(binary) = Binary::open(&path) {
                let _ = binary.functions(|name| name.len() > 3);
                let _ = crate::kernel::attach::usdt::locations(&binary, "a", "b");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
