//! Reading a recording.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::ahead::Ahead;
use super::block::{Kind, Version};
use super::blocks::{Block, Blocks, Found};
use super::end::{End, Totals};
use super::error::{BlockPosition, CutOff, RecordingError, Result, damaged};
use super::header::Header;
use super::item::{Loss, MapEntry, MapRead, Output, Resource, Sample};
use super::items::{Item, Items};

/// Reads a recording block by block; one block is in memory, or a few when
/// [reading ahead](Self::read_ahead).
///
/// Everything that [`next_part`](Self::next_part) returns was checked. Damage is an error, after
/// which nothing follows; the parts before are intact.
pub struct Recording<R: Read> {
    blocks: Origin<R>,
    /// Where the next block begins.
    next: BlockPosition,
    version: Version,
    header: Header,
    /// The contents of the block.
    plain: Vec<u8>,
    totals: Totals,
    skipped: u64,
    /// Whether no part follows.
    over: bool,
}

/// Where blocks are read.
enum Origin<R: Read> {
    /// In the calling thread.
    Here(Blocks<R>),
    /// In another thread, ahead of the calling one.
    Ahead(Ahead),
}

/// A piece of a recording. The last one is [`End`](Self::End) or [`CutOff`](Self::CutOff).
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Records of the recorder's ring buffer, in its order.
    Firings(Items<'a, &'a [u8]>),
    /// Entries of maps.
    Entries(Items<'a, MapEntry<'a>>),
    /// How the maps of the entries before were read.
    MapReads(Items<'a, MapRead<'a>>),
    /// Outputs of programs.
    Outputs(Items<'a, Output<'a>>),
    /// Samples of bare events.
    Samples(Items<'a, Sample<'a>>),
    /// What is missing.
    Losses(Items<'a, Loss>),
    /// Files that the recording carries along.
    Resources(Items<'a, Resource<'a>>),
    /// The recording is whole.
    End(End),
    /// The recording was cut off here: the rest is missing. This is no error, but verdicts
    /// that depend on the rest are incomplete.
    CutOff(CutOff),
}

impl Recording<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = File::open(path).map_err(|error| RecordingError::Io {
            position: BlockPosition {
                block: 0,
                offset: 0,
            },
            error,
        })?;
        Self::new(BufReader::new(file))
    }
}

impl<R: Read> Recording<R> {
    /// Reads the start of a recording, up to its header.
    ///
    /// # Errors
    /// [`RecordingError`]: another kind of file, an unknown format, damage, or a file that ends
    /// before its header does.
    pub fn new(from: R) -> Result<Self> {
        let mut blocks = Blocks::new(from)?;
        let mut plain = Vec::new();
        let header = match blocks.next(&mut plain)? {
            Found::Block(block) if block.head.kind == Kind::Header.number() => {
                json(&plain).map_err(|problem| damaged(block.position, problem))?
            }
            Found::Block(Block { position, head, .. }) => {
                let problem = format!("expected the header, found a block of kind {}", head.kind);
                return Err(damaged(position, problem));
            }
            Found::CutOff(at) => return Err(RecordingError::NoHeader(at)),
        };
        Ok(Self {
            version: blocks.version(),
            next: blocks.at(),
            blocks: Origin::Here(blocks),
            header,
            plain,
            totals: Totals::default(),
            skipped: 0,
            over: false,
        })
    }

    /// The same recording, with another thread that reads and unpacks a few blocks ahead.
    #[must_use]
    pub fn read_ahead(self) -> Self
    where
        R: Send + 'static,
    {
        let blocks = match self.blocks {
            Origin::Here(blocks) => Origin::Ahead(Ahead::new(blocks)),
            ahead @ Origin::Ahead(_) => ahead,
        };
        Self { blocks, ..self }
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The version of its format.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Totals of what was read so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How many blocks of a later version were skipped.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many bytes were read so far.
    #[must_use]
    pub const fn bytes_read(&self) -> u64 {
        self.next.offset
    }

    /// Bytes of memory allocated for blocks.
    #[cfg(test)]
    pub(super) const fn held(&self) -> usize {
        let here = match &self.blocks {
            Origin::Here(blocks) => blocks.held(),
            Origin::Ahead(_) => 0,
        };
        here + self.plain.capacity()
    }

    /// The next part; `None` after the last one and after an error.
    ///
    /// # Errors
    /// [`RecordingError`]: damage, or a file that can't be read any further.
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(None);
        }
        let (block, kind) = loop {
            let found = match &mut self.blocks {
                Origin::Here(blocks) => blocks.next(&mut self.plain)?,
                Origin::Ahead(ahead) => ahead.next(&mut self.plain)?,
            };
            let block = match found {
                Found::Block(block) => block,
                Found::CutOff(at) => return Ok(Some(Part::CutOff(at))),
            };
            self.next = block.next;
            if let Some(kind) = Kind::from_number(block.head.kind) {
                break (block, kind);
            }
            self.skipped += 1;
        };
        if kind == Kind::End {
            return self.read_end(&block).map(|end| Some(Part::End(end)));
        }
        let part = parse(kind, &self.plain, block.head.items)
            .map_err(|problem| damaged(block.position, problem))?;
        count(&mut self.totals, &part);
        self.over = false;
        Ok(Some(part))
    }

    /// Reads the end, which is in `plain`: its totals must be those read, and nothing may follow.
    fn read_end(&self, block: &Block) -> Result<End> {
        let end: End = json(&self.plain).map_err(|problem| damaged(block.position, problem))?;
        if end.totals != self.totals {
            let problem = format!(
                "the end counts {:?}, the blocks hold {:?}",
                end.totals, self.totals
            );
            return Err(damaged(block.position, problem));
        }
        if block.is_followed {
            let problem = "bytes follow the end".to_owned();
            return Err(damaged(block.next, problem));
        }
        Ok(end)
    }
}

fn json<T: DeserializeOwned>(plain: &[u8]) -> std::result::Result<T, String> {
    serde_json::from_slice(plain).map_err(|error| format!("invalid JSON: {error}"))
}

/// The items of a block.
fn parse(kind: Kind, plain: &[u8], count: u32) -> std::result::Result<Part<'_>, String> {
    fn items<'a, T: Item<'a>>(
        plain: &'a [u8],
        count: u32,
    ) -> std::result::Result<Items<'a, T>, String> {
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

/// Adds a part to the totals.
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
