//! Exit codes and failures.

use std::io;
use std::process::ExitCode;

use crate::compare::replay::ReplayError;
use crate::harness::Error;
use crate::object::{ObjectError, Problem};
use crate::vm::events::EventError;

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    /// Success.
    Fine = 0,
    /// The run succeeded with a negative result: a fault, a reject, a difference.
    No = 1,
    /// Bad usage or bad input.
    Bad = 2,
    /// Not available here: no root, no kernel feature.
    Unavailable = 3,
}

impl Exit {
    /// The exit code of another process of bpflab.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    pub fn from_code(code: u8) -> Option<Self> {
        let all = [Self::Fine, Self::No, Self::Bad, Self::Unavailable];
        all.into_iter().find(|exit| *exit as u8 == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a verb failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error to be shown.
    Error {
        /// The exit code.
        exit: Exit,
        /// What is wrong, where, and what to do.
        text: String,
    },
    /// The output can't be written.
    Output(io::Error),
}

impl Failure {
    /// Bad usage or bad input.
    pub fn bad(text: impl ToString) -> Self {
        Self::with(Exit::Bad, text)
    }

    /// A failure with this exit code.
    pub fn with(exit: Exit, text: impl ToString) -> Self {
        let text = text.to_string();
        Self::Error { exit, text }
    }

    /// Why a recording can't be replayed or read; with the name of its file where the recording
    /// is to blame.
    pub fn of_replay(file: &str, error: ReplayError) -> Self {
        match error {
            ReplayError::Recording(_)
            | ReplayError::WrongObject(_)
            | ReplayError::WrongVersion(_)
            | ReplayError::NoObject
            | ReplayError::Differs { .. }
            | ReplayError::Schema { .. } => Self::bad(format!("{file}: {error}")),
            ReplayError::Object(error) => error.into(),
            ReplayError::Harness(error) => error.into(),
        }
    }
}

impl From<ObjectError> for Failure {
    fn from(error: ObjectError) -> Self {
        // The library's message names its functions; add the option for it.
        let options = match error.problem() {
            Problem::Unresolved(text) if text.contains("set_ksym") => "; here that is --ksym",
            Problem::Unresolved(text) if text.contains("set_kconfig") => "; here that is --kconfig",
            Problem::Unresolved(text) if text.contains("set the type") => "; here that is --type",
            Problem::Unresolved(text) if text.contains("define_descriptor") => {
                "; here that is --map-def fd:0=TYPE:KEY_SIZE:VALUE_SIZE:MAX_ENTRIES"
            }
            _ => "",
        };
        Self::bad(format!("{error}{options}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error {
            Error::Object(error) => return error.into(),
            Error::Fault(_) | Error::Unverified(_) => Exit::No,
            // Another kernel, or a file that describes one, could have the event.
            Error::Event(EventError::NoLayout { .. }) => Exit::Unavailable,
            _ => Exit::Bad,
        };
        let option = match error {
            Error::MapCreate { .. } => "; use --map-def to set what its tool sets at run time",
            _ => "",
        };
        Self::with(exit, format!("{error}{option}"))
    }
}

impl From<EventError> for Failure {
    fn from(error: EventError) -> Self {
        Error::from(error).into()
    }
}

/// Only the printer's own errors are bare I/O errors; a file that can't be read becomes a
/// [`Failure::bad`] with its name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
