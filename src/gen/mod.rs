//! Programs made up for property tests and fuzzing: valid ones, over the whole
//! instruction set. No engine is in here.
//!
//! [`make`] draws from a row of bytes what a program does, instruction by instruction,
//! and keeps book of what each register and stack slot holds, so that the verifier
//! accepts nearly all that comes of it.
//!
//! ```
//! use bpflab::r#gen::{Choices, Options, make};
//!
//! let made = make(&mut Choices::seeded(1, 300), Options::default());
//! assert!(made.program.insns.len() > 20);
//! assert!(make(&mut Choices::new([]), Options::default()).others.is_empty());
//! ```
//!
//! | file | what |
//! |---|---|
//! | `choices` | the bytes that decide |
//! | `code` | instructions, jumps, labels |
//! | `state` | what registers and slots hold |
//! | `setting` | the program's type, its context, its functions |
//! | `maps` | the maps |
//! | `body` | a function in the making: what all steps need |
//! | `compute`, `branch`, `memory`, `look_up`, `packet`, `output`, `tracing`, `calls` | the steps |
//! | `function` | a whole function: its start, its steps, its end |
//! | `whole` | a program of several functions, and the programs that it jumps to |

mod body;
mod branch;
mod calls;
mod choices;
mod code;
mod compute;
mod function;
mod look_up;
mod maps;
mod memory;
mod options;
mod output;
mod packet;
mod setting;
mod state;
mod tracing;
mod whole;

pub use choices::Choices;
pub use options::Options;
pub use whole::{Made, TYPES, make, make_all};
