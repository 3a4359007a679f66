//! The files of tracefs (`Documentation/trace/events.rst`).

use std::ffi::CStr;
use std::io::{Read, Write};

use super::error::TracefsError;
use crate::kernel::sys::{Access, Folder, errno_of};
use crate::util::{Errno, nearest_first};
use crate::vm::events::{Format, Layout};

type Result<T> = std::result::Result<T, TracefsError>;

/// The usual mount points.
const MOUNT_POINTS: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];
/// `TRACEFS_MAGIC` (`include/uapi/linux/magic.h`).
const MAGIC: u64 = 0x7472_6163;
/// The folder with a folder per group, which has a folder per event.
const EVENTS: &str = "events";
/// The folder of instances.
pub(super) const INSTANCES: &str = "instances";
/// How many similar names an error lists.
const SIMILAR: usize = 3;

/// The kernel's tracing file system.
///
/// If it is not mounted, it is mounted for this value only: the mount has no path, and is
/// removed when the value is dropped or the process ends.
///
/// ```no_run
/// use bpflab::kernel::tracefs::Tracefs;
///
/// let tracefs = Tracefs::open()?;
/// let id = tracefs.tracepoint_id("sched", "sched_switch")?;
/// let layout = tracefs.format("sched", "sched_switch")?;
/// println!("event {id}: prev_pid at {:?}", layout.offset("prev_pid"));
/// # Ok::<(), bpflab::kernel::tracefs::TracefsError>(())
/// ```
#[derive(Debug)]
pub struct Tracefs {
    root: Folder,
    private: bool,
}

impl Tracefs {
    /// Opens a mounted and readable tracefs, or mounts it privately.
    ///
    /// # Errors
    /// [`TracefsError::Unavailable`].
    pub fn open() -> Result<Self> {
        let root = MOUNT_POINTS.into_iter().find_map(usable);
        if let Some(root) = root {
            let private = false;
            return Ok(Self { root, private });
        }
        match Folder::mount(c"tracefs") {
            Ok(root) => Ok(Self {
                root,
                private: true,
            }),
            Err(errno) => Err(TracefsError::Unavailable { errno }),
        }
    }

    /// Whether it is mounted for this value only.
    #[must_use]
    pub const fn is_private(&self) -> bool {
        self.private
    }

    /// All events that can be attached to, as group and name, in the kernel's order. The
    /// tracers' own records (group `ftrace`) are not included.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn events(&self) -> Result<Vec<(String, String)>> {
        let text = self.read("available_events")?;
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs
            .map(|(group, name)| (group.to_owned(), name.to_owned()))
            .collect())
    }

    /// The groups of events, sorted.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn groups(&self) -> Result<Vec<String>> {
        self.folders(EVENTS)
    }

    /// The events of a group, sorted.
    ///
    /// # Errors
    /// [`TracefsError::NoEvent`] if there is no such group.
    pub fn group(&self, group: &str) -> Result<Vec<String>> {
        if !is_name(group) {
            return Err(self.no_event(group, "*"));
        }
        self.folders(&format!("{EVENTS}/{group}"))
            .map_err(|error| self.explain(error, group, "*"))
    }

    /// The instances of ftrace, sorted (`Documentation/trace/ftrace.rst`).
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn instances(&self) -> Result<Vec<String>> {
        self.folders(INSTANCES)
    }

    /// The id of a tracepoint for `perf_event_open`.
    ///
    /// # Errors
    /// [`TracefsError::NoEvent`] if it does not exist, [`TracefsError::File`] without the
    /// permission to read it.
    pub fn tracepoint_id(&self, group: &str, name: &str) -> Result<u32> {
        let text = self.event_file(group, name, "id")?;
        text.trim().parse().map_err(|_| TracefsError::Content {
            path: format!("{EVENTS}/{group}/{name}/id"),
            problem: format!("not a number: `{}`", text.trim()),
        })
    }

    /// The layout of an event's records.
    ///
    /// # Errors
    /// As of [`tracepoint_id`](Self::tracepoint_id), and [`TracefsError::Format`].
    pub fn format(&self, group: &str, name: &str) -> Result<Layout> {
        Ok(self.format_file(group, name)?.layout)
    }

    /// The `format` file of an event, parsed: the layout and the declared types.
    ///
    /// # Errors
    /// As of [`format`](Self::format).
    pub fn format_file(&self, group: &str, name: &str) -> Result<Format> {
        let text = self.format_text(group, name)?;
        Ok(Format::parse(group, &text)?)
    }

    /// The `format` file of an event, which [`Format::parse`] reads on any machine.
    ///
    /// # Errors
    /// As of [`tracepoint_id`](Self::tracepoint_id).
    pub fn format_text(&self, group: &str, name: &str) -> Result<String> {
        self.event_file(group, name, "format")
    }

    /// Reads a file.
    pub(in crate::kernel) fn read(&self, path: &str) -> Result<String> {
        let mut text = Vec::new();
        let read = self.root.file(path, Access::Read).and_then(|mut file| {
            let read = file.read_to_end(&mut text);
            read.map_err(|error| errno_of(&error))
        });
        match read {
            Ok(_) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(errno) => Err(file_error(path, errno)),
        }
    }

    /// Writes to a file; the kernel reads a command from a single write.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let written = self.root.file(path, Access::Write).and_then(|mut file| {
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| errno_of(&error))
        });
        written.map_err(|errno| file_error(path, errno))
    }

    /// Opens a folder.
    pub(super) fn open_folder(&self, path: &str) -> Result<Folder> {
        let folder = self.root.folder(path);
        folder.map_err(|errno| file_error(path, errno))
    }

    /// The names of the folders in a folder, sorted.
    pub(super) fn folders(&self, path: &str) -> Result<Vec<String>> {
        let names = self.root.folder(path).and_then(|folder| folder.folders());
        names.map_err(|errno| file_error(path, errno))
    }

    fn event_file(&self, group: &str, name: &str, file: &str) -> Result<String> {
        if !is_name(group) || !is_name(name) {
            return Err(self.no_event(group, name));
        }
        self.read(&format!("{EVENTS}/{group}/{name}/{file}"))
            .map_err(|error| self.explain(error, group, name))
    }

    /// Turns a missing file into a missing event.
    fn explain(&self, error: TracefsError, group: &str, name: &str) -> TracefsError {
        match error {
            TracefsError::File {
                errno: Errno::ENOENT,
                ..
            } => self.no_event(group, name),
            error => error,
        }
    }

    fn no_event(&self, group: &str, name: &str) -> TracefsError {
        let events = self.events().unwrap_or_default().into_iter();
        let names = events.map(|(group, name)| format!("{group}/{name}"));
        let mut similar = nearest_first(&format!("{group}/{name}"), names.collect());
        similar.truncate(SIMILAR);
        TracefsError::NoEvent {
            group: group.to_owned(),
            name: name.to_owned(),
            similar,
        }
    }
}

