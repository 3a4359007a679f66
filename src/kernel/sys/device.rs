//! Network devices (`netdevice(7)`), of this thread's network namespace: `/sys/class/net` shows
//! those of the namespace in which it was mounted.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::bpf::{Result, last_errno};
use crate::util::Errno;

/// The index of a device.
///
/// # Errors
/// `ENODEV` if there is none of this name.
pub(crate) fn device_index(name: &str) -> Result<i32> {
    let name = CString::new(name).map_err(|_| Errno::ENODEV)?;
    // SAFETY: the name ends with a zero byte and lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(last_errno()),
        index => i32::try_from(index).map_err(|_| Errno::ENODEV),
    }
}

#[cfg(feature = "cli")]
/// Switches a network device on, `ip link set NAME up`.
///
/// # Errors
/// `ENODEV` if there is none of this name.
pub(crate) fn set_device_up(name: &str) -> Result<()> {
    // SAFETY: zeros are a valid value of this structure of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
    let bytes = name.as_bytes_with_nul();
    let room = request
        .ifr_name
        .get_mut(..bytes.len())
        .ok_or(Errno::EINVAL)?;
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    // SAFETY: no addresses.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just opened this descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the kernel writes the flags into the structure, which is borrowed mutably.
    let got = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
    if got < 0 {
        return Err(last_errno());
    }
    let up = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: SIOCGIFFLAGS has filled in the flags; any bits are a valid value.
    unsafe { request.ifr_ifru.ifru_flags |= up };
    // SAFETY: the kernel reads the structure.
    let set = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if set < 0 { Err(last_errno()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        assert_eq!(device_index("no such device at all"), Err(Errno::ENODEV));
        assert_eq!(device_index("a\0b"), Err(Errno::ENODEV));
        assert!(set_device_up("no such device at all").is_err());
        assert_eq!(set_device_up("a\0b"), Err(Errno::EINVAL));
    }
}
