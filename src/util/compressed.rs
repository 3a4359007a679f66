//! Reads files that may be compressed: a kernel's configuration (`/proc/config.gz`), a
//! kernel's BTF, lists of cases, kernel packages and what they contain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

/// Maximum unpacked size of a file read as a whole: a kernel's BTF has 6 million bytes, but
/// a small file can unpack to terabytes.
const MAX_UNPACKED: u64 = 1 << 30;

/// The memory that unpacking xz may take, in KiB: a file declares how much it needs, and
/// `xz -9` needs 65 MiB.
const MAX_XZ_MEMORY: u32 = 256 << 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
#[cfg(feature = "cli")]
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file; unpacks gzip and xz, and with the feature `cli` zstd.
///
/// # Errors
/// I/O errors.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    unpack(BufReader::new(File::open(path)?))
}

/// Wraps a reader; unpacks gzip and xz, and with the feature `cli` zstd.
///
/// # Errors
/// A failed read.
pub(crate) fn unpack<'a>(mut packed: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let head = packed.fill_buf()?;
    if head.starts_with(GZIP) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(packed))));
    }
    if head.starts_with(XZ) {
        let xz = XzReader::new_mem_limit(packed, true, MAX_XZ_MEMORY);
        return Ok(Box::new(BufReader::new(xz)));
    }
    #[cfg(feature = "cli")]
    if head.starts_with(ZSTD) {
        return Ok(Box::new(BufReader::new(zstd::Frames::new(packed))));
    }
    Ok(Box::new(packed))
}

/// Reads a whole file, unpacked.
///
/// # Errors
/// I/O errors, or more than a gigabyte.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Bounded::new(open(path)?, MAX_UNPACKED).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A reader that fails if there are more than so many bytes to read.
#[derive(Debug)]
pub(crate) struct Bounded<R> {
    inner: R,
    limit: u64,
    read: u64,
}

impl<R> Bounded<R> {
    /// Lets `limit` bytes of `inner` be read.
    pub(crate) const fn new(inner: R, limit: u64) -> Self {
        let read = 0;
        Self { inner, limit, read }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read = self.read.saturating_add(count as u64);
        if self.read > self.limit {
            let text = format!("unpacks to more than {} MiB", self.limit >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        Ok(count)
    }
}

/// Unpacking zstd.
#[cfg(feature = "cli")]
mod zstd {
    use std::io::{self, BufRead, Read};

    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

    /// Unpacks the frames of a file, one after the other.
    pub(super) struct Frames<R> {
        packed: R,
        frame: FrameDecoder,
    }

    impl<R> Frames<R> {
        /// `packed` begins with a frame. A frame that needs more than 128 MiB of memory is an
        /// error.
        pub(super) fn new(packed: R) -> Self {
            let frame = FrameDecoder::new();
            Self { packed, frame }
        }
    }

    impl<R: BufRead> Read for Frames<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while self.frame.can_collect() == 0 {
                if !self.frame.is_finished() {
                    let one = BlockDecodingStrategy::UptoBlocks(1);
                    let decoded = self.frame.decode_blocks(&mut self.packed, one);
                    decoded.map_err(io::Error::other)?;
                } else if self.packed.fill_buf()?.is_empty() {
                    return Ok(0);
                } else {
                    let begun = self.frame.reset(&mut self.packed);
                    begun.map_err(io::Error::other)?;
                }
            }
            self.frame.read(buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_are_unpacked_and_others_are_left() {
        // printf 'CONFIG_HZ=250\n' through gzip -n and xz --check=crc32
        let gzip: &'static [u8] = &[
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x73, 0xf6, 0xf7, 0x73,
            0xf3, 0x74, 0x8f, 0xf7, 0x88, 0xb2, 0x35, 0x32, 0x35, 0xe0, 0x02, 0x00, 0xfb, 0x5f,
            0x3a, 0x01, 0x0e, 0x00, 0x00, 0x00,
        ];
        let xz: &'static [u8] = &[
            0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x0d, 0x43,
            0x4f, 0x4e, 0x46, 0x49, 0x47, 0x5f, 0x48, 0x5a, 0x3d, 0x32, 0x35, 0x30, 0x0a, 0x00,
            0x00, 0x00, 0xfb, 0x5f, 0x3a, 0x01, 0x00, 0x01, 0x22, 0x0e, 0x0c, 0xde, 0x8c, 0x60,
            0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
        ];
        for packed in [gzip, xz, b"CONFIG_HZ=250\n"] {
            let mut text = String::new();
            unpack(packed).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "CONFIG_HZ=250\n");
        }
        let broken = gzip.get(..12).unwrap();
        assert!(
            unpack(broken)
                .unwrap()
                .read_to_end(&mut Vec::new())
                .is_err()
        );
    }

    #[test]
    fn more_than_the_limit_is_an_error() {
        let read = |limit| Bounded::new([7; 4].as_slice(), limit).read_to_end(&mut Vec::new());
        assert_eq!(read(4).ok(), Some(4));
        assert_eq!(
            read(3).map_err(|error| error.kind()),
            Err(io::ErrorKind::FileTooLarge)
        );
    }
}
