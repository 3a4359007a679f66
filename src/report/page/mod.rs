//! Pages: one HTML file each that needs nothing else, and pictures as SVG.

mod chart;
mod comparison;
mod compiled;
mod markup;
mod path;
mod program;
mod run;
mod skeleton;
mod state;
mod timeline;
mod verdicts;

pub use chart::{Picture, pictures};
pub use comparison::ReplayPage;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) use comparison::{differences, write_table, write_verdict};
pub(super) use compiled::is_compiled_text;
pub(super) use markup::escaped;
pub use run::RunPage;
pub(super) use skeleton::document;
pub use timeline::Timeline;
pub use verdicts::{Judged, VerdictPage};
