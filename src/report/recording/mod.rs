//! What is in a recording: `bpflab inspect` of one.

mod activity;
mod text;

#[cfg(test)]
mod tests;

pub use activity::{
    CpuActivity, EventActivity, LossRow, MapActivity, MapReading, ProgramActivity, ReadState,
    RecordingReport, ResourceRow,
};
