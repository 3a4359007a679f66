//! An instance of ftrace: its own events and buffers, invisible to other tracing
//! (`Documentation/trace/ftrace.rst`, "Instances").

use super::error::TracefsError;
use super::files::{INSTANCES, Tracefs};
use crate::kernel::sys::Watchdog;
use crate::util::Errno;

type Result<T> = std::result::Result<T, TracefsError>;

/// An instance `bpflab-PID`, or `bpflab-PID-N`.
///
/// It is removed, and its events are disabled, when the value is dropped. A watchdog process,
/// which this process's signals do not reach, does so if the process is killed.
#[derive(Debug)]
pub struct Instance<'a> {
    tracefs: &'a Tracefs,
    name: String,
    _watchdog: Watchdog,
}

impl<'a> Instance<'a> {
    /// Creates an instance with all events disabled.
    ///
    /// # Errors
    /// [`TracefsError::File`] if the kernel has no instances, or permissions are missing.
    pub fn create(tracefs: &'a Tracefs) -> Result<Self> {
        let instances = tracefs.open_folder(INSTANCES)?;
        let pid = std::process::id();
        let mut name = format!("bpflab-{pid}");
        let mut number = 0_u32;
        // The name may be taken by this process, or by a process of another pid namespace.
        let watchdog = loop {
            match Watchdog::make(&instances, &name) {
                Err(Errno::EEXIST) => {
                    number += 1;
                    name = format!("bpflab-{pid}-{number}");
                }
                made => break made,
            }
        };
        match watchdog {
            Ok(watchdog) => Ok(Self {
                tracefs,
                name,
                _watchdog: watchdog,
            }),
            Err(errno) => Err(TracefsError::File {
                path: format!("{INSTANCES}/{name}"),
                errno,
            }),
        }
    }

    /// The instance's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Limits all its events to these tasks.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn set_pids(&self, pids: &[u32]) -> Result<()> {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        self.write("set_event_pid", &pids.join(" "))
    }

    /// Limits an event to records that match a filter (`count > 4096`), or to none (`0`).
    ///
    /// # Errors
    /// [`TracefsError::File`], also for an invalid filter.
    pub fn set_filter(&self, group: &str, name: &str, filter: &str) -> Result<()> {
        self.write(&format!("events/{group}/{name}/filter"), filter)
    }

    /// Enables or disables an event.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn enable(&self, group: &str, name: &str, on: bool) -> Result<()> {
        let text = if on { "1" } else { "0" };
        self.write(&format!("events/{group}/{name}/enable"), text)
    }

    /// Clears the buffers.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn clear(&self) -> Result<()> {
        self.write("trace", "")
    }

    /// The number of events recorded since the instance was created or [cleared](Self::clear),
    /// including those that newer events have overwritten.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn recorded(&self) -> Result<u64> {
        let path = self.path("per_cpu");
        let mut recorded = 0;
        for cpu in self.tracefs.folders(&path)? {
            recorded += kept(&self.tracefs.read(&format!("{path}/{cpu}/stats"))?);
        }
        Ok(recorded)
    }

    fn path(&self, file: &str) -> String {
        format!("{INSTANCES}/{}/{file}", self.name)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        self.tracefs.write(&self.path(file), text)
    }
}

/// The events counted by one CPU's `stats`: those in the buffer and those overwritten.
fn kept(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(": "));
    let counts = lines.filter(|(key, _)| matches!(*key, "entries" | "overrun"));
    counts
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::shared::is_emulated;
    use crate::shared::{Need, skip};

    #[test]
    fn statistics_are_added() {
        let stats =
            "entries: 129\noverrun: 17\ncommit overrun: 3\nbytes: 6328\ndropped events: 2\n";
        assert_eq!(kept(stats), 146);
        assert_eq!(kept(""), 0);
    }

    #[test]
    fn an_instance_records_what_it_was_asked_for_and_is_gone() {
        if is_emulated() {
            return;
        }
        let made = Tracefs::open();
        let Ok(tracefs) = made.inspect_err(|error| skip(Need::Kernel, error)) else {
            return;
        };
        let instance = match Instance::create(&tracefs) {
            Ok(instance) => instance,
            Err(error) => return skip(Need::Kernel, error),
        };
        let name = instance.name().to_owned();
        assert!(tracefs.instances().unwrap().contains(&name));

        // This thread's id: only its writes are recorded.
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let pid = status.lines().find_map(|line| line.strip_prefix("Pid:"));
        let pid = pid.unwrap().trim().parse().unwrap();
        instance.set_pids(&[pid]).unwrap();
        let mut null = std::fs::File::create("/dev/null").unwrap();
        let mut writes = |count| (0..count).for_each(|_| null.write_all(b"1234567").unwrap());
        let event = ("syscalls", "sys_enter_write");
        instance.enable(event.0, event.1, true).unwrap();
        writes(100);
        // Writes to the instance's own files are recorded, too.
        let recorded = instance.recorded().unwrap();
        assert!((100..110).contains(&recorded), "{recorded}");
        instance.set_filter(event.0, event.1, "count == 7").unwrap();
        instance.clear().unwrap();
        writes(10);
        assert_eq!(instance.recorded().unwrap(), 10);
        instance.enable(event.0, event.1, false).unwrap();
        instance.clear().unwrap();
        writes(10);
        assert_eq!(instance.recorded().unwrap(), 0);
        let error = instance
            .set_filter(event.0, event.1, "nonsense(")
            .unwrap_err();
        assert!(matches!(error, TracefsError::File { .. }), "{error}");

        drop(instance);
        assert!(!tracefs.instances().unwrap().contains(&name));
    }
}
