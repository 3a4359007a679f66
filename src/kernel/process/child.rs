//! Waiting for a process, or for what comes before its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{self, ExitStatus};
use std::time::{Duration, Instant};

use super::stop::Stop;
use crate::kernel::sys;
use crate::util::Errno;

/// How long a process that was asked to end may take before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The process has ended.
    Command,
    /// The time was over.
    Duration,
    /// Somebody used a [`Stop`].
    Stopped,
}

impl Ended {
    /// Waits for the first of these; `None`s never come.
    ///
    /// # Errors
    /// What the kernel says to waiting.
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

/// A running command. Dropping it before it has ended ends it.
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    /// The process itself, not its number, which may be another's later.
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
                // Nobody could wait for it in time.
                let _ = child.kill();
                let _ = child.wait();
                Err(io::Error::from_raw_os_error(errno.0.into()))
            }
        }
    }

    /// Its number, as this process's namespace has it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; asks it to end (`SIGTERM`) if it has not yet, and kills it when
    /// it takes more than three seconds.
    ///
    /// # Errors
    /// What the kernel says to waiting.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if self.child.try_wait()?.is_none() {
            // It may end meanwhile, which is as good.
            let _ = sys::send_signal(self.descriptor.as_fd(), libc::SIGTERM);
            let until = Some(Instant::now() + PATIENCE);
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
        // Nobody is left to be told.
        let _ = self.end();
    }
}
