//! Reads the blocks of a file, checks their checksums and unpacks them.

use std::io::{ErrorKind, Read};

use super::block::{
    BLOCK_HEAD, BlockHead, FILE_HEAD, Kind, MAGIC, PACKED, SKIPPABLE, Version, file_version,
    same_sum,
};
use super::error::{BlockPosition, CutOff, RecordingError, Result, damaged};
use super::packed::unpack;

/// A file that is read block by block.
pub(super) struct Blocks<R: Read> {
    from: R,
    /// Where the next block begins.
    next: BlockPosition,
    version: Version,
    /// A block as it is in the file.
    stored: Vec<u8>,
}

/// What was found where a block should be.
#[derive(Debug)]
pub(super) enum Found {
    Block(Block),
    CutOff(CutOff),
}

/// A block without its contents.
#[derive(Debug)]
pub(super) struct Block {
    pub head: BlockHead,
    /// Where it begins.
    pub position: BlockPosition,
    /// Where the next block begins.
    pub next: BlockPosition,
    /// Whether this is the end and bytes follow, which is an error.
    pub is_followed: bool,
}

impl<R: Read> Blocks<R> {
    /// Reads the file's head.
    pub fn new(from: R) -> Result<Self> {
        let mut blocks = Self {
            from,
            next: BlockPosition {
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
    pub const fn at(&self) -> BlockPosition {
        self.next
    }

    /// Bytes of memory allocated for blocks.
    #[cfg(test)]
    pub const fn held(&self) -> usize {
        self.stored.capacity()
    }

    fn file_head(&mut self) -> Result<Version> {
        let position = self.next;
        let mut head = [0; FILE_HEAD];
        let len = self.fill(&mut head)?;
        if !MAGIC.starts_with(&head[..len.min(MAGIC.len())]) || len == 0 {
            return Err(RecordingError::NotARecording);
        }
        if len < FILE_HEAD {
            let left = len as u64;
            return Err(RecordingError::NoHeader(CutOff { position, left }));
        }
        self.next.offset = FILE_HEAD as u64;
        let found = file_version(&head).map_err(|problem| damaged(position, problem))?;
        let known = Version::CURRENT;
        if found.major > known.major {
            return Err(RecordingError::Newer { found, known });
        }
        if found.major == 0 {
            return Err(damaged(position, "format version 0".to_owned()));
        }
        Ok(found)
    }

    /// Reads the next block into `plain`. One of an unknown kind that can be skipped is
    /// not unpacked.
    pub fn next(&mut self, plain: &mut Vec<u8>) -> Result<Found> {
        let position = self.next;
        let mut head = [0; BLOCK_HEAD];
        let len = self.fill(&mut head)?;
        if len < BLOCK_HEAD {
            let left = len as u64;
            return Ok(Found::CutOff(CutOff { position, left }));
        }
        let head = BlockHead::parse(&head).map_err(|problem| damaged(position, problem))?;
        if head.number != position.block {
            let problem = format!("the block has the number {}", head.number);
            return Err(damaged(position, problem));
        }
        let unknown = |what| Err(RecordingError::Unknown { position, what });
        if head.flags & !(PACKED | SKIPPABLE) != 0 {
            return unknown(format!("flags {:#x}", head.flags));
        }
        let kind = Kind::from_number(head.kind);
        if kind.is_none() && head.flags & SKIPPABLE == 0 {
            return unknown(format!("kind {}", head.kind));
        }

        self.stored.clear();
        // Memory grows with the bytes read, not with the length that the head claims.
        let mut rest = (&mut self.from).take(head.stored.into());
        rest.read_to_end(&mut self.stored)
            .map_err(|error| RecordingError::Io { position, error })?;
        if self.stored.len() < head.stored as usize {
            let left = (BLOCK_HEAD + self.stored.len()) as u64;
            return Ok(Found::CutOff(CutOff { position, left }));
        }
        same_sum("the block", head.sum, &self.stored)
            .map_err(|problem| damaged(position, problem))?;
        if !head.is_packed() {
            std::mem::swap(&mut self.stored, plain);
        } else if kind.is_some() {
            unpack(&self.stored, plain, head.plain as usize)
                .map_err(|problem| damaged(position, problem))?;
        }
        self.next.block += 1;
        self.next.offset += BLOCK_HEAD as u64 + u64::from(head.stored);
        Ok(Found::Block(Block {
            head,
            position,
            next: self.next,
            is_followed: kind == Some(Kind::End) && self.fill(&mut [0])? != 0,
        }))
    }

    /// Fills `to`, or as much as the file has; returns how many bytes.
    fn fill(&mut self, to: &mut [u8]) -> Result<usize> {
        let mut len = 0;
        while let Some(rest) = to.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match self.from.read(rest) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let position = self.next;
                    return Err(RecordingError::Io { position, error });
                }
            }
        }
        Ok(len)
    }
}
