//! Options of a live session.

use std::time::Duration;

use super::error::LiveError;
use crate::kernel::process::Stop;
use crate::util::with;

/// Options of a live session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LiveOptions {
    /// Names of the programs to record; empty for all that are autoloaded.
    pub programs: Vec<String>,
    /// Record all processes, not only the command and its children.
    pub all: bool,
    /// Follow a process that is running already, and its children.
    pub pid: Option<u32>,
    /// Bytes of the buffer between kernel and recorder, a power of two; by default
    /// [`default_buffer`].
    pub buffer: Option<u32>,
    /// End after this time, even if the command still runs.
    pub duration: Option<Duration>,
    /// End when this is triggered.
    pub stop: Option<Stop>,
    /// How many times a second programs of type `perf_event` run on each CPU.
    pub frequency: Option<u64>,
}

impl LiveOptions {
    with! {
        with_all(all: bool);
        with_pid(pid: impl Into<Option<u32>>);
        with_buffer(buffer: impl Into<Option<u32>>);
        with_duration(duration: impl Into<Option<Duration>>);
        with_stop(stop: impl Into<Option<Stop>>);
        with_frequency(frequency: impl Into<Option<u64>>);
    }

    /// The same for the programs of these names.
    #[must_use]
    pub fn with_programs(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.programs = names.into_iter().map(Into::into).collect();
        self
    }

    /// The size of the buffer.
    pub(super) fn buffer(&self) -> Result<u32, LiveError> {
        let buffer = self.buffer.unwrap_or_else(default_buffer);
        if buffer.is_power_of_two() && BUFFER.contains(&buffer) {
            Ok(buffer)
        } else {
            Err(LiveError::Buffer(buffer.into()))
        }
    }

    /// An error if the process to follow does not exist.
    pub(super) fn check_process(&self) -> Result<(), LiveError> {
        match self.pid {
            Some(pid) => process_is_there(pid, std::fs::read_to_string),
            None => Ok(()),
        }
    }

    /// An error if a session without a command has no process to record or no end.
    pub(super) fn can_watch(&self) -> Result<(), LiveError> {
        let why = if self.pid.is_none() && !self.all {
            "there is no command, no process to follow, and not all processes are recorded"
        } else if self.duration.is_none() && self.stop.is_none() {
            "there is no command, duration or signal to end the recording"
        } else {
            return Ok(());
        };
        Err(LiveError::Nothing(why.to_owned()))
    }
}

/// An error unless a process with this id runs, by `/proc/PID/status` (proc(5)); `read` reads a
/// file.
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

/// Limits of a ring buffer's size: a page to 1 GiB.
const BUFFER: std::ops::RangeInclusive<u32> = 4 << 10..=1 << 30;

/// The default size of the buffer in bytes: 64 MiB, enough for more than half a second at
/// 500,000 events a second; at most 1/32 of the available memory, at least 1 MiB.
#[must_use]
pub fn default_buffer() -> u32 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    fitting(free(&memory))
}

/// Bytes of available memory (`MemAvailable` in `/proc/meminfo`).
fn free(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The largest power of two within the limits.
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
        let checked = |status: &'static str| {
            let checked = process_is_there(42, |path| {
                assert_eq!(path, "/proc/42/status");
                match status {
                    "" => Err(std::io::ErrorKind::NotFound.into()),
                    status => Ok(status.to_owned()),
                }
            });
            checked.map_err(|error| error.to_string())
        };
        let refused = |why| {
            Err(format!(
                "no process 42 to follow: {why}; name one that runs"
            ))
        };
        assert_eq!(
            checked("Name:\tsh\nState:\tS (sleeping)\nTgid:\t42\n"),
            Ok(())
        );
        assert_eq!(checked(""), refused("it does not exist"));
        assert_eq!(
            checked("State:\tS (sleeping)\nTgid:\t41\n"),
            refused("it is a thread of process 41")
        );
        assert_eq!(
            checked("State:\tZ (zombie)\nTgid:\t42\n"),
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
