//! Private mounts, and files opened relative to a folder's descriptor.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::bpf::{Result, last_errno};
use crate::util::Errno;

/// `FSOPEN_CLOEXEC`, `FSMOUNT_CLOEXEC` (`include/uapi/linux/mount.h`).
const CLOEXEC: libc::c_long = 1;
/// `FSCONFIG_SET_STRING` and `FSCONFIG_CMD_CREATE`.
const SET_STRING: libc::c_long = 1;
const CREATE: libc::c_long = 6;
/// `MOUNT_ATTR_NOSUID`, `MOUNT_ATTR_NODEV` and `MOUNT_ATTR_NOEXEC`.
const HARMLESS: libc::c_long = 2 | 4 | 8;

/// The mode in which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing, after truncation.
    Write,
}

/// A file system that is being configured (`fsopen(2)`).
#[derive(Debug)]
pub struct FileSystem(OwnedFd);

impl FileSystem {
    /// Begins to configure a file system of this type.
    pub fn open(name: &CStr) -> Result<Self> {
        // SAFETY: the name is NUL-terminated and only read.
        owned(unsafe { libc::syscall(libc::SYS_fsopen, name.as_ptr(), CLOEXEC) }).map(Self)
    }

    /// Sets a mount option.
    pub fn set(&self, key: &CStr, value: &CStr) -> Result<()> {
        self.configure(SET_STRING, Some(key), Some(value))
    }

    /// Creates it with the options.
    pub fn create(&self) -> Result<()> {
        self.configure(CREATE, None, None)
    }

    /// Mounts it for a descriptor only.
    pub fn mount(&self) -> Result<Folder> {
        let number = libc::c_long::from(self.0.as_raw_fd());
        // SAFETY: the descriptor is open; the rest are numbers.
        owned(unsafe { libc::syscall(libc::SYS_fsmount, number, CLOEXEC, HARMLESS) }).map(Folder)
    }

    fn configure(
        &self,
        command: libc::c_long,
        key: Option<&CStr>,
        value: Option<&CStr>,
    ) -> Result<()> {
        let address = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: the descriptor is open; key and value are NUL-terminated and only read, or null
        // where the command takes none.
        let result = unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                libc::c_long::from(self.0.as_raw_fd()),
                command,
                address(key),
                address(value),
                0 as libc::c_long,
            )
        };
        if result < 0 {
            Err(last_errno())
        } else {
            Ok(())
        }
    }
}

impl From<OwnedFd> for FileSystem {
    /// The descriptor of `fsopen`.
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl AsFd for FileSystem {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A folder, as a file descriptor.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder by its path.
    pub fn open(path: &CStr) -> Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path is NUL-terminated and only read.
        owned(unsafe { libc::open(path.as_ptr(), flags) }.into()).map(Self)
    }

    /// The root of a file system, mounted for this descriptor only: the mount has no path, and
    /// closing the descriptor unmounts it.
    pub fn mount(file_system: &CStr) -> Result<Self> {
        let file_system = FileSystem::open(file_system)?;
        file_system.create()?;
        file_system.mount()
    }

    /// The magic number of the folder's file system (`include/uapi/linux/magic.h`).
    pub fn magic(&self) -> Result<u64> {
        // SAFETY: zeros are a valid value of this struct of integers.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open; the struct, which is written, is borrowed mutably.
        match unsafe { libc::fstatfs(self.0.as_raw_fd(), &raw mut about) } {
            // The field's sign and width differ between machines.
            0 => Ok(u64::try_from(i128::from(about.f_type)).unwrap_or(u64::MAX)),
            _ => Err(last_errno()),
        }
    }

    /// Opens a file in the folder.
    pub fn file(&self, path: &str, access: Access) -> Result<File> {
        let flags = match access {
            Access::Read => libc::O_RDONLY,
            Access::Write => libc::O_WRONLY | libc::O_TRUNC,
        };
        self.open_at(&c_string(path)?, flags).map(File::from)
    }

