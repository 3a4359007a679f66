//! Why nothing could be recorded.

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

/// Why nothing could be recorded, or a recording not be finished.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// This machine or this process can't do it: what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// A program can't be taken out of the object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A map can't be made, or the kernel did not judge a program.
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
        /// The file that its section names and that is not there: the command's was taken.
        absent: Option<PathBuf>,
    },
    /// The kernel's verifier rejects a program.
    #[error("{program}: the kernel rejects it: {message}")]
    Refused {
        /// Its name.
        program: String,
        /// The verifier's line.
        message: String,
    },
    /// A program that can't be recorded here at all.
    #[error("{program}: {why}")]
    Program {
        /// Its name.
        program: String,
        /// Why.
        why: String,
    },
    /// There is nothing that could be recorded.
    #[error("nothing to record: {0}")]
    Nothing(String),
    /// The command's end can't be waited for.
    #[error("the command's end can't be waited for: {0}")]
    Waiting(io::Error),
    /// The command can't be started.
    #[error("{command}: can't be started: {error}")]
    Command {
        /// The program that it names.
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
    /// No tracepoint has such a name.
    #[error("there is no tracepoint {name}{}", or_similar(.similar))]
    NoEvent {
        /// The name.
        name: String,
        /// Names like it.
        similar: Vec<String>,
    },
    /// The process that is to be followed is not there.
    #[error("no process {pid} to follow: {why}; name one that runs")]
    NoProcess {
        /// Its number.
        pid: u32,
        /// What is wrong with it.
        why: String,
    },
    /// A process can't be followed.
    #[error("process {process} can't be followed: {errno}")]
    Follow {
        /// Its number.
        process: u32,
        /// What the kernel says.
        errno: Errno,
    },
    /// A size of the ring buffer that the kernel doesn't make.
    #[error("a ring buffer of {0} bytes: it takes a power of two from 4096 to 1073741824")]
    Buffer(u64),
    /// A system call failed.
    #[error("{what}: {errno}")]
    System {
        /// What it was to do.
        what: &'static str,
        /// What the kernel says.
        errno: Errno,
    },
    /// A process that was forked meanwhile keeps programs attached.
    #[error(
        "programs still run after they were detached: a process that was forked meanwhile has \
         not run another command yet"
    )]
    StillThere,
    /// The recording can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A text of ours is no program: a mistake in bpflab.
    #[error("a program of bpflab's own: {0}")]
    Own(#[from] AsmError),
}

impl LiveError {
    /// Whether it would be possible elsewhere: with other rights, or another kernel.
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
        format!(" (that is the command's own file, since {file} is not there)")
    })
}
