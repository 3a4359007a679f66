//! What the first process of a virtual machine does, and what starts such a machine: mounts,
//! modules, the end of the machine; a file in memory, and a child that
//! doesn't outlive its parent.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::bpf::{Result, last_errno};

/// An anonymous file in memory, which ends with its last descriptor.
///
/// # Errors
/// `ENFILE`, `EMFILE`, `ENOMEM`, or `ENOSYS` before Linux 3.17.
pub(crate) fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: the name is NUL-terminated and only read.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Has the kernel kill the command's process when the thread that spawned it ends.
pub(crate) fn kill_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        // SAFETY: prctl(2) and getppid(2) take no addresses here.
        let (set, now) = unsafe {
            let set = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            (set, libc::getppid())
        };
        // The parent may have ended before the call.
        match u32::try_from(now) == Ok(parent) && set == 0 {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
        }
    };
    // SAFETY: the closure only makes system calls that are safe after fork, allocates nothing
    // and takes no locks; its error is a number.
    unsafe { command.pre_exec(ask) };
}

/// Mounts a file system, `mount -t FILE_SYSTEM none FOLDER`.
///
/// # Errors
/// The error of mount(2): `ENODEV` if the kernel has no such file system.
pub(crate) fn mount(file_system: &CStr, folder: &CStr) -> Result<()> {
    let (none, options) = (c"none".as_ptr(), std::ptr::null());
    // SAFETY: the texts are NUL-terminated and only read; no options are passed.
    let done = unsafe { libc::mount(none, folder.as_ptr(), file_system.as_ptr(), 0, options) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Loads a kernel module from the contents of its file (`.ko`, not compressed).
///
/// # Errors
/// The error of init_module(2): `ENOEXEC` for another kernel's module, `ENOENT` for a symbol of
/// a module that is not loaded.
pub(crate) fn load_module(file: &[u8]) -> Result<()> {
    let parameters = c"".as_ptr();
    // SAFETY: the kernel reads the slice and the NUL-terminated text.
    let done =
        unsafe { libc::syscall(libc::SYS_init_module, file.as_ptr(), file.len(), parameters) };
    if done == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Makes a terminal pass bytes on as they are. Nothing happens to other files.
pub(crate) fn make_raw(file: BorrowedFd<'_>) {
    // SAFETY: zeros are a valid value of this structure of integers.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the structure is borrowed mutably; the second and third
    // call only get what the first has filled in.
    unsafe {
        if libc::tcgetattr(file.as_raw_fd(), &raw mut settings) == 0 {
            libc::cfmakeraw(&raw mut settings);
            libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, &raw const settings);
        }
    }
}

/// Waits until a terminal has sent all that was written. Nothing happens to other files.
pub(crate) fn drain(file: BorrowedFd<'_>) {
    // SAFETY: the descriptor is open; an error is that it is no terminal.
    let _ = unsafe { libc::tcdrain(file.as_raw_fd()) };
}

/// Switches the machine off. Returns only if this process may not.
pub(crate) fn power_off() {
    // SAFETY: no addresses. In a virtual machine it is the emulator that ends.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn a_file_in_memory_is_a_file() {
        let mut file = memory_file(c"test").unwrap();
        file.write_all(b"bytes").unwrap();
        file.rewind().unwrap();
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert_eq!(read, "bytes");
        make_raw(std::os::fd::AsFd::as_fd(&file));
    }

    #[test]
    fn errors_have_their_numbers() {
        assert!(mount(c"no-such-file-system", c"/").is_err());
    }

    #[test]
    fn a_child_runs_that_ends_with_its_parent() {
        let mut command = Command::new("true");
        kill_with_parent(&mut command);
        assert!(command.status().unwrap().success());
    }
}
