//! The report of a replay, as text and JSON.

mod json;
mod text;
mod view;
mod words;

#[cfg(test)]
mod tests;

#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) use json::{map_json, output_json, program_json};
pub(super) use text::Explained;
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(super) use text::{said_of_map, said_of_output, said_of_program};
pub use view::ReplayView;
