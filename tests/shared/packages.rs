//! Builds kernel images, modules and packages of distributions, as small as they can be.
#![allow(dead_code, reason = "each test crate uses part of it")]

use std::io::Write;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Machines (`e_machine`).
pub const X86_64: u16 = 62;
pub const ARM64: u16 = 183;

/// An image for x86-64 of this size that tells a release.
pub fn bzimage(release: &str, size: usize) -> Vec<u8> {
    let mut image = vec![0; size.max(0x400)];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x0100_u16.to_le_bytes());
    image[0x236] = 1;
    let version = format!("{release} (me@here) #1 SMP\0");
    image[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
    image
}

/// A kernel: an ELF file of one segment with a note of "Xen" of this type.
pub fn kernel_with_note(note: u32) -> Vec<u8> {
    let mut file = vec![0; 0x200];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[32] = 64; // the program headers
    file[54] = 56; // the size of one
    file[56] = 1; // their count
    file[64] = 4; // PT_NOTE
    file[72] = 0x80; // its place
    file[96] = 48; // its size
    let notes = [[4_u32, 2, 1], [4, 8, note]];
    for (at, head) in [(0x80, notes[0]), (0x94, notes[1])] {
        let bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        file[at..at + 12].copy_from_slice(&bytes);
        file[at + 12..at + 16].copy_from_slice(b"Xen\0");
    }
    file
}

/// A bzImage of Linux 6.1.0 with this packed kernel.
pub fn bzimage_of(payload: &[u8]) -> Vec<u8> {
    let mut image = bzimage("6.1.0", 0x400);
    image[0x1f1] = 1;
    image[0x248..0x24c].copy_from_slice(&8_u32.to_le_bytes());
    let len = u32::try_from(payload.len()).unwrap();
    image[0x24c..0x250].copy_from_slice(&len.to_le_bytes());
    image.extend([0; 8]);
    image.extend(payload);
    image.extend([7; 100]);
    image
}

/// An image for arm64 that tells a release.
pub fn arm64_image(release: &str) -> Vec<u8> {
    let mut image = vec![0; 64];
    image[56..60].copy_from_slice(b"ARM\x64");
    image.extend(b"Linux version %s (%s)\0");
    image.extend(format!("Linux version {release} (me@here) #1 SMP\0").bytes());
    image
}

/// An EFI zboot image with this image in it.
pub fn zboot(image: &[u8], packing: Packing) -> Vec<u8> {
    let packed = packing.pack(image);
    let mut zboot = vec![0; 0x80];
    zboot[..8].copy_from_slice(b"MZ\0\0zimg");
    zboot[8..12].copy_from_slice(&0x80_u32.to_le_bytes());
    zboot[12..16].copy_from_slice(&u32::try_from(packed.len()).expect("small").to_le_bytes());
    zboot[0x3c..0x40].copy_from_slice(&0x40_u32.to_le_bytes());
    zboot[0x40..0x44].copy_from_slice(b"PE\0\0");
    zboot[0x44..0x46].copy_from_slice(&0xaa64_u16.to_le_bytes());
    zboot.extend(packed);
    zboot
}

/// A module that needs others.
pub fn module(name: &str, depends: &str, machine: u16) -> Vec<u8> {
    let mut object = b"\x7fELF\x02\x01\x01".to_vec();
    object.resize(18, 0);
    object.extend(machine.to_le_bytes());
    object.resize(64, 0);
    object.extend(format!("license=GPL\0depends={depends}\0name={name}\0").bytes());
    object
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    pub const ALL: [Self; 4] = [Self::Plain, Self::Gzip, Self::Xz, Self::Zstd];

    /// What a file name ends with.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gzip => ".gz",
            Self::Xz => ".xz",
            Self::Zstd => ".zst",
        }
    }

    pub fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip => {
                let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(bytes).expect("memory");
                gzip.finish().expect("memory")
            }
            Self::Xz => xz(bytes),
            Self::Zstd => compress_to_vec(bytes, CompressionLevel::Fastest),
        }
    }
}

/// The xz format with stored chunks of LZMA2 (`doc/xz-file-format.txt` in xz).
fn xz(bytes: &[u8]) -> Vec<u8> {
    const FLAGS: [u8; 2] = [0, 1]; // CRC32
    const BLOCK: [u8; 8] = [2, 0, 0x21, 1, 0x16, 0, 0, 0]; // one filter: LZMA2, 8 MiB
    let crc = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let mut xz = b"\xfd7zXZ\0".to_vec();
    xz.extend(FLAGS);
    xz.extend(crc(&FLAGS));
    let start = xz.len();
    xz.extend(BLOCK);
    xz.extend(crc(&BLOCK));
    for (nth, chunk) in bytes.chunks(1 << 16).enumerate() {
        xz.push(if nth == 0 { 1 } else { 2 });
        let size = u16::try_from(chunk.len() - 1).expect("a chunk");
        xz.extend(size.to_be_bytes());
        xz.extend(chunk);
    }
    xz.push(0);
    let unpadded = xz.len() - start + 4;
    xz.resize(xz.len().next_multiple_of(4), 0);
    xz.extend(crc(bytes));
    let mut index = vec![0, 1];
    for mut number in [unpadded, bytes.len()] {
        while number >= 0x80 {
            index.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        index.push(number.to_le_bytes()[0]);
    }
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc(&index));
    xz.extend(&index);
    let mut footer = u32::try_from(index.len() / 4 - 1)
        .expect("small")
        .to_le_bytes()
        .to_vec();
    footer.extend(FLAGS);
    xz.extend(crc(&footer));
    xz.extend(footer);
    xz.extend(b"YZ");
    xz
}

