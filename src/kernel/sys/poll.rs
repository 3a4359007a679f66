//! Waiting for the kernel to have something.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::bpf::{Result, last_errno};
use crate::util::Errno;

/// Waits until one of the descriptors has something to read, or for so long; forever
/// without a time. How many have; 0 as well where a signal came.
///
/// `poll(2)` asks each descriptor anew, so unlike a waiting list (`epoll`) it never rests
/// on a wake-up that came too early.
pub fn poll(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // Rounded up, so that a short time is not none.
    let millis = timeout.map_or(-1, |time| {
        libc::c_int::try_from(time.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX)
    });
    let count = libc::nfds_t::try_from(polled.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: so many entries are there to be read and written; descriptors are borrowed.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, millis) };
    match usize::try_from(ready) {
        Ok(ready) => Ok(ready),
        Err(_) => match last_errno() {
            Errno::EINTR => Ok(0),
            errno => Err(errno),
        },
    }
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
    }
}
