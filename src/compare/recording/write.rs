//! Writing a recording.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::block::{
    BlockHead, FILE_HEAD, Kind, MAX_BLOCK, MAX_ITEM, PACKED, SKIPPABLE, TARGET, Version, file_head,
};
use super::checksum::checksum;
use super::end::{End, Summary, Totals};
use super::error::WriteError;
use super::header::Header;
use super::item::{Loss, MapEntry, MapRead, Output, Resource, Sample};
use super::items::{Item, TooLong};
use super::packed::Packer;

type Result<T> = std::result::Result<T, WriteError>;

/// Writes a recording, block by block. Items are buffered until a block is full;
/// [`flush`](Self::flush) writes them before. If the recorder is killed, items since the last
/// flush may be lost.
///
/// Items of one kind keep their order. Firings, outputs, samples and losses have no order among
/// each other; all other items stay where they were written: maps *before*, then what happened,
/// then maps *after*.
pub struct Writer<W: Write> {
    out: Blocks<W>,
    firings: Waiting,
    outputs: Waiting,
    samples: Waiting,
    losses: Waiting,
    /// Items of the other kinds, one kind at a time.
    single: Waiting,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// [`WriteError`]: writing fails, or the header is longer than a block.
    pub fn new(to: W, header: &Header) -> Result<Self> {
        let mut out = Blocks::new(to)?;
        out.write_json(Kind::Header, header)?;
        Ok(Self {
            out,
            firings: Waiting::new(Kind::Firings),
            outputs: Waiting::new(Kind::Outputs),
            samples: Waiting::new(Kind::Samples),
            losses: Waiting::new(Kind::Losses),
            single: Waiting::new(Kind::Entries),
            totals: Totals::default(),
        })
    }

    /// Appends a record of the recorder's ring buffer, without parsing it. It is copied once,
    /// into the block.
    ///
    /// # Errors
    /// [`WriteError`]; a record that is too long is not written.
    #[inline]
    pub fn firing(&mut self, record: &[u8]) -> Result<()> {
        self.leave_single()?;
        self.firings.add(&record)?;
        self.totals.firings += 1;
        self.totals.firing_bytes += record.len() as u64;
        self.out.write_full(&mut self.firings)
    }

    /// Appends an entry of a map.
    ///
    /// # Errors
    /// [`WriteError`]; an entry that is too long is not written.
    pub fn map_entry(&mut self, entry: &MapEntry<'_>) -> Result<()> {
        self.add_single(Kind::Entries, entry)?;
        self.totals.entries += 1;
        Ok(())
    }

    /// Appends how a map was read, after its entries.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn map_read(&mut self, read: &MapRead<'_>) -> Result<()> {
        self.add_single(Kind::MapReads, read)
    }

    /// Appends an output of a program.
    ///
    /// # Errors
    /// [`WriteError`]; an output that is too long is not written.
    pub fn output(&mut self, output: &Output<'_>) -> Result<()> {
        self.leave_single()?;
        self.outputs.add(output)?;
        self.totals.outputs += 1;
        self.out.write_full(&mut self.outputs)
    }

    /// Appends a sample of a bare event.
    ///
    /// # Errors
    /// [`WriteError`]; a sample that is too long is not written.
    pub fn sample(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.leave_single()?;
        self.samples.add(sample)?;
        self.totals.samples += 1;
        self.out.write_full(&mut self.samples)
    }

    /// Appends a loss, unless its count is 0.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn loss(&mut self, loss: &Loss) -> Result<()> {
        if loss.count == 0 {
            return Ok(());
        }
        self.leave_single()?;
        self.losses.add(loss)?;
        self.totals.lost = self.totals.lost.saturating_add(loss.gaps());
        self.out.write_full(&mut self.losses)
    }

    /// Appends a file that the recording carries along. Readers may skip it.
    ///
    /// # Errors
    /// [`WriteError`]; a file that is too long is not written.
    pub fn resource(&mut self, resource: &Resource<'_>) -> Result<()> {
        self.add_single(Kind::Resources, resource)
    }

    /// Totals so far, including buffered items.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Bytes written to the file so far, without buffered items.
    #[must_use]
    pub const fn bytes_written(&self) -> u64 {
        self.out.offset
    }

    /// Writes all buffered items and flushes the file.
    ///
    /// # Errors
    /// [`WriteError::Io`].
    pub fn flush(&mut self) -> Result<()> {
        self.leave_streams()?;
        self.leave_single()?;
        Ok(self.out.to.flush()?)
    }

    /// Writes all buffered items and the end, and returns the file.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn finish(mut self, summary: Summary) -> Result<W> {
        self.leave_streams()?;
        self.leave_single()?;
        let end = End {
            summary,
            totals: self.totals,
        };
        self.out.write_json(Kind::End, &end)?;
        self.out.to.flush()?;
        Ok(self.out.to)
    }

    /// Appends an item whose order among other kinds matters.
    fn add_single<'a>(&mut self, kind: Kind, item: &impl Item<'a>) -> Result<()> {
        self.leave_streams()?;
        if self.single.kind != kind {
            self.leave_single()?;
            self.single.kind = kind;
        }
        self.single.add(item)?;
        self.out.write_full(&mut self.single)
    }

    #[inline]
    fn leave_single(&mut self) -> Result<()> {
        self.out.write(&mut self.single)
    }

    fn leave_streams(&mut self) -> Result<()> {
        let streams = [
            &mut self.firings,
            &mut self.outputs,
            &mut self.samples,
            &mut self.losses,
        ];
        streams
            .into_iter()
            .try_for_each(|waiting| self.out.write(waiting))
    }
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("blocks", &self.out.number)
            .field("offset", &self.out.offset)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

