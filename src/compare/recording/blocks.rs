//! The blocks of a file, one after the other: read, held against their checksums, unpacked.

use std::io::{ErrorKind, Read};

use super::block::{
    BLOCK_HEAD, BlockHead, FILE_HEAD, Kind, MAGIC, PACKED, SKIPPABLE, Version, file_version,
    same_sum,
};
use super::error::{CutOff, Place, RecordingError, Result, damaged};
use super::packed::unpack;

/// A file that is read block by block.
pub(super) struct Blocks<R: Read> {
    from: R,
    /// Where the next block begins.
    next: Place,
    version: Version,
    /// A block as it is in the file.
    stored: Vec<u8>,
}

/// What stands where a block should.
#[derive(Debug)]
pub(super) enum Found {
    Block(Block),
    CutOff(CutOff),
}

/// A block, but for its contents.
#[derive(Debug)]
pub(super) struct Block {
    pub head: BlockHead,
    /// Where it begins.
    pub place: Place,
    /// Where the next one does.
    pub next: Place,
    /// Whether something follows on the end, behind which nothing should be.
    pub is_followed: bool,
}

impl<R: Read> Blocks<R> {
    /// Reads the file's head.
    pub fn new(from: R) -> Result<Self> {
        let mut blocks = Self {
            from,
            next: Place {
                block: 0,
                offset: 0,
            },
            version: Version::CURRENT,
            stored: Vec::new(),
        };
        blocks.version = blocks.file_head()?;
        Ok(blocks)
    }

    /// The version of the format.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Where the next block begins.
    pub const fn at(&self) -> Place {
        self.next
    }

    /// How many bytes of memory it has for blocks.
    #[cfg(test)]
    pub const fn held(&self) -> usize {
        self.stored.capacity()
    }

    fn file_head(&mut self) -> Result<Version> {
        let place = self.next;
        let mut head = [0; FILE_HEAD];
        let len = self.fill(&mut head)?;
        if !MAGIC.starts_with(&head[..len.min(MAGIC.len())]) || len == 0 {
            return Err(RecordingError::NotARecording);
        }
        if len < FILE_HEAD {
            let left = len as u64;
            return Err(RecordingError::NoHeader(CutOff { place, left }));
        }
        self.next.offset = FILE_HEAD as u64;
        let found = file_version(&head).map_err(|problem| damaged(place, problem))?;
        let known = Version::CURRENT;
        if found.major > known.major {
            return Err(RecordingError::Newer { found, known });
        }
        if found.major == 0 {
            return Err(damaged(place, "there is no format 0".to_owned()));
        }
        Ok(found)
    }

    /// Reads the next block into `plain`. One of an unknown kind that can be skipped is
    /// not unpacked.
    pub fn next(&mut self, plain: &mut Vec<u8>) -> Result<Found> {
        let place = self.next;
        let mut head = [0; BLOCK_HEAD];
        let len = self.fill(&mut head)?;
        if len < BLOCK_HEAD {
            let left = len as u64;
            return Ok(Found::CutOff(CutOff { place, left }));
        }
        let head = BlockHead::parse(&head).map_err(|problem| damaged(place, problem))?;
        if head.number != place.block {
            let problem = format!("number {} stands on it", head.number);
            return Err(damaged(place, problem));
        }
        let unknown = |what| Err(RecordingError::Unknown { place, what });
        if head.flags & !(PACKED | SKIPPABLE) != 0 {
            return unknown(format!("flags {:#x}", head.flags));
        }
        let kind = Kind::from_number(head.kind);
        if kind.is_none() && head.flags & SKIPPABLE == 0 {
            return unknown(format!("kind {}", head.kind));
        }

        self.stored.clear();
        // Room grows with what is there, not with what is promised.
        let mut rest = (&mut self.from).take(head.stored.into());
        rest.read_to_end(&mut self.stored)
            .map_err(|error| RecordingError::Io { place, error })?;
        if self.stored.len() < head.stored as usize {
            let left = (BLOCK_HEAD + self.stored.len()) as u64;
            return Ok(Found::CutOff(CutOff { place, left }));
        }
        same_sum("the block", head.sum, &self.stored).map_err(|problem| damaged(place, problem))?;
        if !head.is_packed() {
            std::mem::swap(&mut self.stored, plain);
        } else if kind.is_some() {
            unpack(&self.stored, plain, head.plain as usize)
                .map_err(|problem| damaged(place, problem))?;
        }
        self.next.block += 1;
        self.next.offset += BLOCK_HEAD as u64 + u64::from(head.stored);
        Ok(Found::Block(Block {
            head,
            place,
            next: self.next,
            is_followed: kind == Some(Kind::End) && self.fill(&mut [0])? != 0,
        }))
    }

    /// Reads as many bytes as there are, up to those of `to`.
    fn fill(&mut self, to: &mut [u8]) -> Result<usize> {
        let mut len = 0;
        while let Some(rest) = to.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match self.from.read(rest) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = self.next;
                    return Err(RecordingError::Io { place, error });
                }
            }
        }
        Ok(len)
    }
}
