//! The files of tracefs (`Documentation/trace/events.rst`), wherever it is to be had.

use std::ffi::CStr;
use std::io::{Read, Write};

use super::error::TracefsError;
use crate::kernel::sys::{Access, Folder, errno_of};
use crate::util::{Errno, nearest_first};
use crate::vm::events::{Format, Layout};

type Result<T> = std::result::Result<T, TracefsError>;

/// Where it usually is mounted.
const PLACES: [&CStr; 2] = [c"/sys/kernel/tracing", c"/sys/kernel/debug/tracing"];
/// `TRACEFS_MAGIC` (`include/uapi/linux/magic.h`).
const MAGIC: u64 = 0x7472_6163;
/// The folder with a folder for each group, in which each event has one.
const EVENTS: &str = "events";
/// The folder of instances.
pub(super) const INSTANCES: &str = "instances";
/// How many similar names an error tells.
const SIMILAR: usize = 3;

/// The kernel's tracing file system.
///
/// Where nobody mounted it, it is mounted for this value alone: there is no path to
/// it, and it is gone when the value is dropped, or the process killed.
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
    /// The one that is mounted and readable, or one of our own.
    ///
    /// # Errors
    /// [`TracefsError::Unavailable`].
    pub fn open() -> Result<Self> {
        let root = PLACES.into_iter().find_map(usable);
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

    /// Whether it is mounted for this value alone.
    #[must_use]
    pub const fn is_private(&self) -> bool {
        self.private
    }

    /// All events that something can attach to, as group and name, in the kernel's
    /// order. The records of the tracers themselves (group `ftrace`) are not among them.
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

    /// The groups of events, in order.
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn groups(&self) -> Result<Vec<String>> {
        self.folders(EVENTS)
    }

    /// The events of a group, in order.
    ///
    /// # Errors
    /// [`TracefsError::NoEvent`] where there is no such group.
    pub fn group(&self, group: &str) -> Result<Vec<String>> {
        if !is_name(group) {
            return Err(self.no_event(group, "*"));
        }
        self.folders(&format!("{EVENTS}/{group}"))
            .map_err(|error| self.explain(error, group, "*"))
    }

    /// The instances of ftrace, in order (`Documentation/trace/ftrace.rst`).
    ///
    /// # Errors
    /// [`TracefsError::File`].
    pub fn instances(&self) -> Result<Vec<String>> {
        self.folders(INSTANCES)
    }

    /// The number by which `perf_event_open` knows a tracepoint.
    ///
    /// # Errors
    /// [`TracefsError::NoEvent`] where there is none, [`TracefsError::File`] without the
    /// right to read it.
    pub fn tracepoint_id(&self, group: &str, name: &str) -> Result<u32> {
        let text = self.event_file(group, name, "id")?;
        text.trim().parse().map_err(|_| TracefsError::Content {
            path: format!("{EVENTS}/{group}/{name}/id"),
            problem: format!("`{}` is no number", text.trim()),
        })
    }

    /// How the records of an event are laid out.
    ///
    /// # Errors
    /// As of [`tracepoint_id`](Self::tracepoint_id), and [`TracefsError::Format`].
    pub fn format(&self, group: &str, name: &str) -> Result<Layout> {
        Ok(self.format_file(group, name)?.layout)
    }

    /// The same, with the types as they are declared.
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

    /// What stands in a file.
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

    /// Writes to a file. The kernel takes a command in one piece.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let written = self.root.file(path, Access::Write).and_then(|mut file| {
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| errno_of(&error))
        });
        written.map_err(|errno| file_error(path, errno))
    }

    /// A folder, by its descriptor.
    pub(super) fn open_folder(&self, path: &str) -> Result<Folder> {
        let folder = self.root.folder(path);
        folder.map_err(|errno| file_error(path, errno))
    }

    /// The names of the folders in a folder, in order.
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

    /// A file that isn't there, as an event that isn't.
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

/// The root of a tracefs that is mounted here and may be read.
fn usable(place: &CStr) -> Option<Folder> {
    let root = Folder::open(place).ok()?;
    let readable = root.magic() == Ok(MAGIC) && root.folder(EVENTS).is_ok();
    readable.then_some(root)
}

/// Whether it is the name of one folder: nothing leads out of `events`.
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
        // A mount of our own is seen by nobody.
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
