//! What a live session is told.

use std::time::Duration;

use super::error::LiveError;
use crate::kernel::process::Stop;

/// How a live session is set.
#[derive(Debug, Clone, Default)]
pub struct LiveOptions {
    /// The programs of the object to be recorded; empty for all that it loads.
    pub programs: Vec<String>,
    /// Record what happens to every process, not only to the command and its children.
    pub all: bool,
    /// Follow a process that is running already, and its children.
    pub pid: Option<u32>,
    /// Bytes of the buffer between kernel and recorder, a power of two; otherwise as many
    /// as [`default_buffer`] says.
    pub buffer: Option<u32>,
    /// End after so long, whatever the command does.
    pub duration: Option<Duration>,
    /// End when somebody says so.
    pub stop: Option<Stop>,
    /// How often programs of type `perf_event` run on each CPU, in times a second.
    pub frequency: Option<u64>,
}

impl LiveOptions {
    /// The size of the buffer.
    pub(super) fn buffer(&self) -> Result<u32, LiveError> {
        let buffer = self.buffer.unwrap_or_else(default_buffer);
        if buffer.is_power_of_two() && BUFFER.contains(&buffer) {
            Ok(buffer)
        } else {
            Err(LiveError::Buffer(buffer.into()))
        }
    }

    /// The process that is to be followed is there.
    pub(super) fn check_process(&self) -> Result<(), LiveError> {
        match self.pid {
            Some(pid) => process_is_there(pid, std::fs::read_to_string),
            None => Ok(()),
        }
    }

    /// Whether there is something to record without a command, and an end to it.
    pub(super) fn can_watch(&self) -> Result<(), LiveError> {
        let why = if self.pid.is_none() && !self.all {
            "neither a command nor a process, and not everybody"
        } else if self.duration.is_none() && self.stop.is_none() {
            "it would never end"
        } else {
            return Ok(());
        };
        Err(LiveError::Nothing(why.to_owned()))
    }
}

/// Whether there is a process of this number that still runs, as `/proc/PID/status` tells
/// (proc(5)); `read` reads a file.
fn process_is_there(
    pid: u32,
    read: impl FnOnce(String) -> std::io::Result<String>,
) -> Result<(), LiveError> {
    let none = |why: String| LiveError::NoProcess { pid, why };
    let status = read(format!("/proc/{pid}/status")).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => none("it does not exist".to_owned()),
        _ => none(format!("/proc/{pid}/status can't be read: {error}")),
    })?;
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    match field("Tgid:").and_then(|tgid| tgid.parse::<u32>().ok()) {
        Some(tgid) if tgid != pid => return Err(none(format!("it is a thread of process {tgid}"))),
        _ => {}
    }
    match field("State:").and_then(|state| state.chars().next()) {
        Some('Z' | 'X') => Err(none("it has ended already".to_owned())),
        _ => Ok(()),
    }
}

/// Limits of a ring buffer: a page, and what its positions can count.
const BUFFER: std::ops::RangeInclusive<u32> = 4 << 10..=1 << 30;

/// The buffer that is used if none is asked for: 64 MiB, which is more than half a second
/// of 500,000 events; but no more than a 32nd of the memory that is free, and no less
/// than 1 MiB.
#[must_use]
pub fn default_buffer() -> u32 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    fitting(free(&memory))
}

/// Bytes of memory that could be used (`MemAvailable` in `/proc/meminfo`).
fn free(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The power of two within these limits.
fn fitting(free: Option<u64>) -> u32 {
    const LEAST: u32 = 1 << 20;
    const MOST: u32 = 64 << 20;
    let share = free.map_or(u64::from(MOST), |free| free / 32);
    let share = u32::try_from(share).unwrap_or(MOST).clamp(LEAST, MOST);
    // Rounded down.
    1 << share.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_followed_has_to_run() {
        let told = |status: &'static str| {
            let told = process_is_there(42, |path| {
                assert_eq!(path, "/proc/42/status");
                match status {
                    "" => Err(std::io::ErrorKind::NotFound.into()),
                    status => Ok(status.to_owned()),
                }
            });
            told.map_err(|error| error.to_string())
        };
        let refused = |why| {
            Err(format!(
                "no process 42 to follow: {why}; name one that runs"
            ))
        };
        assert_eq!(told("Name:\tsh\nState:\tS (sleeping)\nTgid:\t42\n"), Ok(()));
        assert_eq!(told(""), refused("it does not exist"));
        assert_eq!(
            told("State:\tS (sleeping)\nTgid:\t41\n"),
            refused("it is a thread of process 41")
        );
        assert_eq!(
            told("State:\tZ (zombie)\nTgid:\t42\n"),
            refused("it has ended already")
        );
        let nobody = LiveOptions {
            pid: Some(u32::MAX),
            ..LiveOptions::default()
        };
        assert!(nobody.check_process().is_err());
        assert!(LiveOptions::default().check_process().is_ok());
    }

    #[test]
    fn the_buffer_fits_the_machine() {
        let gib = |number: u64| Some(number << 30);
        assert_eq!(fitting(None), 64 << 20);
        assert_eq!(fitting(gib(24)), 64 << 20);
        assert_eq!(fitting(gib(1)), 32 << 20);
        assert_eq!(fitting(Some(700 << 20)), 16 << 20);
        assert_eq!(fitting(Some(0)), 1 << 20);
        assert_eq!(
            free("MemTotal: 2 kB\nMemAvailable:       3 kB\n"),
            Some(3072)
        );
        assert_eq!(free("MemTotal: 2 kB\n"), None);
        assert!(default_buffer().is_power_of_two() && BUFFER.contains(&default_buffer()));
    }
}
