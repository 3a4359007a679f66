//! Requests to end a recording.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use crate::kernel::sys::{Flag, first_signal, raise_on_signals};
use crate::util::Errno;

/// A request to end a wait, from any thread. Clones share the request.
#[derive(Debug, Clone)]
pub struct Stop(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Own(Arc<Flag>),
    Signals(&'static Flag),
}

impl Stop {
    /// Creates an unused request.
    ///
    /// # Errors
    /// The kernel's error of creating a descriptor.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self(Kind::Own(Arc::new(Flag::new()?))))
    }

    /// A request made by `SIGINT`, `SIGTERM` or `SIGHUP` to this process; a second signal of
    /// the same kind ends the process. For command-line tools: a library should leave signals
    /// to its user.
    ///
    /// # Errors
    /// The kernel's error of creating a descriptor or setting handlers.
    pub fn on_signals() -> Result<Self, Errno> {
        static FLAG: OnceLock<Result<Flag, Errno>> = OnceLock::new();
        static SET: OnceLock<Result<(), Errno>> = OnceLock::new();
        let flag = FLAG.get_or_init(Flag::new).as_ref().map_err(|e| *e)?;
        (*SET.get_or_init(|| raise_on_signals(flag)))?;
        Ok(Self(Kind::Signals(flag)))
    }

    /// Makes the request.
    pub fn now(&self) {
        self.flag().raise();
    }

    /// The signal that made the request, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        match &self.0 {
            Kind::Own(_) => None,
            Kind::Signals(_) => first_signal(),
        }
    }

    fn flag(&self) -> &Flag {
        match &self.0 {
            Kind::Own(flag) => flag,
            Kind::Signals(flag) => flag,
        }
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.flag().as_fd()
    }
}
