//! A program that is attached.

use super::available::Needs;
use super::error::AttachError;
use super::point::AttachPoint;
use crate::kernel::error::{Command, KernelError};
use crate::kernel::loaded_program::LoadedProgram;
use crate::kernel::sys::{LinkFd, PerfFd, ProgFd, ProgramInfo};
use crate::kernel::usdt_specs::UsdtSpec;
use crate::util::Errno;

/// A program that is attached to a place in the running kernel, until this is dropped: at
/// the end of a scope, by a panic, or, since all that holds it are descriptors, by the end
/// of the process whichever way it comes.
#[derive(Debug)]
pub struct Attachment {
    // Dropped in this order: first what makes the program run.
    links: Vec<LinkFd>,
    events: Vec<PerfFd>,
    specs: Vec<UsdtSpec>,
    program: ProgFd,
    name: String,
    point: AttachPoint,
    before: ProgramInfo,
}

impl Attachment {
    /// Nothing yet.
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
        })
    }

    /// Gives the program to an event, and switches the event on.
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

    pub(super) fn keep_link(&mut self, link: LinkFd) {
        self.links.push(link);
    }

    /// Whether it has an event: not at places that take none, and not if all that it was
    /// for are gone.
    pub(super) const fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn keep_spec(&mut self, spec: UsdtSpec) {
        self.specs.push(spec);
    }

    pub(super) const fn program(&self) -> &ProgFd {
        &self.program
    }

    /// Where it is attached.
    #[must_use]
    pub const fn point(&self) -> &AttachPoint {
        &self.point
    }

    /// `count_write at tp/syscalls/sys_enter_write`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} at {}", self.name, self.point)
    }

    /// How often the program was skipped since it was attached: an event hit it, or another
    /// program of its hook, while that ran.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn missed(&self) -> Result<u64, KernelError> {
        let now = self.info()?;
        Ok(now.missed.saturating_sub(self.before.missed))
    }

    /// How often the program ran since it was attached, while somebody keeps
    /// [`RunStatistics`](crate::kernel::RunStatistics).
    ///
    /// # Errors
    /// What the kernel says.
    pub fn run_count(&self) -> Result<u64, KernelError> {
        let now = self.info()?;
        Ok(now.run_count.saturating_sub(self.before.run_count))
    }

    /// What the kernel tells of the program.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn info(&self) -> Result<ProgramInfo, KernelError> {
        let info = self.program.info();
        info.map_err(|errno| KernelError::new(Command::ObjGetInfo, self.describe(), errno))
    }

    /// The ids of all programs of all processes at this place, in the order in which they
    /// run: of tracepoints and probes of perf. Empty for other places.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn neighbours(&self) -> Result<Vec<u32>, KernelError> {
        /// `BPF_TRACE_MAX_PROGS`.
        const MOST: u32 = 64;
        let Some(event) = self.events.first() else {
            return Ok(Vec::new());
        };
        match event.query_bpf(MOST) {
            Ok(ids) => Ok(ids),
            // No tracepoint.
            Err(Errno::EINVAL) => Ok(Vec::new()),
            Err(errno) => {
                let object = self.point.to_string();
                Err(KernelError::new(Command::PerfRead, object, errno))
            }
        }
    }
}
