//! Processes and signals: a child that waits before it becomes its command, waiting for
//! whichever of several things comes first, signals as something to wait for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::bpf::{Result, last_errno, retried};

/// A descriptor that is readable once [`raise`](Self::raise) was called, and stays so.
#[derive(Debug)]
pub struct Flag(OwnedFd);

impl Flag {
    /// One that is not raised.
    pub fn new() -> Result<Self> {
        // SAFETY: no addresses.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel has just opened this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable.
    pub fn raise(&self) {
        raise(self.0.as_raw_fd());
    }
}

impl AsFd for Flag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Adds to the counter of an eventfd, which may be done in a signal's handler. The only
/// failure there could be is a counter that is full, and then it is readable already.
fn raise(fd: libc::c_int) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes are read, which is what an eventfd takes.
    unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
}

/// The flag that signals raise, and the first signal that did; none: -1 and 0.
static RAISED_BY_SIGNALS: AtomicI32 = AtomicI32::new(-1);
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: the address is this thread's errno, which is put back as it was.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    let _ = FIRST_SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    let fd = RAISED_BY_SIGNALS.load(Ordering::Relaxed);
    if fd >= 0 {
        raise(fd);
    }
    // SAFETY: as above.
    unsafe { *errno = kept };
}

/// From now on the signals that ask a process to end raise this flag; each does so once,
/// and has its usual effect then. A hang-up that is ignored (`nohup`) stays so.
pub fn raise_on_signals(flag: &'static Flag) -> Result<()> {
    RAISED_BY_SIGNALS.store(flag.0.as_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros is a value of this structure of integers and addresses.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: only what is there is asked for.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
        if asked == 0 && signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
        // SAFETY: the handler does only what a handler may: atomics and write(2).
        let set = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        if set != 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}

/// The signal that raised the flag first.
pub fn first_signal() -> Option<i32> {
    match FIRST_SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// A descriptor of a process, which can be read when the process has ended. It must be
/// a child that nobody has waited for yet, or its number may be another's by now.
pub fn process(pid: u32) -> Result<OwnedFd> {
    // SAFETY: no addresses.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to a process.
pub fn send_signal(process: BorrowedFd<'_>, signal: i32) -> Result<()> {
    let (fd, none) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: without a siginfo_t the kernel makes one up, as for kill(2).
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// Waits until each CPU has left what it was doing in the kernel when this was called
/// (an RCU grace period): programs that were detached before don't run any more then.
pub fn grace_period() -> Result<()> {
    const GLOBAL: libc::c_int = 1;
    // SAFETY: no addresses.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// Makes a command wait, once it is a process and before it runs anything, until the
/// other end of a socket says so; where that end is closed (for example because its
/// owner was killed), the process ends. It also ends, by `SIGTERM`, when the thread that
/// spawned it does.
///
/// What is given back is that other end, which reads the process's number (four bytes)
/// when it waits, and a byte written to it sets it free. It counts for the next process
/// of the command only, if the second value is set when that one has been spawned.
pub fn hold(command: &mut Command) -> io::Result<(UnixStream, Arc<AtomicBool>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let inherited = ours.as_raw_fd();
    let wait = move || {
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let fd = theirs.as_raw_fd();
        let mut byte = [0u8];
        // SAFETY: only calls that may be made between fork and exec. The closed
        // descriptor is the child's copy of the parent's end, which nothing in the child
        // uses, and whose copy here would hide that the parent has closed it.
        let freed = unsafe {
            libc::close(inherited);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            let pid = libc::getpid().to_ne_bytes();
            let told = libc::send(fd, pid.as_ptr().cast(), pid.len(), libc::MSG_NOSIGNAL);
            told > 0 && retried(|| libc::read(fd, byte.as_mut_ptr().cast(), 1)) == 1
        };
        if freed {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ECANCELED))
        }
    };
    // SAFETY: the closure makes system calls that are safe after fork, allocates nothing
    // and takes no locks; the error that it gives is a number.
    unsafe { command.pre_exec(wait) };
    Ok((ours, over))
}
