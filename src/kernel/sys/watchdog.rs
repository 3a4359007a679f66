//! A process that clears up behind this one, however this one ends.

use std::ffi::CString;
use std::io::{PipeWriter, pipe};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::bpf::{Result, errno_of, last_errno};
use super::mounts::Folder;
use crate::util::Errno;

/// Removes a folder when this value is dropped or its process has ended, be it by a
/// signal that nobody can catch.
#[derive(Debug)]
pub struct Watchdog {
    /// Its other end sees that this one is closed, which the kernel does in any case.
    alive: Option<PipeWriter>,
    process: libc::pid_t,
}

impl Watchdog {
    /// Starts the process, which will remove the folder `name` in `parent`. It may be
    /// made afterwards: so there is no moment at which nobody would remove it.
    pub fn start(parent: &Folder, name: &str) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
        let (gone, alive) = pipe().map_err(|error| errno_of(&error))?;
        // Copies, whose numbers are none of the first three.
        let own = |fd: std::os::fd::BorrowedFd<'_>| -> Result<OwnedFd> {
            fd.try_clone_to_owned().map_err(|error| errno_of(&error))
        };
        let (gone, parent) = (own(gone.as_fd())?, own(parent.as_fd())?);
        // SAFETY: the child may have locks of this process's other threads for ever, so
        // it calls nothing but `watch`, which makes system calls only.
        match unsafe { libc::fork() } {
            -1 => Err(last_errno()),
            // SAFETY: this is the child; the descriptors and the name are its own.
            0 => unsafe { watch(gone.as_raw_fd(), parent.as_raw_fd(), name.as_ptr()) },
            process => Ok(Self {
                alive: Some(alive),
                process,
            }),
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

/// The child's life: waits for the pipe's end, removes the folder, ends.
///
/// # Safety
/// Both descriptors are open and above 2, the name ends with a zero, and nothing of the
/// process is needed any more.
unsafe fn watch(gone: libc::c_int, parent: libc::c_int, name: *const libc::c_char) -> ! {
    /// The first three descriptors are all that it keeps.
    const GONE: libc::c_int = 0;
    const PARENT: libc::c_int = 1;
    const OTHERS: libc::c_uint = 2;
    /// Its name in lists of processes.
    const NAME: &std::ffi::CStr = c"bpflab-watchdog";
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
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        if libc::dup2(gone, GONE) < 0 || libc::dup2(parent, PARENT) < 0 {
            libc::_exit(1);
        }
        // Pipes of others, above all its own pipe's end that is written to.
        libc::syscall(libc::SYS_close_range, OTHERS, libc::c_uint::MAX, 0);
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
        let first = Watchdog::start(&parent, "first").unwrap();
        let second = Watchdog::start(&parent, "second").unwrap();
        parent.make("first").unwrap();
        parent.make("second").unwrap();
        assert_ne!(first.process, second.process);
        // The second one has not kept the first one's pipe open.
        drop(first);
        assert_eq!(parent.folders().unwrap(), ["second"]);
        drop(second);
        assert!(parent.folders().unwrap().is_empty());
        std::fs::remove_dir(&path).unwrap();
    }
}
