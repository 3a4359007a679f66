//! What a recording says of itself after everything has happened. JSON in the file, as
//! the [header](super::Header) is.

use serde::{Deserialize, Serialize};

/// The last block. A file that has none was cut off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// What the recorder says.
    pub summary: Summary,
    /// How much there is in the file; a [`Recording`](super::Recording) has counted, too,
    /// and gives no end whose totals are wrong.
    pub totals: Totals,
}

/// How recording ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Why.
    pub ended: Ended,
    /// Nanoseconds since the [start](super::Start).
    pub duration: u64,
    /// Of each program what the kernel counted.
    pub programs: Vec<ProgramTotal>,
    /// Of each CPU what the kernel counted.
    pub cpus: Vec<CpuTotal>,
}

/// Why recording ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ended {
    /// The command did.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended the command.
    Killed {
        /// Its number.
        signal: i32,
    },
    /// The time that was given was over.
    Duration,
    /// The recorder was asked to by a signal.
    Interrupted {
        /// Its number.
        signal: i32,
    },
    /// A reason that this version does not know, or none was said.
    #[default]
    #[serde(other)]
    Other,
}

/// What the kernel counted of a program. Fewer firings in the file than here mean a loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramTotal {
    /// Its number in firings.
    pub program: u32,
    /// How many firings began that the filter let in, if it was counted.
    pub firings: Option<u64>,
    /// How many times it was not run since the CPU was in another program
    /// (`recursion_misses` of `bpf_prog_info`).
    pub missed: u64,
}

/// What the kernel counted on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTotal {
    /// The CPU.
    pub cpu: u32,
    /// The sequence number that its next firing would have had: where it is larger than
    /// that after the last firing in the file, the last ones are missing.
    pub sequence: u64,
}

/// How much there is in a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// What was lost, of all [causes](super::Cause) that leave a gap.
    pub lost: u64,
}