    /// Opens a folder in the folder.
    pub fn folder(&self, path: &str) -> Result<Self> {
        self.open_at(&c_string(path)?, libc::O_RDONLY | libc::O_DIRECTORY)
            .map(Self)
    }

    /// The folder itself, opened for reading.
    pub fn opened(&self) -> Result<Self> {
        self.open_at(c".", libc::O_RDONLY | libc::O_DIRECTORY)
            .map(Self)
    }

    fn open_at(&self, path: &CStr, flags: libc::c_int) -> Result<OwnedFd> {
        let at = self.0.as_raw_fd();
        // SAFETY: the descriptor is open; the path is NUL-terminated and only read.
        owned(unsafe { libc::openat(at, path.as_ptr(), flags | libc::O_CLOEXEC) }.into())
    }

    /// The names of the folders in it, sorted.
    pub fn folders(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let mut buffer = vec![0; 1 << 15];
        // At its start.
        let fd = self.opened()?;
        loop {
            // SAFETY: the descriptor is open; the kernel writes at most as many bytes as the
            // buffer has, which is borrowed mutably.
            let read = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    fd.0.as_raw_fd(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                )
            };
            let read = usize::try_from(read).map_err(|_| last_errno())?;
            let Some(entries) = buffer.get(..read).filter(|entries| !entries.is_empty()) else {
                break;
            };
            names.extend(Entries(entries));
        }
        names.sort();
        Ok(names)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The names of folders in a buffer of `getdents64`: records of an inode number, an offset, the
/// record's length (2 bytes), the type, and the NUL-terminated name.
struct Entries<'a>(&'a [u8]);

impl Iterator for Entries<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        const LENGTH: std::ops::Range<usize> = 16..18;
        const TYPE: usize = 18;
        const NAME: usize = 19;
        while !self.0.is_empty() {
            let length = self.0.get(LENGTH)?.try_into().ok()?;
            let (entry, rest) = self.0.split_at_checked(u16::from_ne_bytes(length).into())?;
            self.0 = rest;
            let name = CStr::from_bytes_until_nul(entry.get(NAME..)?).ok()?;
            let name = name.to_string_lossy();
            if entry.get(TYPE) == Some(&libc::DT_DIR) && name != "." && name != ".." {
                return Some(name.into_owned());
            }
        }
        None
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Errno::EINVAL)
}

/// The descriptor that a call has just opened, or the call's errno.
fn owned(result: libc::c_long) -> Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel has just opened this descriptor, so nobody else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(last_errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_listed_without_files() {
        let root = CString::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        let names = Folder::open(&root).unwrap().folders().unwrap();
        assert!(names.iter().any(|name| name == "src"), "{names:?}");
        assert!(
            names
                .iter()
                .all(|name| name != "Cargo.toml" && name != "..")
        );
        assert!(names.is_sorted());
    }

    #[test]
    fn entries_that_are_cut_off_end_the_list() {
        let mut entry = vec![0; 24];
        entry[16] = 24;
        entry[18] = libc::DT_DIR;
        entry[19] = b'x';
        assert_eq!(Entries(&entry).collect::<Vec<_>>(), ["x"]);
        assert_eq!(Entries(&entry[..20]).count(), 0);
        // A length of 0 must not loop forever.
        entry[16] = 0;
        assert_eq!(Entries(&entry).count(), 0);
    }

    #[test]
    fn a_failure_has_its_number() {
        let root = Folder::open(c"/").unwrap();
        let missing = root.file("no such file", Access::Read).map(drop);
        assert_eq!(missing, Err(Errno::ENOENT));
        assert_eq!(root.folder("a\0b").map(drop), Err(Errno::EINVAL));
        assert_eq!(Folder::open(c"/proc").unwrap().magic(), Ok(0x9fa0));
    }
}
