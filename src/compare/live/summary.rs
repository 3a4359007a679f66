//! The result of a session.

use std::process::ExitStatus;
use std::time::Duration;

use super::programs::LeftOut;
use crate::compare::recording::{self, Ended, How, Loss, Totals};

/// The result of a session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// The command's exit status; none if there was no command.
    pub status: Option<ExitStatus>,
    /// From the command's start to the last program's detaching.
    pub duration: Duration,
    /// Whether all processes were recorded.
    pub all: bool,
    /// The programs that ran.
    pub programs: Vec<ProgramSummary>,
    /// The programs that did not run.
    pub left_out: Vec<LeftOut>,
    /// The bare events.
    pub events: Vec<EventSummary>,
    /// Totals of the recording.
    pub totals: Totals,
    /// Losses by cause, without runs that the kernel skipped, which
    /// [programs](ProgramSummary::missed) have.
    pub losses: Vec<Loss>,
    /// Child processes that were not followed, as there were too many at a time.
    pub unfollowed: u64,
    /// Bytes of the recording.
    pub file_bytes: u64,
    /// Bytes of memory between kernel and recorder.
    pub buffer_bytes: u64,
}

/// A program that ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// Its number in firings.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its attach target, in words.
    pub attach: String,
    /// How it was recorded, or why not.
    pub how: How,
    /// Whether it runs in other processes than the command's, too: an iterator, or a program for
    /// the packets of a device or for a cgroup.
    pub anywhere: bool,
    /// Its firings in the recording.
    pub firings: u64,
    /// How often the kernel skipped it, as the CPU was in another program.
    pub missed: u64,
}

/// A bare event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSummary {
    /// `group/name`.
    pub name: String,
    /// Its samples in the recording.
    pub samples: u64,
    /// Its samples that were lost, as the buffer was full.
    pub lost: u64,
}

impl Summary {
    /// The programs that ran for more than the command and its children, in words: empty, or
    /// `, except sent (in any process)`.
    #[must_use]
    pub fn except(&self) -> String {
        let programs = self.programs.iter().filter(|program| program.anywhere);
        let names: Vec<_> = programs.map(|program| program.name.as_str()).collect();
        match names.as_slice() {
            [] => String::new(),
            names => format!(", except {} (in any process)", names.join(", ")),
        }
    }

    /// Firings and samples in the recording.
    #[must_use]
    pub const fn recorded(&self) -> u64 {
        self.totals.firings + self.totals.samples
    }

    /// Lost firings, samples and outputs, and processes that were not followed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.count).sum::<u64>() + self.unfollowed
    }

    /// Firings and samples per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let recorded = self.recorded() as f64;
            recorded / seconds
        } else {
            0.0
        }
    }

    /// The summary in the end of the recording.
    pub(super) fn end(&self, cpus: Vec<recording::CpuTotal>) -> recording::Summary {
        let programs = self.programs.iter().map(|program| recording::ProgramTotal {
            program: program.number,
            firings: None,
            missed: program.missed,
        });
        recording::Summary {
            ended: self.ended,
            duration: u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX),
            programs: programs.collect(),
            cpus,
        }
    }
}
