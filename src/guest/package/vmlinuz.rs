//! Kernel images: which machine they are for, and which release they are.
//!
//! Sources: `Documentation/arch/x86/boot.rst` (the header of a bzImage),
//! `Documentation/arch/arm64/booting.rst` (the header of an Image), and
//! `drivers/firmware/efi/libstub/zboot-header.S` (an EFI zboot image).

use std::io::{BufRead, Read};

use serde::Serialize;

use crate::util::Reader;
use crate::util::compressed::{Bounded, unpack};

/// The largest image, packed or not.
pub(super) const MAX_IMAGE: u64 = 256 << 20;

/// What an Image says before its release.
const BANNER: &[u8] = b"Linux version ";

/// The machine that a kernel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Arch {
    /// x86-64.
    #[serde(rename = "x86_64")]
    X86_64,
    /// arm64.
    #[serde(rename = "arm64")]
    Arm64,
}

impl Arch {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];

    /// Whether it is this machine's.
    pub(crate) const fn is_native(self) -> bool {
        match self {
            Self::X86_64 => cfg!(target_arch = "x86_64"),
            Self::Arm64 => cfg!(target_arch = "aarch64"),
        }
    }

    /// Its name: a folder of the cache.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
        }
    }

    /// The machine of an image; none if it is no image, or one for another machine.
    pub(crate) fn of_image(image: &[u8]) -> Option<Self> {
        if bzimage(image).is_some() {
            return Some(Self::X86_64);
        }
        if zboot(image).is_some() {
            // The COFF header, whose place is at 0x3c, after `PE\0\0`.
            let header = usize::try_from(Reader::at(image, 0x3c).u32().ok()?).ok()?;
            let machine = Reader::at(image, header.checked_add(4)?).u16().ok()?;
            return (machine == 0xaa64).then_some(Self::Arm64);
        }
        let mut head = Vec::new();
        unpacked(image)?.take(64).read_to_end(&mut head).ok()?;
        (head.get(56..60)? == b"ARM\x64").then_some(Self::Arm64)
    }

    /// The machine of an ELF object (`e_machine`).
    pub(in crate::guest) fn of_elf(object: &[u8]) -> Option<Self> {
        if !object.starts_with(b"\x7fELF") {
            return None;
        }
        match Reader::at(object, 18).u16().ok()? {
            62 => Some(Self::X86_64),
            183 => Some(Self::Arm64),
            _ => None,
        }
    }
}

/// The release that an image tells: what `uname -r` prints.
pub(crate) fn release(image: &[u8]) -> Option<String> {
    if let Some(version) = bzimage(image) {
        return release_at(version);
    }
    let mut whole = Vec::new();
    let mut reader = Bounded::new(unpacked(image)?, MAX_IMAGE);
    reader.read_to_end(&mut whole).ok()?;
    // The first one may be the format of /proc/version.
    let mut rest = whole.as_slice();
    loop {
        let at = rest.windows(BANNER.len()).position(|text| text == BANNER)?;
        rest = rest.get(at + BANNER.len()..)?;
        if let Some(release) = release_at(rest) {
            return Some(release);
        }
    }
}

/// Whether this is a release: letters, digits and what Linux's own have between them. It is
/// safe as the name of a folder, and no longer than `uname` returns (`__NEW_UTS_LEN`).
pub(crate) fn is_release(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() <= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._+~-".contains(&b))
}

/// The release at the start of these bytes, up to a space.
fn release_at(text: &[u8]) -> Option<String> {
    let word = text.split(|b| matches!(b, b' ' | 0)).next()?;
    let word = std::str::from_utf8(word).ok()?;
    is_release(word).then(|| word.to_owned())
}

/// What follows in a 64-bit bzImage from where its version is, which is a text.
fn bzimage(image: &[u8]) -> Option<&[u8]> {
    let mut header = Reader::at(image, 0x202);
    let signed = header.array() == Ok(*b"HdrS");
    // XLF_KERNEL_64, since protocol 2.12.
    let flags = Reader::at(image, 0x236).u16().ok()?;
    if !signed || header.u16().ok()? < 0x020c || flags & 1 == 0 {
        return None;
    }
    let version = Reader::at(image, 0x20e).u16().ok()?;
    image.get(usize::from(version) + 0x200..)
}

/// The packed kernel in an EFI zboot image.
fn zboot(image: &[u8]) -> Option<&[u8]> {
    let mut header = Reader::new(image);
    if header.array() != Ok(*b"MZ\0\0zimg") {
        return None;
    }
    let start = usize::try_from(header.u32().ok()?).ok()?;
    let size = usize::try_from(header.u32().ok()?).ok()?;
    Reader::at(image, start).bytes(size).ok()
}

/// The Image in an image that may be packed.
fn unpacked(image: &[u8]) -> Option<Box<dyn BufRead + '_>> {
    unpack(zboot(image).unwrap_or(image)).ok()
}
