//! Reading a recording.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::block::{
    BLOCK_HEAD, BlockHead, FILE_HEAD, Kind, MAGIC, PACKED, SKIPPABLE, Version, file_version,
    same_sum,
};
use super::end::{End, Totals};
use super::error::{CutOff, Place, RecordingError};
use super::header::Header;
use super::item::{Loss, MapEntry, MapRead, Output, Resource, Sample};
use super::items::{Item, Items};
use super::packed::unpack;

type Result<T, E = RecordingError> = std::result::Result<T, E>;

/// A recording, block by block; never more than one is in memory.
///
/// All that [`next_part`](Self::next_part) gives is as it was written. Damage is an error,
/// after which nothing follows; what was given before stays right.
pub struct Recording<R: Read> {
    from: R,
    /// Where the next block begins.
    next: Place,
    version: Version,
    header: Header,
    stored: Vec<u8>,
    plain: Vec<u8>,
    totals: Totals,
    skipped: u64,
    /// Whether nothing follows.
    over: bool,
}

/// A piece of a recording. The last one is [`End`](Self::End) or [`CutOff`](Self::CutOff).
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Records of the recorder's ring buffer, in its order, each of them whole.
    Firings(Items<'a, &'a [u8]>),
    /// Entries of maps.
    Entries(Items<'a, MapEntry<'a>>),
    /// How maps were read whose entries stand before.
    MapReads(Items<'a, MapRead<'a>>),
    /// What programs put out.
    Outputs(Items<'a, Output<'a>>),
    /// Samples of bare events.
    Samples(Items<'a, Sample<'a>>),
    /// What is missing.
    Losses(Items<'a, Loss>),
    /// Files that help to understand the recording.
    Resources(Items<'a, Resource<'a>>),
    /// The recording is whole.
    End(End),
    /// It is not: whatever should follow is not there. No error, but a verdict that rests
    /// on it is incomplete.
    CutOff(CutOff),
}

impl Recording<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = File::open(path).map_err(|error| RecordingError::Io {
            place: Place {
                block: 0,
                offset: 0,
            },
            error,
        })?;
        Self::new(BufReader::new(file))
    }
}

impl<R: Read> Recording<R> {
    /// Reads the start of a recording, with its header.
    ///
    /// # Errors
    /// [`RecordingError`]: another kind of file, a format that is not known, damage, or a
    /// file that ends before its header does.
    pub fn new(from: R) -> Result<Self> {
        let mut recording = Self {
            from,
            next: Place {
                block: 0,
                offset: 0,
            },
            version: Version::CURRENT,
            header: Header::default(),
            stored: Vec::new(),
            plain: Vec::new(),
            totals: Totals::default(),
            skipped: 0,
            over: false,
        };
        recording.version = recording.read_file_head()?;
        let place = recording.next;
        match recording.read_block()? {
            Found::Block(head) if head.kind == Kind::Header.number() => {
                recording.header = json(&recording.plain).map_err(|p| damaged(place, p))?;
                Ok(recording)
            }
            Found::Block(head) => Err(damaged(
                place,
                format!("the header expected, here is a block of kind {}", head.kind),
            )),
            Found::CutOff(at) => Err(RecordingError::NoHeader(at)),
        }
    }

    /// What the recording says of itself.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The version of its format.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// How much was read so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How many blocks were skipped that a later version has put there.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many bytes were read so far.
    #[must_use]
    pub const fn bytes_read(&self) -> u64 {
        self.next.offset
    }

    /// How many bytes of memory it has for blocks.
    #[cfg(test)]
    pub(super) const fn held(&self) -> usize {
        self.stored.capacity() + self.plain.capacity()
    }

