//! What ends a recording from outside.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use crate::kernel::sys::{Flag, first_signal, raise_on_signals};
use crate::util::Errno;

/// Asks whatever waits for it to end, from any thread. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Stop(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Own(Arc<Flag>),
    Signals(&'static Flag),
}

impl Stop {
    /// One that nobody has used yet.
    ///
    /// # Errors
    /// What the kernel says to another descriptor.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self(Kind::Own(Arc::new(Flag::new()?))))
    }

    /// The one that `SIGINT`, `SIGTERM` and `SIGHUP` use from now on in this process; a
    /// second signal of the same kind then ends the process. For command-line tools: a
    /// library leaves signals to its user.
    ///
    /// # Errors
    /// What the kernel says to another descriptor, or to setting handlers.
    pub fn on_signals() -> Result<Self, Errno> {
        static FLAG: OnceLock<Result<Flag, Errno>> = OnceLock::new();
        static SET: OnceLock<Result<(), Errno>> = OnceLock::new();
        let flag = FLAG.get_or_init(Flag::new).as_ref().map_err(|e| *e)?;
        (*SET.get_or_init(|| raise_on_signals(flag)))?;
        Ok(Self(Kind::Signals(flag)))
    }

    /// Asks to end.
    pub fn now(&self) {
        self.flag().raise();
    }

    /// The signal that asked, where it was one.
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
