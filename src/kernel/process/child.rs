//! Waits for a process to end, or for a timeout or a stop request.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{self, ExitStatus};
use std::time::{Duration, Instant};

use super::stop::Stop;
use crate::kernel::sys;
use crate::util::Errno;

/// Time for a process to end after SIGTERM before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// What ended the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The process has ended.
    Command,
    /// The timeout.
    Duration,
    /// A [`Stop`] was used.
    Stopped,
}

impl Ended {
    /// Waits for the first of these; `None`s are ignored.
    ///
    /// # Errors
    /// The kernel's error of waiting.
    pub fn wait(
        child: Option<&Child>,
        until: Option<Instant>,
        stops: &[&Stop],
    ) -> Result<Self, Errno> {
        let child = child.map(|child| (child.descriptor.as_fd(), Self::Command));
        let stops = stops.iter().map(|stop| (stop.as_fd(), Self::Stopped));
        let sources: Vec<(BorrowedFd<'_>, Self)> = child.into_iter().chain(stops).collect();
        let fds: Vec<_> = sources.iter().map(|(fd, _)| *fd).collect();
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if sys::poll(&fds, left)? > 0 {
                for (fd, ended) in &sources {
                    if sys::poll(&[*fd], Some(Duration::ZERO))? > 0 {
                        return Ok(*ended);
                    }
                }
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Self::Duration);
            }
        }
    }
}

/// A running command. Dropping it ends the command.
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    /// A pidfd: the process id may be reused.
    descriptor: OwnedFd,
    status: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(mut child: process::Child) -> io::Result<Self> {
        match sys::process(child.id()) {
            Ok(descriptor) => Ok(Self {
                child,
                descriptor,
                status: None,
            }),
            Err(errno) => {
                // Without a pidfd there is no way to wait with a timeout.
                let _ = child.kill();
                let _ = child.wait();
                Err(io::Error::from_raw_os_error(errno.0.into()))
            }
        }
    }

    /// Its process id in this process's namespace.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process and waits for it: sends SIGTERM, and kills it after three seconds.
    ///
    /// # Errors
    /// The kernel's error of waiting.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if self.child.try_wait()?.is_none() {
            // It may have ended since; then the error is harmless.
            let _ = sys::send_signal(self.descriptor.as_fd(), libc::SIGTERM);
            let until = Some(Instant::now() + EXIT_TIMEOUT);
            if Ended::wait(Some(self), until, &[]) != Ok(Ended::Command) {
                self.child.kill()?;
            }
        }
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Errors can't be reported in drop.
        let _ = self.end();
    }
}
