//! Replays a recording: runs each firing on any engine from its recorded inputs, and compares
//! everything that the programs do with what they did in the kernel.
//!
//! The programs of the object are rewritten into their replay forms
//! ([`instrument`](crate::instrument)), which take inputs from the log that the recorded form
//! wrote, and write a log of their own. So a replay runs at full speed on every engine, and
//! logs are compared as bytes; they are decoded only if they differ.
//!
//! | file | its one job |
//! |---|---|
//! | `driver` | the entry point: a recording and its object, replayed on an engine |
//! | `pass` | reading the recording once from start to end |
//! | `relay` | firings with tail calls |
//! | `judge` | the report after a pass |
//! | `source` | the file or bytes of the recording |
//! | `programs` | the object's programs, found by their instructions, rewritten |
//! | `replay_vm` | the machine that they run on, one firing at a time |
//! | `order` | firings in the order of their CPU, and lost ones |
//! | `logs` | comparing two logs |
//! | `touch`, `writers` | which firing wrote to which map |
//! | `elements` | whether the final value of an element depends on an unknown order |
//! | `comparison` | counts and differences of each program |
//! | `contents` | maps, before and after |
//! | `outputs`, `sent` | ring and perf buffer records, printed lines |
//! | `bare`, `by_time` | recordings of events on which no program ran |
//! | `firings` | the firings and events with their fields, to list them |
//! | `look` | running a firing again, to read registers at a difference |
//! | `missing` | what the recording lacks |
//! | `verdict`, `word`, `difference` | what a report holds |
//! | `finding`, `findings` | differences of maps and outputs in words |
//! | `answers` | helper results that only the recorded kernel can determine |

mod answers;
mod bare;
mod by_time;
mod comparison;
mod contents;
mod difference;
mod driver;
mod elements;
mod error;
mod finding;
mod findings;
mod firings;
mod judge;
mod logs;
mod look;
mod missing;
mod order;
mod outputs;
mod pass;
mod programs;
mod relay;
mod replay_vm;
mod sent;
mod source;
mod touch;
mod verdict;
mod word;
mod writers;

pub use bare::Bare;
pub use difference::{Different, FirstDifference, Instruction, SourceLine};
pub use driver::Replay;
pub use error::ReplayError;
pub use finding::{FieldDifference, Finding};
pub use firings::RecordedFiring;
pub use source::RecordingSource;
pub use verdict::{
    Gap, MapReport, MapVerdict, NotCompared, OutputReport, OutputVerdict, ProgramReport, Report,
    Verdict,
};
pub use word::Word;
