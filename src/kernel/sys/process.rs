//! Processes and signals: a child held before its `execve`, the end of a process and signals as
//! readable descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::bpf::{Result, last_errno, retried};

/// A descriptor that becomes readable when [`raise`](Self::raise) is called, and stays so.
#[derive(Debug)]
pub struct Flag(OwnedFd);

impl Flag {
    /// Creates a flag that is not raised.
    pub fn new() -> Result<Self> {
        // SAFETY: no addresses.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel has just opened this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable.
    pub fn raise(&self) {
        raise(self.0.as_raw_fd());
    }
}

impl AsFd for Flag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Adds to the counter of an eventfd; safe in a signal handler. It can only fail if the counter
/// is full, and then the descriptor is readable already.
fn raise(fd: libc::c_int) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: an eventfd reads eight bytes.
    unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
}

/// The flag that signals raise (none: -1), and the first signal that did (none: 0).
static RAISED_BY_SIGNALS: AtomicI32 = AtomicI32::new(-1);
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: the address is this thread's errno, which is restored below.
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

/// Makes SIGINT, SIGTERM and SIGHUP raise this flag once each; a second one has its default
/// effect. A SIGHUP that is ignored (`nohup`) stays ignored.
pub fn raise_on_signals(flag: &'static Flag) -> Result<()> {
    RAISED_BY_SIGNALS.store(flag.0.as_raw_fd(), Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: zeros are a valid value of this structure of integers and addresses.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: only the current action is read.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
        if asked == 0 && signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
        // SAFETY: the handler only uses atomics and write(2), which are async-signal-safe.
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

/// A pidfd, readable when the process has ended. The process must be a child that has not been
/// waited for, otherwise its id may have been reused.
pub fn process(pid: u32) -> Result<OwnedFd> {
    // SAFETY: no addresses.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just opened this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to a process.
pub fn send_signal(process: BorrowedFd<'_>, signal: i32) -> Result<()> {
    let (fd, none) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: without a siginfo_t the kernel fills in its own, as for kill(2).
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// Waits for an RCU grace period: programs detached before the call no longer run when it
/// returns.
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

/// Makes a command's process wait after the fork and before `execve` until a byte arrives on a
/// socket. If the other end is closed (for example because its owner was killed), the process
/// ends. It also gets `SIGTERM` when the thread that spawned it ends.
///
/// Returns the other end: the waiting process sends its id there (four bytes), and a byte
/// written to it releases the process. The caller sets the returned flag once the process has
/// been spawned, so that further processes of the command are not held.
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
        // SAFETY: only calls that are allowed between fork and exec. The closed descriptor is
        // the child's copy of the parent's end, which nothing in the child uses; if it stayed
        // open, the child would not notice that the parent has closed its end.
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
    // SAFETY: the closure only makes system calls that are safe after fork, allocates nothing
    // and takes no locks; its error is a number.
    unsafe { command.pre_exec(wait) };
    Ok((ours, over))
}
