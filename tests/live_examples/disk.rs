//! A test disk: a loop device over a file in a temporary directory, removed afterwards.

use crate::shared::{Need, skip};
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

/// A loop device.
pub struct Disk {
    device: String,
    folder: PathBuf,
}

/// Its size in bytes.
const SIZE: u64 = 16 << 20;

impl Disk {
    /// Creates one. None if that can't be done here, which is printed.
    pub fn new(name: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("bpflab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut disk = Self {
            device: String::new(),
            folder,
        };
        let file = disk.folder.join("disk");
        File::create(&file).unwrap().set_len(SIZE).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show", "--read-only"])
            .arg(&file)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                String::from_utf8_lossy(&made.stdout)
                    .trim()
                    .clone_into(&mut disk.device);
                Some(disk)
            }
            Ok(made) => {
                let why = String::from_utf8_lossy(&made.stderr);
                skip(Need::Tools, format_args!("losetup: {}", why.trim()));
                None
            }
            Err(error) => {
                skip(Need::Tools, format_args!("losetup: {error}"));
                None
            }
        }
    }

    /// Its path: `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.device
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
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
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
