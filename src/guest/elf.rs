//! What a guest needs to know of an ELF file (elf(5)).

use std::ops::Range;
use std::path::PathBuf;

use crate::util::{ReadError, Reader};

/// Offsets in a 64-bit ELF header and in a program header.
mod at {
    pub const PROGRAM_HEADERS: usize = 32;
    pub const SECTION_HEADERS: usize = 40;
    pub const PROGRAM_HEADER_SIZE: usize = 54;
    pub const PROGRAM_HEADER_COUNT: usize = 56;
    pub const SECTION_HEADER_COUNT: usize = 60;
    pub const OFFSET: usize = 8;
    pub const ADDRESS: usize = 16;
    pub const FILE_SIZE: usize = 32;
}
/// Types of segments.
mod segment {
    pub const LOAD: u32 = 1;
    pub const DYNAMIC: u32 = 2;
    pub const INTERPRETER: u32 = 3;
    pub const NOTE: u32 = 4;
}
/// Tags of the dynamic section.
mod tag {
    pub const END: usize = 0;
    pub const NEEDED: usize = 1;
    pub const STRINGS: usize = 5;
}

/// A segment: its type, the place of its bytes in the file, its address in memory.
struct Segment {
    kind: u32,
    bytes: Range<usize>,
    address: usize,
}

fn u16_at(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..at.checked_add(2)?)?;
    Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
}

fn u64_at(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// The text up to a zero byte.
fn text_at(file: &[u8], at: usize) -> Option<&str> {
    let text = file.get(at..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()
}

/// The segments of a 64-bit little-endian ELF file; none of another file.
fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = u64_at(file, at::PROGRAM_HEADERS)?;
    let size = u16_at(file, at::PROGRAM_HEADER_SIZE)?;
    let one = |index: usize| {
        let header = first.checked_add(index.checked_mul(size)?)?;
        let kind = file.get(header..header.checked_add(4)?)?;
        let start = u64_at(file, header.checked_add(at::OFFSET)?)?;
        let end = start.checked_add(u64_at(file, header.checked_add(at::FILE_SIZE)?)?)?;
        Some(Segment {
            kind: u32::from_le_bytes(kind.try_into().ok()?),
            bytes: start..end,
            address: u64_at(file, header.checked_add(at::ADDRESS)?)?,
        })
    };
    (0..u16_at(file, at::PROGRAM_HEADER_COUNT)?)
        .map(one)
        .collect()
}

/// The program that starts a file: the loader of a dynamic ELF file, the interpreter of a
/// script.
pub(super) fn starter(file: &[u8]) -> Option<PathBuf> {
    if let Some(line) = file.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
        // Nothing behind the mark is no interpreter.
        let path = line
            .split(u8::is_ascii_whitespace)
            .next()
            .filter(|path| !path.is_empty())?;
        return Some(PathBuf::from(std::str::from_utf8(path).ok()?));
    }
    let found = segments(file)?;
    let named = found.iter().find(|one| one.kind == segment::INTERPRETER)?;
    text_at(file.get(..named.bytes.end)?, named.bytes.start).map(PathBuf::from)
}

/// The libraries that an ELF file names (`DT_NEEDED`); none of a static one.
pub(super) fn needed(file: &[u8]) -> Vec<&str> {
    named(file).unwrap_or_default()
}

fn named(file: &[u8]) -> Option<Vec<&str>> {
    let segments = segments(file)?;
    let dynamic = segments.iter().find(|one| one.kind == segment::DYNAMIC)?;
    let entry = |at: usize| Some((u64_at(file, at)?, u64_at(file, at.checked_add(8)?)?));
    let entries: Vec<_> = dynamic
        .bytes
        .clone()
        .step_by(16)
        .map_while(entry)
        .take_while(|(tag, _)| *tag != tag::END)
        .collect();
    let strings = entries.iter().find(|(tag, _)| *tag == tag::STRINGS)?.1;
    // The table of strings is named by its address in memory.
    let strings = segments.iter().find_map(|one| {
        let inside = strings.checked_sub(one.address)?;
        let fits = one.kind == segment::LOAD && inside < one.bytes.len();
        fits.then_some(one.bytes.start + inside)
    })?;
    let names = entries.iter().filter(|(tag, _)| *tag == tag::NEEDED);
    names
        .map(|(_, offset)| text_at(file, strings.checked_add(*offset)?))
        .collect()
}

/// Whether an ELF file has a note of this name, which ends with a zero byte, and type.
pub(super) fn has_note(file: &[u8], name: &[u8], kind: u32) -> bool {
    let all = segments(file).unwrap_or_default();
    let notes = all.iter().filter(|one| one.kind == segment::NOTE);
    let mut contents = notes.filter_map(|one| file.get(one.bytes.clone()));
    contents.any(|notes| {
        let mut notes = Reader::new(notes);
        std::iter::from_fn(|| note(&mut notes).ok()).any(|note| note == (name, kind))
    })
}

/// The name and type of the next note.
fn note<'a>(notes: &mut Reader<'a>) -> Result<(&'a [u8], u32), ReadError> {
    let [name, value, kind] = [notes.u32()?, notes.u32()?, notes.u32()?];
    let [name, value] = [name, value].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let padding = |size: usize| size.wrapping_neg() % 4;
    let text = notes.bytes(name)?;
    notes.bytes(padding(name))?;
    notes.bytes(value)?;
    notes.bytes(padding(value))?;
    Ok((text, kind))
}

/// What of an ELF file a process needs: everything up to the end of its last segment, without
/// the symbols and the debug information after it.
pub(super) fn without_sections(mut file: Vec<u8>) -> Vec<u8> {
    let Some(end) = segments(&file).and_then(|all| all.iter().map(|one| one.bytes.end).max())
    else {
        return file;
    };
    file.truncate(end);
    // No section headers: their offset and count are 0, and so is the index of their names.
    for (start, len) in [(at::SECTION_HEADERS, 8), (at::SECTION_HEADER_COUNT, 4)] {
        if let Some(bytes) = file.get_mut(start..start + len) {
            bytes.fill(0);
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_need_their_interpreter() {
        assert_eq!(starter(b"#! /bin/sh -e\nexit"), Some("/bin/sh".into()));
        assert_eq!(starter(b"#!"), None);
        assert_eq!(starter(b"text"), None);
    }

    #[test]
    fn a_program_names_its_libraries() {
        let own = std::fs::read("/bin/true").unwrap();
        assert!(needed(&own).contains(&"libc.so.6"), "{:?}", needed(&own));
        for cut in (0..own.len()).step_by(101) {
            needed(&own[..cut]);
            starter(&own[..cut]);
        }
        assert!(needed(b"text").is_empty());
    }

    #[test]
    fn a_program_runs_without_its_sections() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let len = own.len();
        let short = without_sections(own);
        assert!(short.len() < len);
        assert_eq!(
            segments(&short).unwrap().len(),
            usize::from(short[at::PROGRAM_HEADER_COUNT])
        );
        for cut in [0, 5, 40, 63, 200] {
            // A file that is cut off anywhere is no ELF file, and stays as it is.
            without_sections(short[..cut].to_vec());
        }
        assert_eq!(without_sections(b"text".to_vec()), b"text");
    }
}
