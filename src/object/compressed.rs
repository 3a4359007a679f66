//! Reads files that may be compressed: a kernel's configuration (`/proc/config.gz`), a
//! kernel's BTF, lists of cases.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

/// Maximum unpacked size of a file read as a whole: a kernel's BTF has 6 million bytes, but
/// a small file can unpack to terabytes.
const MAX_UNPACKED: u64 = 1 << 30;

const GZIP: &[u8] = &[0x1f, 0x8b];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// Opens a file; unpacks gzip and xz.
///
/// # Errors
/// I/O errors.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    unpack(BufReader::new(File::open(path)?))
}

/// Wraps a reader; unpacks gzip and xz.
///
/// # Errors
/// A failed read.
pub(super) fn unpack(mut packed: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let head = packed.fill_buf()?;
    Ok(if head.starts_with(GZIP) {
        Box::new(BufReader::new(MultiGzDecoder::new(packed)))
    } else if head.starts_with(XZ) {
        Box::new(BufReader::new(XzReader::new(packed, true)))
    } else {
        Box::new(packed)
    })
}

/// Reads a whole file, unpacked.
///
/// # Errors
/// I/O errors, or more than a gigabyte.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_UNPACKED).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == MAX_UNPACKED {
        let text = "unpacks to more than a gigabyte";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
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
}