    /// The next part; `None` after the last one and after an error.
    ///
    /// # Errors
    /// [`RecordingError`]: damage, or a file that can't be read any further.
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(None);
        }
        let (place, head, kind) = loop {
            let place = self.next;
            let head = match self.read_block()? {
                Found::Block(head) => head,
                Found::CutOff(at) => return Ok(Some(Part::CutOff(at))),
            };
            if let Some(kind) = Kind::from_number(head.kind) {
                break (place, head, kind);
            }
            self.skipped += 1;
        };
        if kind == Kind::End {
            return self.read_end(place).map(|end| Some(Part::End(end)));
        }
        let part =
            parse(kind, &self.plain, head.items).map_err(|problem| damaged(place, problem))?;
        count(&mut self.totals, &part);
        self.over = false;
        Ok(Some(part))
    }

    /// Reads the file's head.
    fn read_file_head(&mut self) -> Result<Version> {
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
    fn read_block(&mut self) -> Result<Found> {
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
        let is_known = Kind::from_number(head.kind).is_some();
        if !is_known && head.flags & SKIPPABLE == 0 {
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
            std::mem::swap(&mut self.stored, &mut self.plain);
        } else if is_known {
            unpack(&self.stored, &mut self.plain, head.plain as usize)
                .map_err(|problem| damaged(place, problem))?;
        }
        self.next.block += 1;
        self.next.offset += BLOCK_HEAD as u64 + u64::from(head.stored);
        Ok(Found::Block(head))
    }

    /// Reads the end, which is in `plain`: it must say what was read, and be the end.
    fn read_end(&mut self, place: Place) -> Result<End> {
        let end: End = json(&self.plain).map_err(|problem| damaged(place, problem))?;
        if end.totals != self.totals {
            let problem = format!(
                "the end counts {:?}, the blocks hold {:?}",
                end.totals, self.totals
            );
            return Err(damaged(place, problem));
        }
        if self.fill(&mut [0])? != 0 {
            let problem = "bytes follow behind the end".to_owned();
            return Err(damaged(self.next, problem));
        }
        Ok(end)
    }

    /// Reads as many bytes as there are, up to those of `to`.
    fn fill(&mut self, to: &mut [u8]) -> Result<usize> {
        let mut len = 0;
        while let Some(rest) = to.get_mut(len..).filter(|rest| !rest.is_empty()) {
            match self.from.read(rest) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = self.next;
                    return Err(RecordingError::Io { place, error });
                }
            }
        }
        Ok(len)
    }
}

/// What stands where a block should.
enum Found {
    Block(BlockHead),
    CutOff(CutOff),
}

const fn damaged(place: Place, problem: String) -> RecordingError {
    RecordingError::Damaged { place, problem }
}

fn json<T: DeserializeOwned>(plain: &[u8]) -> Result<T, String> {
    serde_json::from_slice(plain).map_err(|error| format!("no JSON as it is written here: {error}"))
}

/// The items of a block.
fn parse(kind: Kind, plain: &[u8], count: u32) -> Result<Part<'_>, String> {
    fn items<'a, T: Item<'a>>(plain: &'a [u8], count: u32) -> Result<Items<'a, T>, String> {
        Items::check(plain, count)
    }
    Ok(match kind {
        Kind::Firings => Part::Firings(items(plain, count)?),
        Kind::Entries => Part::Entries(items(plain, count)?),
        Kind::MapReads => Part::MapReads(items(plain, count)?),
        Kind::Outputs => Part::Outputs(items(plain, count)?),
        Kind::Samples => Part::Samples(items(plain, count)?),
        Kind::Losses => Part::Losses(items(plain, count)?),
        Kind::Resources => Part::Resources(items(plain, count)?),
        Kind::Header | Kind::End => return Err("a second header".to_owned()),
    })
}

/// Adds a part to what was read.
fn count(totals: &mut Totals, part: &Part<'_>) {
    match part {
        Part::Firings(items) => {
            totals.firings += items.len() as u64;
            totals.firing_bytes += items.clone().map(|record| record.len() as u64).sum::<u64>();
        }
        Part::Entries(items) => totals.entries += items.len() as u64,
        Part::Outputs(items) => totals.outputs += items.len() as u64,
        Part::Samples(items) => totals.samples += items.len() as u64,
        Part::Losses(items) => {
            for loss in items.clone() {
                totals.lost = totals.lost.saturating_add(loss.gaps());
            }
        }
        Part::MapReads(_) | Part::Resources(_) | Part::End(_) | Part::CutOff(_) => {}
    }
}

impl<R: Read> fmt::Debug for Recording<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("version", &self.version)
            .field("next", &self.next)
            .field("totals", &self.totals)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
