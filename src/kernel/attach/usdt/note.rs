//! USDT notes (section `.note.stapsdt`, owner `stapsdt`, type 3).

use crate::kernel::attach::binary::Binary;
use crate::kernel::attach::error::BinaryError;
use crate::util::{ReadError, Reader};

/// One location of a USDT probe; a probe may have several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsdtLocation {
    /// File offset of its instruction (a `nop`).
    pub offset: u64,
    /// File offset of its semaphore, a counter of attached tracers: the code is only reached if
    /// that is not 0. Itself 0 if there is no semaphore.
    pub semaphore: u64,
    /// Its argument specification: `-4@%edi 8@$5`.
    pub arguments: String,
}

/// A note as stored in the file.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    address: u64,
    /// The address of section `.stapsdt.base` when the note was written: prelink, which moves a
    /// library's code, does not correct notes.
    base: u64,
    semaphore: u64,
    provider: String,
    name: String,
    arguments: String,
}

const SECTION: &str = ".note.stapsdt";
const BASE: &str = ".stapsdt.base";
const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// The locations of a USDT probe, sorted by file offset.
pub fn locations(
    binary: &Binary,
    provider: &str,
    name: &str,
) -> Result<Vec<UsdtLocation>, BinaryError> {
    let Some(section) = binary.section(SECTION) else {
        return Err(BinaryError::Other(
            "no USDT probes (section .note.stapsdt)".to_owned(),
        ));
    };
    let contents = binary.contents(section)?;
    let notes = notes(&contents).map_err(|error| BinaryError::Short {
        what: SECTION,
        error,
    })?;
    let base = binary.section(BASE).map(|section| section.address);
    let mut locations = Vec::new();
    for note in notes {
        if note.provider != provider || note.name != name {
            continue;
        }
        let moved = base.map_or(0, |base| base.wrapping_sub(note.base));
        let at = note.address.wrapping_add(moved);
        let outside = |what: &str, at| {
            let text = format!(
                "{what} of USDT probe {provider}:{name} at {at:#x} is not in a loaded segment"
            );
            BinaryError::Other(text)
        };
        let semaphore = match note.semaphore {
            0 => 0,
            // The semaphore is data, which moves along with the code.
            address => binary
                .extended_offset_of(address)
                .ok_or_else(|| outside("the semaphore", address))?,
        };
        locations.push(UsdtLocation {
            offset: binary
                .offset_of(at)
                .ok_or_else(|| outside("the location", at))?,
            semaphore,
            arguments: note.arguments,
        });
    }
    locations.sort_by_key(|location| location.offset);
    locations.dedup();
    Ok(locations)
}

/// All USDT notes in a note section.
fn notes(contents: &[u8]) -> Result<Vec<Note>, ReadError> {
    let mut reader = Reader::new(contents);
    let mut notes = Vec::new();
    while !reader.is_empty() {
        let (owner_len, len) = (reader.u32()? as usize, reader.u32()? as usize);
        let kind = reader.u32()?;
        let owner = padded(&mut reader, owner_len)?;
        let note = padded(&mut reader, len)?;
        if kind == TYPE && owner == OWNER {
            notes.push(read(note)?);
        }
    }
    Ok(notes)
}

/// Reads `len` bytes and the padding to four.
fn padded<'a>(reader: &mut Reader<'a>, len: usize) -> Result<&'a [u8], ReadError> {
    let bytes = reader.bytes(len)?;
    // The last note may lack padding.
    let padding = (len.next_multiple_of(4) - len).min(reader.left());
    reader.bytes(padding)?;
    Ok(bytes)
}

fn read(note: &[u8]) -> Result<Note, ReadError> {
    let mut reader = Reader::new(note);
    let (address, base, semaphore) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let mut texts = note.get(reader.offset()..).unwrap_or_default();
    let mut text = || {
        let end = texts.iter().position(|byte| *byte == 0);
        let (text, rest) = texts.split_at(end.unwrap_or(texts.len()));
        texts = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    Ok(Note {
        address,
        base,
        semaphore,
        provider: text(),
        name: text(),
        arguments: text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, owner: &[u8], name: &str) -> Vec<u8> {
        let mut body = Vec::new();
        for word in [0x1000u64, 0x2000, 0x3000] {
            body.extend(word.to_le_bytes());
        }
        body.extend(format!("server\0{name}\0-4@%edi 8@$5\0").as_bytes());
        let mut bytes = Vec::new();
        for len in [owner.len(), body.len()] {
            bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
        }
        bytes.extend(kind.to_le_bytes());
        for part in [owner, &body] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn notes_are_read_and_others_passed_over() {
        let mut section = note(TYPE, OWNER, "start");
        section.extend(note(1, b"GNU\0", "x"));
        section.extend(note(TYPE, OWNER, "a_longer_name"));
        let read = notes(&section).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            read[0],
            Note {
                address: 0x1000,
                base: 0x2000,
                semaphore: 0x3000,
                provider: "server".to_owned(),
                name: "start".to_owned(),
                arguments: "-4@%edi 8@$5".to_owned(),
            }
        );
        assert_eq!(read[1].name, "a_longer_name");
        for len in 1..section.len() {
            // A truncated section is never read past its end.
            let _ = notes(&section[..len]);
        }
        assert!(notes(&section[..30]).is_err());
    }
}
