//! The engines as one: the interpreters, machine code and the running kernel run the
//! same [`Subject`], and what came of it can be held side by side.
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
