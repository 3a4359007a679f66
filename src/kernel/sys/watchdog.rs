//! A process that clears up behind this one, however this one ends.

use std::ffi::{CStr, CString};
use std::io::{self, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::bpf::{Result, errno_of, last_errno, retried};
use super::mounts::Folder;
use crate::util::Errno;

/// A folder that is removed when this value is dropped or its process has ended, be it by
/// a signal that nobody can catch.
#[derive(Debug)]
pub struct Watchdog {
    /// Its other end sees that this one is closed, which the kernel does in any case.
    alive: Option<PipeWriter>,
    process: libc::pid_t,
}

impl Watchdog {
    /// Makes the folder `name` in `parent`. The process that will remove it makes it, so
    /// that there is no moment at which nobody would, and none but its own is removed.
    pub fn make(parent: &Folder, name: &str) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
        let failed = |error: io::Error| errno_of(&error);
        let (gone, alive) = pipe().map_err(failed)?;
        let (mut made, told) = pipe().map_err(failed)?;
        // Copies, whose numbers are none of the first three.
        let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(failed);
        let (gone, told, parent) = (own(gone.as_fd())?, own(told.as_fd())?, own(parent.as_fd())?);
        let fds = [&gone, &told, &parent].map(AsRawFd::as_raw_fd);
        // SAFETY: the child may have locks of this process's other threads for ever, so
        // it calls nothing but `watch`, which makes system calls only.
        let process = match unsafe { libc::fork() } {
            -1 => return Err(last_errno()),
            // SAFETY: this is the child; the descriptors and the name are its own.
            0 => unsafe { watch(fds, name.as_ptr()) },
            process => process,
        };
        let watchdog = Self {
            alive: Some(alive),
            process,
        };
        drop(told);
        let mut errno = [0];
        made.read_exact(&mut errno).map_err(failed)?;
        match errno {
            [0] => Ok(watchdog),
            [errno] => Err(Errno(errno.into())),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Interrupted, it would leave a zombie, and the folder for some moments.
        // SAFETY: the status is not asked for; the process is a child of ours that nobody
        // else waits for. It ends, since the pipe is closed.
        retried(|| unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) });
    }
}

/// The child's life: makes the folder and tells the error number, waits for the pipe's
/// end, removes the folder, ends.
///
/// # Safety
/// The descriptors (of the pipe whose end it waits for, of the one that it tells to, of
/// the parent folder) are open and above 2, the name ends with a zero, and nothing of the
/// process is needed any more.
unsafe fn watch(fds: [libc::c_int; 3], name: *const libc::c_char) -> ! {
    /// The first three descriptors are all that it keeps.
    const GONE: libc::c_int = 0;
    const TOLD: libc::c_int = 1;
    const PARENT: libc::c_int = 2;
    const OTHERS: libc::c_int = 3;
    /// Its name in lists of processes.
    const NAME: &CStr = c"bpflab-watchdog";
    /// How often it tries, every ten milliseconds, while somebody uses the folder.
    const TRIES: u32 = 3000;
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    // SAFETY: all of these are system calls, which a forked child may make; the addresses
    // are those of locals and of the name.
    unsafe {
        // A terminal's signals go to its own session, and those of others are for the
        // process that it watches.
        libc::setsid();
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        for (from, to) in fds.into_iter().zip([GONE, TOLD, PARENT]) {
            if libc::dup2(from, to) < 0 {
                libc::_exit(1);
            }
        }
        // Pipes of others, above all its own pipe's end that is written to.
        if libc::syscall(libc::SYS_close_range, OTHERS, libc::c_uint::MAX, 0) != 0 {
            close_from(OTHERS);
        }
        let failed = match libc::mkdirat(PARENT, name, 0o700) {
            0 => 0,
            _ => last_errno().0.to_le_bytes()[0],
        };
        libc::write(TOLD, (&raw const failed).cast(), 1);
        if failed != 0 {
            libc::_exit(1);
        }
        let mut byte = 0_u8;
        retried(|| libc::read(GONE, (&raw mut byte).cast(), 1));
        for _ in 0..TRIES {
            let removed = libc::unlinkat(PARENT, name, libc::AT_REMOVEDIR);
            if removed == 0 || last_errno() == Errno::ENOENT {
                libc::_exit(0);
            }
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        libc::_exit(1)
    }
}

/// Closes all descriptors from `first` on one by one: where there is no `close_range`
/// (before Linux 5.9), or a sandbox that does not know it forbids it.
///
/// # Safety
/// Nothing uses them any more.
unsafe fn close_from(first: libc::c_int) {
    /// As far as it goes where there is no limit, or one that nobody means.
    const MOST: libc::c_int = 1 << 20;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the address is that of the value that is written.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let limit = libc::c_int::try_from(limit.rlim_cur).unwrap_or(MOST);
    let end = if told { limit.min(MOST) } else { MOST };
    for fd in first..end {
        // SAFETY: as the caller promises; a number that is none is an error without effect.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::skip::is_emulated;
    use crate::shared::{Need, skip};

    #[test]
    fn descriptors_are_closed_one_by_one_where_they_must_be() {
        /// Above all that tests beside this one open.
        const HIGH: libc::c_int = 1000;
        let (mut reader, writer) = pipe().unwrap();
        // SAFETY: no addresses.
        let copy = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
        if copy < HIGH {
            return skip(
                Need::Tools,
                format_args!("no descriptor above {HIGH}: {}", last_errno()),
            );
        }
        drop(writer);
        // SAFETY: the copy is this test's, and there are none above it.
        unsafe { close_from(HIGH) };
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "nobody writes any more");
    }

    #[test]
    fn a_folder_goes_with_its_watchdog() {
        if is_emulated() {
            return;
        }
        let path = std::env::temp_dir().join(format!("bpflab-dog-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let text = CString::new(path.to_str().unwrap()).unwrap();
        let parent = Folder::open(&text).unwrap();
        let first = Watchdog::make(&parent, "first").unwrap();
        let second = Watchdog::make(&parent, "second").unwrap();
        assert_eq!(parent.folders().unwrap(), ["first", "second"]);
        // One that somebody else has made is left alone.
        let again = Watchdog::make(&parent, "first").map(drop);
        assert_eq!(again, Err(Errno::EEXIST));
        // The second one has not kept the first one's pipe open.
        drop(first);
        assert_eq!(parent.folders().unwrap(), ["second"]);
        drop(second);
        assert!(parent.folders().unwrap().is_empty());
        std::fs::remove_dir(&path).unwrap();
    }
}
