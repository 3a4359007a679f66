//! A process that cleans up after this one, however this one ends.

use std::ffi::{CStr, CString};
use std::io::{self, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::bpf::{Result, errno_of, last_errno, retried};
use super::mounts::Folder;
use crate::util::Errno;

/// A folder that is removed when this value is dropped or its process ends, even by `SIGKILL`.
#[derive(Debug)]
pub struct Watchdog {
    /// The write end of a pipe; the kernel closes it in any case.
    alive: Option<PipeWriter>,
    process: libc::pid_t,
}

impl Watchdog {
    /// Makes the folder `name` in `parent`. The watchdog process itself makes it, so that it
    /// never exists without a watchdog, and a folder that somebody else made is not removed.
    pub fn make(parent: &Folder, name: &str) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
        let failed = |error: io::Error| errno_of(&error);
        let (gone, alive) = pipe().map_err(failed)?;
        let (mut made, told) = pipe().map_err(failed)?;
        // Duplicates, whose numbers are above 2.
        let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(failed);
        let (gone, told, parent) = (own(gone.as_fd())?, own(told.as_fd())?, own(parent.as_fd())?);
        let fds = [&gone, &told, &parent].map(AsRawFd::as_raw_fd);
        // SAFETY: locks of this process's other threads may stay taken in the child, so the
        // child only calls `watch`, which only makes system calls.
        let process = match unsafe { libc::fork() } {
            -1 => return Err(last_errno()),
            // SAFETY: this is the child; it owns the descriptors and the name.
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
        // An interrupted wait would leave a zombie, and the folder for a moment.
        // SAFETY: the status is not read; the process is our child, and nobody else waits for
        // it. It ends, since the pipe is closed.
        retried(|| unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) });
    }
}

/// Runs in the child: makes the folder, sends the errno, waits for the pipe to close, removes
/// the folder and exits.
///
/// # Safety
/// The descriptors (the pipe to wait for, the pipe for the errno, the parent folder) are open
/// and above 2, the name is NUL-terminated, and nothing else of the process is needed any more.
unsafe fn watch(fds: [libc::c_int; 3], name: *const libc::c_char) -> ! {
    /// It keeps only the first three descriptors.
    const GONE: libc::c_int = 0;
    const TOLD: libc::c_int = 1;
    const PARENT: libc::c_int = 2;
    const OTHERS: libc::c_int = 3;
    /// The process's name.
    const NAME: &CStr = c"bpflab-watchdog";
    /// Attempts, ten milliseconds apart, while the folder is in use.
    const TRIES: u32 = 3000;
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    // SAFETY: these are all system calls, allowed in a forked child; the addresses are those of
    // locals and of the name.
    unsafe {
        // A new session gets none of the terminal's signals, and other signals are meant for
        // the watched process.
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
        // Inherited pipes, above all the write end of its own.
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

/// Closes all descriptors from `first`, one by one: for kernels before 5.9, which lack
/// `close_range`, and sandboxes that forbid it.
///
/// # Safety
/// Nothing uses these descriptors any more.
unsafe fn close_from(first: libc::c_int) {
    /// The upper limit if there is no resource limit, or an absurd one.
    const MOST: libc::c_int = 1 << 20;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is written, and borrowed mutably.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    let limit = libc::c_int::try_from(limit.rlim_cur).unwrap_or(MOST);
    let end = if told { limit.min(MOST) } else { MOST };
    for fd in first..end {
        // SAFETY: as the caller promises; closing an unused number has no effect.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::is_emulated;
    use crate::shared::{Need, skip};

    #[test]
    fn descriptors_are_closed_one_by_one_where_they_must_be() {
        /// Above all descriptors that concurrent tests open.
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
        // SAFETY: this test owns the copy, and there are no descriptors above it.
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
        // A folder that somebody else made stays.
        let again = Watchdog::make(&parent, "first").map(drop);
        assert_eq!(again, Err(Errno::EEXIST));
        // The second watchdog does not hold the first one's pipe open.
        drop(first);
        assert_eq!(parent.folders().unwrap(), ["second"]);
        drop(second);
        assert!(parent.folders().unwrap().is_empty());
        std::fs::remove_dir(&path).unwrap();
    }
}
