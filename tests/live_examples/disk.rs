//! A disk to read from: the null device of the module `null_blk`, as guests have it, or a loop
//! device over a file in a temporary directory, removed afterwards.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first device of `null_blk`, whose reads touch no memory.
const NULL: &str = "/dev/nullb0";

/// A disk.
pub struct Disk {
    device: String,
    /// The folder with the file behind a loop device.
    folder: Option<PathBuf>,
}

/// The size of a loop device in bytes.
const SIZE: u64 = 16 << 20;

impl Disk {
    /// Finds or creates one.
    ///
    /// # Errors
    /// What is missing.
    pub fn new(name: &str) -> Result<Self, String> {
        if Path::new(NULL).exists() {
            return Ok(Self {
                device: NULL.to_owned(),
                folder: None,
            });
        }
        let folder = std::env::temp_dir().join(format!("bpflab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("disk");
        let mut disk = Self {
            device: String::new(),
            folder: Some(folder),
        };
        File::create(&file).unwrap().set_len(SIZE).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show", "--read-only"])
            .arg(&file)
            .output();
        let made = made.map_err(|error| format!("no {NULL}, and losetup: {error}"))?;
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            return Err(format!("no {NULL}, and losetup: {}", why.trim()));
        }
        String::from_utf8_lossy(&made.stdout)
            .trim()
            .clone_into(&mut disk.device);
        Ok(disk)
    }

    /// Its path: `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.device
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let Some(folder) = &self.folder else {
            return;
        };
        if !self.device.is_empty() {
            let detached = Command::new("losetup")
                .args(["--detach", &self.device])
                .status();
            assert!(
                detached.is_ok_and(|status| status.success()),
                "{}",
                self.device
            );
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
