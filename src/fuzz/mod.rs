//! Fuzzing campaigns: programs from strategies, judged by oracles. Contains the bodies of the
//! fuzz targets, too.
//!
//! [`Campaign`] makes candidates, has each judged by the oracles of its options, and reduces
//! the programs that an oracle objects to. A candidate depends on the seed and its number
//! only, so any of them can be made again.
//!
//! | file | what |
//! |---|---|
//! | `random` | random numbers |
//! | `inputs` | events and map contents |
//! | `strategy`, `seeds` | the ways of making programs, and what they are made from |
//! | `candidate` | a program with its inputs |
//! | `aimed` | programs that aim at what verifiers get wrong |
//! | `listing`, `mutate` | a program with labels, and small changes to it |
//! | `oracle`, `problem` | the oracles; what one of them objects to |
//! | `judge`, `known` | applies the oracles to a candidate; what Linux itself does |
//! | `runs`, `values`, `sameness`, `round_trip` | the oracles that need no kernel |
//! | `other_build`, `answer` | engines for another architecture: both sides of a pipe |
//! | `rebuilt` | two builds of one source |
//! | `recorded` | recordings that are written and read |
//! | `verdicts`, `kernel` | two verdicts and their differences; the running kernel's |
//! | `claims` | what the kernel's log claims about registers |
//! | `reduce` | removes what a problem does not need |
//! | `campaign`, `counts`, `finding` | the threads of a campaign, its progress and findings |
//! | `case` | findings as cases |
//! | `targets`, `corpus` | the bodies of the fuzz targets, and inputs to begin with |

mod aimed;
mod answer;
mod campaign;
mod candidate;
mod case;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod claims;
mod corpus;
mod counts;
mod finding;
mod inputs;
mod judge;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel;
mod known;
mod listing;
mod mutate;
mod oracle;
mod other_build;
mod pointers;
mod problem;
mod random;
mod rebuilt;
mod recorded;
mod reduce;
mod round_trip;
mod runs;
mod sameness;
mod seeds;
mod strategy;
pub mod targets;
mod values;
mod verdicts;

pub use answer::answer;
pub use campaign::{Campaign, CampaignOptions, Event as CampaignEvent, Summary};
pub use candidate::Candidate;
pub use case::{FuzzCase, save_case, write_case};
pub use corpus::write_corpus;
pub use counts::Counts;
pub use finding::Finding;
pub use inputs::Inputs;
pub use judge::Judge;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use kernel::{Compared, compare, options as kernel_options};
pub use listing::{Item, Label, Listing};
pub use mutate::{Mutant, mutate, with_other_map};
pub use oracle::Oracle;
pub use other_build::{OtherBuild, OtherBuildError};
pub use problem::Problem;
pub use random::Random;
pub use rebuilt::{Rebuilt, compare_builds};
pub use reduce::reduce;
pub use runs::fault;
pub use seeds::Seeds;
pub use strategy::Strategy;
pub use verdicts::{Both, Difference, Ours, template};
