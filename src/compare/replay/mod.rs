//! Replaying a recording: each firing from its own inputs, on any engine, and everything
//! that the programs did held against what they did in the kernel.
//!
//! The programs of the object are rewritten into their replay forms
//! ([`instrument`](crate::instrument)), which read from a tape what the recorded forms
//! wrote, and keep a log of their own. So a replay runs at full speed on every engine, and
//! comparing is comparing bytes. Only where they differ are they looked at.
//!
//! | file | its one job |
//! |---|---|
//! | `driver` | a recording and its object, and what is asked of them |
//! | `pass` | one way through the recording |
//! | `relay` | firings that go from program to program |
//! | `judge` | what is said at its end |
//! | `source` | where it comes from |
//! | `programs` | the object's programs, found by their instructions, rewritten |
//! | `player` | the machine that they run on |
//! | `order` | firings in the order of their CPU, and gaps |
//! | `logs` | two logs side by side |
//! | `touch`, `writers` | who wrote to which map |
//! | `elements` | whether it is known what they hold then |
//! | `stories` | what is known of each program |
//! | `contents` | maps, before and after |
//! | `outputs`, `sent` | records and lines |
//! | `bare`, `by_time` | recordings of events on which no program ran |
//! | `look` | a firing once more, to see registers at the place of a difference |
//! | `missing` | what the recording lacks |
//! | `verdict`, `word`, `difference` | what is said in the end |
//! | `answers` | what only the recorded kernel can answer |

mod answers;
mod bare;
mod by_time;
mod contents;
mod difference;
mod driver;
mod elements;
mod error;
mod judge;
mod logs;
mod look;
mod missing;
mod order;
mod outputs;
mod pass;
mod player;
mod programs;
mod relay;
mod sent;
mod source;
mod stories;
mod touch;
mod verdict;
mod word;
mod writers;

pub use bare::Bare;
pub use difference::{Different, FirstDifference, Instruction, Source as SourceLine};
pub use driver::Replay;
pub use error::ReplayError;
pub use source::Source;
pub use verdict::{
    Gap, MapReport, MapVerdict, NotCompared, OutputReport, OutputVerdict, ProgramReport, Report,
    Verdict,
};
pub use word::Word;