/// Buffered items of one kind.
struct Waiting {
    kind: Kind,
    plain: Vec<u8>,
    items: u32,
}

impl Waiting {
    const fn new(kind: Kind) -> Self {
        Self {
            kind,
            plain: Vec::new(),
            items: 0,
        }
    }

    /// Appends an item completely or not at all.
    #[inline]
    fn add<'a, T: Item<'a>>(&mut self, item: &T) -> Result<()> {
        let start = self.plain.len();
        let written = item.write(&mut self.plain).and_then(|()| {
            let len = self.plain.len() - start;
            if len > MAX_ITEM {
                Err(TooLong(len))
            } else {
                Ok(())
            }
        });
        written.map_err(|TooLong(len)| {
            self.plain.truncate(start);
            WriteError::TooLong {
                what: T::WHAT,
                len,
                limit: MAX_ITEM,
            }
        })?;
        // No overflow: a block has fewer than 2^32 bytes, and each item at least one.
        self.items += 1;
        Ok(())
    }
}

/// The file as blocks.
struct Blocks<W> {
    to: W,
    offset: u64,
    /// Number of the next block.
    number: u64,
    packer: Packer,
    /// The first error of the file. Nothing is written after it, so that the file is cut off
    /// and not damaged.
    failed: Option<io::ErrorKind>,
}

impl<W: Write> Blocks<W> {
    fn new(mut to: W) -> Result<Self> {
        to.write_all(&file_head(Version::CURRENT))?;
        Ok(Self {
            to,
            offset: FILE_HEAD as u64,
            number: 0,
            packer: Packer::new(),
            failed: None,
        })
    }

    /// Writes a block if it is full.
    #[inline]
    fn write_full(&mut self, waiting: &mut Waiting) -> Result<()> {
        if waiting.plain.len() < TARGET {
            return Ok(());
        }
        self.write(waiting)
    }

    /// Writes the buffered items, if there are any.
    #[inline]
    fn write(&mut self, waiting: &mut Waiting) -> Result<()> {
        if waiting.items == 0 {
            return Ok(());
        }
        self.write_block(waiting.kind, &waiting.plain, waiting.items)?;
        waiting.plain.clear();
        waiting.items = 0;
        Ok(())
    }

    fn write_json(&mut self, kind: Kind, value: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(value).map_err(io::Error::from)?;
        if json.len() > MAX_BLOCK {
            return Err(WriteError::TooLong {
                what: "a header",
                len: json.len(),
                limit: MAX_BLOCK,
            });
        }
        self.write_block(kind, &json, 1)
    }

    fn write_block(&mut self, kind: Kind, plain: &[u8], items: u32) -> Result<()> {
        let packed = self.packer.pack(plain);
        let mut flags = if kind == Kind::Resources {
            SKIPPABLE
        } else {
            0
        };
        if packed.is_some() {
            flags |= PACKED;
        }
        let stored = packed.unwrap_or(plain);
        // Neither is above the limit of a block.
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let head = BlockHead {
            kind: kind.number(),
            flags,
            number: self.number,
            stored: len(stored),
            plain: len(plain),
            items,
            sum: checksum(stored),
        };
        if let Some(failed) = self.failed {
            return Err(io::Error::from(failed).into());
        }
        let head = head.to_bytes();
        let written = self
            .to
            .write_all(&head)
            .and_then(|()| self.to.write_all(stored));
        if let Err(error) = written {
            self.failed = Some(error.kind());
            return Err(error.into());
        }
        self.offset += (head.len() + stored.len()) as u64;
        self.number += 1;
        Ok(())
    }
}
