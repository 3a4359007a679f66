//! The recording file: `bpflab record` writes it, `bpflab replay` reads it on any machine.
//!
//! A recording is a file head, then blocks. Each block is compressed and has two checksums and
//! its number, so damage is detected and located, and everything before it is intact. A block
//! holds items of one kind: firings as they came out of the kernel's ring buffer, map contents,
//! outputs of programs, samples, losses. The first block holds the [`Header`], the last the
//! [`End`]; a file without an end was cut off. `docs/recording-format.md` describes every byte.
//!
//! Neither side keeps more than a few blocks in memory: a [`Writer`] fills one for each kind, a
//! [`Recording`] returns one [`Part`] after the other, from blocks that it reads on demand or
//! [ahead](Recording::read_ahead).
//!
//! ```
//! use bpflab::compare::recording::{Header, Part, Recording, Summary, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, &Header::default())?;
//! writer.firing(b"a record of the kernel's ring")?;
//! writer.finish(Summary::default())?;
//!
//! let mut recording = Recording::new(&file[..])?;
//! while let Some(part) = recording.next_part()? {
//!     match part {
//!         Part::Firings(firings) => assert_eq!(firings.count(), 1),
//!         Part::End(end) => assert_eq!(end.totals.firings, 1),
//!         Part::CutOff(at) => println!("the recorder was killed: {at}"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod ahead;
mod block;
mod blocks;
mod checksum;
mod end;
mod error;
mod header;
mod item;
mod items;
mod packed;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use block::{MAGIC, Version};
pub use checksum::{checksum, initial_checksum, program_checksum, sites_checksum};
pub use end::{CpuTotal, End, Ended, ProgramTotal, Summary, Totals};
pub use error::{BlockPosition, CutOff, RecordingError, WriteError};
pub use header::{
    Filter, Header, How, KernelInfo, LeftOut, ObjectInfo, RecordedEvent, RecordedMap,
    RecordedProgram, Start,
};
pub use item::{
    Cause, Contents, Loss, MapEntry, MapRead, Output, OutputSource, Resource, Sample, When,
};
pub use items::Items;
pub use read::{Part, Recording};
pub use write::Writer;