/// Files of a package: paths and contents.
pub type Files<'a> = &'a [(&'a str, Vec<u8>)];

/// A tar archive, paths beginning with `./`.
pub fn tar(files: Files) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        let path = format!("./{path}");
        archive
            .append_data(&mut header, path, contents.as_slice())
            .expect("memory");
    }
    archive.into_inner().expect("memory")
}

/// An `ar` archive.
pub fn ar(members: Files) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        let size = contents.len();
        archive.extend(
            format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
                0, 0, 0, 100_644
            )
            .bytes(),
        );
        archive.extend(contents);
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// A Debian package.
pub fn deb(control: &str, files: Files, packing: Packing) -> Vec<u8> {
    let control = tar(&[("control", control.as_bytes().to_vec())]);
    let ending = packing.ending();
    ar(&[
        ("debian-binary", b"2.0\n".to_vec()),
        (&format!("control.tar{ending}"), packing.pack(&control)),
        (&format!("data.tar{ending}"), packing.pack(&tar(files))),
    ])
}

/// The version of an RPM package: in the archive of the sixth, members have numbers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpmFormat {
    Four,
    Six,
}

/// An RPM package. Every file's folder is one that the header lists for it alone.
pub fn rpm(files: Files, packing: Packing, format: RpmFormat) -> Vec<u8> {
    let mut package = vec![0xed, 0xab, 0xee, 0xdb];
    package.resize(96, 0);
    package.extend(rpm_header(&[(1000, 6, 1, b"odd\0".to_vec())]));
    package.resize(package.len().next_multiple_of(8), 0);

    let split = files
        .iter()
        .map(|(path, _)| path.rsplit_once('/').expect("a folder"));
    let texts = |texts: Vec<String>| {
        texts
            .iter()
            .flat_map(|t| [t.as_bytes(), b"\0"].concat())
            .collect()
    };
    let folders: Vec<u8> = texts(
        split
            .clone()
            .map(|(folder, _)| format!("/{folder}/"))
            .collect(),
    );
    let names: Vec<u8> = texts(split.map(|(_, name)| name.to_owned()).collect());
    let count = u32::try_from(files.len()).expect("few");
    let numbers: Vec<u8> = (0..count).flat_map(u32::to_be_bytes).collect();
    let modes = files
        .iter()
        .flat_map(|_| 0o100_644_u16.to_be_bytes())
        .collect();
    let sizes = files
        .iter()
        .flat_map(|(_, it)| (it.len() as u64).to_be_bytes())
        .collect();
    package.extend(rpm_header(&[
        (1030, 3, count, modes),
        (1116, 4, count, numbers),
        (1117, 8, count, names),
        (1118, 8, count, folders),
        (5008, 5, count, sizes),
    ]));

    let mut archive = Vec::new();
    for (nth, (path, contents)) in files.iter().enumerate() {
        match format {
            RpmFormat::Four => member(&mut archive, &format!("./{path}"), contents),
            RpmFormat::Six => {
                archive.extend(format!("07070X{nth:08x}\0\0").bytes());
                archive.extend(contents);
                archive.resize(archive.len().next_multiple_of(4), 0);
            }
        }
    }
    member(&mut archive, "TRAILER!!!", &[]);
    package.extend(packing.pack(&archive));
    package
}

/// A header: entries of tag, type, count and values.
fn rpm_header(entries: &[(u32, u32, u32, Vec<u8>)]) -> Vec<u8> {
    let (mut index, mut store) = (Vec::new(), Vec::new());
    for (tag, kind, count, values) in entries {
        let offset = u32::try_from(store.len()).expect("small");
        index.extend(
            [*tag, *kind, offset, *count]
                .iter()
                .flat_map(|n| n.to_be_bytes()),
        );
        store.extend(values);
    }
    let mut header = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    let sizes = [entries.len(), store.len()].map(|n| u32::try_from(n).expect("small"));
    header.extend(sizes.iter().flat_map(|n| n.to_be_bytes()));
    [header, index, store].concat()
}

/// A regular file in a cpio archive.
fn member(archive: &mut Vec<u8>, path: &str, contents: &[u8]) {
    let mut fields = [0; 13];
    fields[1] = 0o100_644;
    fields[6] = contents.len();
    fields[11] = path.len() + 1;
    archive.extend(b"070701");
    for field in fields {
        archive.extend(format!("{field:08x}").bytes());
    }
    archive.extend(path.bytes());
    archive.push(0);
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend(contents);
    archive.resize(archive.len().next_multiple_of(4), 0);
}
