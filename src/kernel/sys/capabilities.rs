//! The calling thread's capabilities.

use super::bpf::{Result, last_errno};

/// `_LINUX_CAPABILITY_VERSION_3`: two words for each set (`include/uapi/linux/capability.h`).
const VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`; process 0 is the calling thread.
#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// `struct __user_cap_data_struct`: 32 capabilities of each set.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Takes capabilities from the effective set of the calling thread, until this is dropped. The
/// permitted set keeps them.
#[derive(Debug)]
pub struct DroppedCapabilities {
    before: [Sets; 2],
}

impl DroppedCapabilities {
    /// Drops the capabilities with these numbers, below 64.
    pub fn new(numbers: impl Iterator<Item = u32>) -> Result<Self> {
        let mut header = Header {
            version: VERSION,
            pid: 0,
        };
        let mut before = [Sets::default(); 2];
        // SAFETY: the kernel writes two `Sets` for this version.
        let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut before) };
        if result != 0 {
            return Err(last_errno());
        }
        let dropped = Self { before };
        let mut fewer = before;
        for number in numbers {
            if let Some(word) = fewer.get_mut(number as usize / 32) {
                word.effective &= !(1 << (number % 32));
            }
        }
        set(&fewer)?;
        Ok(dropped)
    }
}

impl Drop for DroppedCapabilities {
    fn drop(&mut self) {
        // All of them are still permitted, so this can't fail.
        let _ = set(&self.before);
    }
}

fn set(sets: &[Sets; 2]) -> Result<()> {
    let mut header = Header {
        version: VERSION,
        pid: 0,
    };
    // SAFETY: the kernel reads two `Sets` for this version.
    let result =
        unsafe { libc::syscall(libc::SYS_capset, &raw mut header, std::ptr::from_ref(sets)) };
    match result {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effective() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    }

    #[test]
    fn capabilities_come_back() {
        let before = effective();
        let dropped = DroppedCapabilities::new([21, 39].into_iter()).unwrap();
        assert_eq!(effective(), before & !(1 << 21 | 1 << 39));
        drop(dropped);
        assert_eq!(effective(), before);
    }
}
