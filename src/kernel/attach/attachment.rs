//! A program that is attached.

use std::fs::File;
use std::io::{ErrorKind, Read};

use super::available::Needs;
use super::error::AttachError;
use super::point::{AttachPoint, AttachTarget};
use crate::kernel::error::{Command, KernelError};
use crate::kernel::loaded_program::LoadedProgram;
use crate::kernel::sys::{LinkFd, PerfFd, ProgFd, ProgramInfo, errno_of};
use crate::kernel::usdt_specs::UsdtSpec;
use crate::util::Errno;

/// A program attached in the running kernel until this value is dropped: at the end of a scope
/// or by a panic. The kernel detaches it when the process ends, too, since only file
/// descriptors keep it attached.
#[derive(Debug)]
pub struct Attachment {
    // Dropped in this order: links and events first, so that the program no longer runs.
    links: Vec<LinkFd>,
    events: Vec<PerfFd>,
    specs: Vec<UsdtSpec>,
    program: ProgFd,
    name: String,
    point: AttachPoint,
    before: ProgramInfo,
    note: Option<String>,
}

impl Attachment {
    /// An attachment without links and events.
    pub(super) fn new(program: &LoadedProgram, point: &AttachPoint) -> Result<Self, AttachError> {
        let info = |errno| KernelError::new(Command::ObjGetInfo, program.name(), errno);
        let program_fd = program.fd().try_clone().map_err(info)?;
        Ok(Self {
            links: Vec::new(),
            events: Vec::new(),
            specs: Vec::new(),
            before: program_fd.info().map_err(info)?,
            program: program_fd,
            name: program.name().to_owned(),
            point: point.clone(),
            note: None,
        })
    }

    /// Attaches the program to an event and enables the event.
    pub(super) fn give(&mut self, event: PerfFd, cookie: u64) -> Result<(), AttachError> {
        let failed = |command| {
            let object = format!("program {} at {}", self.name, self.point);
            move |errno| KernelError::new(command, object, errno)
        };
        if self.point.is_link() || cookie != 0 {
            let link = LinkFd::perf_event(&self.program, &event, cookie);
            let refused = Needs::PerfLink.refused(&self.point, Command::LinkCreate);
            self.links.push(link.map_err(refused)?);
        } else {
            let set = event.set_bpf(&self.program);
            set.map_err(failed(Command::PerfSetBpf))?;
        }
        let on = event.enable();
        on.map_err(failed(Command::PerfControl))?;
        self.events.push(event);
        Ok(())
    }

    /// Says how it was attached, if its point does not.
    pub(super) fn note(&mut self, note: String) {
        self.note = Some(note);
    }

    /// The attach point in words, and how it was attached if the point does not say it.
    pub(crate) fn place(&self) -> String {
        match &self.note {
            Some(note) => format!("{} ({note})", self.point),
            None => self.point.to_string(),
        }
    }

    pub(super) fn keep_link(&mut self, link: LinkFd) {
        self.links.push(link);
    }

    /// Whether it has events. It has none if the target needs none, or if all threads or CPUs
    /// it was for are gone.
    pub(super) const fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn keep_spec(&mut self, spec: UsdtSpec) {
        self.specs.push(spec);
    }

    pub(super) const fn program(&self) -> &ProgFd {
        &self.program
    }

    /// The attach point.
    #[must_use]
    pub const fn point(&self) -> &AttachPoint {
        &self.point
    }

    /// Runs an iterator over all of its objects, and returns what the program printed. Other
    /// programs print nothing.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn iterate(&self) -> Result<Vec<u8>, KernelError> {
        let failed = |command| {
            let object = self.describe();
            move |errno| KernelError::new(command, object, errno)
        };
        let mut text = Vec::new();
        if !matches!(self.point.place(), AttachTarget::Iterator(_)) {
            return Ok(text);
        }
        for link in &self.links {
            let file = link.iterate().map_err(failed(Command::IterCreate))?;
            read_all(file, &mut text).map_err(failed(Command::IterRead))?;
        }
        Ok(text)
    }

    /// `count_write at tp/syscalls/sys_enter_write`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} at {}", self.name, self.point)
    }

    /// How often the program was skipped since it was attached, because it or another program
    /// of its hook was running on that CPU.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn missed(&self) -> Result<u64, KernelError> {
        let now = self.info()?;
        Ok(now.missed.saturating_sub(self.before.missed))
    }

    /// How often the program ran since it was attached, counted while
    /// [`RunStatistics`](crate::kernel::RunStatistics) is enabled.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn run_count(&self) -> Result<u64, KernelError> {
        let now = self.info()?;
        Ok(now.run_count.saturating_sub(self.before.run_count))
    }

    /// The kernel's information on the program.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn info(&self) -> Result<ProgramInfo, KernelError> {
        let info = self.program.info();
        info.map_err(|errno| KernelError::new(Command::ObjGetInfo, self.describe(), errno))
    }

    /// The ids of all programs attached to this event by any process, in the order in which
    /// they run: for tracepoints and perf probes. Empty for other targets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn neighbours(&self) -> Result<Vec<u32>, KernelError> {
        /// `BPF_TRACE_MAX_PROGS`.
        const MOST: u32 = 64;
        let Some(event) = self.events.first() else {
            return Ok(Vec::new());
        };
        match event.query_bpf(MOST) {
            Ok(ids) => Ok(ids),
            // Not a tracepoint.
            Err(Errno::EINVAL) => Ok(Vec::new()),
            Err(errno) => {
                let object = self.point.to_string();
                Err(KernelError::new(Command::PerfRead, object, errno))
            }
        }
    }
}

/// Reads an iterator to its end. The kernel returns `EAGAIN` when it has gone through many
/// objects without any text.
fn read_all(mut file: File, text: &mut Vec<u8>) -> Result<(), Errno> {
    loop {
        match file.read_to_end(text) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(errno_of(&error)),
        }
    }
}
