//! What a program needs to start: its loader, its libraries.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Offsets in a 64-bit ELF header and in a program header (elf(5)).
mod at {
    pub const PROGRAM_HEADERS: usize = 32;
    pub const SECTION_HEADERS: usize = 40;
    pub const PROGRAM_HEADER_SIZE: usize = 54;
    pub const PROGRAM_HEADER_COUNT: usize = 56;
    pub const SECTION_HEADER_COUNT: usize = 60;
    pub const OFFSET: usize = 8;
    pub const FILE_SIZE: usize = 32;
}
/// `PT_INTERP`.
const INTERPRETER: u32 = 3;

/// A segment of an ELF file: its type, and its bytes' place in the file.
struct Segment {
    kind: u32,
    start: usize,
    end: usize,
}

/// The segments of a 64-bit little-endian ELF file; none of another file.
fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let u16_at = |at: usize| {
        let bytes = file.get(at..at.checked_add(2)?)?;
        Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
    };
    let u64_at = |at: usize| {
        let bytes = file.get(at..at.checked_add(8)?)?;
        usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size) = (
        u64_at(at::PROGRAM_HEADERS)?,
        u16_at(at::PROGRAM_HEADER_SIZE)?,
    );
    let one = |index: usize| {
        let header = first.checked_add(index.checked_mul(size)?)?;
        let kind = file.get(header..header.checked_add(4)?)?;
        let start = u64_at(header.checked_add(at::OFFSET)?)?;
        let end = start.checked_add(u64_at(header.checked_add(at::FILE_SIZE)?)?)?;
        Some(Segment {
            kind: u32::from_le_bytes(kind.try_into().ok()?),
            start,
            end,
        })
    };
    (0..u16_at(at::PROGRAM_HEADER_COUNT)?).map(one).collect()
}

/// The program that starts a file: the loader of a dynamic ELF file, the interpreter of a
/// script.
fn starter(file: &[u8]) -> Option<PathBuf> {
    let path = if let Some(line) = file.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next()?.trim_ascii();
        // Nothing behind the mark is no interpreter.
        line.split(u8::is_ascii_whitespace)
            .next()
            .filter(|path| !path.is_empty())?
    } else {
        let found = segments(file)?;
        let segment = found.iter().find(|segment| segment.kind == INTERPRETER)?;
        let path = file.get(segment.start..segment.end)?;
        path.split(|byte| *byte == 0).next()?
    };
    Some(PathBuf::from(std::str::from_utf8(path).ok()?))
}

/// The files that a program needs beside itself.
///
/// # Errors
/// A loader that can't be run, or that misses a library.
pub(super) fn needs(path: &Path) -> io::Result<Vec<PathBuf>> {
    let file = std::fs::read(path)?;
    let Some(starter) = starter(&file) else {
        return Ok(Vec::new());
    };
    let mut needed = vec![starter.clone()];
    if file.starts_with(b"#!") {
        needed.extend(needs(&starter)?);
        return Ok(needed);
    }
    // The C library's own loader says which files it would load, as ldd(1) asks it to.
    let listed = Command::new(&starter).arg("--list").arg(path).output()?;
    if !listed.status.success() {
        let why = String::from_utf8_lossy(&listed.stderr);
        return Err(io::Error::other(why.trim().to_owned()));
    }
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        needed.extend(library(line)?);
    }
    Ok(needed)
}

/// The file in a line of the loader's list: `libc.so.6 => /lib/libc.so.6 (0x7f…)`. The kernel's
/// own library (`linux-vdso.so.1`) is no file.
fn library(line: &str) -> io::Result<Option<PathBuf>> {
    let file = line.split_once("=>").map_or(line, |(_, file)| file).trim();
    if file == "not found" {
        return Err(io::Error::other(line.trim().to_owned()));
    }
    let path = file.split_once(" (").map_or(file, |(path, _)| path);
    Ok(path.starts_with('/').then(|| PathBuf::from(path)))
}

/// What of an ELF file a process needs: everything up to the end of its last segment, without
/// the symbols and the debug information after it.
pub(super) fn without_sections(mut file: Vec<u8>) -> Vec<u8> {
    let Some(end) = segments(&file).and_then(|all| all.iter().map(|one| one.end).max()) else {
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
    fn a_program_needs_its_loader_and_its_libraries() {
        let needed = needs(Path::new("/bin/true")).unwrap();
        assert!(
            needed
                .iter()
                .any(|path| path.to_string_lossy().contains("libc")),
            "{needed:?}"
        );
        assert!(needed.iter().all(|path| path.is_file()), "{needed:?}");
        assert!(needs(Path::new("/etc/passwd")).unwrap().is_empty());
        needs(Path::new("/no/such/program")).unwrap_err();
    }

    #[test]
    fn lines_of_the_loader_are_read() {
        let path = |line| {
            library(line)
                .unwrap()
                .map(|path| path.display().to_string())
        };
        assert_eq!(
            path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"),
            Some("/lib/libc.so.6".into())
        );
        assert_eq!(
            path("\t/lib64/ld.so.2 (0x00007f)"),
            Some("/lib64/ld.so.2".into())
        );
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tstatically linked"), None);
        assert!(library("\tlibx.so.1 => not found").is_err());
    }

    #[test]
    fn scripts_need_their_interpreter() {
        assert_eq!(starter(b"#! /bin/sh -e\nexit"), Some("/bin/sh".into()));
        assert_eq!(starter(b"#!"), None);
        assert_eq!(starter(b"text"), None);
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
