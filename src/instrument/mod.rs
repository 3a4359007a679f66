//! Programs that write down what they take from outside and what they give to it.
//!
//! A program is *instrumented*: rewritten into one that does the same and keeps a log. The
//! *recorded form* runs in the kernel and hands each firing's log to user space; the
//! *replay form* has the same sites, takes from a tape what the recorded form took from
//! the world, and keeps a log of its own, to be compared byte by byte. Both are ordinary
//! BPF programs: a verifier judges them, any engine runs them, and nothing is hooked.
//!
//! A [`Site`] is an instruction of the original program that takes something from outside
//! (a helper's result and the memory it fills, a load from a map's value or through a
//! kernel pointer) or gives something to it (a store to a map's value, a key handed to a
//! helper). What is the run's own is none: its stack, its context, which is copied at the
//! start, constants in frozen maps, ring-buffer records that are not submitted yet.
//!
//! A [`Firing`] is what one run of a recorded program leaves behind: who, when, where, its
//! context, its return value, and a log of packed entries: the site's number in two
//! bytes, then the site's [fields](Site::fields). [`Plan::entries`] reads it.
//!
//! | file | its one job |
//! |---|---|
//! | `plan` | the analysis of a program, from which both forms are made |
//! | `dataflow`, `liveness` | what registers and stack slots hold, which of them are needed |
//! | `calls` | what helpers and kernel functions take and give, for both forms |
//! | `site`, `find` | what is logged where |
//! | `unwritten`, `clear` | memory that both forms set to zero |
//! | `patch`, `frame` | inserting code, and room for it on the stack |
//! | `emit` | the code of an entry, for both forms |
//! | `record`, `context`, `follow` | the recorded form |
//! | `replay`, `tape` | the replay form, and how it takes what the tape has |
//! | `maps`, `replay_maps` | the maps that either adds, and what lies where in them |
//! | `firing`, `entries` | the bytes of a firing and of its log |
//! | `relays` | which programs' firings may go on in which others |
//! | `handover`, `segments` | how they do, and how such a log is read |
//! | `error` | why a program can't be recorded, where a log is damaged |

mod calls;
mod clear;
mod context;
mod dataflow;
mod emit;
mod entries;
mod error;
mod find;
mod firing;
mod follow;
mod frame;
mod handover;
mod liveness;
mod maps;
mod patch;
mod plan;
mod record;
mod relays;
mod replay;
mod replay_maps;
mod segments;
mod site;
mod tape;
mod unwritten;

pub use entries::{Entries, Entry};
pub use error::{Damage, Damaged, Reason, Unrecordable};
pub use find::Jump;
pub use firing::{Firing, FiringFlags};
pub use maps::{RecordMaps, RecordOptions, RecordState};
pub use plan::Plan;
pub use relays::{Candidate, Relay, Relays};
pub use replay::ReplayForm;
pub use replay_maps::ReplayMaps;
pub use segments::{Begins, Segment, Segments};
pub use site::{Field, Flow, Length, Moment, Place, Site, Source, What, Whose};

#[cfg(test)]
mod tests;
