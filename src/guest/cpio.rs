//! Writes an archive of the form `newc`, which the kernel unpacks as its first file system
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that is being written.
pub(super) struct Archive<W> {
    sink: W,
    /// The number of the next entry: entries of one number would be links to one file.
    next: u32,
    /// What is in it: folders, and files.
    there: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    /// Begins an archive.
    pub fn new(sink: W) -> Self {
        Self {
            sink,
            next: 1,
            there: BTreeSet::new(),
        }
    }

    /// Adds a folder with those above it, once.
    pub fn folder(&mut self, path: &Path) -> io::Result<()> {
        let mut above = PathBuf::new();
        for part in path.components() {
            let Component::Normal(part) = part else {
                continue;
            };
            above.push(part);
            if self.there.insert(above.clone()) {
                self.entry(&above, FOLDER, &[])?;
            }
        }
        Ok(())
    }

    /// Adds a file with the folders above it. Of a path that is there the first stays.
    pub fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            self.folder(parent)?;
        }
        let name: PathBuf = path.strip_prefix("/").unwrap_or(path).into();
        if !self.there.insert(name.clone()) {
            return Ok(());
        }
        self.entry(&name, PROGRAM, bytes)
    }

    /// Ends the archive and returns what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.next = 0;
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        Ok(self.sink)
    }

    fn entry(&mut self, name: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let size = u32::try_from(bytes.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "a file above 4 GiB"))?;
        let name = name.as_os_str().as_encoded_bytes();
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // Magic, inode, mode, user, group, links, time, size, four device numbers, length of the
        // name, checksum (0 in this form).
        let numbers = [self.next, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.next += 1;
        self.sink.write_all(b"070701")?;
        for number in numbers {
            write!(self.sink, "{number:08x}")?;
        }
        self.sink.write_all(name)?;
        self.sink.write_all(&[0])?;
        self.pad(110 + name.len() + 1)?;
        self.sink.write_all(bytes)?;
        self.pad(bytes.len())
    }

    /// Names and contents end at multiples of four.
    fn pad(&mut self, len: usize) -> io::Result<()> {
        let missing = len.next_multiple_of(4) - len;
        self.sink.write_all(&[0; 3][..missing])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries: name, mode, contents.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            let number = |at: usize| {
                let digits = std::str::from_utf8(&bytes[at..at + 8]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            assert_eq!(&bytes[..6], b"070701");
            let (mode, size, length) = (number(14), number(54) as usize, number(94) as usize);
            let name = String::from_utf8(bytes[110..110 + length - 1].to_vec()).unwrap();
            let start = (110 + length).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return found;
            }
            found.push((name, mode, bytes[start..start + size].to_vec()));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn folders_come_before_files_and_once() {
        let mut archive = Archive::new(Vec::new());
        archive.file(Path::new("/a/b/x"), b"12345").unwrap();
        archive.file(Path::new("/a/y"), b"").unwrap();
        archive.file(Path::new("/a/y"), b"another").unwrap();
        archive.folder(Path::new("/a/b/c/../d")).unwrap();
        let found = read(&archive.finish().unwrap());
        let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/x", "a/y", "a/b/c", "a/b/c/d"]);
        assert_eq!(found[2].2, b"12345");
        assert_eq!((found[0].1, found[2].1), (FOLDER, PROGRAM));
        assert_eq!(found[3].2, b"");
    }
}
