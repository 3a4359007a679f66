//! The last block of a recording: how recording ended, and totals. It is JSON in the file, as
//! the [header](super::Header) is.

use serde::{Deserialize, Serialize};

/// The last block. A file without one was cut off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct End {
    /// The recorder's summary.
    pub summary: Summary,
    /// How much the file has. A [`Recording`](super::Recording) counts, too, and wrong totals
    /// are an error.
    pub totals: Totals,
}

/// How recording ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// Nanoseconds since the [start](super::Start).
    pub duration: u64,
    /// The kernel's counts for each program.
    pub programs: Vec<ProgramTotal>,
    /// The kernel's counts for each CPU.
    pub cpus: Vec<CpuTotal>,
}

/// Why recording ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// The command exited.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended the command.
    Killed {
        /// Its number.
        signal: i32,
    },
    /// The given duration was over.
    Duration,
    /// A signal stopped the recorder.
    Interrupted {
        /// Its number.
        signal: i32,
    },
    /// A reason that this version does not know, or none was given.
    #[default]
    #[serde(other)]
    Other,
}

/// The kernel's counts for a program. Fewer firings in the file mean a loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProgramTotal {
    /// Its number in firings.
    pub program: u32,
    /// How many firings passed the filter, if that was counted.
    pub firings: Option<u64>,
    /// How often the kernel skipped it, as the CPU was in another program (`recursion_misses`
    /// of `bpf_prog_info`).
    pub missed: u64,
}

/// The kernel's count for a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CpuTotal {
    /// The CPU.
    pub cpu: u32,
    /// The sequence number that its next firing would have had. If it is more than one above
    /// that of the last firing in the file, firings at the end are missing.
    pub sequence: u64,
}

impl CpuTotal {
    /// The count for a CPU.
    #[must_use]
    pub const fn new(cpu: u32, sequence: u64) -> Self {
        Self { cpu, sequence }
    }
}

/// How much a recording has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Totals {
    /// Firings.
    pub firings: u64,
    /// Their bytes, as they came out of the ring.
    pub firing_bytes: u64,
    /// Map entries, before and after.
    pub entries: u64,
    /// Outputs of programs.
    pub outputs: u64,
    /// Samples of bare events.
    pub samples: u64,
    /// What was lost by all [causes](super::Cause) that leave a gap.
    pub lost: u64,
}
