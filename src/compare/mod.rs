//! Runs the same [`Subject`] on any engine (the interpreters, machine code, the running kernel)
//! and compares the results; records firings in a kernel and replays them.
//!
//! ```
//! use bpflab::compare::{Engine, Ours, Subject, difference};
//! use bpflab::harness::EngineKind;
//! use bpflab::r#gen::{Choices, Options, make};
//!
//! let subject = Subject::from(make(&mut Choices::seeded(1, 200), Options::default()));
//! let mut engines = [EngineKind::Checked, EngineKind::Jit].map(Ours::new);
//! let [checked, jit] = engines.each_mut().map(|engine| engine.run(&subject).unwrap());
//! assert_eq!(difference(&checked, &jit), None);
//! ```

mod answer;
mod error;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod generated;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub mod live;
mod ours;
pub mod recording;
pub mod replay;
mod subject;

pub use answer::{Answer, Details, Difference, MapContents, difference};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub use kernel::Kernel;
pub use ours::Ours;
pub use subject::{Engine, Subject, Unable};
