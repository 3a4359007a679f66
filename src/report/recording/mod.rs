//! The contents of a recording: `bpflab inspect RECORDING`.

mod activity;
mod text;

#[cfg(test)]
mod tests;

pub use activity::{
    CpuActivity, EventActivity, LossRow, MapActivity, MapReading, ProgramActivity, ReadState,
    RecordingReport, ResourceRow,
};
