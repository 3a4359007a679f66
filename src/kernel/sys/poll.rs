//! Waits for file descriptors.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::bpf::{Result, last_errno};
use crate::util::Errno;

/// The state of a descriptor after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Nothing to read.
    Quiet,
    /// Readable.
    Readable,
    /// Hung up (`POLLHUP`) or in error; whether there is something left to read is unknown.
    Over,
}

/// Waits until a descriptor is readable, at most for `timeout`; forever without one. Returns
/// the number of ready descriptors; 0 also after a signal.
pub fn poll(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    let polled = poll_each(fds, timeout)?;
    let ready = polled.iter().filter(|polled| **polled != Polled::Quiet);
    Ok(ready.count())
}

/// Waits like [`poll`], and returns the state of each descriptor.
///
/// `poll(2)` checks each descriptor anew, so unlike `epoll` it does not depend on wake-ups that
/// came too early.
pub fn poll_each(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<Vec<Polled>> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // Rounded up, so that a short timeout does not become 0.
    let millis = timeout.map_or(-1, |time| {
        libc::c_int::try_from(time.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX)
    });
    let count = libc::nfds_t::try_from(polled.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the array has as many entries as passed; the descriptors are borrowed.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, millis) };
    if ready < 0 && last_errno() != Errno::EINTR {
        return Err(last_errno());
    }
    let became = |polled: &libc::pollfd| match polled.revents {
        _ if ready <= 0 => Polled::Quiet,
        0 => Polled::Quiet,
        events if events & libc::POLLIN != 0 => Polled::Readable,
        _ => Polled::Over,
    };
    Ok(polled.iter().map(became).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_has_something_is_counted() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let some = Some(Duration::from_micros(1));
        assert_eq!(poll(&[reader.as_fd()], some), Ok(0));
        writer.write_all(b"x").unwrap();
        assert_eq!(poll(&[reader.as_fd()], None), Ok(1));
        let (other, gone) = std::io::pipe().unwrap();
        let both = [other.as_fd(), reader.as_fd()];
        let became = poll_each(&both, None);
        assert_eq!(became, Ok(vec![Polled::Quiet, Polled::Readable]));
        drop(gone);
        let became = poll_each(&both, None);
        assert_eq!(became, Ok(vec![Polled::Over, Polled::Readable]));
    }
}
