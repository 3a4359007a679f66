//! A process that clears up behind this one, however this one ends.

use std::ffi::{CStr, CString};
use std::io::{self, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::bpf::{Result, errno_of, last_errno};
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
        // SAFETY: the status is not asked for; the process is a child of ours that nobody
        // else waits for. It ends, since the pipe is closed.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
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
    const OTHERS: libc::c_uint = 3;
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
        libc::syscall(libc::SYS_close_range, OTHERS, libc::c_uint::MAX, 0);
        let failed = match libc::mkdirat(PARENT, name, 0o700) {
            0 => 0,
            _ => errno().to_le_bytes()[0],
        };
        libc::write(TOLD, (&raw const failed).cast(), 1);
        if failed != 0 {
            libc::_exit(1);
        }
        let mut byte = 0_u8;
        while libc::read(GONE, (&raw mut byte).cast(), 1) < 0 && errno() == libc::EINTR {}
        for _ in 0..TRIES {
            if libc::unlinkat(PARENT, name, libc::AT_REMOVEDIR) == 0 || errno() == libc::ENOENT {
                libc::_exit(0);
            }
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        libc::_exit(1)
    }
}

/// The error number of this thread.
fn errno() -> libc::c_int {
    // SAFETY: the address is that of a number of this thread.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::is_emulated;

    #[test]
    fn a_folder_goes_with_its_watchdog() {
        if is_emulated() {
            return eprintln!("skipped: starting processes may hang in an emulator");
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
