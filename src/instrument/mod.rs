//! Programs instrumented to log their inputs and outputs.
//!
//! A program is *instrumented*: rewritten into one that does the same and writes a log. The
//! *recorded form* runs in the kernel and sends the log of each firing to user space. The
//! *replay form* has the same sites, takes its inputs from the world from the recorded log, and
//! writes a log of its own, to be compared byte by byte. Both are ordinary BPF programs: any
//! verifier judges them, any engine runs them, and the engine needs no hooks.
//!
//! A [`Site`] is an instruction of the original program that has an input from outside (a
//! helper's result and the memory it fills, a load from a map value or through a kernel
//! pointer) or an output to it (a store to a map value, a key passed to a helper). Accesses to
//! state private to the run are no sites: its stack, its context, which is copied at the start,
//! constants in frozen maps, ring-buffer records before they are submitted.
//!
//! A [`Firing`] is the record of one run of a recorded program: program, CPU, time, context,
//! return value, and a log of packed entries: the site's number in two bytes, then the site's
//! [fields](Site::fields). [`Plan::entries`] reads it.
//!
//! | file | contents |
//! |---|---|
//! | `plan` | the analysis of a program, from which both forms are made |
//! | `dataflow`, `liveness` | the kinds in registers and stack slots; live registers |
//! | `calls` | inputs and outputs of helpers and kfuncs, for both forms |
//! | `site`, `find` | the sites and their entries |
//! | `schema`, `fit` | the sites as a recording describes them, and those of another version |
//! | `unwritten`, `clear` | memory that both forms set to zero |
//! | `patch`, `frame` | inserting code, and room for it on the stack |
//! | `emit` | the code of an entry, for both forms |
//! | `record`, `context`, `follow` | the recorded form |
//! | `replay`, `recorded_inputs` | the replay form, and its code that reads the recorded log |
//! | `maps`, `replay_maps` | the maps that either adds, and their layout |
//! | `firing`, `entries` | the format of a firing and of its log |
//! | `relays` | which programs' firings may continue in which others by tail calls |
//! | `handover`, `segments` | the log entries of tail calls, and how such a log is read |
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
mod fit;
mod follow;
mod frame;
mod handover;
mod liveness;
mod maps;
mod patch;
mod plan;
mod record;
mod recorded_inputs;
mod relays;
mod replay;
mod replay_maps;
mod schema;
mod segments;
mod site;
mod unwritten;

pub use crate::analysis::CfgError;
pub use context::is_changing;
pub use entries::{Entries, Entry};
pub use error::{Damage, Damaged, Reason, SchemaError, Unrecordable};
pub use find::Jump;
pub use firing::{Firing, FiringFlags};
pub use maps::{RecordMaps, RecordOptions, RecordState};
pub use plan::Plan;
pub use relays::{Candidate, Relay, Relays};
pub use replay::ReplayForm;
pub use replay_maps::ReplayMaps;
pub use schema::{LoggedField, LoggedLocation, LoggedSite, SchemaSite};
pub use segments::{Begins, Segment, Segments};
pub use site::{AccessedState, Field, FieldLocation, Flow, Length, Moment, Site, What, Whose};

#[cfg(test)]
mod tests;
