//! Errors of recording.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::compare::recording::WriteError;
use crate::isa::AsmError;
use crate::kernel::attach::AttachError;
use crate::kernel::tracefs::TracefsError;
use crate::kernel::tracepoints::CatalogueError;
use crate::kernel::{KernelError, NoVerdict};
use crate::object::ObjectError;
use crate::util::Errno;

/// Why nothing could be recorded, or a recording could not be finished.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// This machine or process can't record: what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// A program of the object can't be relocated.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A map can't be created, or the kernel gave no verdict on a program.
    #[error(transparent)]
    NoVerdict(#[from] NoVerdict),
    /// A command of `bpf(2)` failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A program can't be attached.
    #[error("{program}: {error}{}", since_absent(absent.as_deref()))]
    Attach {
        /// Its name.
        program: String,
        /// Why.
        error: AttachError,
        /// The file that its section names and that does not exist: the command's was used.
        absent: Option<PathBuf>,
    },
    /// The kernel's verifier rejects a program.
    #[error("{program}: rejected by the kernel: {message}")]
    Refused {
        /// Its name.
        program: String,
        /// The verifier's line.
        message: String,
    },
    /// A program can't be recorded here.
    #[error("{program}: {why}")]
    Program {
        /// Its name.
        program: String,
        /// Why.
        why: String,
    },
    /// There is nothing to record.
    #[error("nothing to record: {0}")]
    Nothing(String),
    /// Waiting for the command failed.
    #[error("can't wait for the command to end: {0}")]
    Waiting(io::Error),
    /// The command can't be started.
    #[error("{command}: can't be started: {error}")]
    Command {
        /// Its executable.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// Tracefs can't be read, or has no such event.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// Neither tracefs nor the kernel's types can be read.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// No tracepoint has this name.
    #[error("there is no tracepoint {name}{}", or_similar(.similar))]
    NoEvent {
        /// The name.
        name: String,
        /// Similar names.
        similar: Vec<String>,
    },
    /// The process to follow does not exist or has ended.
    #[error("no process {pid} to follow: {why}; name one that runs")]
    NoProcess {
        /// Its number.
        pid: u32,
        /// What is wrong with it.
        why: String,
    },
    /// A process can't be followed.
    #[error("can't follow process {process}: {errno}")]
    Follow {
        /// Its number.
        process: u32,
        /// What the kernel says.
        errno: Errno,
    },
    /// A ring buffer size that the kernel does not support.
    #[error("invalid ring buffer size {0}: use a power of two from 4096 to 1073741824 bytes")]
    Buffer(u64),
    /// A system call failed.
    #[error("{what}: {errno}")]
    System {
        /// Its purpose.
        what: &'static str,
        /// What the kernel says.
        errno: Errno,
    },
    /// A process that was forked meanwhile keeps programs attached.
    #[error(
        "programs still run after they were detached: a process that another thread forked \
         meanwhile still has copies of their descriptors"
    )]
    StillThere,
    /// The recording can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// bpflab's filter program does not assemble: a bug in bpflab.
    #[error("bpflab's filter program failed to assemble: {0}")]
    Own(#[from] AsmError),
}

impl LiveError {
    /// Whether recording would be possible with other rights or another kernel.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::NoVerdict(none) => none.is_unavailable(),
            Self::Tracefs(error) => error.is_unavailable(),
            Self::Catalogue(_) => true,
            Self::Attach { error, .. } => error.is_unavailable(),
            Self::Kernel(error) => error.is_unavailable(),
            Self::System { errno, .. } => *errno == Errno::EPERM,
            _ => false,
        }
    }

    pub(super) fn unavailable(why: impl Display) -> Self {
        Self::Unavailable(format!("not available here: {why}"))
    }

    pub(super) fn system(what: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { what, errno }
    }
}

fn or_similar(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        similar => format!("; similar: {}", similar.join(", ")),
    }
}

fn since_absent(absent: Option<&Path>) -> String {
    absent.map_or_else(String::new, |file| {
        let file = file.display();
        format!(" (in the command's own file, since {file} does not exist)")
    })
}
