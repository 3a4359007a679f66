//! The kernel inside a bzImage, for the direct start.
//!
//! A bzImage unpacks itself in the guest, which under an emulator takes about a second of each
//! start. qemu starts an unpacked kernel, too, if that has the entry for PVH.
//!
//! Sources: `Documentation/arch/x86/boot.rst` (the payload of a bzImage),
//! `arch/x86/boot/compressed/Makefile` (its last four bytes are its unpacked size),
//! `usr/include/linux/elfnote.h` and `xen/interface/elfnote.h` (the note), and
//! `lib/decompress_unlz4.c` (the old form of LZ4).

use std::io::Read;

use super::vmlinuz::MAX_IMAGE;
use crate::guest::elf;
use crate::util::Reader;
use crate::util::compressed::{Bounded, unpack};

/// The 32-bit entry point of a PVH guest, `XEN_ELFNOTE_PHYS32_ENTRY`: a note of "Xen".
const ENTRY: u32 = 18;

/// The first bytes of the old form of LZ4, and the largest block that it has.
const LZ4: &[u8] = &[0x02, 0x21, 0x4c, 0x18];
const LZ4_BLOCK: usize = 8 << 20;
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The unpacked kernel of a bzImage, if a guest can start it directly.
pub(in crate::guest) fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
    let kernel = payload(image)?;
    let kernel = match kernel.strip_prefix(LZ4) {
        Some(blocks) => lz4(blocks)?,
        None => {
            // Each but gzip has the unpacked size behind it.
            let size = if kernel.starts_with(GZIP) { 0 } else { 4 };
            let packed = kernel.get(..kernel.len().checked_sub(size)?)?;
            let mut whole = Vec::new();
            let mut reader = Bounded::new(unpack(packed).ok()?, MAX_IMAGE);
            reader.read_to_end(&mut whole).ok()?;
            whole
        }
    };
    elf::has_note(&kernel, b"Xen\0", ENTRY).then_some(kernel)
}

/// The packed kernel in a bzImage.
fn payload(image: &[u8]) -> Option<&[u8]> {
    if Reader::at(image, 0x202).array() != Ok(*b"HdrS") {
        return None;
    }
    let sectors = match *image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let mut place = Reader::at(image, 0x248);
    let offset = usize::try_from(place.u32().ok()?).ok()?;
    let len = usize::try_from(place.u32().ok()?).ok()?;
    let start = (sectors + 1) * 512;
    Reader::at(image, start.checked_add(offset)?)
        .bytes(len)
        .ok()
}

/// Unpacks the blocks of the old form of LZ4: each is its packed size and its bytes. The
/// unpacked size ends them.
fn lz4(blocks: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(blocks);
    let (mut whole, mut block) = (Vec::new(), vec![0; LZ4_BLOCK]);
    loop {
        let len = usize::try_from(reader.u32().ok()?).ok()?;
        if len == whole.len() && reader.is_empty() {
            return Some(whole);
        }
        let packed = reader.bytes(len).ok()?;
        let len = lz4_flex::block::decompress_into(packed, &mut block).ok()?;
        whole.extend_from_slice(block.get(..len)?);
        if whole.len() as u64 > MAX_IMAGE {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::packages::{
        Packing, bzimage, bzimage_of as image, kernel_with_note as kernel,
    };

    /// The kernel packed in the old form of LZ4, in blocks of so many bytes.
    fn lz4_of(kernel: &[u8], block: usize) -> Vec<u8> {
        let mut packed = LZ4.to_vec();
        for block in kernel.chunks(block) {
            let bytes = lz4_flex::block::compress(block);
            packed.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            packed.extend(bytes);
        }
        packed.extend(u32::try_from(kernel.len()).unwrap().to_le_bytes());
        packed
    }

    #[test]
    fn a_kernel_with_the_entry_is_unpacked() {
        let kernel = kernel(ENTRY);
        let size = u32::try_from(kernel.len()).unwrap().to_le_bytes();
        let with_size = |packing: Packing| [packing.pack(&kernel), size.to_vec()].concat();
        let payloads = [
            Packing::Gzip.pack(&kernel),
            with_size(Packing::Zstd),
            with_size(Packing::Xz),
            lz4_of(&kernel, 200),
            lz4_of(&kernel, kernel.len()),
        ];
        for payload in payloads {
            assert_eq!(unpacked(&image(&payload)).as_deref(), Some(&*kernel));
        }
    }

    #[test]
    fn other_images_stay_as_they_are() {
        let without = image(&lz4_of(&kernel(ENTRY + 1), 200));
        assert_eq!(unpacked(&without), None, "no entry");
        let whole = image(&lz4_of(&kernel(ENTRY), 200));
        for cut in 0..whole.len() - 100 {
            assert_eq!(unpacked(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(unpacked(&bzimage("6.1.0", 0)), None, "no payload");
    }
}
