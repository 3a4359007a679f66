//! BPF tokens (`kernel/bpf/token.c`, `kernel/bpf/inode.c`).
//!
//! A token belongs to a user namespace: a process in it opens a BPF file system, the
//! administrator creates that with what it delegates, and the process mounts it and makes the
//! token. Here a child is that process, and this one the administrator, who uses the token
//! afterwards: the owner of a user namespace has all capabilities in it, even without any of its
//! own (`cap_capable_helper`, `security/commoncap.c`).

use std::convert::Infallible;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use zerocopy::{FromBytes, IntoBytes};

use super::bpf::{Cmd, Result, errno_of, last_errno, open, retried};
use super::mounts::{FileSystem, Folder};
use super::process::process;
use crate::util::Errno;

/// A token in the kernel.
#[derive(Debug)]
pub struct TokenFd(OwnedFd);

#[repr(C)]
#[derive(FromBytes, IntoBytes)]
struct TokenCreate {
    flags: u32,
    bpffs_fd: i32,
}

impl TokenFd {
    /// Makes a token of a new user namespace, from a BPF file system with these mount options:
    /// key and value.
    pub fn create<'a>(options: impl Iterator<Item = (&'a CStr, &'a CStr)>) -> Result<Self> {
        let child = Child::start()?;
        // It is in its namespace.
        let file_system = FileSystem::from(child.descriptor()?);
        // Root is itself there: the file system's root is root's.
        for map in ["uid_map", "gid_map"] {
            let path = format!("/proc/{}/{map}", child.pid);
            std::fs::write(path, "0 0 1").map_err(|error| errno_of(&error))?;
        }
        for (key, value) in options {
            file_system.set(key, value)?;
        }
        file_system.create()?;
        child.release()?;
        child.descriptor().map(Self)
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// `BPF_TOKEN_CREATE`, for a process in the namespace of a BPF file system.
    fn of(root: &Folder) -> Result<Self> {
        let mut attributes = TokenCreate {
            flags: 0,
            bpffs_fd: root.as_fd().as_raw_fd(),
        };
        // SAFETY: no addresses, and the descriptor is borrowed.
        unsafe { open(Cmd::TokenCreate, &mut attributes) }.map(Self)
    }
}

/// A child in a user namespace of its own. It reports numbers: a descriptor of its own, or an
/// errno, negative.
struct Child {
    pid: libc::pid_t,
    socket: OwnedFd,
}

impl Child {
    fn start() -> Result<Self> {
        let mut pair: [RawFd; 2] = [-1; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: the kernel writes two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel has just opened both.
        let [socket, theirs] = pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: the child only makes system calls, and ends without a return: it neither
        // allocates nor takes a lock, which another thread may have held at the fork.
        match unsafe { libc::fork() } {
            0 => {
                // The parent's end would keep the connection open in the child.
                drop(socket);
                in_child(&theirs)
            }
            pid if pid < 0 => Err(last_errno()),
            pid => Ok(Self { pid, socket }),
        }
    }

    /// Lets the child go on.
    fn release(&self) -> Result<()> {
        let (fd, byte) = (self.socket.as_raw_fd(), [0u8]);
        // SAFETY: one byte is read. The flag: a child that has ended is an error, no signal.
        let sent =
            retried(|| unsafe { libc::send(fd, byte.as_ptr().cast(), 1, libc::MSG_NOSIGNAL) });
        if sent == 1 { Ok(()) } else { Err(last_errno()) }
    }

    /// A duplicate of the descriptor that the child reports.
    fn descriptor(&self) -> Result<OwnedFd> {
        let mut number = [0; size_of::<RawFd>()];
        let fd = self.socket.as_raw_fd();
        // SAFETY: the kernel writes at most as many bytes as there are, borrowed mutably.
        let read = retried(|| unsafe { libc::read(fd, number.as_mut_ptr().cast(), number.len()) });
        if read != number.len().cast_signed() {
            return Err(Errno::ESRCH);
        }
        let number = RawFd::from_ne_bytes(number);
        if let Ok(errno) = u16::try_from(number.saturating_neg())
            && errno > 0
        {
            return Err(Errno(errno));
        }
        let child = process(self.pid.cast_unsigned())?;
        // SAFETY: no addresses.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_getfd, child.as_raw_fd(), number, 0) };
        match i32::try_from(fd) {
            // SAFETY: the kernel has just opened this descriptor.
            Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            _ => Err(last_errno()),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: no addresses; the child has not been waited for, so the id is its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: as above; no status is written.
        retried(|| unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) });
    }
}

/// What the child does. It ends with its parent, too, whose end of the socket is closed then.
fn in_child(socket: &OwnedFd) -> ! {
    let Err(errno) = make_token(socket);
    report(socket, -RawFd::from(errno.0));
    // SAFETY: ends the child at once; none of the parent's exit handlers run.
    unsafe { libc::_exit(0) }
}

fn make_token(socket: &OwnedFd) -> Result<Infallible> {
    // SAFETY: no addresses.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return Err(last_errno());
    }
    let file_system = FileSystem::open(c"bpf")?;
    report(socket, file_system.as_fd().as_raw_fd());
    wait(socket)?;
    let token = TokenFd::of(&file_system.mount()?.opened()?)?;
    report(socket, token.as_fd().as_raw_fd());
    wait(socket)?;
    Err(Errno::ESRCH)
}

fn report(socket: &OwnedFd, number: RawFd) {
    let bytes = number.to_ne_bytes();
    let fd = socket.as_raw_fd();
    // SAFETY: the bytes are only read. If the parent is gone, nobody asks.
    unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
}

/// Waits for the parent; fails if it is gone.
fn wait(socket: &OwnedFd) -> Result<()> {
    let (fd, mut byte) = (socket.as_raw_fd(), [0u8]);
    // SAFETY: the kernel writes at most one byte.
    let read = retried(|| unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) });
    if read == 1 { Ok(()) } else { Err(Errno::ESRCH) }
}