/// The root of a tracefs if it is mounted at this path and readable.
fn usable(path: &CStr) -> Option<Folder> {
    let root = Folder::open(path).ok()?;
    let readable = root.magic() == Ok(MAGIC) && root.folder(EVENTS).is_ok();
    readable.then_some(root)
}

/// Whether it is the name of one folder, which does not lead out of `events`.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\0'])
}

fn file_error(path: &str, errno: Errno) -> TracefsError {
    TracefsError::File {
        path: path.to_owned(),
        errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{Need, skip};

    /// Tracefs, or why the test is skipped.
    fn tracefs() -> Option<Tracefs> {
        let opened = Tracefs::open();
        opened.inspect_err(|error| skip(Need::Kernel, error)).ok()
    }

    #[test]
    fn events_have_numbers_and_formats() {
        let Some(tracefs) = tracefs() else { return };
        let id = tracefs.tracepoint_id("sched", "sched_switch").unwrap();
        let format = tracefs.format_file("sched", "sched_switch").unwrap();
        assert_eq!(format.id, Some(id));
        let layout = tracefs.format("sched", "sched_switch").unwrap();
        assert_eq!(layout.offset("prev_comm"), Some(8));
        assert!(tracefs.groups().unwrap().contains(&"irq".to_owned()));
        let irq = tracefs.group("irq").unwrap();
        assert!(irq.contains(&"softirq_entry".to_owned()), "{irq:?}");
        let all = tracefs.events().unwrap();
        assert!(all.len() > 500);
        assert!(all.iter().all(|(group, _)| group != "ftrace"));
        // A private mount is not listed.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let seen = mounts.lines().any(|line| line.contains(" tracefs "));
        assert!(tracefs.is_private() || seen);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let Some(tracefs) = tracefs() else { return };
        let error = tracefs.tracepoint_id("irq", "softirq_entri").unwrap_err();
        let TracefsError::NoEvent { similar, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(similar[0], "irq/softirq_entry");
        for (group, name) in [("..", "x"), ("irq", "../sched/sched_switch"), ("", "")] {
            let error = tracefs.format_text(group, name).unwrap_err();
            assert!(matches!(error, TracefsError::NoEvent { .. }), "{error}");
        }
        let error = tracefs.group("irk").unwrap_err();
        assert!(matches!(error, TracefsError::NoEvent { .. }), "{error}");
    }
}
