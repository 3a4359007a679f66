//! The `bpf(2)` call: its commands, and the encoding of addresses in its attributes.
//!
//! The attribute structures are those of `union bpf_attr` (`include/uapi/linux/bpf.h`), one per
//! command, up to the last field that bpflab sets. The kernel accepts shorter ones, and longer
//! ones if the fields it doesn't know are zero.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use zerocopy::{FromBytes, IntoBytes};

pub use crate::spec::BpfCommand as Cmd;
use crate::util::Errno;

/// The result of a system call, or its errno.
pub type Result<T> = std::result::Result<T, Errno>;

/// The attributes of a command: a structure without padding for which any bytes are valid. The
/// kernel may write to it.
pub trait Attributes: FromBytes + IntoBytes {}

impl<T: FromBytes + IntoBytes> Attributes for T {}

/// The attributes of `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
#[derive(FromBytes, IntoBytes)]
pub struct ObjGetInfo {
    pub bpf_fd: i32,
    pub info_len: u32,
    pub info: u64,
}

/// Makes the call.
///
/// # Safety
/// Each address in `attributes` is 0, or that of memory of the size given by the field next to
/// it (for maps: by the map's sizes), writable if the command writes to it, and without other
/// references then. Each descriptor is open.
pub unsafe fn bpf<A: Attributes>(command: Cmd, attributes: &mut A) -> Result<i32> {
    // SAFETY: the third argument is the size of what the second points to, which is initialised
    // and borrowed for the call; the caller vouches for the memory it refers to.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            std::ptr::from_mut(attributes),
            size_of::<A>(),
        )
    };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(last_errno()),
    }
}

/// The errno of a failed call, also of one in the standard library.
pub fn errno_of(error: &io::Error) -> Errno {
    let number = error.raw_os_error().map(u16::try_from);
    Errno(
        number
            .and_then(std::result::Result::ok)
            .unwrap_or(Errno::EIO.0),
    )
}

/// The errno of the last system call.
pub fn last_errno() -> Errno {
    errno_of(&io::Error::last_os_error())
}

/// Repeats a call while signals interrupt it.
pub fn retried<T: PartialOrd + From<i8>>(mut call: impl FnMut() -> T) -> T {
    loop {
        let result = call();
        if result >= T::from(0) || last_errno() != Errno::EINTR {
            return result;
        }
    }
}

/// Makes a call whose result is a new descriptor.
///
/// # Safety
/// As for [`bpf`], and the command returns a new descriptor.
pub unsafe fn open<A: Attributes>(command: Cmd, attributes: &mut A) -> Result<OwnedFd> {
    // SAFETY: as the caller promises.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of bytes that the kernel reads; 0 if empty.
pub fn read_address(bytes: &[u8]) -> u64 {
    if bytes.is_empty() {
        0
    } else {
        bytes.as_ptr().expose_provenance() as u64
    }
}

/// The address of bytes that the kernel writes; 0 if empty.
pub fn write_address(bytes: &mut [u8]) -> u64 {
    if bytes.is_empty() {
        0
    } else {
        bytes.as_mut_ptr().expose_provenance() as u64
    }
}

/// A length for a 32-bit field.
pub fn length(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| Errno::E2BIG)
}

pub fn number(fd: Option<BorrowedFd<'_>>) -> i32 {
    fd.map_or(0, |fd| fd.as_raw_fd())
}

/// The address of a NUL-terminated text that the kernel reads; 0 for none.
pub fn text_address(text: Option<&CStr>) -> u64 {
    text.map_or(0, |text| text.as_ptr().expose_provenance() as u64)
}

/// A duplicate of a descriptor.
pub fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    fd.try_clone_to_owned().map_err(|error| errno_of(&error))
}
