//! Generates programs for property tests and fuzzing: valid ones, over the whole
//! instruction set. Contains no engine.
//!
//! [`make`] draws a program's instructions from a sequence of bytes and tracks the contents
//! of each register and stack slot, so that the verifier accepts nearly all results.
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
//! | `choices` | the bytes that determine a program |
//! | `code` | instructions, jumps, labels |
//! | `state` | the contents of registers and slots |
//! | `context` | the accesses to its context that a program type allows |
//! | `setting` | the program's type, its context, its functions |
//! | `maps` | the maps |
//! | `kernel`, `hooks` | the types and functions of a kernel that a program can use, and where it attaches |
//! | `body` | a function being generated: the common state of all steps |
//! | `compute`, `branch`, `memory`, `look_up`, `packet`, `output`, `tracing`, `calls` | the steps |
//! | `objects`, `scopes` | the steps with kernel objects: typed pointers, kfuncs; references, sections, iterators, dynptrs |
//! | `function` | a whole function: its start, its steps, its end |
//! | `whole` | a program of several functions, and the targets of its tail calls |

mod body;
mod branch;
mod calls;
mod choices;
mod code;
mod compute;
mod context;
mod function;
mod hooks;
mod kernel;
mod look_up;
mod maps;
mod memory;
mod objects;
mod options;
mod output;
mod packet;
mod scopes;
mod setting;
mod state;
mod tracing;
mod whole;

pub use choices::Choices;
pub use kernel::KernelTypes;
pub use options::Options;
pub use whole::{Made, TYPES, make, make_all};
